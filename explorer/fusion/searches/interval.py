"""INTERVAL: the best plan whose groups are intervals of the topological order; a baseline.

It misses every group that leaves out a node of another branch, which the exact optimum does not.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from math import inf

from explorer.fusion.scheme import Scheme
from explorer.fusion.searches.base import PlanSearch
from explorer.fusion.space import Masks


class IntervalSearch(PlanSearch):
    """One plan, by dynamic programming over the positions of the order."""

    name = "interval"

    def _step(self) -> int:
        self.is_done = True
        *_, masks = interval_steps(self.scheme)
        return self._accept(masks or ())[1]


def interval_steps(scheme: Scheme, time_limit_seconds: float | None = None) -> Iterator[Masks | None]:
    """The groups of the best plan of intervals, in order, as the last item; None before, to be stopped at.

    Left-out operations end an interval. After the time limit only single operations are added.
    """
    deadline = inf if time_limit_seconds is None else time.perf_counter() + time_limit_seconds
    network, removed = scheme.network, scheme.removed_mask
    count = len(network.nodes)
    best: list[int | None] = [0] + [None] * count
    group = [0] * (count + 1)
    for first in range(count):
        before = best[first] or 0
        if removed >> first & 1:
            _offer(best, group, first + 1, before, 0)
            continue
        grown, mask = scheme.growing(), 0
        parts: tuple[int, ...] = ()
        for node in range(first, count):
            yield None
            if removed >> node & 1 or (mask and time.perf_counter() > deadline):
                break
            parts = _joined(parts, node, network.preds[node])
            mask |= 1 << node
            grown.add(1 << node)
            if grown.floor() >= scheme.capacity_bytes:
                break
            if len(parts) == 1 and grown.cost().fits and scheme.refusal(mask) is None:
                _offer(best, group, node + 1, before + grown.cost().dram_bytes, mask)
    groups, end = [], count
    while end:
        groups += [group[end]] if group[end] else []
        end -= group[end].bit_count() or 1
    yield tuple(reversed(groups))


def _offer(best: list[int | None], group: list[int], end: int, total: int, mask: int) -> None:
    known = best[end]
    if known is None or total < known:
        best[end], group[end] = total, mask


def _joined(parts: tuple[int, ...], node: int, preds: int) -> tuple[int, ...]:
    """The connected parts of an interval after its next node."""
    whole, others = 1 << node, []
    for part in parts:
        if part & preds:
            whole |= part
        else:
            others.append(part)
    return (whole, *others)
