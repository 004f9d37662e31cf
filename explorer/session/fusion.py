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
    PlanFile,
    PlanSearch,
    Scheme,
    fusion_network,
    make_scheme,
    make_search,
    optimum_steps,
    plan_json,
)
from explorer.fusion.dims import Size
from explorer.graph import Graph
from explorer.records import write_json
from explorer.runtime.executor import CancelToken
from explorer.runtime.progress import OnProgress, Progress, ignore_progress
from explorer.session.fusion_choice import known_mask, weigh
from explorer.session.fusion_values import (
    Choice,
    FoundPlan,
    FusionSettings,
    FusionState,
    FusionView,
    PlanFacts,
    SearchCurve,
    plan_label,
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

    networks: dict[tuple[int, tuple[tuple[str, Size], ...]], FusionNetwork] = field(default_factory=dict)
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
        self._notice = ""

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
        dims: Mapping[str, Size] | None = None,
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
        return self.scheme_for(self._settings)

    def scheme_for(self, settings: FusionSettings) -> Scheme:
        """The cost model under any settings; raises InputError if it is not for this graph."""
        with self._lock:
            known = self._of_graph()
            if settings not in known.schemes:
                network = self._network_for(settings)
                known.schemes[settings] = make_scheme(settings.scheme, network, settings.buffer_bytes / KB)
            return known.schemes[settings]

    def view(self) -> FusionView:
        """What there is under the current settings; works out what takes no time worth mentioning.

        That is a greedy plan, and the optimum where it is found within ``INSTANT_SECONDS``; where it is not,
        a plan of intervals, which is never worse than no fusion.
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
                notice=self._notice,
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
        scheme = self.scheme_for(settings)
        self._ask_instantly(settings, scheme, known)
        if name == "exact":
            best = self.find_optimum(progress, cancel)
            return self._keep(known, FoundPlan.best(best, settings, seed))
        searcher = make_search(name, scheme, seed=seed)
        try:
            self._run(searcher, budget, seed, settings, known, progress, cancel, note)
        except Cancelled:
            if searcher.plans:
                self._keep(known, FoundPlan.searched(searcher, settings, seed, is_stopped=True))
            raise
        found = self._keep(known, FoundPlan.searched(searcher, settings, seed))
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
        scheme = self.scheme_for(settings)
        if settings in known.optima and known.optima[settings].is_proved:
            return known.optima[settings]
        told = 0.0
        for step in optimum_steps(scheme, time_limit_seconds=time_limit_seconds):
            if time.monotonic() - told > _TELL_SECONDS:
                told = time.monotonic()
                text = f"{step.share:.0%} of the way to the optimum"
                progress(Progress(round(100 * step.share), 100, text))
            if step.optimum is not None:
                with self._lock:
                    known.optima[settings] = step.optimum
            elif cancel is not None and cancel.is_set():
                raise Cancelled("The search for the optimum was stopped.")
        return known.optima[settings]

    # Keeping

    def export(self, path: str | Path, label: str | None = None) -> Path:
        """Write a plan (the current one by default) as JSON, to be read by ``load_plan``."""
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
        return write_json(path, plan_json(found.plan, dict(found.settings.dims)) | extra)

    def load_plan(self, path: str | Path) -> FoundPlan:
        """Take a plan from a JSON file and work with it, under its own settings.

        Raises:
            InputError: not a plan, made for another graph, or with groups that are not valid.
        """
        given = PlanFile.read(path)
        dims = given.dims or self._settings.dims
        settings = FusionSettings(given.scheme, given.capacity_bytes, given.element_bytes, dims)
        given.check(self._network_for(settings))
        plan = given.plan(self.scheme_for(settings))
        known = self._of_graph()
        self._ask_instantly(settings, plan.scheme, known)
        found = self._keep(known, FoundPlan.given(plan, settings, Path(path).name))
        self.use(found.label)
        return found

    @property
    def work(self) -> tuple[str, ...]:
        """Labels of the plans that somebody asked for, or that took long: these are worth keeping."""
        return tuple(f.label for f in tuple(self._of_graph().plans.values()) if _is_work(f))

    def state(self) -> FusionState:
        """What is worth keeping: choices, and the plans that ``view`` would not find again by itself."""
        with self._lock:
            known, current = self._of_graph(), self._current_label()
            shown = {current, self._compared}
            plans = tuple(f for f in known.plans.values() if _is_work(f) or f.label in shown)
            settings = {self._settings, *(f.settings for f in plans)}
            optima = {one: best for one, best in known.optima.items() if one in settings}
            return FusionState(self._settings, self._chosen, plans, optima, current, self._compared)

    def recall(self, state: FusionState) -> None:
        """Go on from what was kept; its plans must be of the current graph."""
        with self._lock:
            known = self._of_graph()
            known.optima.update(state.optima)
            for found in state.plans:
                self._keep(known, found)
            self._settings, self._chosen = state.settings, state.chosen
            if state.current in known.plans:
                self._current[state.settings] = state.current
            self._compared = state.compared if state.compared in known.plans else ""
            self._notice = state.notice

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
        label = plan_label(searcher.name, settings, budget, seed)
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
        """A greedy plan, and the optimum or else a plan of intervals; asked once for each setting."""
        with self._lock:
            if settings in known.asked:
                return
            known.asked.add(settings)
        search = make_search("greedy", scheme)
        search.run(1)
        greedy = self._keep(known, FoundPlan.searched(search, settings, 0), is_news=False)
        if not self._find_at_once(settings, scheme, known):
            intervals = FoundPlan.of_intervals(scheme, settings, INSTANT_SECONDS / 2)
            if intervals.plan.dram_bytes < greedy.plan.dram_bytes:
                self._keep(known, intervals, is_news=False)

    def _find_at_once(self, settings: FusionSettings, scheme: Scheme, known: _Known) -> bool:
        """Whether the optimum is known, or found within the time a move of the slider may take."""
        if settings in known.optima:
            return True
        if settings.buffer_bytes >= known.slow.get(settings.scheme, settings.buffer_bytes + 1):
            return False
        deadline = time.monotonic() + INSTANT_SECONDS
        for step in optimum_steps(scheme, time_limit_seconds=OPTIMUM_SECONDS):
            if step.optimum is not None:
                known.optima[settings] = step.optimum
                self._keep(known, FoundPlan.best(step.optimum, settings), is_news=False)
            elif time.monotonic() > deadline:
                known.slow[settings.scheme] = settings.buffer_bytes
                return False
        return True

    def _keep(self, known: _Known, found: FoundPlan, *, is_news: bool = True) -> FoundPlan:
        """Note a plan and work with it; what nobody asked for does not push aside what somebody did."""
        with self._lock:
            now = known.plans.get(self._current.get(found.settings, ""))
            known.plans[found.label] = found
            if is_news or now is None or not _is_work(now):
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


def _is_work(found: FoundPlan) -> bool:
    return found.search not in {"greedy", "exact", "interval"} or found.seconds >= INSTANT_SECONDS
