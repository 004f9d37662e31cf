"""Shapes that a graph computes: the result of a Reshape, Expand or ConstantOfShape told by a computed vector.

Fully known vectors are left to shape inference, which sees them as constants; here a vector such as
``[N, 12, 64]``, with the name of a dynamic dim in it, gives as much of the shape as it can.
"""

from __future__ import annotations

from collections import Counter
from itertools import zip_longest
from math import prod

import onnx_ir as ir

from explorer.graph.shape_values import Element, ShapeEvaluator, dims_of

Dims = tuple[Element, ...]


def computed_shapes(graph: ir.Graph) -> dict[ir.Value, Dims]:
    """What computed vectors tell about the shapes of node outputs.

    Args:
        graph: nodes in topological order, shapes filled in as far as they are known.

    Returns:
        Per output its dims: an integer, the name of a dynamic dim, or None where still unknown.
    """
    evaluator, found = ShapeEvaluator(), {}
    for node in graph:
        if node.domain not in {"", "ai.onnx"} or node.op_type not in _OPERANDS:
            continue
        position = _OPERANDS[node.op_type]
        vector = evaluator.value_of(node.inputs[position]) if position < len(node.inputs) else None
        dims = None if vector is None or vector.rank != 1 else _dims(node, vector.elements)
        if dims is not None:
            found[node.outputs[0]] = dims
    return found


_OPERANDS = {"Reshape": 1, "Expand": 1, "ConstantOfShape": 0}


def _dims(node: ir.Node, target: Dims) -> Dims | None:
    if node.op_type == "ConstantOfShape":
        return _if_possible(target)
    source = dims_of(node.inputs[0])
    if node.op_type == "Expand":
        return None if source is None else _if_possible(_broadcast(source, target))
    keeps_zeros = bool(node.attributes.get_int("allowzero", 0))
    return _if_possible(_reshaped(source, target, keeps_zeros=keeps_zeros))


def _if_possible(dims: Dims) -> Dims | None:
    return None if any(isinstance(dim, int) and dim < 0 for dim in dims) else dims


def _broadcast(a: Dims, b: Dims) -> Dims:
    pairs = zip_longest(reversed(a), reversed(b), fillvalue=1)
    return tuple(_wider(x, y) for x, y in pairs)[::-1]


def _wider(a: Element, b: Element) -> Element:
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    return next((dim for dim in (a, b) if isinstance(dim, int)), None)


def _reshaped(source: Dims | None, target: Dims, *, keeps_zeros: bool) -> Dims:
    dims: list[Element] = []
    for axis, dim in enumerate(target):
        copied = dim == 0 and not keeps_zeros
        dims.append(dim if not copied else source[axis] if source and axis < len(source) else None)
    if dims.count(-1) == 1 and source is not None:
        rest = tuple(dim for dim in dims if dim != -1)
        dims[dims.index(-1)] = _quotient(source, rest)
    return tuple(None if dim == -1 else dim for dim in dims)


def _quotient(source: Dims, rest: Dims) -> Element:
    """The dim that makes both sides hold equally many elements; names on both sides cancel."""
    if None in source or None in rest:
        return None
    names = Counter(dim for dim in source if isinstance(dim, str))
    other_names = Counter(dim for dim in rest if isinstance(dim, str))
    if other_names - names:
        return None
    left = list((names - other_names).elements())
    sizes = prod(d for d in source if isinstance(d, int)), prod(d for d in rest if isinstance(d, int))
    if not left:
        return sizes[0] // sizes[1] if sizes[1] and sizes[0] % sizes[1] == 0 else None
    return left[0] if len(left) == 1 and sizes[0] == sizes[1] else None
