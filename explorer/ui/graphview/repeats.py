"""Stretches of operators that repeat, for graphs whose names carry no scopes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Shorter patterns are not worth a block.
MIN_PERIOD = 4
#: Longer ones are not looked for; the search is quadratic.
MAX_PERIOD = 600


@dataclass(frozen=True, slots=True)
class Stretch:
    """Positions ``start`` to ``stop`` (exclusive) of a sequence, one of a row of equal ones."""

    start: int
    stop: int
    title: str


@dataclass(frozen=True, slots=True)
class _Run:
    start: int
    period: int
    count: int

    @property
    def stop(self) -> int:
        return self.start + self.period * self.count


def repeated_stretches(
    labels: Sequence[str], nodes: Sequence[int], pairs: Sequence[tuple[int, int]]
) -> list[Stretch]:
    """Find rows of equal stretches; stretches of one row are numbered from 1.

    Args:
        labels: Operator types in topological order.
        nodes: The node at each position.
        pairs: Edges between nodes; stretches are cut where few of them cross.

    Returns:
        Disjoint stretches in order, at least two to a row.
    """
    codes = np.unique(np.asarray(labels, dtype=np.str_), return_inverse=True)[1]
    crossing = _crossings(nodes, pairs)
    runs = _runs(codes.astype(np.int64), 0, len(labels), crossing)
    stretches: list[Stretch] = []
    for number, run in enumerate(sorted(runs, key=lambda run: run.start)):
        letter = f" {chr(ord('A') + number % 26)}" if len(runs) > 1 else ""
        for k in range(run.count):
            start = run.start + k * run.period
            title = f"Block{letter} {k + 1} of {run.count}"
            stretches.append(Stretch(start, start + run.period, title))
    return stretches


def _crossings(nodes: Sequence[int], pairs: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """Number of producers whose output is still needed, before each position."""
    position = {node: i for i, node in enumerate(nodes)}
    last: dict[int, int] = {}
    for a, b in pairs:
        if a in position and b in position:
            last[position[a]] = max(last.get(position[a], 0), position[b])
    change = np.zeros(len(nodes) + 1, dtype=np.int64)
    for start, stop in last.items():
        if stop > start:
            change[start + 1] += 1
            change[stop + 1] -= 1
    return np.cumsum(change)


def _runs(codes: NDArray[np.int64], start: int, stop: int, crossing: NDArray[np.int64]) -> list[_Run]:
    """Best row of repeats in a span, then the same left and right of it."""
    found: list[_Run] = []
    spans = [(start, stop)]
    while spans:
        low, high = spans.pop()
        run = _best_run(codes[low:high], low, crossing)
        if run is not None:
            found.append(run)
            spans += [(low, run.start), (run.stop, high)]
    return found


def _best_run(codes: NDArray[np.int64], offset: int, crossing: NDArray[np.int64]) -> _Run | None:
    best: tuple[float, int, int, int] | None = None
    for period in range(MIN_PERIOD, min(len(codes) // 2, MAX_PERIOD) + 1):
        first, length = _longest_true(codes[period:] == codes[:-period])
        covered = (length // period + 1) * period
        if length < period or len(set(codes[first : first + period].tolist())) < 2:
            continue
        score = covered * (1 - 0.02 * np.log2(period))  # of equal coverage, the shorter period
        if best is None or score > best[0]:
            best = (score, first, period, length)
    if best is None:
        return None
    _, first, period, length = best
    return _cleanest(_Run(offset + first, period, length // period + 1), length % period, crossing)


def _longest_true(equal: NDArray[np.bool_]) -> tuple[int, int]:
    """Start and length of the longest run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], equal, [False])).astype(np.int8)))
    starts, stops = edges[::2], edges[1::2]
    if not len(starts):
        return 0, 0
    longest = int(np.argmax(stops - starts))
    return int(starts[longest]), int(stops[longest] - starts[longest])


def _cleanest(run: _Run, slack: int, crossing: NDArray[np.int64]) -> _Run:
    """Shift the cuts to where the fewest tensors cross, giving up one repeat if that helps."""

    def cost(shift: int) -> int:
        count = run.count - (shift > slack)
        cuts = [run.start + shift + k * run.period for k in range(count + 1)]
        return int(crossing[cuts].sum()) * 100 // len(cuts)

    shifts = range(slack + 1) if run.count < 3 else range(run.period)
    shift = min(shifts, key=lambda s: (cost(s) + (60 if s > slack else 0), s))
    return _Run(run.start + shift, run.period, run.count - (shift > slack))
