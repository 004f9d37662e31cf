"""Family G: Slice and Gather moved above element-wise operators, which then have less to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import (
    Context,
    array,
    dim,
    element_bytes,
    integers,
    is_const,
    operand,
    producer,
    rank,
    shape_of,
    text,
)
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal
from explorer.rewrite.rules.axes import axis_of
from explorer.rewrite.rules.broadcasting import BROADCASTING
from explorer.rewrite.rules.elementwise import is_unary
from explorer.rewrite.rules.gathers import refuse_strings
from explorer.rewrite.rules.slice_parts import Bounds, bounds_of, build_slice, slice_bytes


@dataclass(frozen=True)
class _Cut:
    """What part of a tensor is taken: bounds by axis (Slice), or places along one axis (Gather)."""

    bounds: dict[int, Bounds]
    places: tuple[int, ...] | int | None = None
    axis: int = 0

    @property
    def taken(self) -> tuple[int, ...]:
        """The dims that a Gather puts in the place of its axis."""
        return (len(self.places),) if isinstance(self.places, tuple) else ()

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(self.bounds) if self.places is None else (self.axis,)

    def shifted(self, by: int, axes: Sequence[int]) -> _Cut:
        """The same cut on an operand with ``by`` leading axes less, along these axes of the result only."""
        bounds = {axis - by: self.bounds[axis] for axis in axes if axis in self.bounds}
        return _Cut(bounds, self.places, self.axis - by)

    def of(self, elements: np.ndarray) -> np.ndarray:
        """The part of an array."""
        if self.places is not None:
            return np.take(elements, self.places, axis=self.axis)
        places = [slice(None)] * elements.ndim
        for axis, cut in self.bounds.items():
            places[axis] = _python_slice(cut)
        return elements[tuple(places)]


class HoistSliceThroughElementwise(PatternRule):
    """Slice(f(x, y)) becomes f(Slice(x), Slice(y)); the same for Gather at constant places."""

    name = "hoist-slice-through-elementwise"
    family = "G6"
    title = "Take the part before the element-wise operator"
    numeric_class = NumericClass.EXACT
    preconditions = (
        "Constant bounds (or places of rank 0 or 1); every operand provably has the result's dim along the axis, or "
        "1 where the result's is larger, or lacks the axis; the operator is read by nothing else."
    )
    evidence = "Less work: the operator computes only what is used."
    anchors = ("Gather", "Slice")
    min_opset = 7
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Slice or Gather of an element-wise node's result."""
        inner = producer(operand(node, 0))
        if inner is None or not (is_unary(inner) or (inner.op_type in BROADCASTING and not inner.domain)):
            return None
        cut = _cut_of(node)
        if cut is None:
            return None
        data = inner.inputs[:1] if is_unary(inner) else inner.inputs
        if node.op_type == "Gather":
            for value in data:
                refuse_strings(value)
        cuts = {value: _cut_for(value, inner.outputs[0], cut, inner) for value in data if value is not None}
        if not any(c is not None for c in cuts.values()):
            raise Refusal(f"no operand of {inner.op_type} has the dims that are cut", (inner,))
        summary = f"{inner.op_type} is applied only to the part that is used"
        bindings = {"node": node, "inner": inner, "cut": cut, "cuts": cuts}
        drops = [value for value, c in cuts.items() if c is not None and is_const(value)]
        if not any(c == cut and not is_const(value) for value, c in cuts.items()):
            drops += [value for value in node.inputs[1:] if value is not None]
        size = _new_bytes(cut, cuts, context)
        return Match((inner, node), (node.outputs[0],), bindings, "", summary, size, tuple(drops))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The parts of the operands, then the operator."""
        inner, cuts = match["inner"], match["cuts"]
        made: dict[tuple[int, ...], ir.Value] = {}
        parts = {value: self._part(value, cut, match, build, made) for value, cut in cuts.items()}
        inputs = [parts.get(value, value) for value in inner.inputs]
        attributes = attributes_of(inner)
        return [build.op(inner.op_type, inputs, attributes, like=match.outputs[0], domain=inner.domain)]

    def _part(
        self,
        value: ir.Value,
        cut: _Cut | None,
        match: Match,
        build: Builder,
        made: dict[tuple[int, ...], ir.Value],
    ) -> ir.Value:
        """One operand: whole, a smaller constant, or cut with the operands of the given node where they fit."""
        node = match["node"]
        if cut is None:
            return value
        if is_const(value):
            return build.constant(cut.of(array(value)), f"{value.name or 'operand'}_part")
        if cut.places is None and cut != match["cut"]:
            part = build_slice(value, cut.bounds, build, made=made)
        else:
            changed = {"axis": cut.axis} if cut.places is not None else {}
            inputs = [value, *node.inputs[1:]]
            part = build.op(node.op_type, inputs, attributes_of(node, **changed), dtype=value.dtype)
        part.shape = _part_shape(value, cut)
        return part


def _cut_of(node: ir.Node) -> _Cut | None:
    if node.op_type == "Slice":
        bounds = bounds_of(node)
        size = rank(operand(node, 0))
        if size is None or not bounds:
            return None
        return _Cut(bounds)
    places, axis = integers(operand(node, 1)), axis_of(node, 0, rank(operand(node, 0)))
    size = rank(operand(node, 1))
    if places is None or size is None or size > 1 or axis is None:
        return None
    return _Cut({}, places if size else places[0], axis)


def _cut_for(value: ir.Value, result: ir.Value, cut: _Cut, inner: ir.Node) -> _Cut | None:
    """The cut of one operand; None if it stays whole; refuses where broadcasting makes that unclear."""
    size, full = rank(value), rank(result)
    if size is None or full is None:
        raise Refusal(f"the rank of {text(value)} is unknown", (inner,))
    by = full - size
    axes = []
    for axis in cut.axes:
        own, whole = dim(value, axis - by) if axis >= by else 1, dim(result, axis)
        if axis < by or (own == 1 and isinstance(whole, int) and whole != 1 and cut.places is None):
            continue
        if own is None or own != whole:
            raise Refusal(f"{text(value)} may be enlarged along axis {axis}, which is cut", (inner,))
        axes.append(axis)
    return cut.shifted(by, axes) if axes else None


def _new_bytes(whole: _Cut, cuts: Mapping[ir.Value, _Cut | None], context: Context) -> int:
    parts = [(value, cut) for value, cut in cuts.items() if cut is not None]
    total = sum(_part_elements(v, cut) * element_bytes(v) for v, cut in parts if is_const(v))
    bounds = [cut.bounds for v, cut in parts if not is_const(v) and cut.places is None and cut != whole]
    return total + slice_bytes(bounds, context)


def _part_elements(value: ir.Value, cut: _Cut) -> int:
    """Number of elements of the part of a constant, without reading it."""
    shape = _part_shape(value, cut)
    return prod(size for size in shape if isinstance(size, int)) if shape is not None else 0


def _python_slice(bounds: Bounds) -> slice:
    return slice(bounds.start, bounds.end, bounds.step)


def _part_shape(value: ir.Value, cut: _Cut) -> ir.Shape | None:
    """The shape of the part; None where a cut dim is dynamic."""
    sizes = list(shape_of(value) or ())
    if cut.places is not None:
        return ir.Shape([*sizes[: cut.axis], *cut.taken, *sizes[cut.axis + 1 :]])
    for axis, bounds in cut.bounds.items():
        size = sizes[axis]
        if not isinstance(size, int):
            return None
        sizes[axis] = len(range(*_python_slice(bounds).indices(size)))
    return ir.Shape(sizes)


RULES = (HoistSliceThroughElementwise(),)
