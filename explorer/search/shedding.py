"""Leaving out of a set of sites that gains together those that do not pay.

A set is kept once it is faster as a whole, though some of its sites may cost what others gain. So the half with the
least work at stake is left out, and the rest is compared with the whole: if that is faster, the half stays out. If
the half saves its share of the gain, the set is fine; if it saves less, it is divided further, and so is the other
half if that turns out to save too little.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from math import log
from typing import TypeVar

from explorer.cost import Delta, Verdict
from explorer.search.events import Event

T = TypeVar("T")
LeaveOut = Callable[[tuple[T, ...], tuple[T, ...]], Generator[Event, None, Delta | None]]
"""(sites, those of them to leave out) -> the time without them relative to the time with them; None if unknown."""

_FAIR = 0.5
"""A part that saves less than this much of its share of the gain may hold sites that cost something."""


def shed(
    places: tuple[T, ...], ratio: float, can_go_on: Callable[[], bool], leave_out: LeaveOut[T]
) -> Generator[Event, None, tuple[T, ...]]:
    """The sites that are worth keeping.

    Args:
        places: sites (or moves of a path) that gain together, those with the most at stake first.
        ratio: time with all of them relative to the time with none.
        can_go_on: whether another comparison may be made.
        leave_out: compares; its events are passed on.
    """
    kept, gain = places, -log(ratio)
    asked: set[tuple[T, ...]] = set()
    suspects = [_tail(kept)]
    while suspects and can_go_on():
        part = suspects.pop(0)
        if part in asked or not 0 < len(part) < len(kept):
            continue
        asked.add(part)
        delta = yield from leave_out(kept, part)
        if delta is None:
            continue
        saves, rest = log(delta.ratio), tuple(place for place in kept if place not in part)
        if delta.verdict is Verdict.FASTER:
            kept, gain = rest, gain - saves
            suspects = [_tail(kept)]
            continue
        if saves < _FAIR * gain * len(part) / len(kept):
            suspects += [_tail(part), part[: -len(_tail(part))]] if len(part) > 1 else []
        if part == _tail(kept) and gain - saves < _FAIR * gain * len(rest) / len(kept):
            suspects.append(rest)
    return kept


def _tail(places: tuple[T, ...]) -> tuple[T, ...]:
    """The half with the least at stake."""
    return places[(len(places) + 1) // 2 :]
