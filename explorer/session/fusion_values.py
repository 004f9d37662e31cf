"""What a screen needs to know about fusion, as frozen values."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from explorer.fusion import KB, Blame, BufferReport, Optimum, Plan, PlanSearch, Scheme
from explorer.fusion.dims import Size
from explorer.fusion.optimum import gap_ratio
from explorer.fusion.searches.interval import interval_steps


@dataclass(frozen=True)
class FusionSettings:
    """What decides every cost: scheme, buffer, size of an element, sizes of unknown dims."""

    scheme: str = "lbdf"
    buffer_bytes: int = 128 * KB
    element_bytes: int = 2
    dims: tuple[tuple[str, Size], ...] = ()

    @property
    def text(self) -> str:
        """Such as "LBDF, 128 KB"; the element size only where it is not 2 bytes."""
        element = "" if self.element_bytes == 2 else f", {self.element_bytes} B per element"
        return f"{self.scheme.upper()}, {self.buffer_bytes / KB:g} KB{element}"


@dataclass(frozen=True)
class FoundPlan:
    """A plan and how it was found.

    Attributes:
        label: unique on its graph; says search, budget and settings.
        settings: what it was found under.
        plan: the plan.
        search: name of the search; "given" if it came from a file.
        seed: its seed.
        plans: plans it proposed.
        invalid_met: groups it met that did not fit.
        seconds: time it took.
        is_stopped: whether it was stopped before its budget was spent.
    """

    label: str
    settings: FusionSettings
    plan: Plan
    search: str
    seed: int
    plans: int
    invalid_met: int
    seconds: float
    is_stopped: bool = False

    @classmethod
    def searched(
        cls, searcher: PlanSearch, settings: FusionSettings, seed: int, *, is_stopped: bool = False
    ) -> FoundPlan:
        """The best plan of a search so far."""
        return cls(
            label=plan_label(searcher.name, settings, searcher.plans, seed, is_stopped=is_stopped),
            settings=settings,
            plan=searcher.best_plan(),
            search=searcher.name,
            seed=seed,
            plans=searcher.plans,
            invalid_met=searcher.invalid_met,
            seconds=searcher.seconds,
            is_stopped=is_stopped,
        )

    @classmethod
    def best(cls, found: Optimum, settings: FusionSettings, seed: int = 0) -> FoundPlan:
        """The plan of the exact search."""
        label = plan_label("exact", settings, 1, seed)
        return cls(label, settings, found.plan, "exact", seed, 1, 0, found.seconds)

    @classmethod
    def of_intervals(cls, scheme: Scheme, settings: FusionSettings, time_limit_seconds: float) -> FoundPlan:
        """The best plan of intervals that is found in time; never worse than every operation alone."""
        started = time.perf_counter()
        *_, masks = interval_steps(scheme, time_limit_seconds)
        seconds = time.perf_counter() - started
        label = plan_label("interval", settings, 1, 0)
        return cls(label, settings, Plan(scheme, masks or ()), "interval", 0, 1, 0, seconds)

    @classmethod
    def given(cls, plan: Plan, settings: FusionSettings, name: str) -> FoundPlan:
        """A plan from a file of this name."""
        return cls(f"{name} · {settings.text}", settings, plan, "given", 0, 1, 0, 0.0)


def plan_label(
    name: str, settings: FusionSettings, budget: int, seed: int, *, is_stopped: bool = False
) -> str:
    """Unique for what was asked: the same search again takes the place of the first."""
    drawn = f" {budget} plans, seed {seed}" if name in {"rs", "ls", "nsga2"} else ""
    return f"{name.upper()}{drawn}{', stopped' if is_stopped else ''} · {settings.text}"


@dataclass(frozen=True)
class PlanFacts:
    """The numbers of a plan; bytes are predictions of its scheme's cost model.

    Attributes:
        found: the plan.
        dram_bytes: bytes moved between DRAM and chip, operations left out not counted.
        layer_by_layer_bytes: the same with every operation alone.
        largest_bytes: on-chip bytes of the group that needs most.
        groups: number of groups, and of those with several operations.
        removed: operations that fit no group.
        optimum: what is known of the best plan under its settings; None if nobody has asked.
    """

    found: FoundPlan
    dram_bytes: int
    layer_by_layer_bytes: int
    largest_bytes: int
    groups: tuple[int, int]
    removed: int
    optimum: Optimum | None

    @classmethod
    def of(cls, found: FoundPlan, optimum: Optimum | None) -> PlanFacts:
        """The numbers of a plan beside the optimum under its settings, if that is known."""
        plan = found.plan
        several = sum(mask & (mask - 1) != 0 for mask in plan.masks)
        return cls(
            found=found,
            dram_bytes=plan.dram_bytes,
            layer_by_layer_bytes=Plan.layer_by_layer(plan.scheme).dram_bytes,
            largest_bytes=plan.largest_demand_bytes,
            groups=(len(plan.masks), several),
            removed=plan.scheme.removed_mask.bit_count(),
            optimum=optimum,
        )

    @property
    def saved_ratio(self) -> float:
        """Share of the layer-by-layer traffic that the plan saves."""
        alone = self.layer_by_layer_bytes
        return 1 - self.dram_bytes / alone if alone else 0.0

    @property
    def gap_ratio(self) -> float | None:
        """How much more it moves than the optimum or its bound; None where no bound is known."""
        if self.optimum is None:
            return None
        return gap_ratio(self.dram_bytes, self.optimum.bound_bytes)


@dataclass(frozen=True)
class Choice:
    """A set of operations that somebody chose, and what it would need as one group.

    Attributes:
        nodes: ids of all graph nodes its operations cover.
        operations: how many operations these are.
        problem: why it is no fusion group, in words; None if it is one.
        path: ids along the path that leaves the set and comes back, or that would join its parts.
        report: the bill; None if it is no group.
        blame: what each operation and edge is to blame for; None if it is no group or too large.
        dram_bytes: traffic of the group.
        alone_bytes: traffic of its operations one by one, those that fit by themselves.
    """

    nodes: tuple[str, ...]
    operations: int
    problem: str | None = None
    path: tuple[str, ...] = ()
    report: BufferReport | None = None
    blame: Blame | None = None
    dram_bytes: int = 0
    alone_bytes: int = 0


@dataclass(frozen=True)
class SearchCurve:
    """The best traffic over proposed plans: (plans, bytes) at the start and wherever it fell."""

    label: str
    settings: FusionSettings
    points: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class FusionState:
    """What a saved session keeps of a bench; everything belongs to the graph it is saved with.

    Attributes:
        settings: what is chosen.
        chosen: ids of the chosen graph nodes.
        plans: plans that took time, and those on screen.
        optima: what is known of the best plan, under the settings of these plans.
        current: label of the plan that is worked with, or "".
        compared: label of the plan beside it, or "".
        notice: what of the file could not be used, in a sentence.
    """

    settings: FusionSettings
    chosen: tuple[str, ...]
    plans: tuple[FoundPlan, ...]
    optima: Mapping[FusionSettings, Optimum]
    current: str
    compared: str
    notice: str = ""


@dataclass(frozen=True)
class FusionView:
    """A consistent view of a bench.

    Attributes:
        settings: what is chosen.
        problem: why there are no plans under these settings, in words; None if there are.
        plans: every plan found on the current graph.
        current: the plan that is worked with.
        compared: the plan it is compared with, or None.
        choice: the chosen group, or None.
        curves: searches under the current settings, in order.
        optimum: what is known of the best plan under the current settings.
        notice: what of a saved session could not be used, in a sentence.
    """

    settings: FusionSettings
    problem: str | None
    plans: tuple[PlanFacts, ...] = ()
    current: PlanFacts | None = None
    compared: PlanFacts | None = None
    choice: Choice | None = None
    curves: tuple[SearchCurve, ...] = ()
    optimum: Optimum | None = None
    notice: str = ""
