"""Every plan of a small network, one by one: the judge of the exact search."""

from __future__ import annotations

from collections.abc import Iterator

import networkx as nx

from explorer.fusion import FusionNetwork, Scheme


def best_by_trying_all(scheme: Scheme) -> int:
    """The least DRAM traffic over all partitions into valid groups with an acyclic quotient, in bytes."""
    network = scheme.network
    graph = nx.DiGraph((e.source, e.target) for e in network.edges)
    graph.add_nodes_from(range(len(network.nodes)))
    kept = [i for i in graph if not scheme.removed_mask >> i & 1]
    totals = []
    for partition in partitions(sorted(kept)):
        masks = [sum(1 << i for i in part) for part in partition]
        costs = [scheme.cost(mask) for mask in masks]
        if all(cost.fits for cost in costs) and runs(graph, network, partition):
            totals.append(sum(cost.dram_bytes for cost in costs))
    return min(totals)


def runs(graph: nx.DiGraph, network: FusionNetwork, partition: list[list[int]]) -> bool:
    """Whether the groups hang together and none waits, by way of others, for itself."""
    if not all(nx.is_weakly_connected(graph.subgraph(part)) for part in partition):
        return False
    owner = {i: i for i in graph} | {i: part[0] for part in partition for i in part}
    quotient = nx.DiGraph(
        (owner[e.source], owner[e.target]) for e in network.edges if owner[e.source] != owner[e.target]
    )
    return nx.is_directed_acyclic_graph(quotient)


def partitions(items: list[int]) -> Iterator[list[list[int]]]:
    """All partitions of a list."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for smaller in partitions(rest):
        yield [[first], *smaller]
        for position, part in enumerate(smaller):
            yield [*smaller[:position], [first, *part], *smaller[position + 1 :]]
