"""A graph as plain values: what a screen, a table or a JSON document needs, without onnx objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir as ir

from explorer.graph.graph import Graph, bodies_of, constant_tensor, holder_of, is_constant_node, node_id
from explorer.graph.statistics import flops, node_parameters, parameters, sum_if_known, value_bytes

Dim = int | str | None
_SHOWN_ELEMENTS = 24
_SHOWN_CHARACTERS = 200


@dataclass(frozen=True)
class TensorInfo:
    """Name, element type and shape of a tensor; an unknown dim is None, a symbolic one its name."""

    name: str
    dtype: str
    shape: tuple[Dim, ...] | None
    bytes: int | None
    is_constant: bool

    @property
    def shape_text(self) -> str:
        """Such as "1x64x56x56", "?xN" or "unknown"."""
        if self.shape is None:
            return "unknown"
        return "x".join("?" if d is None else str(d) for d in self.shape) or "scalar"


@dataclass(frozen=True)
class NodeInfo:
    """One node: identity, place, operands, attributes and cost. ``parent`` holds it in a body."""

    id: str
    name: str
    op_type: str
    domain: str
    scope: tuple[str, ...]
    parent: str | None
    inputs: tuple[TensorInfo | None, ...]
    outputs: tuple[TensorInfo, ...]
    attributes: tuple[tuple[str, str], ...]
    flops: int | None
    bytes: int | None
    parameters: int
    is_constant: bool

    @property
    def operator(self) -> str:
        """Operator with its domain where that is not the standard one, e.g. "vendor.ops::FancyGate"."""
        return f"{self.domain}::{self.op_type}" if self.domain not in {"", "ai.onnx"} else self.op_type


@dataclass(frozen=True)
class EdgeInfo:
    """One use of a tensor. No source: a graph input; no target: a graph output."""

    source: str | None
    target: str | None
    tensor: str
    shape_text: str
    bytes: int | None


@dataclass(frozen=True)
class GraphSummary:
    """Everything that is shown of a graph."""

    name: str
    nodes: tuple[NodeInfo, ...]
    edges: tuple[EdgeInfo, ...]
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    opset: tuple[tuple[str, int], ...]
    parameters: int
    flops: int | None
    known_flops: int
    notices: tuple[str, ...]

    def ops(self) -> dict[str, int]:
        """Operator counts, most frequent first."""
        return dict(Counter(node.operator for node in self.nodes).most_common())


def describe(graph: Graph) -> GraphSummary:
    """Summarise a graph; constants are operands of nodes, not edges."""
    model, infos = graph.model, _Tensors()
    nodes = tuple(_node(node, infos) for node in graph.nodes)
    return GraphSummary(
        name=graph.name,
        nodes=nodes,
        edges=tuple(_edges(graph, infos)),
        inputs=tuple(infos[v] for v in model.graph.inputs),
        outputs=tuple(infos[v] for v in model.graph.outputs),
        opset=tuple(sorted(model.opset_imports.items())),
        parameters=parameters(graph),
        flops=sum_if_known(node.flops for node in nodes),
        known_flops=sum(node.flops or 0 for node in nodes),
        notices=graph.notices,
    )


class _Tensors(dict[ir.Value, TensorInfo]):
    """Each value is described once, however many nodes read it."""

    def __missing__(self, value: ir.Value) -> TensorInfo:
        self[value] = tensor_info(value)
        return self[value]


def tensor_info(value: ir.Value) -> TensorInfo:
    """Describe one value."""
    tensor = constant_tensor(value)
    dtype = value.dtype if value.dtype is not None else (tensor.dtype if tensor is not None else None)
    return TensorInfo(
        name=value.name or "",
        dtype=_type_name(value.type) if dtype is None or _is_compound(value) else dtype.name.lower(),
        shape=None if _is_compound(value) else _dims(value, tensor),
        bytes=value_bytes(value),
        is_constant=tensor is not None or value.is_initializer(),
    )


def _dims(value: ir.Value, tensor: ir.TensorProtocol | None) -> tuple[Dim, ...] | None:
    if value.shape is not None:
        return tuple(d if isinstance(d, int) else d.value for d in value.shape)
    return None if tensor is None else tuple(int(d) for d in tensor.shape.numpy())


def _is_compound(value: ir.Value) -> bool:
    return not isinstance(value.type, ir.TensorType | None)


def scope_of(name: str) -> tuple[str, ...]:
    """The enclosing modules that an exporter wrote into a node's name, outermost first."""
    parts = [part for part in name.split("/") if part]
    return tuple(parts[:-1])


def _type_name(type_: ir.TypeProtocol | None) -> str:
    """Such as "float", "sequence(float)" or "unknown"."""
    if type_ is None:
        return "unknown"
    if isinstance(type_, ir.SequenceType | ir.OptionalType):
        kind = "sequence" if isinstance(type_, ir.SequenceType) else "optional"
        return f"{kind}({_type_name(type_.elem_type)})"
    sparse = "sparse " if isinstance(type_, ir.SparseTensorType) else ""
    return sparse + type_.dtype.name.lower()


def _node(node: ir.Node, infos: _Tensors) -> NodeInfo:
    holder = holder_of(node)
    operands = {value: infos[value] for value in (*node.inputs, *node.outputs) if value is not None}
    return NodeInfo(
        id=node_id(node),
        name=node.name or "",
        op_type=node.op_type,
        domain=node.domain,
        scope=scope_of(node.name or ""),
        parent=None if holder is None else node_id(holder),
        inputs=tuple(None if v is None else infos[v] for v in node.inputs),
        outputs=tuple(infos[v] for v in node.outputs if v.name),
        attributes=tuple((name, _attribute_text(a)) for name, a in node.attributes.items()),
        flops=flops(node),
        bytes=sum_if_known(info.bytes for info in operands.values()),
        parameters=node_parameters(node),
        is_constant=is_constant_node(node),
    )


def _attribute_text(attribute: ir.Attr) -> str:
    bodies = bodies_of(attribute)
    if bodies:
        return ", ".join(f"body of {body.num_nodes()} nodes" for body in bodies)
    if attribute.type == ir.AttributeType.TENSOR:
        return _tensor_text(attribute.value)
    value = attribute.value
    if isinstance(value, tuple | list) and len(value) > _SHOWN_ELEMENTS:
        return f"{len(value)} values: {_shortened(str(list(value[:_SHOWN_ELEMENTS]))[:-1])}, ...]"
    return _shortened(str(value))


def _tensor_text(tensor: ir.TensorProtocol) -> str:
    shape = "x".join(str(d) for d in tensor.shape.numpy()) or "scalar"
    values = f" {_shortened(str(tensor.numpy().tolist()))}" if tensor.size <= 8 else ""
    return f"{tensor.dtype.name.lower()} {shape}{values}"


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."


def _edges(graph: Graph, infos: _Tensors) -> Iterator[EdgeInfo]:
    for node in graph.nodes:
        for value in node.inputs:
            if value is not None and not infos[value].is_constant:
                yield _edge(value, node_id(node), infos[value])
    for value in graph.outputs:
        yield _edge(value, None, infos[value])


def _origin(value: ir.Value) -> str | None:
    """The node a value comes from; the input of a body comes from the node that holds the body."""
    producer = value.producer()
    if producer is None and value.graph is not None:
        producer = value.graph.meta.get("explorer.holder")
    return None if producer is None else node_id(producer)


def _edge(value: ir.Value, target: str | None, info: TensorInfo) -> EdgeInfo:
    return EdgeInfo(_origin(value), target, info.name, info.shape_text, info.bytes)
