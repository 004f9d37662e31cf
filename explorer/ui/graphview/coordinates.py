"""Rows to positions: room for every box, and the main path straight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from explorer.ui.graphview.columns import Offsets, columns
from explorer.ui.graphview.layering import Layers

#: Free space in pixels between two rows, and its limit where lines move far sideways.
ROW_GAP, MAX_ROW_GAP = 34.0, 92.0
#: The same next to a row that holds only ports of a frame.
PORT_GAP = 8.0


@dataclass(frozen=True, slots=True)
class Positions:
    """Where a component lies, from (0, 0) to (width, height), in pixels.

    Attributes:
        x: Horizontal centre of each vertex and bend.
        top: Upper edge of each row.
        bottom: Lower edge of each row.
        row: Row of each vertex and bend.
        width: From the left edge of the leftmost to the right edge of the rightmost box.
    """

    x: dict[int, float]
    top: tuple[float, ...]
    bottom: tuple[float, ...]
    row: dict[int, int]
    width: float


def place(
    layers: Layers,
    widths: Sequence[float],
    heights: Sequence[float],
    offsets: Offsets | None = None,
    aligned: Sequence[tuple[int, int]] = (),
) -> Positions:
    """Positions for boxes of the given sizes (one per vertex; bends have none).

    Args:
        layers: Rows of vertices and bends.
        widths: Width of each vertex.
        heights: Height of each vertex; 0 for a port.
        offsets: For edges that do not touch the middle of a box: how far from the middle they
            touch their source and their target.
        aligned: Pairs of vertices that should stand in one column if that is possible.
    """
    x = columns(layers, widths, offsets or {}, aligned)

    def half(vertex: int) -> float:
        return widths[vertex] / 2 if vertex < layers.count else 1.0

    left = min(x[v] - half(v) for v in x)
    x = {v: value - left for v, value in x.items()}
    row = {v: r for r, vertices in enumerate(layers.rows) for v in vertices}
    top, bottom = _rows(layers, heights, _sideways(layers, x, row, offsets or {}))
    return Positions(x, top, bottom, row, max(x[v] + half(v) for v in x))


def _sideways(
    layers: Layers, x: Mapping[int, float], row: Mapping[int, int], offsets: Offsets
) -> list[float]:
    """How far the lines below each row move sideways at most."""
    far = [0.0] * len(layers.rows)
    for edge, bends in layers.bends.items():
        start, stop = offsets.get(edge, (0.0, 0.0))
        stops = (edge[0], *bends, edge[1])
        places = [x[v] for v in stops]
        places[0] += start
        places[-1] += stop
        for vertex, a, b in zip(stops, places, places[1:], strict=False):
            far[row[vertex]] = max(far[row[vertex]], abs(a - b))
    return far


def _rows(
    layers: Layers, heights: Sequence[float], sideways: Sequence[float]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Upper and lower edges; rows stand further apart where lines move far sideways."""
    tall = [max((heights[v] for v in row if v < layers.count), default=0.0) for row in layers.rows]
    top, bottom, y = list[float](), list[float](), 0.0
    for number, height in enumerate(tall):
        top.append(y)
        bottom.append(y + height)
        bare = not height or not tall[min(number + 1, len(tall) - 1)]
        base = PORT_GAP + min(sideways[number], 26.0) if bare else ROW_GAP
        y += height + min(MAX_ROW_GAP, base + 0.06 * sideways[number])
    return tuple(top), tuple(bottom)
