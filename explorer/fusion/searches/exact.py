"""EXACT: the optimum over all plans, or the best plan and a bound where that takes too long."""

from __future__ import annotations

from collections.abc import Iterator

from explorer.fusion.ideals import IDEAL_LIMIT
from explorer.fusion.optimum import TIME_LIMIT_SECONDS, Optimum, OptimumProgress, optimum_steps
from explorer.fusion.plan import Plan
from explorer.fusion.repair import Repair
from explorer.fusion.scheme import Scheme
from explorer.fusion.searches.base import PlanSearch


class ExactSearch(PlanSearch):
    """One plan, the best there is; ``optimum`` says whether that is proved.

    Its events before the last one carry the progress, and the plan of single operations.
    """

    name = "exact"

    def __init__(
        self,
        scheme: Scheme,
        *,
        seed: int = 0,
        repair: Repair | None = None,
        start: Plan | None = None,
        ideal_limit: int = IDEAL_LIMIT,
        time_limit_seconds: float = TIME_LIMIT_SECONDS,
    ) -> None:
        super().__init__(scheme, seed=seed, repair=repair, start=start)
        self.optimum: Optimum | None = None
        self._limits = (ideal_limit, time_limit_seconds)
        self._steps: Iterator[OptimumProgress] | None = None

    def _step(self) -> int:
        if self._steps is None:
            ideals, seconds = self._limits
            self._steps = optimum_steps(self.scheme, ideal_limit=ideals, time_limit_seconds=seconds)
        step = next(self._steps)
        self.progress = step.share
        if step.optimum is None:
            return self.space.total_bytes(self.space.alone())
        self.optimum = step.optimum
        self.is_done = True
        return self._accept(step.optimum.plan.masks)[1]
