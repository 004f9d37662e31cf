"""Family G: Gather at constant places as Slice and Squeeze, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import Context, dim, integers, operand, producer, rank, shape_of, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, refuse_unless
from explorer.rewrite.rules.axes import axis_of, build_with_axes
from explorer.rewrite.rules.axis_operators import axes_of
from explorer.rewrite.rules.slice_parts import OPEN_END, Bounds, bounds_of, build_slice, slice_bytes


class GatherToSlice(PatternRule):
    """Gather(x, constant place) becomes Squeeze(Slice(x)); consecutive places become one Slice."""

    name = "gather-to-slice"
    family = "G12"
    title = "Gather at a constant place to Slice and Squeeze"
    numeric_class = NumericClass.EXACT
    inverse = "slice-to-gather"
    preconditions = (
        "Constant places: one, or consecutive ascending ones; within a static dim, or not negative."
    )
    evidence = "ONNX Runtime has GatherToSlice at EXTENDED."
    anchors = ("Gather",)
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Gather whose places are constant and consecutive."""
        places, size = integers(operand(node, 1)), rank(operand(node, 1))
        axis = axis_of(node, 0, rank(operand(node, 0)))
        if not places or size is None or size > 1 or axis is None:
            return None
        refuse_strings(node.inputs[0])
        first = places[0]
        if list(places) != list(range(first, first + len(places))):
            return None
        total = dim(node.inputs[0], axis)
        bounds = {axis: _from_places(first, len(places), total)}
        squeezes = size == 0
        summary = f"{text(node.outputs[0])} is cut out of {text(node.inputs[0])}"
        new_bytes = slice_bytes([bounds], context)  # the axes serve the Squeeze too
        bindings = {"bounds": bounds, "axis": axis, "squeezes": squeezes}
        return Match((node,), (node.outputs[0],), bindings, "", summary, new_bytes, (node.inputs[1],))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """A Slice, and a Squeeze for a single place."""
        (node,), (result,) = match.nodes, match.outputs
        source: ir.Value = node.inputs[0]  # type: ignore[assignment] # a Gather has an input
        if not match["squeezes"]:
            return [build_slice(source, match["bounds"], build, like=result)]
        axis, sizes = match["axis"], list(shape_of(source) or ())
        made: dict[tuple[int, ...], ir.Value] = {}
        part = build_slice(source, match["bounds"], build, made=made)
        part.shape = ir.Shape([*sizes[:axis], 1, *sizes[axis + 1 :]])
        if build.opset >= 13:
            return [build.op("Squeeze", [part, made[(axis,)]], like=result)]
        return [build_with_axes("Squeeze", part, (axis,), build, like=result)]


class SliceToGather(PatternRule):
    """Squeeze(Slice(x, one place)) becomes Gather(x, place)."""

    name = "slice-to-gather"
    family = "G12"
    title = "Slice of one place and Squeeze to Gather"
    numeric_class = NumericClass.EXACT
    inverse = "gather-to-slice"
    preconditions = (
        "The Slice takes one place along one axis, the Squeeze removes that axis; bounds constant."
    )
    evidence = "The reverse of G12."
    anchors = ("Squeeze",)
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Squeeze of a Slice."""
        cut = producer(operand(node, 0), "Slice")
        if cut is None:
            return None
        bounds, axes = bounds_of(cut), axes_of(node)
        if len(bounds) != 1 or axes != tuple(bounds):
            return None
        refuse_strings(cut.inputs[0])
        ((axis, found),) = bounds.items()
        place = _place(found, dim(cut.inputs[0], axis))
        if place is None:
            raise Refusal(f"{text(cut.outputs[0])} is not known to be one place along axis {axis}", (cut,))
        summary = f"{text(node.outputs[0])} is place {place} of {text(cut.inputs[0])}"
        drops = (*cut.inputs[1:], *node.inputs[1:])
        bindings = {"axis": axis, "place": place}
        return Match((cut, node), (node.outputs[0],), bindings, "", summary, 8, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Gather."""
        source = match.nodes[0].inputs[0]
        place = build.constant(np.array(match["place"], dtype=np.int64), "place")
        return [build.op("Gather", [source, place], {"axis": match["axis"]}, like=match.outputs[0])]


def refuse_strings(value: ir.Value | None) -> None:
    """Gather of strings cannot be checked: ONNX Runtime 1.32 returns only the first of each block."""
    holds_strings = value is not None and value.dtype == ir.DataType.STRING
    refuse_unless(
        not holds_strings, f"{text(value)} holds strings, whose Gather is wrong in ONNX Runtime 1.32"
    )


def _from_places(first: int, count: int, total: int | str | None) -> Bounds:
    """Bounds that take these consecutive places."""
    refuse_unless(first >= 0 or first + count <= 0, "the places go from the end to the front")
    if isinstance(total, int):
        refuse_unless(-total <= first and first + count <= total, f"place {first} is outside of {total}")
        first = first + total if first < 0 else first
        return Bounds(first, first + count)
    refuse_unless(first >= 0 or count == 1, "negative places of a dynamic dim")
    return Bounds(first, OPEN_END if first == -1 else first + count)


def _place(bounds: Bounds, total: int | str | None) -> int | None:
    if bounds.step != 1:
        return None
    if isinstance(total, int):
        cut = bounds.within(total)
        return cut.start if cut.end - cut.start == 1 else None
    if bounds.start == -1 and bounds.end >= OPEN_END:
        return -1
    same_side = (bounds.start >= 0) == (bounds.end >= 0) and bounds.end != 0
    return bounds.start if same_side and bounds.end - bounds.start == 1 else None


RULES = (GatherToSlice(), SliceToGather())
