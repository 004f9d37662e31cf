"""``Graph``: an ONNX model as a value, with stable node ids.

A ``Graph`` is never changed once it has been handed out. A rewrite works on a ``clone`` (which shares
the weight tensors) and returns that as a new ``Graph``. Nodes keep their ids through clones, so that a
selection, a rejected site or a measurement made on one version still means something on the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import onnx_ir as ir

from explorer.errors import CandidateError

_ID = "explorer.id"
_HOLDER = "explorer.holder"
_TENSOR = "explorer.tensor"
_BODIES = {ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS}


def node_id(node: ir.Node) -> str:
    """The stable id of a node, such as ``"n12"``; independent of its name, which may be empty."""
    return str(node.meta[_ID])


def holder_of(node: ir.Node) -> ir.Node | None:
    """The If, Loop or Scan node whose body holds ``node``; None in the main graph."""
    graph = node.graph
    return graph.meta.get(_HOLDER) if graph is not None else None


def constant_tensor(value: ir.Value | None) -> ir.TensorProtocol | None:
    """The tensor of a compile-time constant: a Constant node's, or that of a fixed initializer.

    An initializer that is also a graph input is a default the caller may override: not a constant
    (pre-condition G2 of the rule catalogue).
    """
    if value is None or value.is_graph_input():
        return None
    if value.is_initializer():
        return value.const_value
    node = value.producer()
    if node is None or not is_constant_node(node):
        return None
    attribute = node.attributes.get("value")
    if attribute is not None:  # as_tensor() would check a whole protocol, at every question
        return attribute.value if attribute.type == ir.AttributeType.TENSOR else None
    if _TENSOR not in node.meta:  # built from a list of numbers: once, not at every question
        node.meta[_TENSOR] = _listed_tensor(value)
    tensor: ir.TensorProtocol | None = node.meta[_TENSOR]
    return tensor


def _listed_tensor(value: ir.Value) -> ir.TensorProtocol | None:
    try:
        return ir.convenience.get_const_tensor(value)
    except ValueError:  # not the one attribute that a Constant must have
        return None


def is_constant_node(node: ir.Node | None) -> bool:
    """Whether the node is an ONNX Constant, drawn as an attribute of its consumers."""
    return node is not None and node.op_type == "Constant" and node.domain in {"", "ai.onnx"}


class Graph:
    """A model, its origin and what had to be repaired or assumed while opening it.

    Args:
        model: the onnx_ir model; owned by this object from now on, nodes in topological order.
        name: what to call it in messages (file name or sample name).
        source: the file it was read from, if any.
        notices: sentences for the user, e.g. "node list was not topologically sorted".
        next_id: the first free number for node ids.
        passes_checker: whether the ONNX checker accepts it; one that it refuses can still be saved.
    """

    def __init__(
        self,
        model: ir.Model,
        *,
        name: str,
        source: Path | None = None,
        notices: tuple[str, ...] = (),
        next_id: int = 0,
        passes_checker: bool = True,
    ) -> None:
        self.model = model
        self.name = name
        self.source = source
        self.notices = notices
        self.passes_checker = passes_checker
        self.next_id = self._register_nodes(next_id)

    def __repr__(self) -> str:
        """Name, size and the start of the fingerprint if it has been computed."""
        known = self.__dict__.get("_fingerprint", "")[:8]
        return f"Graph({self.name!r}, {len(self.nodes)} nodes{', ' + known if known else ''})"

    def clone(self) -> Graph:
        """A copy with nodes and values of its own, the same ids, and shared weight tensors."""
        return Graph(
            self.model.clone(),
            name=self.name,
            source=self.source,
            notices=self.notices,
            next_id=self.next_id,
            passes_checker=self.passes_checker,
        )

    def renumbered(self) -> Graph:
        """Give ids to nodes added since construction and forget cached views; returns itself."""
        self.next_id = self._register_nodes(self.next_id)
        for name in ("nodes", "_by_id", "_fingerprint", "_structure_fingerprint"):
            self.__dict__.pop(name, None)
        return self

    @cached_property
    def nodes(self) -> tuple[ir.Node, ...]:
        """All nodes, those of If / Loop / Scan bodies after the node that holds them."""
        return tuple(_nodes_of(self.model.graph))

    @cached_property
    def _by_id(self) -> dict[str, ir.Node]:
        return {node_id(node): node for node in self.nodes}

    def node(self, identifier: str) -> ir.Node:
        """The node with this id; raises CandidateError if there is none."""
        try:
            return self._by_id[identifier]
        except KeyError:
            raise CandidateError(
                f"'{self.name}' has no node with id '{identifier}'; "
                "list the ids with `explorer candidates` or look at the graph."
            ) from None

    def find_node(self, identifier: str) -> ir.Node | None:
        """The node with this id, or None."""
        return self._by_id.get(identifier)

    @property
    def inputs(self) -> tuple[ir.Value, ...]:
        """Graph inputs the caller must feed (without a default), in order."""
        return tuple(v for v in self.model.graph.inputs if not v.is_initializer())

    @property
    def overridable(self) -> tuple[ir.Value, ...]:
        """Initializers that are also graph inputs: defaults that a caller may replace."""
        return tuple(v for v in self.model.graph.inputs if v.is_initializer())

    @property
    def outputs(self) -> tuple[ir.Value, ...]:
        """Graph outputs, in order."""
        return tuple(self.model.graph.outputs)

    def initializers(self) -> Iterator[ir.Value]:
        """Values that hold weights, in the main graph and in all bodies."""
        yield from self.model.graph.initializers.values()
        for node in self.nodes:
            for attribute in node.attributes.values():
                for body in bodies_of(attribute):
                    yield from body.initializers.values()

    def opset(self, domain: str = "") -> int | None:
        """The imported version of a domain ("" is ai.onnx), or None if it is not imported."""
        imports = self.model.opset_imports
        return imports.get(domain, imports.get("ai.onnx") if domain == "" else None)

    def fingerprint(self) -> str:
        """Canonical hash (hex) of structure, attributes, shapes and weight contents.

        Independent of names, node order and ids. Cached.
        """
        return self._fingerprint

    def structure_fingerprint(self) -> str:
        """As ``fingerprint`` but float weights count by type and shape, single floats to four digits. Cached."""
        return self._structure_fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        from explorer.graph.fingerprint import graph_digest

        return graph_digest(self.model)

    @cached_property
    def _structure_fingerprint(self) -> str:
        from explorer.graph.fingerprint import graph_digest

        return graph_digest(self.model, weights_by_content=False)

    def _register_nodes(self, next_id: int) -> int:
        """Number nodes that have no id yet and tell each body which node holds it."""
        for node in _nodes_of(self.model.graph):
            if _ID not in node.meta:
                node.meta[_ID] = f"n{next_id}"
                next_id += 1
            for attribute in node.attributes.values():
                for body in bodies_of(attribute):
                    body.meta[_HOLDER] = node
        return next_id


def _nodes_of(graph: ir.Graph) -> Iterator[ir.Node]:
    """The nodes of a graph, each followed by those of its bodies; several times as fast as ``all_nodes``."""
    for node in graph:
        yield node
        for attribute in node.attributes.values():
            for body in bodies_of(attribute):
                yield from _nodes_of(body)


def bodies_of(attribute: ir.Attr) -> tuple[ir.Graph, ...]:
    """The subgraphs an attribute holds; empty for every other kind of attribute."""
    if attribute.type not in _BODIES or attribute.is_ref():
        return ()
    if attribute.type == ir.AttributeType.GRAPH:
        return (attribute.as_graph(),)
    return tuple(attribute.as_graphs())
