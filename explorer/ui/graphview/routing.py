"""Where lines touch the boxes, and which of their points are needed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

Point = tuple[float, float]
Rect = tuple[float, float, float, float]

#: Distance in pixels of two lines that touch the same side of a box.
STEP = 14.0
#: A line whose next bend is this near the middle goes straight to the middle.
STRAIGHT = 4.0


_Side = tuple[int, bool]
#: Side of a box, and the tensor that touches it there.
_End = tuple[_Side, int]


class Anchors:
    """Spreads the lines of each box along its upper and lower side, in the order they come from.

    Lines of one tensor share a point. The line that can run straight keeps the middle.

    Args:
        rects: (x, y, width, height) of every box.
    """

    def __init__(self, rects: Sequence[Rect]) -> None:
        self._rects = rects
        self._ends: dict[int, tuple[_End | None, _End | None]] = {}
        self._wishes: defaultdict[_Side, dict[int, list[float]]] = defaultdict(dict)

    def add(
        self, line: int, net: int, source: int | None, target: int | None, bends: Sequence[Point]
    ) -> None:
        """Announce a line, its tensor, its two boxes (None: ends with its bends) and its bends."""
        first = bends[0] if bends else self._middle(target or 0)
        last = bends[-1] if bends else self._middle(source or 0)
        self._ends[line] = (
            None if source is None else self._wish(source, first, net),
            None if target is None else self._wish(target, last, ~net),
        )

    def _wish(self, box: int, towards: Point, net: int) -> _End:
        side = (box, towards[1] > self._middle(box)[1])
        # Outgoing lines of one tensor share a point; incoming ones (~net) do too.
        self._wishes[side].setdefault(net, []).append(towards[0])
        return side, net

    def _middle(self, box: int) -> Point:
        x, y, width, height = self._rects[box]
        return x + width / 2, y + height / 2

    def ends(self) -> dict[int, tuple[Sequence[Point], Sequence[Point]]]:
        """The points to put before and after the bends of every line: one or none each."""
        offsets = {side: self._spread(side) for side in self._wishes}

        def points(end: _End | None) -> list[Point]:
            return [] if end is None else [self._point(end[0], offsets[end[0]][end[1]])]

        return {line: (points(start), points(stop)) for line, (start, stop) in self._ends.items()}

    def _point(self, side: _Side, offset: float) -> Point:
        x, y, width, height = self._rects[side[0]]
        return x + width / 2 + offset, y + height if side[1] else y

    def _spread(self, side: _Side) -> dict[int, float]:
        middle = self._middle(side[0])[0]
        wish = {net: sum(xs) / len(xs) - middle for net, xs in self._wishes[side].items()}
        nets = sorted(wish, key=lambda net: (wish[net], net))
        if len(nets) == 1:
            width = self._rects[side[0]][2]
            room = max(0.0, width / 2 - STEP) if width > 400 else 0.0
            return {nets[0]: max(-room, min(room, wish[nets[0]]))}
        step = min(STEP, (self._rects[side[0]][2] - 24) / (len(nets) - 1))
        straight = min(range(len(nets)), key=lambda i: abs(wish[nets[i]]))
        centre = float(straight) if abs(wish[nets[straight]]) < STRAIGHT else (len(nets) - 1) / 2
        return {net: (i - centre) * step for i, net in enumerate(nets)}


def smooth(points: Sequence[Point]) -> tuple[Point, ...]:
    """Drop repeated points and those in the middle of a vertical stretch."""
    kept: list[Point] = []
    for x, y in points:
        if kept and abs(kept[-1][0] - x) < 0.5 and abs(kept[-1][1] - y) < 0.5:
            continue
        if (
            len(kept) > 1
            and abs(kept[-1][0] - x) < 0.5
            and abs(kept[-2][0] - x) < 0.5
            and (kept[-1][1] - kept[-2][1]) * (y - kept[-1][1]) > 0
        ):
            kept[-1] = (kept[-1][0], y)
        else:
            kept.append((x, y))
    return tuple(kept) if len(kept) > 1 else (points[0], points[-1])
