"""``FusionBench``: fusion beside a session. It looks at the current graph and never changes it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from weakref import WeakKeyDictionary

from explorer.errors import Cancelled, InputError
from explorer.fusion import (
    KB,
    FusionNetwork,
    Optimum,
    PlanSearch,
    Scheme,
    fusion_network,
    make_scheme,
    make_search,
    optimum_steps,
)
from explorer.graph import Graph
from explorer.records import write_json
from explorer.runtime.executor import CancelToken
from explorer.runtime.progress import OnProgress, Progress, ignore_progress
from explorer.session.fusion_choice import known_mask, weigh
from explorer.session.fusion_values import (
    Choice,
    FoundPlan,
    FusionSettings,
    FusionView,
    PlanFacts,
    SearchCurve,
)

INSTANT_SECONDS = 0.3  # what a move of the buffer slider may take
OPTIMUM_SECONDS = 60.0
_TELL_SECONDS = 0.1
Note = Callable[[], None]


class Host(Protocol):
    """What is needed of a session."""

    @property
    def graph(self) -> Graph:
        """The graph as it is now."""

    dims: dict[str, int]


@dataclass
class _Known:
    """What was found out about one graph."""

    networks: dict[tuple[int, tuple[tuple[str, int], ...]], FusionNetwork] = field(default_factory=dict)
    schemes: dict[FusionSettings, Scheme] = field(default_factory=dict)
    optima: dict[FusionSettings, Optimum] = field(default_factory=dict)
    asked: set[FusionSettings] = field(default_factory=set)
    slow: dict[str, int] = field(default_factory=dict)  # the least buffer whose optimum took long, by scheme
    plans: dict[str, FoundPlan] = field(default_factory=dict)
    curves: dict[str, SearchCurve] = field(default_factory=dict)


class FusionBench:
    """Settings, plans, and a chosen group on a session's current graph.

    Commands are safe to call from any thread; ``search`` and ``find_optimum`` are for jobs.

    Args:
        host: the session.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._lock = threading.RLock()
        self._known: WeakKeyDictionary[Graph, _Known] = WeakKeyDictionary()
        self._settings = FusionSettings(dims=tuple(sorted(host.dims.items())))
        self._chosen: tuple[str, ...] = ()
        self._weighed: tuple[object, Choice | None] = (None, None)
        self._current: dict[FusionSettings, str] = {}
        self._compared = ""

    # What is chosen

    @property
    def settings(self) -> FusionSettings:
        """Scheme, buffer, element size, dims."""
        return self._settings

    def configure(
        self,
        *,
        scheme: str | None = None,
        buffer_bytes: int | None = None,
        element_bytes: int | None = None,
        dims: Mapping[str, int] | None = None,
    ) -> None:
        """Change some of the settings; ``view`` says whether they make sense for the graph."""
        old = self._settings
        with self._lock:
            self._settings = FusionSettings(
                old.scheme if scheme is None else scheme,
                old.buffer_bytes if buffer_bytes is None else buffer_bytes,
                old.element_bytes if element_bytes is None else element_bytes,
                old.dims if dims is None else tuple(sorted(dims.items())),
            )

    def choose(self, nodes: Iterable[str]) -> None:
        """Choose operations by graph nodes; what is no operation (inputs, constants) is left out."""
        with self._lock:
            self._chosen = tuple(dict.fromkeys(nodes))

    def choose_group_of(self, node: str) -> tuple[str, ...]:
        """Choose the group of the current plan that a node is in; returns its nodes.

        Raises:
            InputError: there is no plan, no such operation, or it is in no group.
        """
        found = self._need_current().plan.group_of(node)
        if found is None:
            raise InputError(f"Node '{node}' fits no group: it is left out of the plan.")
        self.choose(found.nodes)
        return found.nodes

    def use(self, label: str) -> None:
        """Work with a plan that was found, under its settings; raises InputError for an unknown one."""
        found = self._find(label)
        with self._lock:
            self._settings = found.settings
            self._current[found.settings] = label

    def compare(self, label: str) -> None:
        """Put a plan beside the current one; "" puts it away."""
        self._compared = self._find(label).label if label else ""

    # What is known

    def network(self) -> FusionNetwork:
        """The fusion network of the current graph; raises InputError where a dim is unknown."""
        return self._network_for(self._settings)

    def scheme(self) -> Scheme:
        """The cost model under the current settings; raises InputError if it is not for this graph."""
        return self._scheme_for(self._settings)

    def view(self) -> FusionView:
        """What there is under the current settings; works out what takes no time worth mentioning.

        That is a greedy plan, and the optimum where it is found within ``INSTANT_SECONDS``.
        """
        settings = self._settings
        try:
            scheme = self.scheme()
        except InputError as error:
            return FusionView(settings, str(error), plans=self._all_facts())
        known = self._of_graph()
        self._ask_instantly(settings, scheme, known)
        with self._lock:
            return FusionView(
                settings=settings,
                problem=None,
                plans=self._all_facts(),
                current=self._facts(self._current_label()),
                compared=self._facts(self._compared),
                choice=self._choice(scheme),
                curves=tuple(curve for curve in known.curves.values() if curve.settings == settings),
                optimum=known.optima.get(settings),
            )

    # Searching, in a job

    def search(
        self,
        name: str,
        *,
        budget: int = 1000,
        seed: int = 0,
        progress: OnProgress = ignore_progress,
        cancel: CancelToken | None = None,
        note: Note = lambda: None,
    ) -> FoundPlan:
        """Search for a plan, then for the optimum to compare it with, if that is not known.

        Args:
            name: "rs", "ls", "nsga2", "greedy", "exact" or "interval".
            budget: plans to propose.
            seed: of the search.
            progress: called as it goes.
            cancel: stops it when set; the best plan so far is kept.
            note: called when there is something new to see.

        Raises:
            InputError: the settings are not for this graph, or an option is wrong.
            Cancelled: ``cancel`` was set.
        """
        settings, known = self._settings, self._of_graph()
        scheme = self._scheme_for(settings)
        self._ask_instantly(settings, scheme, known)
        if name == "exact":
            best = self.find_optimum(progress, cancel)
            label = _label(name, settings, 1, 0, is_stopped=False)
            return self._keep(known, _exact(best, settings, label, seed))
        searcher = make_search(name, scheme, seed=seed)
        try:
            self._run(searcher, budget, seed, settings, known, progress, cancel, note)
        except Cancelled:
            if searcher.plans:
                self._keep(known, _found(searcher, settings, seed, is_stopped=True))
            raise
        found = self._keep(known, _found(searcher, settings, seed, is_stopped=False))
        note()
        if settings not in known.optima:
            self.find_optimum(progress, cancel)
        return found

    def find_optimum(
        self,
        progress: OnProgress = ignore_progress,
        cancel: CancelToken | None = None,
        *,
        time_limit_seconds: float = OPTIMUM_SECONDS,
    ) -> Optimum:
        """The optimum under the current settings, or a plan and a bound; arguments as for ``search``."""
        settings, known = self._settings, self._of_graph()
        scheme = self._scheme_for(settings)
        if settings in known.optima and known.optima[settings].is_proved:
            return known.optima[settings]
        for step in optimum_steps(scheme, time_limit_seconds=time_limit_seconds):
            progress(Progress(round(100 * step.share), 100, f"{step.share:.0%} of the way to the optimum"))
            if step.optimum is not None:
                with self._lock:
                    known.optima[settings] = step.optimum
            elif cancel is not None and cancel.is_set():
                raise Cancelled("The search for the optimum was stopped.")
        return known.optima[settings]

    def export(self, path: str | Path, label: str | None = None) -> Path:
        """Write a plan (the current one by default) as JSON, to be read by ``Plan.from_json``."""
        found = self._need_current() if label is None else self._find(label)
        facts = PlanFacts.of(found, self._of_graph().optima.get(found.settings))
        extra = {
            "search": found.search,
            "seed": found.seed,
            "plans": found.plans,
            "source": "predicted",
            "layer_by_layer_bytes": facts.layer_by_layer_bytes,
            "largest_buffer_bytes": facts.largest_bytes,
            "gap_ratio": facts.gap_ratio,
            "optimum_proved": facts.optimum is not None and facts.optimum.is_proved,
        }
        return write_json(path, found.plan.to_json() | extra)

    # Inside

    def _of_graph(self) -> _Known:
        with self._lock:
            return self._known.setdefault(self._host.graph, _Known())

    def _network_for(self, settings: FusionSettings) -> FusionNetwork:
        key = (settings.element_bytes, settings.dims)
        with self._lock:
            known = self._of_graph()
            if key not in known.networks:
                graph = self._host.graph
                known.networks[key] = fusion_network(graph, element_bytes=key[0], dims=dict(key[1]))
            return known.networks[key]

    def _scheme_for(self, settings: FusionSettings) -> Scheme:
        with self._lock:
            known = self._of_graph()
            if settings not in known.schemes:
                network = self._network_for(settings)
                known.schemes[settings] = make_scheme(settings.scheme, network, settings.buffer_bytes / KB)
            return known.schemes[settings]

    def _run(
        self,
        searcher: PlanSearch,
        budget: int,
        seed: int,
        settings: FusionSettings,
        known: _Known,
        progress: OnProgress,
        cancel: CancelToken | None,
        note: Note,
    ) -> None:
        label = _label(searcher.name, settings, budget, seed, is_stopped=False)
        points: list[tuple[int, int]] = []
        told = 0.0
        for event in searcher.events(budget, cancel.is_set if cancel is not None else None):
            if not points or event.best_bytes < points[-1][1]:
                points.append((event.plans, event.best_bytes))
            is_last = event.is_done or event.plans >= budget
            if is_last or time.monotonic() - told > _TELL_SECONDS:
                told = time.monotonic()
                shown = (
                    tuple(points)
                    if points[-1][0] == event.plans
                    else (*points, (event.plans, event.best_bytes))
                )
                known.curves[label] = SearchCurve(label, settings, shown)
                text = f"{event.plans} of {budget} plans, best {event.best_bytes / KB:,.2f} KB"
                progress(Progress(event.plans, budget, text))
                note()

    def _ask_instantly(self, settings: FusionSettings, scheme: Scheme, known: _Known) -> None:
        """A greedy plan, and the optimum if it comes quickly; asked once for each setting."""
        with self._lock:
            if settings in known.asked:
                return
            known.asked.add(settings)
        greedy = make_search("greedy", scheme)
        greedy.run(1)
        self._keep(known, _found(greedy, settings, 0, is_stopped=False))
        if settings.buffer_bytes >= known.slow.get(settings.scheme, settings.buffer_bytes + 1):
            return
        deadline = time.monotonic() + INSTANT_SECONDS
        for step in optimum_steps(scheme, time_limit_seconds=OPTIMUM_SECONDS):
            if step.optimum is not None:
                known.optima[settings] = step.optimum
                label = _label("exact", settings, 1, 0, is_stopped=False)
                self._keep(known, _exact(step.optimum, settings, label, 0))
            elif time.monotonic() > deadline:
                known.slow[settings.scheme] = settings.buffer_bytes
                break

    def _keep(self, known: _Known, found: FoundPlan) -> FoundPlan:
        with self._lock:
            known.plans[found.label] = found
            self._current[found.settings] = found.label
        return found

    def _current_label(self) -> str:
        label = self._current.get(self._settings, "")
        if label in self._of_graph().plans:
            return label
        here = [f for f in self._of_graph().plans.values() if f.settings == self._settings]
        return min(here, key=lambda f: f.plan.dram_bytes).label if here else ""

    def _need_current(self) -> FoundPlan:
        label = self._current_label()
        if not label:
            raise InputError("There is no plan under these settings yet; run a search first.")
        return self._find(label)

    def _find(self, label: str) -> FoundPlan:
        found = self._of_graph().plans.get(label)
        if found is None:
            raise InputError(f"There is no plan '{label}' of this graph; choose one of the list.")
        return found

    def _facts(self, label: str) -> PlanFacts | None:
        known = self._of_graph()
        found = known.plans.get(label)
        return None if found is None else PlanFacts.of(found, known.optima.get(found.settings))

    def _all_facts(self) -> tuple[PlanFacts, ...]:
        known = self._of_graph()
        with self._lock:
            return tuple(PlanFacts.of(f, known.optima.get(f.settings)) for f in known.plans.values())

    def _choice(self, scheme: Scheme) -> Choice | None:
        mask = known_mask(scheme.network, self._chosen)
        if self._weighed[0] != (scheme, mask):
            self._weighed = ((scheme, mask), weigh(scheme, mask) if mask else None)
        return self._weighed[1]


def _label(name: str, settings: FusionSettings, budget: int, seed: int, *, is_stopped: bool) -> str:
    """Unique for what was asked: the same search again takes the place of the first."""
    drawn = f" {budget} plans, seed {seed}" if name in {"rs", "ls", "nsga2"} else ""
    return f"{name.upper()}{drawn}{', stopped' if is_stopped else ''} · {settings.text}"


def _found(searcher: PlanSearch, settings: FusionSettings, seed: int, *, is_stopped: bool) -> FoundPlan:
    return FoundPlan(
        label=_label(searcher.name, settings, searcher.plans, seed, is_stopped=is_stopped),
        settings=settings,
        plan=searcher.best_plan(),
        search=searcher.name,
        seed=seed,
        plans=searcher.plans,
        invalid_met=searcher.invalid_met,
        seconds=searcher.seconds,
        is_stopped=is_stopped,
    )


def _exact(best: Optimum, settings: FusionSettings, label: str, seed: int) -> FoundPlan:
    return FoundPlan(label, settings, best.plan, "exact", seed, 1, 0, best.seconds)
