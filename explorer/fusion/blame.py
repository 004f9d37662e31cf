"""Exact blame: how much the demand of a group falls without one of its nodes or edges.

There are two ways to be without something. *Held*: the rest stays one set, so the difference is what the
node keeps on chip (weights, rows, and the waiting it causes), or the rows that wait for the edge. *Relief*:
the rest falls into parts, each a group of its own, and the largest decides whether it fits; that is what
a cut there is worth. Both are differences of the scheme's own demand; a negative one means more is needed.
"""

from __future__ import annotations

from dataclasses import dataclass

from explorer.fusion.cuts import inner_edges
from explorer.fusion.group import FusionGroup
from explorer.fusion.network import FusionNetwork, bits
from explorer.fusion.scheme import Scheme


@dataclass(frozen=True)
class NodeBlame:
    """Blame of one operation, in bytes; ``nodes`` are all graph nodes it covers."""

    node: str
    nodes: tuple[str, ...]
    held_bytes: int
    relief_bytes: int


@dataclass(frozen=True)
class EdgeBlame:
    """Blame of one edge inside the group, in bytes."""

    source: str
    target: str
    held_bytes: int
    relief_bytes: int


@dataclass(frozen=True)
class Blame:
    """Blame of everything in a group."""

    demand_bytes: int
    nodes: tuple[NodeBlame, ...]
    edges: tuple[EdgeBlame, ...]


def blame(scheme: Scheme, group: FusionGroup) -> Blame:
    """The blame of each node and edge of a group."""
    total = scheme.cost(group.mask).demand_bytes
    edges = inner_edges(scheme.network, group.mask)
    return Blame(
        demand_bytes=total,
        nodes=tuple(_node(scheme, group.mask, i, total) for i in bits(group.mask)),
        edges=tuple(_edge(scheme, group.mask, edge, total) for edge in edges),
    )


def _node(scheme: Scheme, mask: int, index: int, total: int) -> NodeBlame:
    node, rest = scheme.network.nodes[index], mask & ~(1 << index)
    parts = scheme.network.components(rest)
    largest = max((scheme.demand_bytes(part) for part in parts), default=0)
    return NodeBlame(node.id, node.covers, total - scheme.demand_bytes(rest), total - largest)


def _edge(scheme: Scheme, mask: int, edge: tuple[int, int], total: int) -> EdgeBlame:
    nodes = scheme.network.nodes
    largest = max(scheme.demand_bytes(part, edge) for part in _parts_without(scheme.network, mask, edge))
    held = total - scheme.demand_bytes(mask, edge)
    return EdgeBlame(nodes[edge[0]].id, nodes[edge[1]].id, held, total - largest)


def _parts_without(network: FusionNetwork, mask: int, edge: tuple[int, int]) -> tuple[int, ...]:
    """The connected parts of a set whose edge is cut: one or two."""
    source, target = edge
    part = fresh = 1 << source
    while fresh:
        reach = 0
        for i in bits(fresh):
            near = network.adjacent[i]
            if i in edge:
                near &= ~(1 << (target if i == source else source))
            reach |= near
        fresh = reach & mask & ~part
        part |= fresh
    return (part, mask & ~part) if mask & ~part else (part,)
