"""Rows, order and horizontal hints of one connected graph, by the best engine that is installed.

Every engine answers in the same terms; ``coordinates`` turns rows into positions, so that boxes
never overlap whichever engine was used.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from explorer.ui.graphview.acyclic import topological

#: Horizontal unit of the hints: the usual distance between the centres of two boxes.
SPACING = 204.0
#: Distance of two lines that pass side by side, as a share of ``SPACING``.
LINE_SHARE = 0.12

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Layers:
    """Vertices in rows. Numbers from ``count`` upwards are bends of edges that span several rows.

    Attributes:
        count: Number of vertices that were given.
        rows: Vertices and bends of each row, from left to right; sources stand in the top row.
        hints: Horizontal position that the engine proposes for each vertex and bend.
        bends: For each edge the bends it runs through, from top to bottom.
    """

    count: int
    rows: tuple[tuple[int, ...], ...]
    hints: dict[int, float]
    bends: dict[Pair, tuple[int, ...]]


Engine = Callable[[int, Sequence[Pair]], Layers]


def default_engine() -> Engine:
    """fast-sugiyama, else igraph, else rows by longest path (always there)."""
    if find_spec("fast_sugiyama"):
        return by_fast_sugiyama
    return by_igraph if find_spec("igraph") else by_rank


def layers_of(count: int, edges: Sequence[Pair], engine: Engine | None = None) -> Layers:
    """Layer a connected acyclic graph without parallel edges and self-loops.

    An engine that breaks its promise (an edge that does not go down, a lost vertex) is not
    believed: ``by_rank`` answers in its place.
    """
    if not edges:
        return Layers(count, (tuple(range(count)),), {v: v * SPACING for v in range(count)}, {})
    layers = (engine or default_engine())(count, edges)
    return layers if _is_sound(layers, edges) else by_rank(count, edges)


def by_fast_sugiyama(count: int, edges: Sequence[Pair]) -> Layers:
    """Layer by the Rust engine. It aborts the process on self-loops; the caller removed them."""
    from fast_sugiyama import from_edges

    # One component with numbers from 0 without gaps: otherwise numbers of bends (0.5.3) collide.
    layouts = from_edges(list(edges), vertex_spacing=SPACING, dummy_vertices=True, dummy_size=LINE_SHARE)
    positions, _, _, pieces = layouts[0]
    spots = {int(v): (float(x), round(float(y) / SPACING)) for v, (x, y) in positions}
    bends = _walk(count, [(int(a), int(b)) for a, b in pieces or ()])
    top = max(y for _, y in spots.values())
    return _sorted_rows(count, {v: (x, top - y) for v, (x, y) in spots.items()}, bends)


def _walk(count: int, pieces: Sequence[Pair]) -> dict[Pair, tuple[int, ...]]:
    """Join the pieces of each edge: its bends in order."""
    following = {a: b for a, b in pieces if a >= count}
    bends: dict[Pair, tuple[int, ...]] = {}
    for start, first in pieces:
        if start >= count:
            continue
        passed: list[int] = []
        stop = first
        while stop >= count:
            passed.append(stop)
            stop = following[stop]
        bends[start, stop] = tuple(passed)
    return bends


def _sorted_rows(
    count: int, spots: dict[int, tuple[float, int]], bends: dict[Pair, tuple[int, ...]]
) -> Layers:
    rows: defaultdict[int, list[int]] = defaultdict(list)
    for vertex, (_, row) in spots.items():
        rows[row].append(vertex)
    ordered = tuple(tuple(sorted(rows[r], key=lambda v: (spots[v][0], v))) for r in sorted(rows))
    return Layers(count, ordered, {v: x for v, (x, _) in spots.items()}, bends)


def by_igraph(count: int, edges: Sequence[Pair]) -> Layers:
    """Layer by igraph, whose bends are vertices after the given ones."""
    import igraph

    split, bends = split_edges(count, edges, ranks_of(count, edges))
    longer = igraph.Graph(n=len(split.ranks), edges=split.pieces, directed=True)
    layout = longer.layout_sugiyama(layers=split.ranks, hgap=SPACING, vgap=1, maxiter=100)
    spots = {v: (float(layout[v][0]), split.ranks[v]) for v in range(len(split.ranks))}
    return _sorted_rows(count, spots, bends)


def by_rank(count: int, edges: Sequence[Pair]) -> Layers:
    """Layer by longest path and order rows by the mean of their neighbours; needs nothing."""
    split, bends = split_edges(count, edges, ranks_of(count, edges))
    rows: list[list[int]] = [[] for _ in range(max(split.ranks) + 1)]
    for vertex, rank in enumerate(split.ranks):
        rows[rank].append(vertex)
    above: defaultdict[int, list[int]] = defaultdict(list)
    below: defaultdict[int, list[int]] = defaultdict(list)
    for a, b in split.pieces:
        above[b].append(a)
        below[a].append(b)
    hints = {v: i * SPACING for row in rows for i, v in enumerate(row)}
    for sweep in range(12):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            _order_row(row, above if down else below, hints)
    return Layers(count, tuple(map(tuple, rows)), hints, bends)


def _order_row(row: list[int], near: dict[int, list[int]], hints: dict[int, float]) -> None:
    """Sort a row by the mean place of its neighbours, and spread it around that."""
    wish = {v: sum(hints[u] for u in near[v]) / len(near[v]) if near.get(v) else hints[v] for v in row}
    row.sort(key=lambda v: (wish[v], hints[v], v))
    places, offset = list[float](), 0.0
    for i, vertex in enumerate(row):
        places.append(max(wish[vertex], places[-1] + SPACING if i else wish[vertex]))
        offset += wish[vertex] - places[-1]
    for vertex, place in zip(row, places, strict=True):
        hints[vertex] = place + offset / len(row)


@dataclass(frozen=True, slots=True)
class Split:
    """A graph whose edges all span one row: rank of each vertex and bend, and the pieces."""

    ranks: list[int]
    pieces: list[Pair]


def split_edges(
    count: int, edges: Sequence[Pair], ranks: Sequence[int]
) -> tuple[Split, dict[Pair, tuple[int, ...]]]:
    """Put a bend into every row an edge passes."""
    all_ranks, pieces = list(ranks[:count]), list[Pair]()
    bends: dict[Pair, tuple[int, ...]] = {}
    for a, b in edges:
        first = len(all_ranks)
        all_ranks += range(ranks[a] + 1, ranks[b])
        bends[a, b] = tuple(range(first, len(all_ranks)))
        stops = (a, *bends[a, b], b)
        pieces += itertools.pairwise(stops)
    return Split(all_ranks, pieces), bends


def ranks_of(count: int, edges: Sequence[Pair]) -> list[int]:
    """Longest distance from a source; sources then move down to their nearest consumer."""
    ranks = [0] * count
    following: defaultdict[int, list[int]] = defaultdict(list)
    has_input = set()
    for a, b in edges:
        following[a].append(b)
        has_input.add(b)
    for vertex in topological(count, edges):
        for other in following[vertex]:
            ranks[other] = max(ranks[other], ranks[vertex] + 1)
    for vertex in range(count):
        if vertex not in has_input and following[vertex]:
            ranks[vertex] = min(ranks[other] for other in following[vertex]) - 1
    first = min(ranks, default=0)
    return [rank - first for rank in ranks]


def _is_sound(layers: Layers, edges: Sequence[Pair]) -> bool:
    row_of = {v: r for r, row in enumerate(layers.rows) for v in row}
    placed = sum(map(len, layers.rows))
    if placed != len(row_of) or any(v not in row_of for v in range(layers.count)):
        return False
    for a, b in edges:
        stops = (a, *layers.bends.get((a, b), ()), b)
        steps = itertools.pairwise(stops)
        if any(row_of.get(v, 0) - row_of.get(u, 0) != 1 for u, v in steps):
            return False
    return True
