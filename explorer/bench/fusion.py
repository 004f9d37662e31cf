"""Plan searches against the exact optimum, beside the figures of arXiv 2501.00636 (the "GET" paper).

Its Tables II, III and IV without the explainers: the same networks, buffers and budgets, at least five
seeds each, and what the paper does not have: the optimum, the greedy plan, the best plan of intervals.
The paper's cost functions are not public, so ours are not the same model. Compare searches with the
optimum of their own model (``gap_ratio``); a total beside the paper's says nothing about either.
Run it as ``explorer bench fusion``; ``fusion_page`` makes the page ``docs/fusion.md`` of the result.
"""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import dataclass
from statistics import mean
from typing import Any

from explorer.fusion import (
    MB,
    FusionNetwork,
    Optimum,
    Plan,
    Scheme,
    fusion_network,
    make_scheme,
    make_search,
    optimum,
)
from explorer.graph import load, sample_names
from explorer.runtime.environment import cpu_model

SEEDS = 5
BOUND_SECONDS = 60.0
NOTES = (
    "MB is 1000 * 1024 bytes, as in the paper; 2 bytes per element.",
    "Our cost model is not the paper's, whose code is not public: compare a search with the optimum of its model.",
    "Operations that do not fit the buffer even alone are left out of all totals; their number is given.",
    "The paper does not say which SqueezeNet it used; ours is 1.1.",
    "The paper gives no budget for its Table IV; ours is that of Table III.",
    "Times are of this machine, in processor seconds of this process; only ratios within a run carry over.",
)
# BRR holds groups back by rows only, so these have too many of them to try them all.
_TOO_LARGE = (
    ("googlenet", "brr", 256),
    ("inception_v3", "brr", 256),
    ("llama_small", "brr", 256),
    ("vit_b_16", "brr", 256),
)
SEARCH_LABELS = {"ls": "Local search", "nsga2": "NSGA-II", "rs": "Random search"}


@dataclass(frozen=True)
class Case:
    """One cell of a table: a search on a network, with the paper's plain and best figure in its MB."""

    table: str
    network: str
    scheme: str
    buffer_kb: int
    search: str
    budget: int
    paper_mb: float
    paper_explained_mb: float
    paper_largest_kb: float | None = None


_BIG = ("efficientnet_b3", "resnet152", "deeplabv3_mobilenet_v3_large")
_SMALL = ("mobilenet_v2", "resnet50", "resnet18", "squeezenet1_1")
# Per search: (plain, best with an explainer, largest group of the plain search in KB) per network of _BIG.
_TABLE_2: dict[str, tuple[tuple[float, float, float | None], ...]] = {
    "ls": ((90.500, 73.569, 248.674), (80.733, 74.461, 253.750), (116.644, 113.942, 252.461)),
    "nsga2": ((77.334, 61.265, 249.236), (77.205, 66.621, 253.375), (114.351, 113.602, 252.461)),
    "rs": ((172.802, 162.774, None), (113.661, 94.453, None), (148.153, 142.548, None)),
}
# Per table and scheme: (plain, best with an explainer) per network of _SMALL.
_TABLES_3_4: dict[tuple[str, str, str], tuple[tuple[float, float], ...]] = {
    ("III", "ls", "brr"): ((15.101, 13.401), (83.685, 83.317), (27.127, 26.975), (8.202, 6.232)),
    ("III", "ls", "lbdf"): ((9.803, 8.823), (25.764, 24.196), (5.974, 5.974), (3.839, 3.585)),
    ("IV", "rs", "brr"): ((16.195, 12.593), (91.866, 91.669), (28.525, 27.599), (10.249, 7.601)),
    ("IV", "rs", "lbdf"): ((13.209, 11.432), (39.092, 32.036), (6.856, 6.464), (10.080, 7.333)),
}


