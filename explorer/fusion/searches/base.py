"""What all plan searches share: proposing, repairing, counting, remembering the best, events."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from explorer.errors import Cancelled, InputError
from explorer.fusion.plan import Plan
from explorer.fusion.repair import RandomSplit, Repair
from explorer.fusion.scheme import Scheme
from explorer.fusion.space import Masks, PlanSpace


@dataclass(frozen=True)
class SearchEvent:
    """Where a search stands after a step.

    Attributes:
        plans: plans proposed so far, by which budgets are counted.
        proposed_bytes: DRAM traffic of the latest plan, after repair.
        best_bytes: the least so far.
        best: the plan with that traffic, as bits.
        invalid_met: proposed groups that did not fit.
        rectified: how many of these an explanation split into groups that fit.
        seconds: time spent in steps.
        progress: share of the work done, 0 to 1, where the budget does not say (the exact search).
        is_done: nothing more will come.
    """

    plans: int
    proposed_bytes: int
    best_bytes: int
    best: Masks
    invalid_met: int
    rectified: int
    seconds: float
    progress: float | None = None
    is_done: bool = False


class PlanSearch(ABC):
    """A search over whole plans; its state stays in the object, so it can be stopped and continued.

    Args:
        scheme: costs and rules.
        seed: the same seed gives the same search.
        repair: what splits an invalid group; a random split by default.
        start: a plan to begin with, counted as the first one proposed.
    """

    name: str

    def __init__(
        self, scheme: Scheme, *, seed: int = 0, repair: Repair | None = None, start: Plan | None = None
    ) -> None:
        self.scheme = scheme
        self.space = PlanSpace(scheme)
        self.rng = Random(seed)  # noqa: S311 (a search, not a secret)
        self.repair = repair or RandomSplit()
        self.start = None if start is None else start.masks
        self.plans = 0
        self.invalid_met = 0
        self.rectified = 0
        self.seconds = 0.0
        self.best: Masks = ()
        self.best_bytes: int | None = None
        self.is_done = False
        self.progress: float | None = None

    @abstractmethod
    def _step(self) -> int:
        """Propose one plan; returns its traffic in bytes. Sets ``is_done`` when nothing is left."""

    def events(self, budget: int, cancel: Callable[[], bool] | None = None) -> Iterator[SearchEvent]:
        """Search on until ``budget`` plans have been proposed in all, one event for each.

        Call it again with a larger budget to continue: the result is that of one longer call.

        Raises:
            InputError: the budget is not positive.
            Cancelled: ``cancel`` said so; what was found so far stays in the object.
        """
        if budget < 1:
            raise InputError(f"A budget of {budget} plans is not possible; give at least 1.")
        while self.plans < budget and not self.is_done:
            if cancel is not None and cancel():
                raise Cancelled(f"The {self.name} search was stopped after {self.plans} plans.")
            started = time.perf_counter()
            proposed = self._step()
            self.seconds += time.perf_counter() - started
            yield self._event(proposed)

    def run(self, budget: int, cancel: Callable[[], bool] | None = None) -> Plan:
        """Search until the budget is spent; returns the best plan."""
        for _ in self.events(budget, cancel):
            pass
        return self.best_plan()

    def best_plan(self) -> Plan:
        """The best plan so far; every operation alone if none was proposed yet."""
        return Plan(self.scheme, self.best if self.plans else self.space.alone())

    def _event(self, proposed: int) -> SearchEvent:
        best = proposed if self.best_bytes is None else self.best_bytes
        return SearchEvent(
            plans=self.plans,
            proposed_bytes=proposed,
            best_bytes=best,
            best=self.best or self.space.alone(),
            invalid_met=self.invalid_met,
            rectified=self.rectified,
            seconds=self.seconds,
            progress=self.progress,
            is_done=self.is_done,
        )

    def _accept(self, masks: Masks) -> tuple[Masks, int]:
        """Repair a proposed plan, count it and remember it if it is the best."""
        fitted = self._fitted(masks)
        total = self.space.total_bytes(fitted)
        self.plans += 1
        if self.best_bytes is None or total < self.best_bytes:
            self.best, self.best_bytes = fitted, total
        return fitted, total

    def _fitted(self, masks: Masks) -> Masks:
        cost = self.scheme.cost
        misfits = {mask for mask in masks if not cost(mask).fits}
        if not misfits:
            return masks
        found: list[int] = []
        for mask in masks:
            if mask in misfits:
                self.invalid_met += 1
                repaired = self.repair.split(self.scheme, mask, self.rng)
                self.rectified += repaired.is_rectified
                found += repaired.masks
            else:
                found.append(mask)
        return tuple(found)

    def _first_plan(self) -> Masks:
        return self.space.random_plan(self.rng) if self.start is None else self.start
