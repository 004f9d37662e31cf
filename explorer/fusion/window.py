"""Kernel, stride, dilation and pads of convolutions and pools, with auto_pad resolved."""

from __future__ import annotations

from dataclasses import dataclass

from explorer.fusion.reading import RawOp

CONVOLUTIONS = frozenset({"Conv", "FusedConv", "ConvInteger", "QLinearConv", "ConvTranspose", "DeformConv"})
POOLS = frozenset({"MaxPool", "AveragePool", "LpPool"})


@dataclass(frozen=True)
class Window:
    """A sliding window, one entry per spatial axis; ``pads`` are the begins, then the ends."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]

    @property
    def rows(self) -> int:
        """Rows that one output row sees: the kernel along the first spatial axis, dilation included."""
        return (self.kernel[0] - 1) * self.dilations[0] + 1


def window_of(op: RawOp, data: tuple[int, ...], weight: tuple[int, ...] | None) -> Window | None:
    """The window of a convolution or pool; None for every other operator.

    Args:
        op: the node.
        data: dims of its first operand, [N, C, spatial...].
        weight: dims of its second operand, if it has one.
    """
    axes = len(data) - 2
    if op.domain or op.op_type not in CONVOLUTIONS | POOLS or axes < 1:
        return None
    kernel = op.ints("kernel_shape") or (weight or ())[2:]
    if len(kernel) != axes:
        return None
    strides = op.ints("strides") or (1,) * axes
    dilations = op.ints("dilations") or (1,) * axes
    return Window(kernel, strides, dilations, _pads(op, data, kernel, strides, dilations))


def _pads(
    op: RawOp,
    data: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
) -> tuple[int, ...]:
    mode, axes = op.text("auto_pad", "NOTSET"), len(kernel)
    if mode not in {"SAME_UPPER", "SAME_LOWER"} or op.op_type == "ConvTranspose":
        return op.ints("pads") or (0,) * (2 * axes)
    totals = []
    for size, k, s, d in zip(data[2:], kernel, strides, dilations, strict=True):
        outputs = -(-size // s)
        totals.append(max(0, (outputs - 1) * s + (k - 1) * d + 1 - size))
    smaller = tuple(total // 2 for total in totals)
    larger = tuple(total - half for total, half in zip(totals, smaller, strict=True))
    return smaller + larger if mode == "SAME_UPPER" else larger + smaller
