"""GREEDY: grow groups in topological order until they are full (the heuristic of DeFiNES)."""

from __future__ import annotations

from explorer.fusion.network import bits
from explorer.fusion.scheme import Growing
from explorer.fusion.searches.base import PlanSearch
from explorer.fusion.space import Masks


class GreedySearch(PlanSearch):
    """One plan: each operation joins the latest group among its predecessors', if the group still fits."""

    name = "greedy"

    def _step(self) -> int:
        self.is_done = True
        return self._accept(self._grown())[1]

    def _grown(self) -> Masks:
        preds = self.scheme.network.preds
        groups: list[int] = []
        grown: list[Growing] = []
        place: list[float] = []  # the group that an operation runs in; between two for one that is left out
        for i in range(len(preds)):
            latest = max((place[p] for p in bits(preds[i])), default=-1.0)
            if not self.space.kept >> i & 1:
                place.append(int(latest) + 0.5)
                continue
            joins = latest >= 0 and latest == int(latest)
            if joins and self._fits(grown[int(latest)], groups[int(latest)], i):
                groups[int(latest)] |= 1 << i
                place.append(latest)
            else:
                place.append(float(len(groups)))
                groups.append(1 << i)
                grown.append(self.scheme.growing())
                grown[-1].add(1 << i)
        return tuple(groups)

    def _fits(self, grown: Growing, group: int, node: int) -> bool:
        """Add a node to a group if that is allowed and fits."""
        if self.scheme.refusal(group | 1 << node) is not None:
            return False
        grown.add(1 << node)
        if not grown.cost().fits:
            grown.undo()
            return False
        return True
