"""What differs between two versions of a graph: nodes added, removed, changed in place, and weights."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from explorer.graph.fingerprint import tensor_digest
from explorer.graph.graph import Graph, bodies_of, constant_tensor, node_id


@dataclass(frozen=True)
class GraphDiff:
    """Node ids by fate, and the bytes of weights that appeared and disappeared."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    added_bytes: int
    freed_bytes: int

    @property
    def is_empty(self) -> bool:
        """Whether the two graphs have the same nodes, wired the same way, with the same weights."""
        return not (self.added or self.removed or self.changed or self.added_bytes or self.freed_bytes)


def diff(a: Graph, b: Graph) -> GraphDiff:
    """Compare two versions of one model by node id.

    Ids are stable through rewrites; two graphs opened separately share ids only if they have the same
    nodes in the same order. A node is *changed* if its operator, attributes or operands differ.
    """
    before = {node_id(n): n for n in a.nodes}
    after = {node_id(n): n for n in b.nodes}
    both = [i for i in before if i in after]
    old, new = _weights(a), _weights(b)
    return GraphDiff(
        added=tuple(i for i in after if i not in before),
        removed=tuple(i for i in before if i not in after),
        changed=tuple(i for i in both if _content(before[i]) != _content(after[i])),
        added_bytes=sum(size for digest, size in new.items() if digest not in old),
        freed_bytes=sum(size for digest, size in old.items() if digest not in new),
    )


def _content(node: ir.Node) -> tuple[object, ...]:
    attributes = tuple(sorted((k, _attribute(a)) for k, a in node.attributes.items()))
    return (node.domain, node.op_type, attributes, tuple(_operand(v) for v in node.inputs))


def _attribute(attribute: ir.Attr) -> str:
    if bodies_of(attribute):
        return "body"  # its nodes are compared one by one
    if attribute.type == ir.AttributeType.TENSOR:
        return tensor_digest(attribute.value)
    return repr(attribute.value)


def _operand(value: ir.Value | None) -> object:
    if value is None:
        return None
    producer = value.producer()
    if producer is not None and producer.op_type != "Constant":
        return (node_id(producer), value.index())
    tensor = constant_tensor(value)
    return value.name if tensor is None else tensor_digest(tensor)


def _weights(graph: Graph) -> dict[str, int]:
    tensors = [value.const_value for value in graph.initializers()]
    tensors += [constant_tensor(n.outputs[0]) for n in graph.nodes if n.op_type == "Constant"]
    return {tensor_digest(t): t.nbytes for t in tensors if t is not None}