def cases() -> tuple[Case, ...]:
    """All cells of the three tables."""
    found = [
        Case("II", network, "lbdf", 256, search, 5000, *figures)
        for search, row in _TABLE_2.items()
        for network, figures in zip(_BIG, row, strict=True)
    ]
    found += [
        Case(table, network, scheme, 128, search, 2000, *figures)
        for (table, search, scheme), row in _TABLES_3_4.items()
        for network, figures in zip(_SMALL, row, strict=True)
    ]
    return tuple(found)


def run(*, quick: bool = False, seeds: int = SEEDS) -> dict[str, Any]:
    """Run the tables.

    Args:
        quick: only the smallest networks, and 200 plans each: a look at the tables, not a result.
        seeds: how often each search is repeated, at least 5.

    Returns:
        ``tables`` (one row per cell), ``baselines`` (one row per network, scheme and buffer), ``growth``
        (one row per sample: how cost grows with nodes), ``bounds`` (networks too large for a proof) and
        ``notes``. Bytes as such or in MB as in the paper.
    """
    chosen = [case for case in cases() if not quick or case.network in {"resnet18", "squeezenet1_1"}]
    bench = _Bench(200 if quick else None, max(seeds, SEEDS))
    samples = ("resnet18", "squeezenet1_1") if quick else sample_names()
    return {
        "tables": [bench.row(case) for case in chosen],
        "baselines": bench.baselines(),
        "growth": [bench.growth(name) for name in samples],
        "bounds": [] if quick else [bench.bound(*key) for key in _TOO_LARGE],
        "seeds": bench.seeds,
        "quick": quick,
        "cpu": cpu_model(),
        "processor_seconds": time.process_time(),
        "peak_memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "notes": list(NOTES),
    }


