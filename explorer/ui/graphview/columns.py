"""Horizontal positions: the engine's order, room for every box, and straight lines."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from explorer.ui.graphview.layering import Layers

#: Free space in pixels between two boxes, a box and a line, two lines.
BOX_GAP, LINE_GAP, LINES_GAP = 30.0, 20.0, 16.0
#: How strongly a piece wants to be straight: box to box, box to bend, bend to bend.
BOX_PULL, END_PULL, BEND_PULL = 6.0, 1.0, 3.0
#: How strongly two vertices of ``aligned`` want to stand in one column.
ALIGN_PULL = 4.0
#: Passes over all rows that straighten lines, alternately downwards and upwards.
SWEEPS = 6

Offsets = Mapping[tuple[int, int], tuple[float, float]]


def columns(
    layers: Layers,
    widths: Sequence[float],
    offsets: Offsets,
    aligned: Sequence[tuple[int, int]] = (),
) -> dict[int, float]:
    """Horizontal centre of every vertex and bend; see ``coordinates.place`` for the arguments."""
    pulls = _pulls(layers, offsets)
    x = _spread(layers, widths, pulls)
    rooms = _rooms(layers, widths)
    for a, b in aligned:
        pulls[a].append((b, 0.0, ALIGN_PULL))
        pulls[b].append((a, 0.0, ALIGN_PULL))
    for sweep in range(SWEEPS):
        runs = _straight_runs(layers, pulls, x)
        length = {vertex: len(run) for run in runs.values() for vertex in run}
        order = sorted(runs, reverse=sweep % 2 == 1)
        moved = [_straighten(runs[number], pulls, rooms, length, x) for number in order]
        if not any(moved):
            break
    return x


#: For each vertex and bend: (other end, where this should stand relative to it, weight).
Pulls = dict[int, list[tuple[int, float, float]]]


def _pulls(layers: Layers, offsets: Offsets) -> Pulls:
    pulls: defaultdict[int, list[tuple[int, float, float]]] = defaultdict(list)
    for edge, bends in layers.bends.items():
        start, stop = offsets.get(edge, (0.0, 0.0))
        stops = (edge[0], *bends, edge[1])
        for a, b in itertools.pairwise(stops):
            between = (start if a == edge[0] else 0.0) - (stop if b == edge[1] else 0.0)
            real = (a < layers.count) + (b < layers.count)
            weight = (BEND_PULL, END_PULL, BOX_PULL)[real]
            pulls[b].append((a, between, weight))
            pulls[a].append((b, -between, weight))
    return pulls


def _spread(layers: Layers, widths: Sequence[float], pulls: Pulls) -> dict[int, float]:
    """The engine's hints, moved apart as far as the sizes demand.

    Vertices and bends that stand exactly below each other move together, unless such runs block
    each other. Pushing everything right and everything left both give valid positions; so does
    their mean, which is balanced.
    """
    runs = _straight_runs(layers, pulls, layers.hints)
    try:
        return _pushed(layers, widths, {v: n for n, run in runs.items() for v in run})
    except CycleError:
        return _pushed(layers, widths, {v: v for row in layers.rows for v in row})


def _pushed(layers: Layers, widths: Sequence[float], run: Mapping[int, int]) -> dict[int, float]:
    neighbours: list[tuple[int, int, float]] = []
    for vertices in layers.rows:
        for a, b in itertools.pairwise(vertices):
            neighbours.append((run[a], run[b], _distance(a, b, layers.count, widths)))
    hint = {number: layers.hints[v] for v, number in run.items()}
    right = _push(hint, neighbours)
    left = _push({c: -x for c, x in hint.items()}, [(b, a, d) for a, b, d in neighbours])
    return {v: (right[c] - left[c]) / 2 for v, c in run.items()}


def _push(hint: Mapping[int, float], neighbours: Sequence[tuple[int, int, float]]) -> dict[int, float]:
    """Smallest positions that are not left of the hints and keep the distances."""
    before: dict[int, list[tuple[int, float]]] = {run: [] for run in hint}
    for a, b, distance in neighbours:
        before[b].append((a, distance))
    sorter = TopologicalSorter({run: [a for a, _ in near] for run, near in before.items()})
    place: dict[int, float] = {}
    for run in sorter.static_order():
        place[run] = max([hint[run], *(place[a] + d for a, d in before[run])])
    return place


def _distance(a: int, b: int, count: int, widths: Sequence[float]) -> float:
    if a >= count and b >= count:
        return LINES_GAP
    if a >= count or b >= count:
        return LINE_GAP + widths[min(a, b)] / 2
    return BOX_GAP + (widths[a] + widths[b]) / 2


#: For each vertex and bend: left neighbour and distance, right neighbour and distance.
Rooms = Mapping[int, tuple[int | None, float, int | None, float]]


def _rooms(layers: Layers, widths: Sequence[float]) -> Rooms:
    rooms: dict[int, tuple[int | None, float, int | None, float]] = {}
    for row in layers.rows:
        gaps = [_distance(a, b, layers.count, widths) for a, b in itertools.pairwise(row)]
        for i, vertex in enumerate(row):
            left = (row[i - 1], gaps[i - 1]) if i else (None, 0.0)
            right = (row[i + 1], gaps[i]) if i + 1 < len(row) else (None, 0.0)
            rooms[vertex] = (*left, *right)
    return rooms


def _straight_runs(layers: Layers, pulls: Pulls, x: Mapping[int, float]) -> dict[int, list[int]]:
    """Vertices and bends that one straight line joins, by number from top to bottom.

    A run ends where several strong lines meet or part, so that such a place can find its middle.
    """
    run: dict[int, int] = {}
    runs: dict[int, list[int]] = {}
    row_of = {v: r for r, row in enumerate(layers.rows) for v in row}
    number = 0
    for r, row in enumerate(layers.rows):
        for vertex in row:
            above = [pull for pull in pulls.get(vertex, ()) if row_of[pull[0]] < r]
            joins = [
                (-weight, other)
                for other, between, weight in above
                if row_of[other] == r - 1
                and abs(x[other] + between - x[vertex]) < 0.01
                and _is_alone(weight, above)
                and _is_alone(weight, [p for p in pulls[other] if row_of[p[0]] >= r])
            ]
            taken = [o for _, o in sorted(joins) if runs[run[o]][-1] == o]
            if taken:
                run[vertex] = run[taken[0]]
            else:
                run[vertex] = number = number + 1
            runs.setdefault(run[vertex], []).append(vertex)
    return runs


def _is_alone(weight: float, pulls: Sequence[tuple[int, float, float]]) -> bool:
    """Whether no other pull on this side is as strong."""
    return sum(pull[2] >= weight for pull in pulls) <= 1


def _straighten(
    run: Sequence[int],
    pulls: Pulls,
    rooms: Rooms,
    length: Mapping[int, int],
    x: dict[int, float],
) -> bool:
    """Move a run as a whole to the weighted median of where its lines want it; whether it moved.

    Of two branches the longer one wins, so that the main path of a network stays in one column.
    """
    own = set(run)
    wishes = [
        (x[other] + between - x[vertex], weight * (1 + 0.02 * min(length[other], 25)))
        for vertex in run
        for other, between, weight in pulls.get(vertex, ())
        if other not in own
    ]
    if not wishes:
        return False
    low, high = -float("inf"), float("inf")
    for vertex in run:
        left, left_gap, right, right_gap = rooms[vertex]
        if left is not None:
            low = max(low, x[left] + left_gap - x[vertex])
        if right is not None:
            high = min(high, x[right] - right_gap - x[vertex])
    shift = max(low, min(high, _median(wishes)))
    if abs(shift) < 0.01:
        return False
    for vertex in run:
        x[vertex] += shift
    return True


def _median(wishes: Sequence[tuple[float, float]]) -> float:
    """Weighted median; the middle between two if the weights balance."""
    ordered = sorted(wishes)
    half, passed = sum(weight for _, weight in ordered) / 2, 0.0
    for i, (value, weight) in enumerate(ordered):
        passed += weight
        if passed > half + 1e-9:
            return value
        if abs(passed - half) <= 1e-9:
            return (value + ordered[i + 1][0]) / 2
    return ordered[-1][0]
