"""All plan searches by name."""

from __future__ import annotations

from explorer.errors import InputError
from explorer.fusion.plan import Plan
from explorer.fusion.repair import Repair
from explorer.fusion.scheme import Scheme
from explorer.fusion.searches.base import PlanSearch
from explorer.fusion.searches.exact import ExactSearch
from explorer.fusion.searches.greedy import GreedySearch
from explorer.fusion.searches.interval import IntervalSearch
from explorer.fusion.searches.local_search import LocalSearch
from explorer.fusion.searches.nsga2 import Nsga2Search
from explorer.fusion.searches.random_search import RandomSearch

SEARCHES: dict[str, type[PlanSearch]] = {
    kind.name: kind
    for kind in (RandomSearch, LocalSearch, Nsga2Search, GreedySearch, ExactSearch, IntervalSearch)
}


def make_search(
    name: str, scheme: Scheme, *, seed: int = 0, repair: Repair | None = None, start: Plan | None = None
) -> PlanSearch:
    """A search by name; raises InputError for an unknown one."""
    if name not in SEARCHES:
        raise InputError(f"There is no search '{name}'; choose one of {', '.join(SEARCHES)}.")
    return SEARCHES[name](scheme, seed=seed, repair=repair, start=start)
