"""Looking for plans on one graph under one setting: at once, by a search, to the optimum."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from explorer.errors import Cancelled
from explorer.fusion import KB, Optimum, PlanSearch, Scheme, make_search, optimum_steps
from explorer.runtime.executor import CancelToken
from explorer.runtime.progress import OnProgress, Progress
from explorer.session.fusion_known import FusionKnown
from explorer.session.fusion_values import FoundPlan, FusionSettings, SearchCurve, plan_label

INSTANT_SECONDS = 0.3  # what a move of the buffer slider may take
OPTIMUM_SECONDS = 60.0
_TELL_SECONDS = 0.1
Note = Callable[[], None]


class Keep(Protocol):
    """Where plans go."""

    def __call__(self, known: FusionKnown, found: FoundPlan, *, is_news: bool = True) -> FoundPlan:
        """Note a plan and work with it; one that nobody asked for is no news."""


@dataclass(frozen=True)
class PlanFinder:
    """Finds plans and keeps them.

    Attributes:
        settings: what the plans are found under.
        scheme: the cost model.
        known: what is known of the graph; optima and curves go there.
        keep: where plans go.
    """

    settings: FusionSettings
    scheme: Scheme
    known: FusionKnown
    keep: Keep

    def at_once(self) -> None:
        """A greedy plan, and the optimum or else a plan of intervals; asked once for each setting."""
        if self.settings in self.known.asked:
            return
        self.known.asked.add(self.settings)
        search = make_search("greedy", self.scheme)
        search.run(1)
        greedy = self.keep(self.known, FoundPlan.searched(search, self.settings, 0), is_news=False)
        if not self._optimum_at_once():
            intervals = FoundPlan.of_intervals(self.scheme, self.settings, INSTANT_SECONDS / 2)
            if intervals.plan.dram_bytes < greedy.plan.dram_bytes:
                self.keep(self.known, intervals, is_news=False)

    def _optimum_at_once(self) -> bool:
        """Whether the optimum is known, or found within the time a move of the slider may take."""
        settings, known = self.settings, self.known
        if settings in known.optima:
            return True
        if settings.buffer_bytes >= known.slow.get(settings.scheme, settings.buffer_bytes + 1):
            return False
        deadline = time.monotonic() + INSTANT_SECONDS
        for step in optimum_steps(self.scheme, time_limit_seconds=OPTIMUM_SECONDS):
            if step.optimum is not None:
                known.optima[settings] = step.optimum
                self.keep(known, FoundPlan.best(step.optimum, settings), is_news=False)
            elif time.monotonic() > deadline:
                known.slow[settings.scheme] = settings.buffer_bytes
                return False
        return True

    def search(
        self, name: str, budget: int, seed: int, progress: OnProgress, cancel: CancelToken | None, note: Note
    ) -> FoundPlan:
        """Search for a plan, then for the optimum if that is not known; see ``FusionBench.search``."""
        if name == "exact":
            best = self.optimum(progress, cancel, OPTIMUM_SECONDS)
            return self.keep(self.known, FoundPlan.best(best, self.settings, seed))
        searcher = make_search(name, self.scheme, seed=seed)
        try:
            self._run(searcher, budget, seed, progress, cancel, note)
        except Cancelled:
            if searcher.plans:
                self.keep(self.known, FoundPlan.searched(searcher, self.settings, seed, is_stopped=True))
            raise
        found = self.keep(self.known, FoundPlan.searched(searcher, self.settings, seed))
        note()
        if self.settings not in self.known.optima:
            self.optimum(progress, cancel, OPTIMUM_SECONDS)
        return found

    def _run(
        self,
        searcher: PlanSearch,
        budget: int,
        seed: int,
        progress: OnProgress,
        cancel: CancelToken | None,
        note: Note,
    ) -> None:
        label = plan_label(searcher.name, self.settings, budget, seed)
        points: list[tuple[int, int]] = []
        told = 0.0
        for event in searcher.events(budget, cancel.is_set if cancel is not None else None):
            now = (event.plans, event.best_bytes)
            if not points or event.best_bytes < points[-1][1]:
                points.append(now)
            is_last = event.is_done or event.plans >= budget
            if is_last or time.monotonic() - told > _TELL_SECONDS:
                told = time.monotonic()
                shown = tuple(points) if points[-1] == now else (*points, now)
                self.known.curves[label] = SearchCurve(label, self.settings, shown)
                text = f"{event.plans} of {budget} plans, best {event.best_bytes / KB:,.2f} KB"
                progress(Progress(event.plans, budget, text))
                note()

    def optimum(self, progress: OnProgress, cancel: CancelToken | None, time_limit_seconds: float) -> Optimum:
        """The best plan, or a plan and a bound; see ``FusionBench.find_optimum``."""
        settings, known = self.settings, self.known
        if settings in known.optima and known.optima[settings].is_proved:
            return known.optima[settings]
        told = 0.0
        for step in optimum_steps(self.scheme, time_limit_seconds=time_limit_seconds):
            if time.monotonic() - told > _TELL_SECONDS:
                told = time.monotonic()
                text = f"{step.share:.0%} of the way to the optimum"
                progress(Progress(round(100 * step.share), 100, text))
            if step.optimum is not None:
                known.optima[settings] = step.optimum
            elif cancel is not None and cancel.is_set():
                raise Cancelled("The search for the optimum was stopped.")
        return known.optima[settings]
