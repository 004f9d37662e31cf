"""Axes, permutations and Reshape targets: attributes in one opset, inputs in another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import Context, integers, operand, rank, text
from explorer.rewrite.rule import Refusal

_AXES_ARE_INPUT_SINCE = {"Squeeze": 13, "Unsqueeze": 13, "ReduceSum": 13}
_REDUCTIONS_SINCE = 18

Dims = Sequence[int | str | None]


def given_axes(node: ir.Node) -> tuple[int, ...] | None:
    """The axes of a Squeeze, Unsqueeze or reduction as written; None if it has none.

    Raises:
        Refusal: they are computed at run time.
    """
    attribute = node.attributes.get_ints("axes", None)
    if attribute is not None:
        return tuple(attribute)
    value = operand(node, 1)
    if value is None:
        return None
    found = integers(value)
    if found is None:
        raise Refusal(f"the axes of {text(node.outputs[0])} are not constant", (node,))
    return found


def normalise(axes: Iterable[int], size: int) -> tuple[int, ...] | None:
    """Sorted non-negative axes for a tensor of this rank; None if one is out of range or given twice."""
    found = sorted(axis + size if axis < 0 else axis for axis in axes)
    is_valid = len(set(found)) == len(found) and all(0 <= axis < size for axis in found)
    return tuple(found) if is_valid else None


def axis_of(node: ir.Node, default: int, size: int | None) -> int | None:
    """The ``axis`` attribute as a non-negative number; None if it cannot be known."""
    axis = node.attributes.get_int("axis", default)
    if axis is None or size is None or not -size <= axis < size:
        return None
    return axis + size if axis < 0 else axis


def axes_are_input(op_type: str, opset: int) -> bool:
    """Whether this operator takes its axes as an input in this opset."""
    return opset >= _AXES_ARE_INPUT_SINCE.get(op_type, _REDUCTIONS_SINCE)


def axes_bytes(op_type: str, axes: Sequence[int], context: Context) -> int:
    """Bytes of the constant that ``build_with_axes`` creates."""
    return 8 * len(axes) if axes_are_input(op_type, context.opset) else 0


def build_with_axes(
    op_type: str,
    value: ir.Value,
    axes: Sequence[int],
    build: Builder,
    *,
    keepdims: int | None = None,
    like: ir.Value | None = None,
    dtype: ir.DataType | None = None,
    shape: Dims | None = None,
) -> ir.Value:
    """A Squeeze, Unsqueeze or reduction in the form of the model's opset."""
    attributes: dict[str, object] = {} if keepdims is None else {"keepdims": keepdims}
    inputs: list[ir.Value | None] = [value]
    if axes_are_input(op_type, build.opset):
        inputs.append(build.ints(axes, "axes"))
    else:
        attributes["axes"] = list(axes)
    return build.op(op_type, inputs, attributes, like=like, dtype=dtype, shape=shape)


def perm_of(transpose: ir.Node) -> tuple[int, ...] | None:
    """The permutation of a Transpose (absent: axes reversed); None if the rank is unknown."""
    given = transpose.attributes.get_ints("perm", None)
    if given is not None:
        return tuple(given)
    size = rank(operand(transpose, 0))
    return None if size is None else tuple(reversed(range(size)))


def inverse_of(perm: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes ``perm``."""
    return tuple(sorted(range(len(perm)), key=perm.__getitem__))


def is_identity(perm: Sequence[int]) -> bool:
    """Whether a permutation moves nothing."""
    return tuple(perm) == tuple(range(len(perm)))


def permuted(dims: Dims | None, perm: Sequence[int]) -> Dims | None:
    """Dims after a Transpose; None if unknown."""
    return None if dims is None else [dims[axis] for axis in perm]


def reshape_target(result: Dims, source: Dims | None) -> tuple[int, ...] | None:
    """A constant Reshape target that gives ``result`` for every size of the dynamic dims.

    Static dims are written out, a dim that equals the source's at the same place is 0, and one other dim may
    be -1. None if more dims are dynamic, or a dim is 0 (where 0 and -1 would mean something else).
    """
    target: list[int] = []
    for axis, size in enumerate(result):
        same = source is not None and axis < len(source) and size is not None and source[axis] == size
        if size == 0 or (same and source is not None and 0 in source):
            return None
        target.append(size if isinstance(size, int) else 0 if same else -1)
    return tuple(target) if target.count(-1) <= 1 else None
