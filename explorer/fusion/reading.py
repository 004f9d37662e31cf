"""An ONNX graph as plain values: the only place where fusion touches the model.

Constants, and nodes that compute nothing but constants (the Shape of a known tensor, the arithmetic of a
Reshape's target), are marked as such: fusion treats them as attributes of the nodes that read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from explorer.fusion.arithmetic import solved_dims
from explorer.fusion.dims import unknown_dim
from explorer.graph import Graph, bodies_of, constant_tensor, holder_of, is_constant_node, node_id
from explorer.graph.describe import tensor_info
from explorer.graph.dims import Dims, fixed, with_dims

Attribute = int | float | str | tuple[int, ...]
_SMALL_CONSTANT = 64  # elements; pads, axes, shapes
_SHAPE_ROUNDS = 4  # each round of shape inference may uncover further shape arithmetic
_NOT_REPEATABLE = {"RandomNormal", "RandomUniform", "Multinomial", "Bernoulli"}


@dataclass(frozen=True)
class RawValue:
    """One tensor: an unknown dim is its name or None. ``values``: elements of a small integer constant."""

    name: str
    dims: tuple[int | str | None, ...] | None
    values: tuple[int, ...] | None = None

    @property
    def static_dims(self) -> tuple[int, ...] | None:
        """The dims if all are known."""
        known = tuple(d for d in self.dims or () if isinstance(d, int))
        return known if self.dims is not None and len(known) == len(self.dims) else None


@dataclass(frozen=True)
class RawOp:
    """One node of the main graph. Operands and results are keys of values.

    Attributes:
        ids: the node's id, then those of the nodes in its bodies.
        captured: values of the main graph that its bodies read.
        is_constant: its result depends on constants and known shapes alone.
    """

    ids: tuple[str, ...]
    op_type: str
    domain: str
    operands: tuple[int | None, ...]
    captured: tuple[int, ...]
    results: tuple[int, ...]
    attributes: Mapping[str, Attribute]
    has_body: bool
    is_constant: bool

    def ints(self, name: str) -> tuple[int, ...]:
        """An attribute that is a list of integers; empty if it is absent."""
        found = self.attributes.get(name, ())
        return found if isinstance(found, tuple) else ()

    def integer(self, name: str, default: int) -> int:
        """An attribute that is one integer."""
        found = self.attributes.get(name, default)
        return found if isinstance(found, int) else default

    def text(self, name: str, default: str = "") -> str:
        """An attribute that is a string."""
        found = self.attributes.get(name, default)
        return found if isinstance(found, str) else default


@dataclass(frozen=True)
class RawGraph:
    """All values by key, the nodes in topological order, and which values are inputs, outputs, constants."""

    name: str
    values: Mapping[int, RawValue]
    ops: tuple[RawOp, ...]
    inputs: tuple[int, ...]
    outputs: frozenset[int]
    constants: frozenset[int]

    def dims(self, key: int) -> tuple[int, ...]:
        """Known dims of a value; raises InputError with the tensor and the dimension that is unknown."""
        value = self.values[key]
        dims = value.static_dims
        if dims is None:
            raise unknown_dim(self.name, value.name, value.dims)
        return dims

    def is_data(self, key: int | None) -> bool:
        """Whether an operand is there and is computed or fed at run time."""
        return key is not None and key not in self.constants


def read(graph: Graph, dims: Dims | None = None) -> RawGraph:
    """Read a graph, with unknown dimensions fixed as ``with_dims`` says; raises InputError as that does."""
    graph = with_dims(graph, dims) if dims else graph
    raw = _read(graph)
    for _ in range(_SHAPE_ROUNDS):
        solved = solved_dims(raw)
        if not solved:
            break
        graph, _used = fixed(graph, solved)
        raw = _read(graph)
    return raw


def _read(graph: Graph) -> RawGraph:
    values, constants = _values(graph)
    inner, captured = _bodies(graph)
    ops = []
    for node in graph.nodes:
        if holder_of(node) is None:
            op = _op(graph, node_id(node), inner, captured, values, constants)
            constants.update(op.results if op.is_constant else ())
            ops.append(op)
    return RawGraph(
        name=graph.name,
        values=values,
        ops=tuple(ops),
        inputs=tuple(id(v) for v in graph.inputs),
        outputs=frozenset(id(v) for v in graph.outputs),
        constants=frozenset(constants),
    )


def _values(graph: Graph) -> tuple[dict[int, RawValue], set[int]]:
    """Every value by the identity of its object (the graph, which outlives the reading, keeps them)."""
    values: dict[int, RawValue] = {}
    constants: set[int] = set()
    results = [v for node in graph.nodes for v in node.outputs]
    for value in (*graph.inputs, *graph.overridable, *graph.initializers(), *results):
        info, tensor = tensor_info(value), constant_tensor(value)
        integers: tuple[int, ...] | None = None
        if tensor is not None and tensor.size <= _SMALL_CONSTANT and tensor.dtype.is_integer():
            integers = tuple(int(v) for v in tensor.numpy().reshape(-1))
        values[id(value)] = RawValue(info.name, info.shape, integers)
        if info.is_constant:
            constants.add(id(value))
    return values, constants


def _bodies(graph: Graph) -> tuple[dict[str, list[str]], dict[str, dict[int, None]]]:
    """By outermost holder: the ids of the nodes in its bodies, and what they and the bodies' outputs read."""
    inner: dict[str, list[str]] = {}
    captured: dict[str, dict[int, None]] = {}
    for node in graph.nodes:
        outermost = node
        while (holder := holder_of(outermost)) is not None:
            outermost = holder
        read = captured.setdefault(node_id(outermost), {})
        for attribute in node.attributes.values():
            read.update((id(v), None) for body in bodies_of(attribute) for v in body.outputs)
        if outermost is not node:
            inner.setdefault(node_id(outermost), []).append(node_id(node))
            read.update((id(v), None) for v in node.inputs if v is not None)
    return inner, captured


def _op(
    graph: Graph,
    identifier: str,
    inner: Mapping[str, list[str]],
    captured: Mapping[str, Mapping[int, None]],
    values: Mapping[int, RawValue],
    constants: set[int],
) -> RawOp:
    node = graph.node(identifier)
    operands = tuple(None if v is None else id(v) for v in node.inputs)
    nested = {id(v) for inside in inner.get(identifier, ()) for v in graph.node(inside).outputs}
    outer = tuple(
        key for key in captured.get(identifier, {}) if key in values and key not in nested | set(operands)
    )
    has_body = any(bodies_of(a) for a in node.attributes.values())
    if is_constant_node(node):
        constant = True
    elif has_body or node.op_type in _NOT_REPEATABLE or not operands:
        constant = False
    elif node.op_type in {"Shape", "Size"} and operands[0] is not None:
        constant = values[operands[0]].static_dims is not None
    else:
        constant = all(key is None or key in constants for key in operands)
    return RawOp(
        ids=(identifier, *inner.get(identifier, ())),
        op_type=node.op_type,
        domain="" if node.domain == "ai.onnx" else node.domain,
        operands=operands,
        captured=outer,
        results=tuple(id(v) for v in node.outputs),
        attributes={k: v for k, a in node.attributes.items() if (v := _plain(a.value)) is not None},
        has_body=has_body,
        is_constant=constant,
    )


def _plain(value: object) -> Attribute | None:
    """An attribute's value if it is a number, a string or a list of integers."""
    if isinstance(value, int | float | str):
        return value
    if isinstance(value, tuple | list) and all(isinstance(v, int) for v in value):
        return tuple(value)
    return None
