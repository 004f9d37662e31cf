"""``FusionBench``: fusion beside a session. It looks at the current graph and never changes it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol
from weakref import WeakKeyDictionary

from explorer.errors import InputError
from explorer.fusion import FusionNetwork, Optimum, PlanFile, Scheme, plan_json
from explorer.fusion.dims import Size
from explorer.graph import Graph
from explorer.records import write_json
from explorer.runtime.executor import CancelToken
from explorer.runtime.progress import OnProgress, ignore_progress
from explorer.session.fusion_choice import known_mask, weigh
from explorer.session.fusion_finder import INSTANT_SECONDS, OPTIMUM_SECONDS, Note, PlanFinder
from explorer.session.fusion_known import FusionKnown
from explorer.session.fusion_values import (
    Choice,
    FoundPlan,
    FusionSettings,
    FusionState,
    FusionView,
    PlanFacts,
)


class Host(Protocol):
    """What is needed of a session."""

    @property
    def graph(self) -> Graph:
        """The graph as it is now."""

    dims: dict[str, int]


class FusionBench:
    """Settings, plans, and a chosen group on a session's current graph.

    Commands are safe to call from any thread; ``search`` and ``find_optimum`` are for jobs.

    Args:
        host: the session.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._lock = threading.RLock()
        self._known: WeakKeyDictionary[Graph, FusionKnown] = WeakKeyDictionary()
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
        return self._of_graph().network(self._host.graph, self._settings)

    def scheme(self) -> Scheme:
        """The cost model under the current settings; raises InputError if it is not for this graph."""
        return self.scheme_for(self._settings)

    def scheme_for(self, settings: FusionSettings) -> Scheme:
        """The cost model under any settings; raises InputError if it is not for this graph."""
        return self._of_graph().scheme(self._host.graph, settings)

    def view(self) -> FusionView:
        """What there is under the current settings; works out what takes no time worth mentioning.

        That is a greedy plan, and the optimum where it is found within ``INSTANT_SECONDS``; where it is not,
        a plan of intervals, which is never worse than no fusion.
        """
        settings, known = self._settings, self._of_graph()
        try:
            finder = self._primed(settings)
        except InputError as error:
            return FusionView(settings, str(error), plans=self._all_facts())
        with self._lock:
            return FusionView(
                settings=settings,
                problem=None,
                plans=self._all_facts(),
                current=self._facts(self._current_label()),
                compared=self._facts(self._compared),
                choice=self._choice(finder.scheme),
                curves=tuple(curve for curve in tuple(known.curves.values()) if curve.settings == settings),
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
        finder = self._primed(self._settings)
        return finder.search(name, budget, seed, progress, cancel, note)

    def find_optimum(
        self,
        progress: OnProgress = ignore_progress,
        cancel: CancelToken | None = None,
        *,
        time_limit_seconds: float = OPTIMUM_SECONDS,
    ) -> Optimum:
        """The optimum under the current settings, or a plan and a bound; arguments as for ``search``."""
        return self._finder(self._settings).optimum(progress, cancel, time_limit_seconds)

    # Keeping

    def export(self, path: str | Path, label: str | None = None) -> Path:
        """Write a plan (the current one by default) as JSON, to be read by ``load_plan``."""
        found = self._need_current() if label is None else self._find(label)
        facts = self._of_graph().facts(found)
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
        given.check(self._of_graph().network(self._host.graph, settings))
        finder = self._primed(settings)
        plan = given.plan(finder.scheme)
        found = self._keep(finder.known, FoundPlan.given(plan, settings, Path(path).name))
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
            optima = {one: best for one, best in tuple(known.optima.items()) if one in settings}
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

    def _of_graph(self) -> FusionKnown:
        with self._lock:
            return self._known.setdefault(self._host.graph, FusionKnown())

    def _finder(self, settings: FusionSettings) -> PlanFinder:
        known = self._of_graph()
        return PlanFinder(settings, known.scheme(self._host.graph, settings), known, self._keep)

    def _primed(self, settings: FusionSettings) -> PlanFinder:
        """With what is found at once; raises InputError if the settings are not for this graph."""
        finder = self._finder(settings)
        with self._lock:
            finder.at_once()
        return finder

    def _keep(self, known: FusionKnown, found: FoundPlan, *, is_news: bool = True) -> FoundPlan:
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
        return self._of_graph().find(label)

    def _facts(self, label: str) -> PlanFacts | None:
        known = self._of_graph()
        return known.facts(known.plans[label]) if label in known.plans else None

    def _all_facts(self) -> tuple[PlanFacts, ...]:
        known = self._of_graph()
        with self._lock:
            return tuple(map(known.facts, known.plans.values()))

    def _choice(self, scheme: Scheme) -> Choice | None:
        mask = known_mask(scheme.network, self._chosen)
        if self._weighed[0] != (scheme, mask):
            self._weighed = ((scheme, mask), weigh(scheme, mask) if mask else None)
        return self._weighed[1]


def _is_work(found: FoundPlan) -> bool:
    return found.search not in {"greedy", "exact", "interval"} or found.seconds >= INSTANT_SECONDS
