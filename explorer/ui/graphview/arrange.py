"""Place the content of one frame: its items, and the ports where lines cross its border."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import networkx as nx

from explorer.ui.graphview.acyclic import forward_edges
from explorer.ui.graphview.coordinates import Positions, place
from explorer.ui.graphview.layering import Engine, Layers, layers_of

#: Components stand side by side until a shelf is this wide, in pixels.
SHELF_WIDTH = 1800.0
#: Free space between components, and between a line to the border and a box.
COMPONENT_GAP, LANE_MARGIN = 56.0, 12.0
#: A box that ends this much above the end of its row has taller neighbours.
CLEAR = 8.0

Point = tuple[float, float]


@dataclass(frozen=True, slots=True, order=True)
class Vertex:
    """An item of the frame, or the port of a tensor that comes in or goes out."""

    role: Literal["item", "in", "out"]
    number: int


Step = tuple[Vertex, Vertex]


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Positions inside a frame, from (0, 0) to (width, height), in pixels.

    Attributes:
        at: Upper left corner of each item; the point of each port.
        lanes: For each port, where on the border its line ends.
        routes: For each line, its bends from source to target, without the ends.
    """

    width: float
    height: float
    at: dict[Vertex, Point]
    lanes: dict[Vertex, float]
    routes: dict[Step, tuple[Point, ...]]


def arrange(
    sizes: Mapping[Vertex, Point],
    steps: Iterable[Step],
    touches: Mapping[Step, Point] | None = None,
    engine: Engine | None = None,
) -> Arrangement:
    """Place the items and ports of a frame, and the lines between them.

    Args:
        sizes: Width and height of each vertex; (0, 0) for a port.
        steps: The lines.
        touches: For lines that do not touch the middle of a box (those that go on inside a
            frame): how far from the middle they touch their source and their target.
        engine: Which layering to use; the best installed one by default.
    """
    touches = touches or {}
    order = sorted(sizes)
    number = {vertex: i for i, vertex in enumerate(order)}
    wanted = sorted({(number[a], number[b]) for a, b in steps if a != b})
    edges = forward_edges(len(order), wanted)
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(len(order)))
    graph.add_edges_from(edges)
    components = [sorted(part) for part in nx.connected_components(graph)]
    owner = {v: i for i, part in enumerate(components) for v in part}
    inside: list[list[tuple[int, int]]] = [[] for _ in components]
    for edge in edges:
        inside[owner[edge[0]]].append(edge)
    parts = [
        _component([order[v] for v in part], [(order[a], order[b]) for a, b in own], sizes, touches, engine)
        for part, own in zip(components, inside, strict=True)
    ]
    return _with_lanes(_turned(_shelves(parts), order, wanted), sizes)


def _component(
    vertices: Sequence[Vertex],
    steps: Sequence[Step],
    sizes: Mapping[Vertex, Point],
    touches: Mapping[Step, Point],
    engine: Engine | None,
) -> Arrangement:
    number = {vertex: i for i, vertex in enumerate(vertices)}
    edges = [(number[a], number[b]) for a, b in steps]
    layers = layers_of(len(vertices), edges, engine)
    widths, heights = zip(*(sizes[v] for v in vertices), strict=True)
    offsets = {edge: touches[step] for step, edge in zip(steps, edges, strict=True) if step in touches}
    found = place(layers, widths, heights, offsets, _aligned_ports(vertices, edges))
    at = {v: _corner(found, i, v, sizes[v]) for i, v in enumerate(vertices)}
    routes: dict[Step, tuple[Point, ...]] = {}
    for step, edge in zip(steps, edges, strict=True):
        row = found.row[edge[0]]
        below = found.bottom[row] - at[step[0]][1] - sizes[step[0]][1]
        start = found.x[edge[0]] + touches.get(step, (0.0, 0.0))[0]
        # Straight down past the taller boxes of the row before anything else.
        first = ((start, found.bottom[row]),) if below > CLEAR else ()
        routes[step] = (*first, *_route(found, layers, edge))
    return Arrangement(found.width, found.bottom[-1], at, {}, routes)


