"""Fuse a graph: one call from a graph to a plan, with everything the command line prints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from explorer.fusion.build import fusion_network
from explorer.fusion.network import KB, FusionNetwork
from explorer.fusion.optimum import TIME_LIMIT_SECONDS, Optimum, gap_ratio, optimum
from explorer.fusion.plan import Plan
from explorer.fusion.plan_file import PlanFile
from explorer.fusion.repair import Repair
from explorer.fusion.schemes import make_scheme
from explorer.fusion.searches.base import PlanSearch, SearchEvent
from explorer.fusion.searches.exact import ExactSearch
from explorer.fusion.searches.registry import make_search
from explorer.graph import Graph
from explorer.graph.dims import Dims


@dataclass(frozen=True)
class FuseResult:
    """A plan, beside what it would be without fusion and the optimum. All sizes are model predictions.

    Attributes:
        plan: the best plan found; it carries scheme and network.
        optimum: the optimum, or a plan and a bound.
        search: name of the search; "given" for a plan that was not searched for.
        seed: its seed.
        budget: plans it was allowed to propose.
        plans: plans it proposed.
        invalid_met: groups it met that did not fit.
        rectified: how many of these an explanation split into groups that fit.
        seconds: time of the search, without the optimum it is compared with.
    """

    plan: Plan
    optimum: Optimum
    search: str
    seed: int
    budget: int
    plans: int
    invalid_met: int
    rectified: int
    seconds: float

    @property
    def gap_ratio(self) -> float | None:
        """How much more the plan moves than the optimum (or than the bound, if that is not proved).

        None where that is unknown, because nothing better than a bound of 0 was found.
        """
        return gap_ratio(self.plan.dram_bytes, self.optimum.bound_bytes)

    def to_json(self) -> dict[str, object]:
        """What ``explorer fuse --json`` prints.

        ``optimum_bytes`` is a lower bound where ``optimum_proved`` is false; ``gap_ratio`` is then an upper
        limit of the gap. Operations in ``removed`` fit no group and are in no total.
        """
        plan, scheme = self.plan, self.plan.scheme
        return {
            "model": scheme.network.name,
            "scheme": scheme.name,
            "buffer_kb": scheme.capacity_bytes / KB,
            "capacity_bytes": scheme.capacity_bytes,
            "element_bytes": scheme.network.element_bytes,
            "search": self.search,
            "seed": self.seed,
            "budget": self.budget,
            "source": "predicted",
            "groups": [_group(plan, mask) for mask in plan.masks],
            "removed": [removed.node for removed in scheme.removed()],
            "removed_ops": [asdict(removed) for removed in scheme.removed()],
            "dram_bytes": plan.dram_bytes,
            "layer_by_layer_bytes": Plan.layer_by_layer(scheme).dram_bytes,
            "largest_buffer_bytes": plan.largest_demand_bytes,
            "optimum_bytes": self.optimum.bound_bytes,
            "optimum_proved": self.optimum.is_proved,
            "optimum_method": self.optimum.method,
            "best_known_bytes": min(plan.dram_bytes, self.optimum.plan.dram_bytes),
            "gap_ratio": self.gap_ratio,
            "invalid_met": self.invalid_met,
            "rectified": self.rectified,
            "plans": self.plans,
            "seconds": self.seconds,
            "optimum_seconds": self.optimum.seconds,
        }


def fuse(
    graph: Graph | FusionNetwork,
    *,
    scheme: str = "lbdf",
    buffer_kb: float = 256,
    search: str = "exact",
    budget: int = 1000,
    seed: int = 0,
    repair: Repair | None = None,
    element_bytes: int = 2,
    dims: Dims | None = None,
    known: Optimum | None = None,
    time_limit_seconds: float = TIME_LIMIT_SECONDS,
    cancel: Callable[[], bool] | None = None,
    on_event: Callable[[SearchEvent], None] | None = None,
) -> FuseResult:
    """Find a plan for a graph and compare it with the optimum.

    Args:
        graph: a graph, or its fusion network (then ``element_bytes`` and ``dims`` are its own).
        scheme: "lbdf" or "brr".
        buffer_kb: the buffer, in KB of 1024 bytes.
        search: "rs", "ls", "nsga2", "greedy", "exact" or "interval".
        budget: plans to propose; "greedy", "exact" and "interval" propose one.
        seed: of the search.
        repair: what splits an invalid group; a random split by default.
        element_bytes: bytes per element, 1, 2 or 4.
        dims: sizes for unknown dimensions, such as ``{"N": 1}``.
        known: the optimum for the same network, scheme and buffer, if it is known already.
        time_limit_seconds: for the optimum; beyond it, a bound is shown.
        cancel: asked often; once it says true, Cancelled is raised.
        on_event: called with each event of the search.

    Raises:
        InputError: an option or a dimension, in one sentence.
        Cancelled: ``cancel`` said so.
    """
    costs = make_scheme(scheme, _network(graph, element_bytes, dims), buffer_kb)
    searcher: PlanSearch = ExactSearch(costs, seed=seed, time_limit_seconds=time_limit_seconds)
    if search != "exact":
        searcher = make_search(search, costs, seed=seed, repair=repair)
    for event in searcher.events(budget, cancel):
        if on_event is not None:
            on_event(event)
    best = searcher.optimum if isinstance(searcher, ExactSearch) else known
    if best is None:
        best = optimum(costs, time_limit_seconds=time_limit_seconds, cancel=cancel)
    return FuseResult(
        plan=searcher.best_plan(),
        optimum=best,
        search=search,
        seed=seed,
        budget=budget,
        plans=searcher.plans,
        invalid_met=searcher.invalid_met,
        rectified=searcher.rectified,
        seconds=searcher.seconds,
    )


def weigh_plan(
    graph: Graph | FusionNetwork,
    given: PlanFile,
    *,
    scheme: str | None = None,
    buffer_kb: float | None = None,
    element_bytes: int | None = None,
    dims: Dims | None = None,
    time_limit_seconds: float = TIME_LIMIT_SECONDS,
) -> FuseResult:
    """What a given plan costs, beside the optimum; arguments as for ``fuse``, by default those of the plan.

    Raises:
        InputError: the plan was made for another graph, or its groups are not valid under the settings.
    """
    sizes = dict(given.dims) if dims is None else dims
    network = _network(graph, given.element_bytes, sizes)
    given.check(network)
    if element_bytes is not None and element_bytes != given.element_bytes:
        network = replace(network, element_bytes=element_bytes)
    costs = make_scheme(scheme or given.scheme, network, given.buffer_kb if buffer_kb is None else buffer_kb)
    plan = given.plan(costs)
    best = optimum(costs, time_limit_seconds=time_limit_seconds)
    return FuseResult(plan, best, "given", 0, 1, plans=1, invalid_met=0, rectified=0, seconds=0.0)


def _network(graph: Graph | FusionNetwork, element_bytes: int, dims: Dims | None) -> FusionNetwork:
    if isinstance(graph, FusionNetwork):
        return graph
    return fusion_network(graph, element_bytes=element_bytes, dims=dims)


def _group(plan: Plan, mask: int) -> dict[str, object]:
    cost = plan.scheme.cost(mask)
    return {
        "nodes": list(plan.scheme.network.ids(mask)),
        "buffer_bytes": cost.demand_bytes,
        "dram_bytes": cost.dram_bytes,
    }
