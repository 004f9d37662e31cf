"""Families A and G: slices that keep everything, follow each other, or tile an axis like a Split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import Context, dim, exclusive, operand, producer, rank, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, Rule
from explorer.rewrite.rules.axes import axis_of
from explorer.rewrite.rules.elimination import Bypass, bypass
from explorer.rewrite.rules.siblings import siblings, split, split_sizes
from explorer.rewrite.rules.slice_parts import (
    Bounds,
    bounds_of,
    build_slice,
    normal_bounds_of,
    slice_bytes,
)

_MOST_TILINGS = 8  # of one axis that are offered


class EliminateSlice(Bypass):
    """A Slice that keeps everything becomes x."""

    name = "eliminate-slice"
    family = "A8"
    title = "Remove Slice that keeps everything"
    preconditions = (
        "Bounds constant; per axis step 1, start 0 and an end at or beyond the static dim (or open)."
    )
    evidence = "OnnxSlim#277, onnx/optimizer#263: both tools got Slice rules wrong."
    anchors = ("Slice",)

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Slice none of whose axes loses anything."""
        if normal_bounds_of(node):
            return None
        return bypass(node, f"{text(node.outputs[0])} is all of {text(node.inputs[0])}")


class MergeSlices(PatternRule):
    """Slice(Slice(x)) becomes one Slice."""

    name = "merge-slices"
    family = "A8"
    title = "Merge two slices"
    numeric_class = NumericClass.EXACT
    preconditions = "Bounds constant; an axis that both cut has steps 1 and bounds counted from the front (or a static dim)."
    evidence = "OnnxSlim#277, onnx/optimizer#263: both tools got Slice rules wrong."
    anchors = ("Slice",)
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Slice whose input is a Slice."""
        first = producer(operand(node, 0), "Slice")
        if first is None:
            return None
        inner, outer = normal_bounds_of(first), normal_bounds_of(node)
        bounds = dict(inner)
        for axis, cut in outer.items():
            merged = cut.after(inner[axis]) if axis in inner else cut
            if merged is None:
                raise Refusal(f"the bounds along axis {axis} cannot be added", (first,))
            bounds[axis] = merged
        nodes = (*exclusive([first], node), node)
        drops = tuple(value for n in nodes for value in n.inputs[1:])
        bindings = {"source": first.inputs[0], "bounds": bounds}
        size = slice_bytes([bounds], context)
        summary = f"{text(first.inputs[0])} is sliced once"
        return Match(nodes, (node.outputs[0],), bindings, "", summary, size, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Slice, or none if both keep everything."""
        if not match["bounds"]:
            return [match["source"]]
        return [build_slice(match["source"], match["bounds"], build, like=match.outputs[0])]


