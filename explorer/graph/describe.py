"""A graph as plain values: what a screen, a table or a JSON document needs, without onnx objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir as ir

from explorer.graph.graph import Graph, bodies_of, constant_tensor, holder_of, is_constant_node, node_id
from explorer.graph.statistics import (
    flops,
    known_flops,
    node_parameters,
    parameters,
    total_flops,
    traffic_bytes,
    value_bytes,
)

Dim = int | str | None


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
    model = graph.model
    return GraphSummary(
        name=graph.name,
        nodes=tuple(_node(node) for node in graph.nodes),
        edges=tuple(_edges(graph)),
        inputs=tuple(tensor_info(v) for v in model.graph.inputs),
        outputs=tuple(tensor_info(v) for v in model.graph.outputs),
        opset=tuple(sorted(model.opset_imports.items())),
        parameters=parameters(graph),
        flops=total_flops(graph),
        known_flops=known_flops(graph),
        notices=graph.notices,
    )


def tensor_info(value: ir.Value) -> TensorInfo:
    """Describe one value."""
    dims: tuple[Dim, ...] | None = None
    if value.shape is not None:
        dims = tuple(d if isinstance(d, int) else d.value for d in value.shape)
    tensor = constant_tensor(value)
    if tensor is not None and dims is None:
        dims = tuple(int(d) for d in tensor.shape.numpy())
    dtype = value.dtype if value.dtype is not None else (tensor.dtype if tensor is not None else None)
    return TensorInfo(
        name=value.name or "",
        dtype=dtype.name.lower() if dtype is not None else _type_name(value),
        shape=dims,
        bytes=value_bytes(value),
        is_constant=tensor is not None or value.is_initializer(),
    )


def scope_of(name: str) -> tuple[str, ...]:
    """The enclosing modules that an exporter wrote into a node's name, outermost first."""
    parts = [part for part in name.split("/") if part]
    return tuple(parts[:-1])


def _type_name(value: ir.Value) -> str:
    return "unknown" if value.type is None else type(value.type).__name__.removesuffix("Type").lower()


def _node(node: ir.Node) -> NodeInfo:
    holder = holder_of(node)
    return NodeInfo(
        id=node_id(node),
        name=node.name or "",
        op_type=node.op_type,
        domain=node.domain,
        scope=scope_of(node.name or ""),
        parent=None if holder is None else node_id(holder),
        inputs=tuple(None if v is None else tensor_info(v) for v in node.inputs),
        outputs=tuple(tensor_info(v) for v in node.outputs if v.name),
        attributes=tuple((name, _attribute_text(a)) for name, a in node.attributes.items()),
        flops=flops(node),
        bytes=traffic_bytes(node),
        parameters=node_parameters(node),
        is_constant=is_constant_node(node),
    )


def _attribute_text(attribute: ir.Attr) -> str:
    bodies = bodies_of(attribute)
    if bodies:
        return ", ".join(f"body of {body.num_nodes()} nodes" for body in bodies)
    if attribute.type == ir.AttributeType.TENSOR:
        return _tensor_text(attribute.value)
    text = str(attribute.value)
    return text if len(text) <= 200 else text[:197] + "..."


def _tensor_text(tensor: ir.TensorProtocol) -> str:
    shape = "x".join(str(d) for d in tensor.shape.numpy()) or "scalar"
    values = f" {tensor.numpy().tolist()}" if tensor.size <= 8 else ""
    return f"{tensor.dtype.name.lower()} {shape}{values}"


def _edges(graph: Graph) -> Iterator[EdgeInfo]:
    for node in graph.nodes:
        for value in node.inputs:
            if value is not None and constant_tensor(value) is None and not value.is_initializer():
                yield _edge(_origin(value), node_id(node), value)
    for value in graph.outputs:
        yield _edge(_origin(value), None, value)


def _origin(value: ir.Value) -> str | None:
    """The node a value comes from; the input of a body comes from the node that holds the body."""
    producer = value.producer()
    if producer is None and value.graph is not None:
        producer = value.graph.meta.get("explorer.holder")
    return None if producer is None else node_id(producer)


def _edge(source: str | None, target: str | None, value: ir.Value) -> EdgeInfo:
    info = tensor_info(value)
    return EdgeInfo(source, target, info.name, info.shape_text, info.bytes)
