"""Family C: positions that a strided 1x1 convolution skips need not be computed."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import Context, dim, dims, ints, operand, operator, producer, text
from explorer.rewrite.legality import describe_node
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, refuse_unless
from explorer.rewrite.rules.broadcasting import UNARY
from explorer.rewrite.rules.conv_parts import has_zero_pads
from explorer.rewrite.rules.slice_parts import (
    OPEN_END,
    Bounds,
    bounds_of,
    build_slice,
    slice_bytes,
)

_ELEMENTWISE = UNARY | {"BatchNormalization"}


class SliceBeforeStridedConv(PatternRule):
    """Conv1x1(f(x), stride s) becomes Conv1x1(f(x[::s])), so that f works on what is used."""

    name = "slice-before-strided-conv"
    family = "C16"
    title = "Slice before an activation and a strided 1x1 convolution"
    numeric_class = NumericClass.EXACT
    inverse = "stride-instead-of-slice"
    preconditions = "Kernel 1, a stride above 1, no pads; f element-wise (or BatchNormalization) and read by nothing else."
    evidence = "Not measured: f does s * s times less, the Slice copies."
    anchors = ("Conv",)
    min_opset = 10

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A strided 1x1 Conv of an element-wise function."""
        strides, inner = ints(node, "strides", ()), producer(operand(node, 0))
        source = None if inner is None else operand(inner, 0)
        if (
            inner is None
            or source is None
            or operator(inner) not in _ELEMENTWISE
            or not _has_unit_kernel(node)
        ):
            return None
        if all(stride == 1 for stride in strides):
            return None
        refuse_unless(has_zero_pads(node), "the convolution pads", inner)
        bounds = {a: Bounds(0, OPEN_END, s) for a, s in enumerate(strides, start=2) if s != 1}
        summary = f"{describe_node(inner)} and the convolution work on every {max(strides)}. position"
        size = slice_bytes([bounds], context)
        return Match(
            (inner, node), (node.outputs[0],), {"bounds": bounds, "source": source}, "", summary, size
        )

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Slice, the function, and the Conv with stride 1."""
        inner, conv = match.nodes
        value = build_slice(match["source"], match["bounds"], build)
        operands = [value, *inner.inputs[1:]]
        dtype = inner.outputs[0].dtype
        value = build.op(inner.op_type, operands, attributes_of(inner), dtype=dtype, domain=inner.domain)
        attributes = attributes_of(conv, "strides")
        return [build.op("Conv", [value, *conv.inputs[1:]], attributes, like=match.outputs[0])]


class StrideInsteadOfSlice(PatternRule):
    """Conv1x1(f(x[::s])) becomes Conv1x1(f(x), stride s); f may be absent."""

    name = "stride-instead-of-slice"
    family = "C16"
    title = "Stride of a 1x1 convolution instead of a Slice"
    numeric_class = NumericClass.EXACT
    inverse = "slice-before-strided-conv"
    preconditions = (
        "Kernel 1, stride 1, no pads; a Slice over spatial axes from the start to the end with constant positive "
        "steps; f element-wise (or BatchNormalization); the values in between read by nothing else."
    )
    evidence = "Not measured: saves a copy; f does s * s times more."
    anchors = ("Conv",)

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A 1x1 Conv of a Slice, or of an element-wise function of one."""
        inner = producer(operand(node, 0))
        function = inner if inner is not None and operator(inner) in _ELEMENTWISE else None
        cut = producer(operand(function or node, 0), "Slice")
        if cut is None or not _has_unit_kernel(node) or set(ints(node, "strides", (1,))) != {1}:
            return None
        strides = _strides(cut, len(dims(node.inputs[1]) or ()))
        if strides is None:
            return None
        refuse_unless(has_zero_pads(node), "the convolution pads", cut)
        summary = f"the convolution of {text(node.outputs[0])} skips positions, nothing is sliced"
        nodes = (cut, node) if function is None else (cut, function, node)
        drops = tuple(cut.inputs[1:])
        return Match(nodes, (node.outputs[0],), {"strides": strides}, "", summary, 0, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The function, and the Conv with the steps as strides."""
        cut, *functions, conv = match.nodes
        value = cut.inputs[0]
        for node in functions:
            operands = [value, *node.inputs[1:]]
            dtype, attributes = node.outputs[0].dtype, attributes_of(node)
            value = build.op(node.op_type, operands, attributes, dtype=dtype, domain=node.domain)
        attributes = attributes_of(conv, strides=list(match["strides"]))
        return [build.op("Conv", [value, *conv.inputs[1:]], attributes, like=match.outputs[0])]


def _has_unit_kernel(conv: ir.Node) -> bool:
    shape = dims(operand(conv, 1))
    return shape is not None and len(shape) > 2 and all(size == 1 for size in shape[2:])


def _strides(cut: ir.Node, size: int) -> tuple[int, ...] | None:
    """The steps of a Slice per spatial axis; None if all are 1, a Refusal if it also cuts something off."""
    strides = [1] * (size - 2)
    try:
        found = bounds_of(cut)
    except Refusal:
        return None  # bounds computed at run time: no skipping of positions
    for axis, bounds in found.items():
        length = dim(cut.inputs[0], axis)
        whole = bounds.end >= OPEN_END or (isinstance(length, int) and bounds.end >= length)
        plain = bounds.start == 0 and whole and bounds.step > 0
        if bounds.step == 1 and plain:
            continue
        if all(other.step == 1 for other in found.values()):
            return None
        refuse_unless(axis >= 2, f"the Slice is over axis {axis}, which is not spatial", cut)
        refuse_unless(plain, f"the Slice does not keep every n-th position of axis {axis}", cut)
        strides[axis - 2] = bounds.step
    return tuple(strides) if any(step != 1 for step in strides) else None


RULES = (SliceBeforeStridedConv(), StrideInsteadOfSlice())
