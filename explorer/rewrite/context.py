"""Questions a matcher asks about a graph: constants, shapes, attributes, neighbours, paths."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator
from functools import cached_property

import numpy as np
import onnx_ir as ir

from explorer.graph import Graph, constant_tensor, holder_of
from explorer.graph.graph import bodies_of
from explorer.graph.statistics import static_dims
from explorer.rewrite.rule import Refusal
from explorer.rewrite.walk import is_read_outside, look_at, source_of, uses_of, whereabouts

_UNIFORM_LIMIT = 65536  # larger constants are not scanned for uniform values


class Context:
    """A graph with what matchers need to look up quickly; valid while the graph does not change."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.opset = graph.opset() or 0

    @cached_property
    def position(self) -> dict[ir.Node, int]:
        """Place of each node in topological order."""
        return {node: i for i, node in enumerate(self.graph.nodes)}

    @cached_property
    def constant_nodes(self) -> frozenset[ir.Node]:
        """Nodes without bodies that depend, directly or through others, on constants only."""
        found: set[ir.Node] = set()
        for node in self.graph.nodes:
            is_fed = False
            for value in node.inputs:
                if value is not None:
                    is_fed = value.producer() in found or is_const(value)
                    if not is_fed:
                        break
            if is_fed and not has_bodies(node):
                found.add(node)
        return frozenset(found)

    def reaches(self, start: ir.Node, goal: ir.Node) -> bool:
        """Whether a path of tensors (captures by bodies included) leads from ``start`` to ``goal``."""
        return start is goal or any(node is goal for node in self._downstream([start], self.position[goal]))

    def detour(self, nodes: Collection[ir.Node]) -> ir.Node | None:
        """A node outside a set (of one graph) on a path from the set back into it; None if there is none.

        Replacing a set with a detour by one node would create a cycle (G7).
        """
        last = max(self.position[node] for node in nodes)
        outside = dict.fromkeys(r for n in nodes for r in self._readers_of(n, last) if r not in nodes)
        for node in outside:
            if any(found in nodes for found in self._downstream([node], last)):
                return node
        return None

    def _downstream(self, start: Iterable[ir.Node], limit: int) -> Iterator[ir.Node]:
        """Nodes of the same graph that depend on ``start``, up to a position in the order."""
        stack = list(start)
        seen = set(stack)
        while stack:
            for reader in self._readers_of(stack.pop(), limit):
                if reader not in seen:
                    seen.add(reader)
                    stack.append(reader)
                    yield reader

    def _readers_of(self, node: ir.Node, limit: int) -> list[ir.Node]:
        found = [_lift(reader, node.graph) for output in node.outputs for reader in whereabouts(output)]
        return [reader for reader in found if reader is not None and self.position[reader] <= limit]


def _lift(node: ir.Node, graph: object) -> ir.Node | None:
    """The node of ``graph`` that holds ``node`` in one of its bodies, or the node itself."""
    current: ir.Node | None = node
    while current is not None and current.graph is not graph:
        current = holder_of(current)
    return current


def goes_with(node: ir.Node, removed: Container[ir.Node]) -> bool:
    """Whether a node is among the removed ones or inside the body of one of them."""
    current: ir.Node | None = node
    while current is not None and current not in removed:
        current = holder_of(current)
    return current is not None


def tensor(value: ir.Value | None) -> ir.TensorProtocol | None:
    """The constant tensor behind a value; None if it can change at run time or be overridden."""
    return constant_tensor(value)


def nbytes(value: ir.Value | None) -> int:
    """Bytes of a constant (of strings: their characters); 0 for anything else."""
    found = constant_tensor(value)
    return 0 if found is None else found.nbytes


def freed_bytes(drops: Iterable[ir.Value | None], removed: Iterable[ir.Node]) -> int:
    """Bytes of the dropped constants that only the removed nodes, or bodies of theirs, read."""
    gone = set(removed)
    values = dict.fromkeys(value for value in drops if value is not None)
    return sum(
        nbytes(v)
        for v in values
        if not v.is_graph_output() and not is_read_outside(v, lambda reader: goes_with(reader, gone))
    )


def element_bytes(value: ir.Value) -> int:
    """Bytes of one element; 0 if the type is unknown."""
    return 0 if value.dtype is None else value.dtype.bitwidth // 8


def constants_of(nodes: Iterable[ir.Node]) -> tuple[ir.Value, ...]:
    """The distinct constant operands of some nodes."""
    operands = (value for node in nodes for value in node.inputs)
    return tuple(dict.fromkeys(v for v in operands if v is not None and constant_tensor(v) is not None))


def array(value: ir.Value | None) -> np.ndarray:
    """The elements of a constant; call it only where ``tensor(value)`` is not None."""
    found = constant_tensor(value)
    if found is None:
        raise Refusal(f"'{value.name if value else ''}' is not a constant")
    return found.numpy()


def is_const(value: ir.Value | None) -> bool:
    """Whether a value is a compile-time constant."""
    return constant_tensor(value) is not None


def scalar(value: ir.Value | None) -> float | None:
    """The value of a constant with exactly one element, of any rank; None otherwise."""
    found = constant_tensor(value)
    if found is None or found.size != 1 or found.dtype == ir.DataType.STRING:
        return None
    return float(found.numpy().ravel()[0])


