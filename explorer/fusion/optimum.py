"""The optimum of a scheme: exact where the order ideals can be enumerated, else a plan and a bound."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from explorer.errors import Cancelled
from explorer.fusion.ideals import IDEAL_LIMIT, ideal_steps
from explorer.fusion.plan import Plan
from explorer.fusion.relaxation import bounds, least_bytes
from explorer.fusion.scheme import Scheme
from explorer.fusion.searches.greedy import GreedySearch
from explorer.fusion.searches.interval import interval_steps
from explorer.fusion.searches.local_search import LocalSearch

TIME_LIMIT_SECONDS = 60.0
_FALLBACK_PLANS = 1000  # of local search, to have a good plan beside the bound


@dataclass(frozen=True)
class Optimum:
    """What is known of the best plan; all sizes in bytes.

    Attributes:
        plan: the best plan found; the optimum if it is proved.
        bound_bytes: no plan moves fewer; equal to the plan's traffic if that is proved.
        is_proved: the plan is optimal.
        method: "ideals" or "cp-sat".
        ideals: order ideals expanded.
        seconds: wall time.
    """

    plan: Plan
    bound_bytes: int
    is_proved: bool
    method: str
    ideals: int
    seconds: float

    @property
    def gap_ratio(self) -> float | None:
        """How much more than the bound the plan moves, as a share of the bound; 0 if it is proved."""
        return gap_ratio(self.plan.dram_bytes, self.bound_bytes)


@dataclass(frozen=True)
class OptimumProgress:
    """A step towards the optimum; ``optimum`` is set in the last one.

    ``share`` is how much of the network the ideals cover, or how much of the time is spent.
    """

    share: float
    seconds: float
    bound_bytes: int = 0
    optimum: Optimum | None = None


def gap_ratio(dram_bytes: int, bound_bytes: int) -> float | None:
    """How much more a plan moves than the bound, as a share of it; None (unknown) above a bound of 0."""
    if bound_bytes:
        return dram_bytes / bound_bytes - 1
    return None if dram_bytes else 0.0


def optimum(
    scheme: Scheme,
    *,
    ideal_limit: int = IDEAL_LIMIT,
    time_limit_seconds: float = TIME_LIMIT_SECONDS,
    workers: int = 1,
    cancel: Callable[[], bool] | None = None,
) -> Optimum:
    """The optimum, or a plan and a bound; arguments as ``optimum_steps``.

    Raises:
        Cancelled: ``cancel`` said so.
    """
    found = None
    for step in optimum_steps(
        scheme, ideal_limit=ideal_limit, time_limit_seconds=time_limit_seconds, workers=workers
    ):
        if cancel is not None and step.optimum is None and cancel():
            raise Cancelled("The search for the optimum was stopped.")
        found = step.optimum
    if found is None:
        raise AssertionError("the last step carries the optimum")
    return found


def optimum_steps(
    scheme: Scheme,
    *,
    ideal_limit: int = IDEAL_LIMIT,
    time_limit_seconds: float = TIME_LIMIT_SECONDS,
    workers: int = 1,
) -> Iterator[OptimumProgress]:
    """Work towards the optimum; the last item carries it. Stop iterating to cancel.

    Args:
        scheme: costs and rules.
        ideal_limit: order ideals to keep; beyond it CP-SAT looks for a bound.
        time_limit_seconds: for ideals at most half of it, for everything about all of it.
        workers: threads of CP-SAT.
    """
    started = time.perf_counter()
    ideals, total = 0, max(1, len(scheme.network.nodes))
    half = time_limit_seconds / 2
    for step in ideal_steps(scheme, ideal_limit=ideal_limit, time_limit_seconds=half):
        ideals = step.ideals
        if step.is_done:
            plan = Plan(scheme, step.masks)
            best = Optimum(plan, plan.dram_bytes, True, "ideals", ideals, _since(started))
            yield OptimumProgress(1.0, _since(started), plan.dram_bytes, best)
            return
        yield OptimumProgress(step.placed / total, step.seconds)
    yield from _bounded(scheme, ideals, started, time_limit_seconds, workers)


def _bounded(
    scheme: Scheme, ideals: int, started: float, time_limit_seconds: float, workers: int
) -> Iterator[OptimumProgress]:
    """The best of the quick searches, improved by what the relaxation suggests, beside its bound."""
    bound = least_bytes(scheme)

    def progress() -> OptimumProgress:
        return OptimumProgress(min(1.0, _since(started) / time_limit_seconds), _since(started), bound)

    plan = GreedySearch(scheme).run(1)
    for masks in interval_steps(scheme, time_limit_seconds / 10):
        if masks is None:
            yield progress()
        else:
            plan = min(plan, Plan(scheme, masks), key=lambda p: p.dram_bytes)
    local = LocalSearch(scheme, start=plan)
    for _ in local.events(_FALLBACK_PLANS):
        yield progress()
        if _since(started) > 0.7 * time_limit_seconds:
            break
    plan = local.best_plan()
    left = max(1.0, time_limit_seconds - _since(started))
    for found in bounds(scheme, plan.masks, time_limit_seconds=left, workers=workers):
        if found is not None:
            bound = max(bound, found.bound_bytes)
            suggested = LocalSearch(scheme, start=Plan(scheme, found.masks)).run(1)
            plan = min(plan, suggested, key=lambda p: p.dram_bytes)
        yield progress()
        if plan.dram_bytes <= bound:
            break
    proved = plan.dram_bytes <= bound
    best = Optimum(plan, min(bound, plan.dram_bytes), proved, "cp-sat", ideals, _since(started))
    yield OptimumProgress(1.0, _since(started), best.bound_bytes, best)


def _since(started: float) -> float:
    return time.perf_counter() - started
