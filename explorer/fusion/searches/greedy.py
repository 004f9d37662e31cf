"""GREEDY: grow groups in topological order until they are full (the heuristic of DeFiNES)."""

from __future__ import annotations

from explorer.fusion.network import bits
from explorer.fusion.searches.base import PlanSearch
from explorer.fusion.space import Masks


class GreedySearch(PlanSearch):
    """One plan: each operation joins the latest group among its predecessors', if the group still fits."""

    name = "greedy"

    def _step(self) -> int:
        self.is_done = True
        return self._accept(self._grown())[1]

    def _grown(self) -> Masks:
        preds, cost = self.scheme.network.preds, self.scheme.cost
        groups: list[int] = []
        place: list[float] = []  # the group that an operation runs in; between two for one that is left out
        for i in range(len(preds)):
            latest = max((place[p] for p in bits(preds[i])), default=-1.0)
            if not self.space.kept >> i & 1:
                place.append(int(latest) + 0.5)
                continue
            joins = latest >= 0 and latest == int(latest)
            if joins and cost(groups[int(latest)] | 1 << i).fits:
                groups[int(latest)] |= 1 << i
                place.append(latest)
            else:
                place.append(float(len(groups)))
                groups.append(1 << i)
        return tuple(groups)
