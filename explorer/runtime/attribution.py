"""Which nodes of a model the operators that a runtime executed stand for. Pure graph work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from explorer.runtime.marked import marks_in

if TYPE_CHECKING:
    import onnx_ir as ir

    from explorer.graph import Graph


@dataclass(frozen=True)
class Share:
    """The part of a model that one executed operator stands for.

    Attributes:
        owned: ids of the nodes whose work it does; every node has at most one owner.
        served: ids it mentions that another operator owns, as a change of layout for a convolution.
    """

    owned: tuple[str, ...]
    served: tuple[str, ...]


def attribute(
    graph: Graph, mentions: Mapping[str, tuple[str, ...]], weight: Mapping[str, float]
) -> dict[str, Share]:
    """Divide the nodes of a graph among executed operators.

    Args:
        graph: the model, with the ids that the marks speak of.
        mentions: executed operator -> names that may carry marks.
        weight: executed operator -> its time, which decides who owns a node that several mention.

    Returns:
        Executed operator -> its share. A node that no operator mentions was merged into what reads it, so
        it goes to the first operator downstream, or upstream if it is the end of the graph.
    """
    named = {name: marks_in(texts) for name, texts in mentions.items()}
    owner: dict[str, str] = {}
    for name in sorted(named, key=lambda one: -weight[one]):
        for identifier in named[name]:
            if graph.find_node(identifier) is not None:
                owner.setdefault(identifier, name)
    _give_away(graph, owner)
    order = [_id(node) for node in graph.nodes]
    return {
        name: Share(
            owned=tuple(i for i in order if owner.get(i) == name),
            served=tuple(i for i in marks if i in owner and owner[i] != name),
        )
        for name, marks in named.items()
    }


def _give_away(graph: Graph, owner: dict[str, str]) -> None:
    """Hand nodes nobody mentions to an owner of their readers, or else of what they read."""
    from explorer.graph import is_constant_node

    nodes = [node for node in graph.nodes if not is_constant_node(node)]
    for node in reversed(nodes):
        _adopt(node, _readers(node), owner)
    for node in nodes:
        _adopt(node, _sources(node), owner)


def _adopt(node: ir.Node, neighbours: Iterable[ir.Node], owner: dict[str, str]) -> None:
    if _id(node) in owner:
        return
    found = next((owner[_id(other)] for other in neighbours if _id(other) in owner), None)
    if found is not None:
        owner[_id(node)] = found


def _readers(node: ir.Node) -> list[ir.Node]:
    return [use.node for output in node.outputs for use in output.uses()]


def _sources(node: ir.Node) -> list[ir.Node]:
    producers = [value.producer() for value in node.inputs if value is not None]
    return [producer for producer in producers if producer is not None]


def _id(node: ir.Node) -> str:
    from explorer.graph import node_id

    return node_id(node)


def group_flops(graph: Graph, nodes: Sequence[str]) -> int | None:
    """FLOPs of a group of nodes; None if those of one are unknown."""
    from explorer.graph.statistics import flops, sum_if_known

    return sum_if_known(flops(graph.node(identifier)) for identifier in nodes)


def group_bytes(graph: Graph, nodes: Sequence[str]) -> int | None:
    """Bytes that a group reads from outside (weights included) and hands to the outside."""
    from explorer.graph.statistics import sum_if_known, value_bytes

    members = [graph.node(identifier) for identifier in nodes]
    inside = set(members)
    read = {v for n in members for v in n.inputs if v is not None and v.producer() not in inside}
    written = {v for n in members for v in n.outputs if _leaves(v, inside)}
    return sum_if_known(value_bytes(value) for value in read | written)


def _leaves(value: ir.Value, inside: set[ir.Node]) -> bool:
    return value.is_graph_output() or any(use.node not in inside for use in value.uses())
