"""RS: a new random plan each step."""

from __future__ import annotations

from explorer.fusion.searches.base import PlanSearch


class RandomSearch(PlanSearch):
    """Independent random plans."""

    name = "rs"

    def _step(self) -> int:
        masks = self._first_plan() if self.plans == 0 else self.space.random_plan(self.rng)
        return self._accept(masks)[1]
