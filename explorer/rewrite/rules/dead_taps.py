"""Family K: places of a kernel that only ever meet padding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import Context, array, dim, operand, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, refuse_unless
from explorer.rewrite.rules.conv_parts import weight_of
from explorer.rewrite.rules.kernel_size import Window, crop, crop_match, window_of


class CropPaddingTaps(PatternRule):
    """A kernel loses the outer rows and columns that lie in the padding wherever it is placed."""

    name = "crop-padding-taps"
    family = "K2"
    title = "Crop kernel rows and columns that only meet padding"
    numeric_class = NumericClass.EXACT
    preconditions = (
        "Constant finite weight, explicit pads, static spatial sizes; the outermost rows or columns of the kernel "
        "fall outside the input for every output position (dilation above the input's size, as in ASPP heads)."
    )
    evidence = "DeepLabV3 (dilation 36 on 33x33, 3x3 becomes 1x1): -5 % at ALL, -15 % at DISABLE (ORT 1.32 CPU, screening)."
    anchors = ("Conv",)

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Conv with pads so wide that part of its kernel never meets the input."""
        window, source = window_of(node), operand(node, 0)
        if window is None or not _may_miss(window):
            return None
        sizes = [dim(source, axis) for axis in range(2, 2 + len(window.kernel))]
        known = [size for size in sizes if isinstance(size, int)]
        if len(known) != len(sizes):
            raise Refusal(f"the spatial size of {text(source)} is not known")
        border = [_dead(window, axis, size) for axis, size in enumerate(known)]
        if not any(map(any, border)):
            return None
        weight = weight_of(node)
        refuse_unless(np.isfinite(array(weight)).all(), f"{text(weight)} has values that are not finite")
        return crop_match(node, window, border, weight)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The same Conv with a smaller kernel and smaller pads."""
        return [crop(match, build)]


def _may_miss(window: Window) -> bool:
    """Whether the pads reach a second place of the kernel from the border: ordinary pads do not."""
    pads = zip(window.begins, window.ends, window.dilations, window.kernel, strict=True)
    return any(kernel > 1 and max(begin, end) >= step > 1 for begin, end, step, kernel in pads)


def _dead(window: Window, axis: int, size: int) -> tuple[int, int]:
    """Places (before, after) along an axis that no output position puts on the input; one place stays.

    No more than the pads make room for: what is left of a pad cannot be negative.
    """
    kernel, step = window.kernel[axis], window.dilations[axis]
    begin, stride = window.begins[axis], window.strides[axis]
    span = size + begin + window.ends[axis] - (kernel - 1) * step - 1
    starts = range(-begin, span - begin + 1, stride)
    alive = [p for p in range(kernel) if any(0 <= start + p * step < size for start in starts)]
    if not alive:
        return 0, 0
    before, after = alive[0], kernel - 1 - alive[-1]
    return min(before, begin // step), min(after, window.ends[axis] // step)


RULES = (CropPaddingTaps(),)
