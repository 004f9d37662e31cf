"""Small questions that many patterns ask: operands in any order, scalar factors, perms, axes, neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import (
    dim,
    integers,
    operand,
    operator,
    rank,
    readers,
    same_shape,
    scalar,
    shape_of,
)
from explorer.rewrite.rules.axes import given_axes, perm_of
from explorer.rewrite.walk import whereabouts

FLOAT_OR_HALF = frozenset({ir.DataType.FLOAT, ir.DataType.FLOAT16})
FLOAT_OR_DOUBLE = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE})
FLOAT_HALF_DOUBLE = FLOAT_OR_HALF | FLOAT_OR_DOUBLE


def both_orders(node: ir.Node) -> Iterator[tuple[ir.Value, ir.Value]]:
    """The two operands of a commutative node in both orders; nothing if one is missing."""
    a, b = operand(node, 0), operand(node, 1)
    if a is not None and b is not None:
        yield a, b
        yield b, a


def single_use(value: ir.Value) -> bool:
    """Whether exactly one operand of one node is this value and it is no graph output."""
    return len(whereabouts(value)) == 1 and not value.is_graph_output()


def absorbed(*nodes: ir.Node) -> tuple[ir.Node, ...]:
    """Those of the nodes whose only output is read by as many operands as it is listed, and nothing else.

    They disappear when those operands are replaced; the others stay because something still needs them.
    """
    return tuple(node for node in dict.fromkeys(nodes) if _goes(node, nodes.count(node)))


def _goes(node: ir.Node, operands: int) -> bool:
    uses = whereabouts(node.outputs[0])
    at_home = all(reader.graph is node.graph for reader in uses)
    return len(uses) == operands and at_home and not node.outputs[0].is_graph_output()


def reader_of(value: ir.Value, *operators: str) -> ir.Node | None:
    """The first reader that is one of these operators, even if others read the value too."""
    return next((node for node in readers(value) if operator(node) in operators), None)


def keeps_shape(constant: ir.Value | None, value: ir.Value | None) -> bool:
    """Whether a one-element constant leaves the shape of ``value`` alone when broadcast against it."""
    own, other = rank(constant), rank(value)
    return own == 0 or (own is not None and other is not None and own <= other)


def number_beside(node: ir.Node) -> tuple[ir.Value, float] | None:
    """(x, c) of a commutative node whose other operand is a one-element constant that keeps x's shape."""
    for value, constant in both_orders(node):
        number = scalar(constant)
        if number is not None and scalar(value) is None and keeps_shape(constant, value):
            return value, number
    return None


def factor_of(node: ir.Node | None) -> tuple[ir.Value, float] | None:
    """(x, c) if the node is x * c, c * x or x / (1 / c) with a one-element constant; c finite and not 0."""
    if node is None or operator(node) not in {"Mul", "Div"}:
        return None
    value, number = operand(node, 0), scalar(operand(node, 1))
    if node.op_type == "Mul":
        found = number_beside(node)
        return found if found is not None and isfinite(found[1]) and found[1] != 0 else None
    if value is None or not number or not isfinite(number) or not keeps_shape(operand(node, 1), value):
        return None
    return None if scalar(value) is not None else (value, 1.0 / number)


def close(value: float | None, wanted: float, dtype: ir.DataType | None = None) -> bool:
    """Whether a constant is this number, as far as its element type can tell."""
    coarse = dtype in {ir.DataType.FLOAT16, ir.DataType.BFLOAT16}
    return value is not None and abs(value - wanted) <= (4e-3 if coarse else 1e-6) * max(1.0, abs(wanted))


def is_float32(number: float) -> bool:
    """Whether a number survives being stored as a float attribute."""
    return float(np.float32(number)) == number


def number_like(build: Builder, number: float, like: ir.Value, hint: str) -> ir.Value:
    """A scalar constant of the element type of ``like``."""
    return build.constant(np.array(number, dtype=(like.dtype or ir.DataType.FLOAT).numpy()), hint)


def swaps_last_two(node: ir.Node) -> bool:
    """Whether a Transpose swaps the last two axes and nothing else."""
    perm = perm_of(node)
    if perm is None or len(perm) < 2:
        return False
    n = len(perm)
    return perm == (*range(n - 2), n - 1, n - 2)


def last_two_swapped(rank_: int) -> tuple[int, ...]:
    """The permutation that swaps the last two axes."""
    return (*range(rank_ - 2), rank_ - 1, rank_ - 2)


def reduced_axes(node: ir.Node) -> tuple[int, ...] | None:
    """Axes of a reduction, counted from the end (negative) and sorted; None if not known.

    Raises:
        Refusal: they are computed at run time.
    """
    given, size = given_axes(node), rank(operand(node, 0))
    if not given:
        if node.attributes.get_int("noop_with_empty_axes", 0) or size is None:
            return None
        return tuple(range(-size, 0))
    if size is None:
        return tuple(sorted(given)) if all(axis < 0 for axis in given) else None
    return tuple(sorted(axis - size if axis >= 0 else axis for axis in given))


def broadcasts_into(small: ir.Value | None, large: ir.Value | None) -> bool:
    """Whether ``small`` provably broadcasts one way to the shape of ``large``."""
    own, other = rank(small), rank(large)
    if own is None or other is None or own > other:
        return False
    for axis in range(-own, 0):
        size = dim(small, axis)
        if size != 1 and (size is None or size != dim(large, axis)):
            return False
    return True


def is_last_axis(axis: int | None, value: ir.Value | None) -> bool:
    """Whether an axis attribute means the last axis of ``value``."""
    size = rank(value)
    return axis == -1 or (size is not None and axis == size - 1)


def all_same_shape(values: list[ir.Value]) -> bool:
    """Whether all values provably have the same shape."""
    return all(same_shape(values[0], other) for other in values[1:])


def reshaped_dims(reshape: ir.Node) -> tuple[int | str | None, ...] | None:
    """Dims of a Reshape's result, as inferred or as its constant target says; None if the rank is unknown.

    In the bodies of control flow, shape inference does not look at constants outside.
    """
    inferred, target = shape_of(reshape.outputs[0]), integers(operand(reshape, 1))
    if target is None:
        return inferred
    copies = not reshape.attributes.get_int("allowzero", 0)
    written = (
        None if size < 0 else dim(operand(reshape, 0), axis) if size == 0 and copies else size
        for axis, size in enumerate(target)
    )
    known = inferred if inferred is not None else (None,) * len(target)
    return tuple(own if isinstance(own, int) else other for other, own in zip(known, written, strict=True))


def describe_dims(value: ir.Value | None) -> str:
    """A shape for a sentence: ``[2, n, ?]``, or "unknown"."""
    size = rank(value)
    if size is None:
        return "unknown"
    found = (dim(value, axis) for axis in range(size))
    return f"[{', '.join('?' if d is None else str(d) for d in found)}]"