class SlicesToSplit(Rule):
    """Slices that tile an axis of x become one Split."""

    name = "slices-to-split"
    family = "G7"
    title = "Slices that tile an axis to Split"
    numeric_class = NumericClass.EXACT
    inverse = "split-to-slices"
    preconditions = (
        "Constant bounds along one axis with steps 1 that cover its static dim exactly, without overlap."
    )
    evidence = "onnxscript ships it."
    anchors = ("Slice",)
    min_opset = 2
    dtypes = None

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """The slices of the same tensor that together are a Split, per axis."""
        by_axis = _one_axis_slices(siblings(node, context))
        for axis, found in by_axis.items():
            total = dim(node.inputs[0], axis)
            if not isinstance(total, int):
                yield Refusal(f"dim {axis} of {text(node.inputs[0])} is not static", tuple(found.values()))
                continue
            tilings = list(islice(_tilings(sorted(found, key=_start), 0, total), _MOST_TILINGS))
            if not tilings:
                covered = ", ".join(f"{b.start}:{b.end}" for b in sorted(found, key=_start))
                reason = f"the slices {covered} do not tile dim {axis} of {text(node.inputs[0])} ({total})"
                yield Refusal(reason, tuple(found.values()))
            for tiles in tilings:
                yield self._match([found[bounds] for bounds in tiles], tiles, axis, context)

    def _match(
        self, slices: Sequence[ir.Node], tiles: Sequence[Bounds], axis: int, context: Context
    ) -> Match:
        nodes = tuple(sorted(slices, key=context.position.__getitem__))
        sizes = [bounds.end - bounds.start for bounds in tiles]
        bindings = {"source": nodes[0].inputs[0], "axis": axis, "sizes": sizes}
        drops = tuple(value for n in nodes for value in n.inputs[1:])
        size = 8 * len(sizes) if context.opset >= 13 else 0
        summary = f"{len(sizes)} slices of {text(nodes[0].inputs[0])} become one Split"
        outputs = tuple(n.outputs[0] for n in slices)
        return Match(nodes, outputs, bindings, f"axis{axis}", summary, size, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Split."""
        return split(match["source"], match["sizes"], match["axis"], build)


class SplitToSlices(PatternRule):
    """Split(x) becomes one Slice per part."""

    name = "split-to-slices"
    family = "G7"
    title = "Split to slices"
    numeric_class = NumericClass.EXACT
    inverse = "slices-to-split"
    preconditions = "Sizes constant, or equal parts of a static dim."
    evidence = "The reverse of G7: lets each part move on its own (G6)."
    anchors = ("Split",)
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Split with known sizes."""
        axis = axis_of(node, 0, rank(operand(node, 0)))
        total = dim(node.inputs[0], axis) if axis is not None else None
        sizes = split_sizes(node, total if isinstance(total, int) else None)
        if axis is None or sizes is None:
            raise Refusal(f"the sizes of the parts of {text(node.inputs[0])} are not known")
        starts = [sum(sizes[:index]) for index in range(len(sizes))]
        cuts = [{axis: Bounds(start, start + size)} for start, size in zip(starts, sizes, strict=True)]
        summary = f"{text(node.inputs[0])} is cut by {len(cuts)} slices"
        drops = tuple(node.inputs[1:])
        new_bytes = slice_bytes(cuts, context)
        bindings = {"source": node.inputs[0], "cuts": cuts}
        return Match((node,), tuple(node.outputs), bindings, "", summary, new_bytes, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The slices, which share equal bounds."""
        source: ir.Value = match["source"]
        made: dict[tuple[int, ...], ir.Value] = {}
        pairs = zip(match["cuts"], match.outputs, strict=True)
        return [build_slice(source, cut, build, like=output, made=made) for cut, output in pairs]


def _one_axis_slices(members: Sequence[ir.Node]) -> dict[int, dict[Bounds, ir.Node]]:
    """Slices along one axis only, by axis and bounds; axes with one slice are left out."""
    found: dict[int, dict[Bounds, ir.Node]] = {}
    for member in members:
        try:
            bounds = bounds_of(member)
        except Refusal:
            continue
        if len(bounds) == 1:
            ((axis, cut),) = bounds.items()
            found.setdefault(axis, {}).setdefault(cut.within(dim(member.inputs[0], axis)), member)
    return {axis: cuts for axis, cuts in found.items() if len(cuts) > 1}


def _tilings(found: Sequence[Bounds], place: int, total: int) -> Iterator[list[Bounds]]:
    """Every way to cover ``place`` to ``total`` by bounds one after the other, at least two from the start."""
    for bounds in found:
        if bounds.step != 1 or bounds.start != place or bounds.end <= place:
            continue
        if bounds.end == total:
            if place:
                yield [bounds]
        else:
            yield from ([bounds, *rest] for rest in _tilings(found, bounds.end, total))


def _start(bounds: Bounds) -> tuple[int, int]:
    return bounds.start, bounds.end


RULES = (EliminateSlice(), MergeSlices(), SlicesToSplit(), SplitToSlices())
