"""What the rules about Slice share: its bounds per axis, and building one in the model's opset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import Context, dim, integers, operand, rank, text
from explorer.rewrite.rule import Refusal

OPEN_END = 2**31 - 1  # exporters write this or more for "to the end"
_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Bounds:
    """Start, end and step along one axis, as written or normalised to 0 <= start, end <= size."""

    start: int
    end: int
    step: int = 1

    @property
    def is_forward(self) -> bool:
        """Whether the bounds count from the front, in steps of one."""
        return self.step == 1 and self.start >= 0 and self.end >= 0

    def within(self, size: int | str | None) -> Bounds:
        """Clamped to a static size; unchanged if the size is dynamic or the step is not one."""
        if not isinstance(size, int) or self.step != 1:
            return self
        start, end = (min(max(x + size if x < 0 else x, 0), size) for x in (self.start, self.end))
        return Bounds(start, max(start, end))

    def keeps_all(self, size: int | str | None) -> bool:
        """Whether nothing is cut off."""
        if self.step != 1:
            return False
        if isinstance(size, int):
            return self.within(size) == Bounds(0, size)
        return self.start == 0 and self.end >= OPEN_END

    def after(self, first: Bounds) -> Bounds | None:
        """These bounds applied to the result of ``first``, as bounds of its input; None if not known."""
        if not (self.is_forward and first.is_forward):
            return None
        end = min(first.start + self.end, first.end, _LARGEST)
        return Bounds(min(first.start + self.start, _LARGEST), end)


def bounds_of(node: ir.Node) -> dict[int, Bounds]:
    """The bounds of a Slice by non-negative axis.

    Raises:
        Refusal: starts, ends, axes or steps are computed at run time, or a rank is needed and unknown.
    """
    starts, ends = _list(node, "starts", 1), _list(node, "ends", 2)
    axes, steps = _list(node, "axes", 3), _list(node, "steps", 4)
    starts, ends = starts or (), ends or ()
    axes = tuple(range(len(starts))) if axes is None else axes
    steps = (1,) * len(starts) if steps is None else steps
    size = rank(operand(node, 0))
    if size is None and any(axis < 0 for axis in axes):
        raise Refusal(f"the rank of {text(operand(node, 0))} is unknown", (node,))
    plain = [axis + (size or 0) if axis < 0 else axis for axis in axes]
    return {a: Bounds(s, e, t) for a, s, e, t in zip(plain, starts, ends, steps, strict=True)}


def normal_bounds_of(node: ir.Node) -> dict[int, Bounds]:
    """As ``bounds_of``, clamped to static dims, without axes of which everything is kept."""
    source = operand(node, 0)
    found = {axis: bounds.within(dim(source, axis)) for axis, bounds in bounds_of(node).items()}
    return {axis: b for axis, b in found.items() if not b.keeps_all(dim(source, axis))}


def slice_constants(bounds: Mapping[int, Bounds], opset: int) -> tuple[tuple[int, ...], ...]:
    """The operands (starts, ends, axes, perhaps steps) of a Slice; () where they are attributes."""
    if opset < 10:
        return ()
    columns = [tuple(b.start for b in bounds.values()), tuple(b.end for b in bounds.values()), tuple(bounds)]
    if any(b.step != 1 for b in bounds.values()):
        columns.append(tuple(b.step for b in bounds.values()))
    return tuple(columns)


def slice_bytes(slices: Sequence[Mapping[int, Bounds]], context: Context) -> int:
    """Bytes of the constants ``build_slice`` creates for these slices with one shared ``made``."""
    distinct = {column for bounds in slices for column in slice_constants(bounds, context.opset)}
    return sum(8 * len(column) for column in distinct)


def build_slice(
    value: ir.Value,
    bounds: Mapping[int, Bounds],
    build: Builder,
    *,
    like: ir.Value | None = None,
    made: dict[tuple[int, ...], ir.Value] | None = None,
) -> ir.Value:
    """A Slice in the form of the model's opset.

    Args:
        value: what is sliced.
        bounds: by axis.
        build: where to.
        like: a value of the result's type and shape.
        made: constants made so far in this rewrite, so that equal ones are made once.
    """
    made = {} if made is None else made
    columns = slice_constants(bounds, build.opset)
    if not columns:
        attributes = {
            "starts": [b.start for b in bounds.values()],
            "ends": [b.end for b in bounds.values()],
            "axes": list(bounds),
        }
        return build.op("Slice", [value], attributes, like=like, dtype=value.dtype)
    for column, hint in zip(columns, ("starts", "ends", "axes", "steps"), strict=False):
        if column not in made:
            made[column] = build.ints(column, hint)
    return build.op("Slice", [value, *(made[c] for c in columns)], like=like, dtype=value.dtype)


def _list(node: ir.Node, name: str, position: int) -> tuple[int, ...] | None:
    attribute = node.attributes.get_ints(name, None)
    if attribute is not None:
        return tuple(attribute)
    value = operand(node, position)
    if value is None:
        return None
    found = integers(value)
    if found is None:
        raise Refusal(f"the {name} of {text(node.outputs[0])} are not constant", (node,))
    return found