class _Bench:
    """Networks, schemes and optima, each made once."""

    def __init__(self, budget: int | None, seeds: int) -> None:
        self.budget = budget
        self.seeds = seeds
        self.networks: dict[str, FusionNetwork] = {}
        self.schemes: dict[tuple[str, str, int], Scheme] = {}
        self.optima: dict[tuple[str, str, int], tuple[Optimum, float]] = {}

    def network(self, name: str) -> FusionNetwork:
        if name not in self.networks:
            self.networks[name] = fusion_network(load(name))
        return self.networks[name]

    def scheme(self, network: str, scheme: str, buffer_kb: int) -> Scheme:
        key = (network, scheme, buffer_kb)
        if key not in self.schemes:
            self.schemes[key] = make_scheme(scheme, self.network(network), buffer_kb)
        return self.schemes[key]

    def optimum(self, network: str, scheme: str, buffer_kb: int) -> tuple[Optimum, float]:
        """The optimum, and the processor seconds it took with an empty memo."""
        key = (network, scheme, buffer_kb)
        if key not in self.optima:
            fresh = make_scheme(scheme, self.network(network), buffer_kb)
            begin = time.process_time()
            self.optima[key] = (optimum(fresh), time.process_time() - begin)
        return self.optima[key]

    def row(self, case: Case) -> dict[str, Any]:
        """One cell: spread over seeds, beside paper and optimum."""
        sys.stderr.write(f"table {case.table}: {case.network} {case.scheme} {case.search} ...\n")
        best, _ = self.optimum(case.network, case.scheme, case.buffer_kb)
        budget = self.budget or case.budget
        runs = [self._run(case, budget, seed) for seed in range(self.seeds)]
        totals = [plan.dram_bytes / MB for plan, _, _ in runs]
        floor = best.bound_bytes / MB
        return {
            "table": case.table,
            "network": case.network,
            "scheme": case.scheme,
            "buffer_kb": case.buffer_kb,
            "search": case.search,
            "budget": budget,
            "dram_mb": _spread(totals),
            "gap_ratio": _spread([total / floor - 1 for total in totals]),
            "largest_group_kb": _spread([plan.largest_demand_bytes / 1024 for plan, _, _ in runs]),
            "invalid_met": _spread([float(invalid) for _, invalid, _ in runs]),
            "plans_per_second": _spread([speed for _, _, speed in runs]),
            "optimum_mb": floor,
            "optimum_proved": best.is_proved,
            "paper_mb": case.paper_mb,
            "paper_with_explainer_mb": case.paper_explained_mb,
            "paper_largest_group_kb": case.paper_largest_kb,
        }

    def _run(self, case: Case, budget: int, seed: int) -> tuple[Plan, int, float]:
        """Plan, invalid groups met, plans per processor second; each run fills a memo of its own."""
        scheme = make_scheme(case.scheme, self.network(case.network), case.buffer_kb)
        search = make_search(case.search, scheme, seed=seed)
        search.run(1)  # loads the search's libraries
        begin = time.process_time()
        plan = search.run(budget)
        return plan, search.invalid_met, (search.plans - 1) / (time.process_time() - begin)

    def baselines(self) -> list[dict[str, Any]]:
        """What needs no luck, for every network, scheme and buffer met so far."""
        return [self._baseline(*key) for key in sorted(self.optima)]

    def _baseline(self, network: str, scheme: str, buffer_kb: int) -> dict[str, Any]:
        costs = self.scheme(network, scheme, buffer_kb)
        best, seconds = self.optimum(network, scheme, buffer_kb)
        others = {name: make_search(name, costs).run(1).dram_bytes for name in ("greedy", "interval")}
        return {
            "network": network,
            "scheme": scheme,
            "buffer_kb": buffer_kb,
            "removed": len(costs.removed()),
            "layer_by_layer_mb": Plan.layer_by_layer(costs).dram_bytes / MB,
            "greedy_mb": others["greedy"] / MB,
            "interval_mb": others["interval"] / MB,
            "optimum_mb": best.bound_bytes / MB,
            "optimum_proved": best.is_proved,
            "interval_gap_ratio": others["interval"] / best.bound_bytes - 1,
            "greedy_gap_ratio": others["greedy"] / best.bound_bytes - 1,
            "largest_group_kb": best.plan.largest_demand_bytes / 1024,
            "ideals": best.ideals,
            "optimum_seconds": seconds,
        }

    def growth(self, name: str) -> dict[str, Any]:
        """How the optimum and the searches slow down with the number of operations (LBDF, 256 KB)."""
        sys.stderr.write(f"growth: {name} ...\n")
        network = self.network(name)
        best, seconds = self.optimum(name, "lbdf", 256)
        speeds = {}
        for label in SEARCH_LABELS:
            case = Case("growth", name, "lbdf", 256, label, 500, 0.0, 0.0)
            speeds[label] = self._run(case, min(500, self.budget or 500), seed=0)[2]
        return {
            "network": name,
            "operations": len(network.nodes),
            "edges": len(network.edges),
            "ideals": best.ideals,
            "optimum_seconds": seconds,
            "optimum_proved": best.is_proved,
            "plans_per_second": speeds,
        }

    def bound(self, network: str, scheme: str, buffer_kb: int) -> dict[str, Any]:
        """What is known after a minute (wall time) where the optimum is out of reach."""
        sys.stderr.write(f"bound: {network} {scheme} ...\n")
        best = optimum(self.scheme(network, scheme, buffer_kb), time_limit_seconds=BOUND_SECONDS)
        return {
            "network": network,
            "scheme": scheme,
            "buffer_kb": buffer_kb,
            "operations": len(self.network(network).nodes),
            "ideals": best.ideals,
            "method": best.method,
            "plan_mb": best.plan.dram_bytes / MB,
            "bound_mb": best.bound_bytes / MB,
            "gap_ratio": best.gap_ratio,
            "time_limit_seconds": BOUND_SECONDS,
            "seconds": best.seconds,
        }


def _spread(values: list[float]) -> dict[str, Any]:
    return {"mean": mean(values), "min": min(values), "max": max(values), "values": values}
