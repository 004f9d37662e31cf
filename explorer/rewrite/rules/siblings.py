"""What rules about several nodes with the same input share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import Context, integers, operand, operator
from explorer.rewrite.walk import uses_of

_MOST_PAIRS_OF = 6


def siblings(node: ir.Node, context: Context) -> list[ir.Node]:
    """Nodes of the same operator and graph with the same first input, in order; [] unless ``node`` is first."""
    source = node.inputs[0]
    if source is None:
        return []
    found = [
        reader
        for reader, position in uses_of(source)
        if position == 0 and operator(reader) == operator(node) and reader.graph is node.graph
    ]
    found.sort(key=context.position.__getitem__)
    return found if len(found) > 1 and found[0] is node else []


def groups(members: Sequence[ir.Node]) -> Iterator[tuple[ir.Node, ...]]:
    """All members together, and every pair of them."""
    yield tuple(members)
    if 2 < len(members) <= _MOST_PAIRS_OF:
        yield from combinations(members, 2)


def split(value: ir.Value, sizes: Sequence[int], axis: int, build: Builder) -> tuple[ir.Value, ...]:
    """A Split in the form of the model's opset."""
    if build.opset < 13:
        return build.ops("Split", [value], {"axis": axis, "split": list(sizes)}, outputs=len(sizes))
    return build.ops("Split", [value, build.ints(sizes, "split")], {"axis": axis}, outputs=len(sizes))


def split_bytes(parts: int, context: Context) -> int:
    """Bytes of the constant that ``split`` creates for the sizes."""
    return 8 * parts if context.opset >= 13 else 0


def split_sizes(node: ir.Node, total: int | None) -> tuple[int, ...] | None:
    """Constant sizes of a Split: attribute, input, or equal parts of ``total``; None if not known."""
    given = node.attributes.get_ints("split", None)
    if given:
        return tuple(given)
    if operand(node, 1) is not None:
        return integers(node.inputs[1])
    count = len(node.outputs)
    if total is None:
        return None
    part = -(-total // count)
    return tuple(min(part, total - i * part) for i in range(count))


def slices(array: np.ndarray, sizes: Sequence[int], axis: int) -> list[np.ndarray]:
    """Cut an array into consecutive parts of these sizes."""
    return np.split(array, np.cumsum(sizes)[:-1], axis=axis)
