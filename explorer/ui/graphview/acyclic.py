"""Cycles: breaking them for the layout, and cutting groups so that contracting makes none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import networkx as nx

Pair = tuple[int, int]
Path = tuple[tuple[str, int], ...]


def forward_edges(count: int, pairs: Iterable[Pair]) -> list[Pair]:
    """Distinct edges without self-loops, turned where needed so that no cycle is left.

    Nodes are visited in index order, so an edge that closes a cycle of a comparison (two
    operators swapped by a rewrite) is the one that is turned.
    """
    distinct = sorted({(a, b) for a, b in pairs if a != b})
    back = _back_edges(count, distinct)
    return sorted({(b, a) if (a, b) in back else (a, b) for a, b in distinct})


def _back_edges(count: int, pairs: Sequence[Pair]) -> set[Pair]:
    following: defaultdict[int, list[int]] = defaultdict(list)
    for a, b in pairs:
        following[a].append(b)
    state = [0] * count  # 0 new, 1 on the current path, 2 finished
    back: set[Pair] = set()
    for root in range(count):
        if state[root]:
            continue
        state[root] = 1
        stack = [(root, iter(following[root]))]
        while stack:
            node, rest = stack[-1]
            for other in rest:
                if state[other] == 1:
                    back.add((node, other))
                elif not state[other]:
                    state[other] = 1
                    stack.append((other, iter(following[other])))
                    break
            else:
                state[node] = 2
                stack.pop()
    return back


def topological(count: int, pairs: Iterable[Pair]) -> list[int]:
    """A topological order of an acyclic graph, the smallest index first among the ready ones."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(pairs)
    return list(nx.lexicographical_topological_sort(graph))


def cut_cycles(paths: Sequence[Path], pairs: Sequence[Pair]) -> list[Path]:
    """Cut groups, level by level, so that siblings contracted to one node each form no cycle.

    Args:
        paths: Group path of every node, outermost first, as (key, part number).
        pairs: Edges between nodes.

    Returns:
        The same paths with part numbers raised where a group had to be cut.
    """
    result = list(paths)
    edges = forward_edges(len(result), pairs)
    order = topological(len(result), edges)
    rank = {node: i for i, node in enumerate(order)}
    edges.sort(key=lambda pair: rank[pair[0]])
    for depth in range(max((len(path) for path in result), default=0)):
        local: defaultdict[Path, list[Pair]] = defaultdict(list)
        for a, b in edges:
            if result[a][:depth] == result[b][:depth]:
                local[result[a][:depth]].append((a, b))
        for inside in local.values():
            _cut_level(result, inside, depth)
    return result


def _cut_level(paths: list[Path], edges: Sequence[Pair], depth: int) -> None:
    def group(node: int) -> tuple[object, ...]:
        path = paths[node]
        return path[: depth + 1] if len(path) > depth else ("node", node)

    quotient: nx.DiGraph[tuple[object, ...]] = nx.DiGraph()
    quotient.add_edges_from((group(a), group(b)) for a, b in edges if group(a) != group(b))
    tangled: dict[tuple[object, ...], int] = {}
    for number, part in enumerate(nx.strongly_connected_components(quotient)):
        if len(part) > 1:
            tangled.update(dict.fromkeys(part, number))
    if not tangled:
        return
    groups = {node: group(node) for pair in edges for node in pair}
    changes: defaultdict[int, int] = defaultdict(int)  # group changes on the way to a node
    for a, b in edges:  # sorted by the topological rank of their source
        here = tangled.get(groups[a])
        if here is not None and here == tangled.get(groups[b]):
            changes[b] = max(changes[b], changes[a] + (groups[a] != groups[b]))
    for node, own in groups.items():
        if own in tangled and len(paths[node]) > depth:
            key = paths[node][depth][0]
            paths[node] = (*paths[node][:depth], (key, changes[node]), *paths[node][depth + 1 :])
