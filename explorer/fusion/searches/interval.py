"""INTERVAL: the best plan whose groups are intervals of the topological order; a baseline.

It misses every group that leaves out a node of another branch, which the exact optimum does not.
"""

from __future__ import annotations

from explorer.fusion.scheme import Scheme
from explorer.fusion.searches.base import PlanSearch
from explorer.fusion.space import Masks


class IntervalSearch(PlanSearch):
    """One plan, by dynamic programming over the positions of the order."""

    name = "interval"

    def _step(self) -> int:
        self.is_done = True
        return self._accept(best_intervals(self.scheme))[1]


def best_intervals(scheme: Scheme) -> Masks:
    """The groups of the best plan of intervals, in order; left-out operations end an interval."""
    count, removed = len(scheme.network.nodes), scheme.removed_mask
    best = [0] * (count + 1)
    start = list(range(-1, count))
    for end in range(1, count + 1):
        last = 1 << (end - 1)
        if last & removed:
            best[end] = best[end - 1]
            continue
        best[end] = best[end - 1] + scheme.cost(last).dram_bytes
        mask, bound = last, scheme.added_bound(end - 1, 0)
        for first in range(end - 2, -1, -1):
            bound += scheme.added_bound(first, mask)
            if removed >> first & 1 or bound >= scheme.capacity_bytes:
                break
            mask |= 1 << first
            if scheme.network.is_connected(mask):
                cost = scheme.cost(mask)
                if cost.fits and best[first] + cost.dram_bytes < best[end]:
                    best[end], start[end] = best[first] + cost.dram_bytes, first
    groups = []
    end = count
    while end:
        mask = (1 << end) - (1 << start[end])
        groups += [] if mask & removed else [mask]
        end = start[end]
    return tuple(reversed(groups))