def uniform(value: ir.Value | None) -> float | None:
    """The common value of all elements of a (not too large) constant; None if they differ."""
    found = constant_tensor(value)
    if found is None or not 0 < found.size <= _UNIFORM_LIMIT or found.dtype == ir.DataType.STRING:
        return None
    elements = found.numpy().ravel()
    return float(elements[0]) if bool((elements == elements[0]).all()) else None


def integers(value: ir.Value | None) -> tuple[int, ...] | None:
    """The elements of a constant integer tensor (axes, pads, a shape); None if not constant."""
    found = constant_tensor(value)
    if found is None or found.dtype.is_floating_point() or found.dtype == ir.DataType.STRING:
        return None
    return tuple(int(x) for x in found.numpy().ravel())


def dims(value: ir.Value | None) -> tuple[int, ...] | None:
    """All dims of a value if they are static, else None."""
    return static_dims(value)


def rank(value: ir.Value | None) -> int | None:
    """Number of dims, or None if unknown."""
    if value is None:
        return None
    if value.shape is not None:
        return len(value.shape)
    found = constant_tensor(value)
    return None if found is None else len(found.shape.numpy())


def dim(value: ir.Value | None, axis: int) -> int | str | None:
    """One dim: an integer, the name of a symbol, or None if unknown or out of range."""
    if value is None or value.shape is None:
        found = static_dims(value)
        return found[axis] if found and -len(found) <= axis < len(found) else None
    if not -len(value.shape) <= axis < len(value.shape):
        return None
    found_dim = value.shape[axis]
    return found_dim if isinstance(found_dim, int) else found_dim.value


def shape_of(value: ir.Value | None) -> tuple[int | str | None, ...] | None:
    """All dims, each an integer, a symbol or None if unknown; None if the rank is unknown."""
    size = rank(value)
    return None if size is None else tuple(dim(value, axis) for axis in range(size))


def same_shape(a: ir.Value | None, b: ir.Value | None) -> bool:
    """Whether two shapes are provably equal: the same integers or the same symbols (G6)."""
    if a is None or b is None or rank(a) is None or rank(a) != rank(b):
        return False
    pairs = [(dim(a, i), dim(b, i)) for i in range(rank(a) or 0)]
    return all(x is not None and x == y for x, y in pairs)


def operator(node: ir.Node | None) -> str:
    """Operator name, prefixed by its domain unless standard: "Conv", "com.microsoft::FusedConv"."""
    if node is None:
        return ""
    return node.op_type if node.domain in {"", "ai.onnx"} else f"{node.domain}::{node.op_type}"


def operand(node: ir.Node, position: int) -> ir.Value | None:
    """An input by position; None if absent or omitted."""
    return node.inputs[position] if position < len(node.inputs) else None


def producer(value: ir.Value | None, *operators: str) -> ir.Node | None:
    """The node that computes a value, if it is one of these operators."""
    node = None if value is None else source_of(value)
    return node if node is not None and (not operators or operator(node) in operators) else None


def readers(value: ir.Value) -> tuple[ir.Node, ...]:
    """The distinct nodes that read a value, those inside bodies included."""
    return tuple(dict.fromkeys(node for node, _ in uses_of(value)))


def is_used(value: ir.Value) -> bool:
    """Whether a node reads a value or it is a graph output."""
    return value.is_graph_output() or bool(whereabouts(value))


def sole_reader(value: ir.Value, *operators: str) -> ir.Node | None:
    """The only reader of a value that is no graph output, if it is one of these operators."""
    found = dict.fromkeys(whereabouts(value))
    if len(found) != 1 or value.is_graph_output():
        return None
    (reader,) = found
    look_at(found)
    return reader if not operators or operator(reader) in operators else None


def exclusive(inner: Iterable[ir.Node], outer: ir.Node) -> tuple[ir.Node, ...]:
    """Those of the ``inner`` nodes that can go together with ``outer``, which comes after them.

    A node can go if its outputs are no graph outputs and only nodes that go read them.

    Args:
        inner: nodes, the last one in graph order first.
        outer: the node that goes in any case.
    """
    going = {outer: None}
    for node in inner:
        outputs = [value for value in node.outputs if value.name]
        if node.graph is outer.graph and all(
            not value.is_graph_output() and all(goes_with(reader, going) for reader in whereabouts(value))
            for value in outputs
        ):
            going[node] = None
    return tuple(node for node in going if node is not outer)


def split_operands(node: ir.Node) -> tuple[ir.Value, ir.Value] | None:
    """(variable, constant) of a commutative binary node, in either order; None if neither or both."""
    a, b = operand(node, 0), operand(node, 1)
    if a is None or b is None or is_const(a) == is_const(b):
        return None
    return (b, a) if is_const(a) else (a, b)


def ints(node: ir.Node, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
    """A list-of-integers attribute."""
    return tuple(node.attributes.get_ints(name, default) or default)


def text(value: ir.Value | None) -> str:
    """How to call a value in a sentence."""
    return "an unnamed tensor" if value is None or not value.name else f"'{value.name}'"


def has_bodies(node: ir.Node) -> bool:
    """Whether the node holds subgraphs (If, Loop, Scan)."""
    return any(bodies_of(attribute) for attribute in node.attributes.values())
