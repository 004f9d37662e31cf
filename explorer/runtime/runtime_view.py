"""``RuntimeView``: a model as the runtime executes it, linked to the model as it is written."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from explorer.runtime.attribution import attribute
from explorer.runtime.executed import Executed
from explorer.runtime.fusions import Unfused, unfused
from explorer.runtime.target import Target

if TYPE_CHECKING:
    from explorer.graph import Graph, GraphSummary


@dataclass(frozen=True)
class RuntimeNode:
    """A node of the optimised graph and the nodes of the model whose work it does.

    Attributes:
        id: its id in the optimised graph.
        op_type: the runtime's operator.
        nodes: ids in the model; more than one if the runtime fused them, () if it inserted the node.
        served: ids in the model that it prepares or finishes, such as a change of layout.
    """

    id: str
    op_type: str
    nodes: tuple[str, ...]
    served: tuple[str, ...]


@dataclass(frozen=True)
class RuntimeView:
    """The graph after the runtime's own optimisation.

    Attributes:
        target: canonical target spec.
        graph: the optimised graph, to be drawn; never to be shipped.
        nodes: its nodes, linked to the model's.
        vanished: ids of model nodes that nothing executes: folded into constants or never needed.
        unfused: fusions the runtime knows and did not make, with the reason where it can be told.
    """

    target: str
    graph: Graph
    nodes: tuple[RuntimeNode, ...]
    vanished: tuple[str, ...]
    unfused: tuple[Unfused, ...]

    @cached_property
    def summary(self) -> GraphSummary:
        """The optimised graph, described as any other."""
        from explorer.graph import describe

        return describe(self.graph)

    @property
    def fused(self) -> tuple[RuntimeNode, ...]:
        """Nodes that stand for several of the model's."""
        return tuple(node for node in self.nodes if len(node.nodes) > 1)

    @property
    def inserted(self) -> tuple[RuntimeNode, ...]:
        """Nodes the runtime added, such as changes of layout."""
        return tuple(node for node in self.nodes if not node.nodes)

    def groups(self) -> dict[str, int]:
        """Model node id -> number of its fused group, for colours; nodes on their own are left out."""
        return {i: number for number, node in enumerate(self.fused) for i in node.nodes}

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        listed = [{**vars(n), "nodes": list(n.nodes), "served": list(n.served)} for n in self.nodes]
        return {
            "target": self.target,
            "nodes": listed,
            "ops": self.summary.ops(),
            "vanished": list(self.vanished),
            "unfused": [one.to_json() for one in self.unfused],
        }


def runtime_view(graph: Graph, optimized: Graph, target: Target) -> RuntimeView:
    """Link a graph with what the runtime made of its marked copy.

    Args:
        graph: the model.
        optimized: the runtime's graph, made of ``marked_model(graph)``.
        target: whose graph it is.
    """
    from explorer.graph import is_constant_node, node_id

    ours = {node_id(n): n for n in graph.nodes if not is_constant_node(n)}
    theirs = [n for n in optimized.nodes if not is_constant_node(n)]
    names = {node_id(n): (n.name or "", *(v.name or "" for v in n.outputs)) for n in theirs}
    executed = [Executed(node_id(n), n.op_type, names[node_id(n)], []) for n in theirs]
    # Equal weights: of several that mention a node, the one that comes first computes it.
    shares = attribute(graph, executed, dict.fromkeys(names, 0.0))
    nodes = tuple(
        RuntimeNode(e.name, e.op_type, shares[e.name].owned, shares[e.name].served) for e in executed
    )
    owner = {identifier: node.id for node in nodes for identifier in node.nodes}
    vanished = tuple(identifier for identifier in ours if identifier not in owner)
    return RuntimeView(str(target), optimized, nodes, vanished, unfused(graph, owner, target))
