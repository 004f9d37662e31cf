"""What differs between two versions of a graph: nodes added, removed, changed in place, and weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import onnx_ir as ir

from explorer.graph.fingerprint import tensor_digest
from explorer.graph.graph import Graph, bodies_of, constant_tensor, is_constant_node, node_id

Contents = dict[str, tuple[object, ...]]


@dataclass(frozen=True)
class GraphDiff:
    """Node ids by fate, and the bytes of weights that appeared and disappeared.

    ``outputs`` names the graph outputs that another node computes, or that came or went.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    added_bytes: int
    freed_bytes: int
    outputs: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the two graphs have the same nodes, wired the same way, with the same weights."""
        nodes, weights = self.added or self.removed or self.changed, self.added_bytes or self.freed_bytes
        return not (nodes or weights or self.outputs)


def diff(a: Graph, b: Graph) -> GraphDiff:
    """Compare two versions of one model by node id.

    Ids are stable through rewrites; two graphs opened separately share ids only if they have the same
    nodes in the same order. A node is *changed* if its operator, attributes or operands differ.
    """
    added, removed, changed = changed_contents(contents(a), contents(b))
    old, new = _weights(a), _weights(b)
    return GraphDiff(
        added=added,
        removed=removed,
        changed=changed,
        added_bytes=_surplus_bytes(new, old),
        freed_bytes=_surplus_bytes(old, new),
        outputs=_rewired_outputs(a, b),
    )


def contents(graph: Graph) -> Contents:
    """What each node is (operator, attributes, operands), by id, to be compared with another version."""
    return {node_id(node): _content(node) for node in graph.nodes}


def changed_contents(
    before: Contents, after: Contents
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Ids of the nodes that were added, removed and changed between two versions of one model."""
    return (
        tuple(i for i in after if i not in before),
        tuple(i for i in before if i not in after),
        tuple(i for i, content in before.items() if i in after and content != after[i]),
    )


def _rewired_outputs(a: Graph, b: Graph) -> tuple[str, ...]:
    pairs = zip_longest(map(_output, a.outputs), map(_output, b.outputs), fillvalue=("", None))
    return tuple(new[0] or old[0] for old, new in pairs if old != new)


def _output(value: ir.Value) -> tuple[str, object]:
    return value.name or "", _operand(value)


def _content(node: ir.Node) -> tuple[object, ...]:
    constant = constant_tensor(node.outputs[0]) if is_constant_node(node) else None
    if constant is not None:
        return (node.domain, node.op_type, tensor_digest(constant))
    attributes = tuple(sorted((k, _attribute(a)) for k, a in node.attributes.items()))
    return (node.domain, node.op_type, attributes, tuple(_operand(v) for v in node.inputs))


def _attribute(attribute: ir.Attr) -> object:
    bodies = bodies_of(attribute)
    if bodies:  # their nodes are compared one by one
        return [[_operand(value) for value in body.outputs] for body in bodies]
    if attribute.type == ir.AttributeType.TENSOR:
        return tensor_digest(attribute.value)
    return repr(attribute.value)


def _operand(value: ir.Value | None) -> object:
    if value is None:
        return None
    producer = value.producer()
    if producer is not None and not is_constant_node(producer):
        return (node_id(producer), value.index())
    tensor = constant_tensor(value)
    return value.name if tensor is None else tensor_digest(tensor)


def _weights(graph: Graph) -> list[ir.TensorProtocol]:
    """The tensors of all initializers and Constant nodes; equal ones as often as they are stored."""
    tensors = [value.const_value for value in graph.initializers()]
    tensors += [constant_tensor(n.outputs[0]) for n in graph.nodes if n.op_type == "Constant"]
    return [tensor for tensor in tensors if tensor is not None]


def _surplus_bytes(some: Sequence[ir.TensorProtocol], others: Sequence[ir.TensorProtocol]) -> int:
    """Bytes of the tensors that occur more often among ``some`` than among ``others``."""
    sizes = {tensor_digest(tensor): tensor.nbytes for tensor in some}
    surplus = Counter(map(tensor_digest, some)) - Counter(map(tensor_digest, others))
    return sum(sizes[digest] * count for digest, count in surplus.items())