def _aligned_ports(vertices: Sequence[Vertex], edges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The way in and the way out stand in one column, so that a row of frames does not drift."""
    ins = [i for i, vertex in enumerate(vertices) if vertex.role == "in"]
    outs = [i for i, vertex in enumerate(vertices) if vertex.role == "out"]
    if not ins or not outs:
        return []
    uses = Counter(v for edge in edges for v in edge)
    return [(max(ins, key=lambda i: (uses[i], -i)), max(outs, key=lambda i: (uses[i], -i)))]


def _corner(found: Positions, index: int, vertex: Vertex, size: Point) -> Point:
    """Boxes stand in the middle of a row; beside a tall frame, at its top. Ports pass the row."""
    row = found.row[index]
    if vertex.role != "item":
        return found.x[index], found.bottom[row] if vertex.role == "in" else found.top[row]
    spare = found.bottom[row] - found.top[row] - size[1]
    return found.x[index] - size[0] / 2, found.top[row] + (spare / 2 if spare < 60 else 0.0)


def _route(found: Positions, layers: Layers, edge: tuple[int, int]) -> tuple[Point, ...]:
    points: list[Point] = []
    for bend in layers.bends.get(edge, ()):
        row = found.row[bend]
        points += [(found.x[bend], found.top[row]), (found.x[bend], found.bottom[row])]
    return tuple(points)


def _shelves(parts: Sequence[Arrangement]) -> Arrangement:
    """Largest component first, the others to its right, then below."""
    order = sorted(range(len(parts)), key=lambda i: (-len(parts[i].at), i))
    limit = max([SHELF_WIDTH, *(part.width for part in parts)])
    x = y = shelf = width = 0.0
    at: dict[Vertex, Point] = {}
    routes: dict[Step, tuple[Point, ...]] = {}
    for part in (parts[i] for i in order):
        if x and x + part.width > limit:
            x, y, shelf = 0.0, y + shelf + COMPONENT_GAP, 0.0
        at.update({v: (px + x, py + y) for v, (px, py) in part.at.items()})
        for step, route in part.routes.items():
            routes[step] = tuple((px + x, py + y) for px, py in route)
        width, shelf = max(width, x + part.width), max(shelf, part.height)
        x += part.width + COMPONENT_GAP
    return Arrangement(width, y + shelf, at, {}, routes)


def _turned(found: Arrangement, order: Sequence[Vertex], wanted: Sequence[tuple[int, int]]) -> Arrangement:
    """Give lines that were turned to break a cycle their own direction back."""
    routes: dict[Step, tuple[Point, ...]] = {}
    for a, b in wanted:
        step = (order[a], order[b])
        back = (order[b], order[a])
        routes[step] = found.routes[step] if step in found.routes else found.routes[back][::-1]
    return replace(found, routes=routes)


def _with_lanes(found: Arrangement, sizes: Mapping[Vertex, Point]) -> Arrangement:
    """Lead every port straight to the border, past the boxes in between."""
    boxes = [(*found.at[v], *sizes[v]) for v in found.at if v.role == "item"]
    lanes: dict[Vertex, float] = {}
    for vertex, (x, y) in sorted(found.at.items()):
        if vertex.role == "in":
            blocked = [(bx, bx + w) for bx, by, w, _ in boxes if by < y - 1]
            lanes[vertex] = _nearest_free(x, blocked)
        elif vertex.role == "out":
            blocked = [(bx, bx + w) for bx, by, w, h in boxes if by + h > y + 1]
            lanes[vertex] = _nearest_free(x, blocked)
    left = min([0.0, *(lane - LANE_MARGIN for lane in lanes.values() if lane < 0)])
    right = max([found.width, *(lane + LANE_MARGIN for lane in lanes.values())])
    return Arrangement(
        right - left,
        found.height,
        {v: (x - left, y) for v, (x, y) in found.at.items()},
        {v: x - left for v, x in lanes.items()},
        {s: tuple((x - left, y) for x, y in route) for s, route in found.routes.items()},
    )


def _nearest_free(x: float, blocked: Sequence[tuple[float, float]]) -> float:
    """The position nearest to x that keeps ``LANE_MARGIN`` from every blocked interval."""
    merged: list[list[float]] = []
    for low, high in sorted((a - LANE_MARGIN, b + LANE_MARGIN) for a, b in blocked):
        if merged and low <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], high)
        else:
            merged.append([low, high])
    at = bisect_left(merged, x, key=lambda interval: interval[1])
    if at == len(merged) or merged[at][0] >= x:
        return x
    low, high = merged[at]
    return low if x - low <= high - x else high
