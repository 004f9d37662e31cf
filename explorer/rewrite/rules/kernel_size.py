"""Family C: a convolution kernel enlarged with zeros to match a sibling's, and cropped again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import (
    Context,
    array,
    dims,
    element_bytes,
    ints,
    is_const,
    operand,
    operator,
    text,
)
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, Rule
from explorer.rewrite.rules.conv_parts import explicit_pads, group_of, weight_of
from explorer.rewrite.walk import uses_of


@dataclass(frozen=True)
class Window:
    """Kernel, strides, dilations and explicit pads of a convolution, one entry per spatial axis."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]

    @property
    def name(self) -> str:
        """Such as "3x3"."""
        return "x".join(map(str, self.kernel))


class EnlargeConvKernel(Rule):
    """A kernel gets a border of zeros (and the convolution pads to match), so that it fits a sibling's."""

    name = "enlarge-conv-kernel"
    family = "C3"
    title = "Enlarge a kernel with zeros to that of a sibling"
    numeric_class = NumericClass.DOMAIN
    inverse = "crop-conv-kernel"
    default = False
    preconditions = (
        "Constant weight, group 1, explicit pads; another convolution of the same tensor with a larger kernel, the "
        "same strides and dilations, whose window covers this one's; zeros times infinity would differ."
    )
    evidence = "Never pays alone: a step towards C4."
    anchors = ("Conv",)

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """One match per larger window among the siblings."""
        own = window_of(node)
        wanted = dict.fromkeys(w for conv in _siblings(node) if (w := window_of(conv)) is not None)
        for other in wanted:
            if own is None or group_of(node) != 1 or not _is_larger(other, own):
                continue
            border = border_to(own, other)
            if border is None:
                yield Refusal(f"a window of {other.name} with its strides and pads does not cover this one")
                continue
            weight = weight_of(node)
            size = kernel_bytes(weight, other)
            summary = f"{text(node.outputs[0])}: the kernel {own.name} becomes {other.name}"
            bindings = {"window": other, "border": border}
            yield Match((node,), (node.outputs[0],), bindings, other.name, summary, size, (weight,))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The same Conv with a larger kernel and larger pads."""
        (conv,) = match.nodes
        weight = enlarged(array(conv.inputs[1]), match["border"])
        return [rewindowed(conv, weight, match["window"], match.outputs[0], build)]


class CropConvKernel(PatternRule):
    """A kernel whose border is zero loses it, and the convolution pads less."""

    name = "crop-conv-kernel"
    family = "C3"
    title = "Crop the zero border of a kernel"
    numeric_class = NumericClass.DOMAIN
    inverse = "enlarge-conv-kernel"
    default = False
    preconditions = (
        "Constant weight, explicit pads; whole rows or columns at the border are zero in every filter and the pads "
        "are at least as large."
    )
    evidence = "The reverse of C3."
    anchors = ("Conv",)

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Conv with a zero border."""
        weight, own = operand(node, 1), window_of(node)
        if weight is None or own is None or not is_const(weight):
            return None
        zeros = _zero_border(array(weight), own)
        if zeros is None:
            return None
        border = _within_pads(zeros, own)
        if not any(map(any, border)):
            raise Refusal(
                f"the border of {text(weight)} is zero, but the pads are {[*own.begins, *own.ends]}"
            )
        return crop_match(node, own, border, weight)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The same Conv with a smaller kernel and smaller pads."""
        return [crop(match, build)]


def crop_match(conv: ir.Node, own: Window, border: Sequence[tuple[int, int]], weight: ir.Value) -> Match:
    """The match of a Conv whose kernel loses a border (before, after) per axis."""
    window = cropped(own, border)
    summary = f"{text(conv.outputs[0])}: the kernel {own.name} becomes {window.name}"
    bindings = {"window": window, "border": border}
    size = kernel_bytes(weight, window)
    return Match((conv,), (conv.outputs[0],), bindings, window.name, summary, size, (weight,))


def crop(match: Match, build: Builder) -> ir.Value:
    """The Conv of a ``crop_match`` with its smaller kernel and pads."""
    (conv,) = match.nodes
    weight = array(conv.inputs[1])
    sizes = zip(weight.shape[2:], match["border"], strict=True)
    inner = [slice(before, size - after) for size, (before, after) in sizes]
    everything = slice(None)
    smaller = weight[(everything, everything, *inner)]
    return rewindowed(conv, smaller, match["window"], match.outputs[0], build)


def window_of(conv: ir.Node) -> Window | None:
    """The window of a Conv; None if the kernel is unknown or the pads are not explicit."""
    shape = dims(operand(conv, 1))
    if shape is None or len(shape) < 3:
        return None
    n, ones = len(shape) - 2, (1,) * (len(shape) - 2)
    pads = explicit_pads(conv, n)
    if pads is None:
        return None
    strides, dilations = ints(conv, "strides", ones), ints(conv, "dilations", ones)
    return Window(tuple(shape[2:]), strides, dilations, pads[:n], pads[n:])


def border_to(own: Window, other: Window) -> tuple[tuple[int, int], ...] | None:
    """Zeros (before, after) per axis that make ``own`` compute with the window of ``other``; None if impossible."""
    if len(own.kernel) != len(other.kernel) or own.strides != other.strides:
        return None
    border = []
    for axis, (size, wanted) in enumerate(zip(own.kernel, other.kernel, strict=True)):
        step = other.dilations[axis]
        if size > 1 and own.dilations[axis] != step:
            return None
        before, rest = divmod(other.begins[axis] - own.begins[axis], step)
        after, more = divmod(other.ends[axis] - own.ends[axis], step)
        if rest or more or before < 0 or after < 0 or before + after != wanted - size:
            return None
        border.append((before, after))
    return tuple(border)


def enlarged(weight: np.ndarray, border: Sequence[tuple[int, int]]) -> np.ndarray:
    """The weight with zeros around its spatial axes."""
    return np.pad(weight, [(0, 0), (0, 0), *border])


def kernel_bytes(weight: ir.Value, window: Window) -> int:
    """Bytes of a weight with the kernel of another window."""
    shape = dims(weight) or ()
    return int(np.prod([*shape[:2], *window.kernel])) * element_bytes(weight)


def with_window(conv: ir.Node, window: Window) -> dict[str, object]:
    """The attributes of a Conv with another kernel, pads and dilations."""
    changed: dict[str, object] = {"pads": [*window.begins, *window.ends]}
    if "kernel_shape" in conv.attributes:
        changed["kernel_shape"] = list(window.kernel)
    if window.dilations != ints(conv, "dilations", (1,) * len(window.kernel)):
        changed["dilations"] = list(window.dilations)
    return attributes_of(conv, "auto_pad", **changed)


def rewindowed(conv: ir.Node, weight: np.ndarray, window: Window, like: ir.Value, build: Builder) -> ir.Value:
    """The same Conv with another kernel and the window that goes with it."""
    hint = conv.inputs[1].name if conv.inputs[1] is not None else "weight"
    operands = [conv.inputs[0], build.constant(weight, f"{hint}_{window.name}"), *conv.inputs[2:]]
    return build.op("Conv", operands, with_window(conv, window), like=like)


def _siblings(node: ir.Node) -> list[ir.Node]:
    source = operand(node, 0)
    uses = [] if source is None else uses_of(source)
    return [r for r, position in uses if position == 0 and operator(r) == "Conv" and r is not node]


def _is_larger(other: Window, own: Window) -> bool:
    if len(other.kernel) != len(own.kernel) or other.kernel == own.kernel:
        return False
    return all(a >= b for a, b in zip(other.kernel, own.kernel, strict=True))


def _zero_border(weight: np.ndarray, window: Window) -> tuple[tuple[int, int], ...] | None:
    """Zero planes (before, after) per spatial axis; None if there are none.

    The first filter is looked at before all of them, so that an ordinary weight costs nothing.
    """
    if weight.size == 0 or max(window.kernel) == 1 or not any(map(any, _border_of(weight[:1]))):
        return None
    border = _border_of(weight)
    return border if any(map(any, border)) else None


def _border_of(weight: np.ndarray) -> tuple[tuple[int, int], ...]:
    border = []
    for axis in range(2, weight.ndim):
        others = tuple(a for a in range(weight.ndim) if a != axis)
        used = np.flatnonzero(np.any(weight != 0, axis=others))
        last = weight.shape[axis] - 1
        border.append((int(used[0]), int(last - used[-1])) if used.size else (0, last))
    return tuple(border)


def _within_pads(border: Sequence[tuple[int, int]], own: Window) -> tuple[tuple[int, int], ...]:
    """As much of the border as leaves no negative pads."""
    limits = zip(border, own.begins, own.ends, own.dilations, strict=True)
    return tuple((min(b, begin // step), min(a, end // step)) for (b, a), begin, end, step in limits)


def cropped(own: Window, border: Sequence[tuple[int, int]]) -> Window:
    """The window without a border (before, after) per axis; the pads shrink with it."""
    before, after = [b for b, _ in border], [a for _, a in border]
    kernel = tuple(k - b - a for k, b, a in zip(own.kernel, before, after, strict=True))
    return Window(
        kernel,
        own.strides,
        tuple(1 if k == 1 else d for k, d in zip(kernel, own.dilations, strict=True)),
        tuple(p - b * d for p, b, d in zip(own.begins, before, own.dilations, strict=True)),
        tuple(p - a * d for p, a, d in zip(own.ends, after, own.dilations, strict=True)),
    )


RULES = (EnlargeConvKernel(), CropConvKernel())
