"""What a session can say about its graph without changing it: profiles, the runtime's view, predictions."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from explorer.cost import OperatorSum
from explorer.errors import RewriteError, RuntimeFailure, WorkerError
from explorer.graph import Feeds, Graph
from explorer.rewrite import Candidate, RuleSet, apply
from explorer.runtime import Delta, Measurer, Mode, Target
from explorer.runtime.executor import CancelToken
from explorer.runtime.progress import OnProgress, Progress, ignore_progress
from explorer.session.observed import Observed

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from explorer.runtime.profile import Profile
    from explorer.runtime.region_time import RegionTime
    from explorer.runtime.roofs import Roofs
    from explorer.runtime.runtime_view import RuntimeView

PlaceKey = tuple[str, str, str]
"""Fingerprint of the base graph, place and target."""


class Known:
    """What has been found out so far, by graph, place and target."""

    def __init__(self) -> None:
        self.profiles: dict[tuple[str, str], Profile] = {}
        self.views: dict[tuple[str, str], RuntimeView] = {}
        self.predicted: dict[PlaceKey, Delta] = {}
        self.unpredicted: dict[PlaceKey, str] = {}
        self.absorbed: dict[PlaceKey, bool] = {}
        self.costs: dict[str, OperatorSum] = {}


class _Host(Protocol):
    """What is needed of a session."""

    measurer: Measurer

    @property
    def known(self) -> Known: ...
    @property
    def graph(self) -> Graph: ...
    @property
    def target(self) -> Target: ...
    @property
    def rules(self) -> RuleSet: ...
    def feeds(self) -> Feeds: ...
    def candidates(self) -> tuple[Candidate, ...]: ...
    def find(self, identifier: str) -> Candidate: ...
    def _changing(self) -> AbstractContextManager[None]: ...


class Insights(Observed):
    """Commands of ``Session`` that look and do not touch."""

    @cached_property
    def known(self) -> Known:
        """Results of the commands below; a screen reads them, never waits for them."""
        return Known()

    def profile(self: _Host, cancel: CancelToken | None = None, *, fresh: bool = False) -> Profile:
        """Which node of the current graph costs what on the target, by the runtime's own profiler.

        Raises:
            RuntimeFailure: the target cannot run the graph, or has no profiler.
            WorkerError: the worker crashed, hung or ran out of memory.
        """
        graph, target = self.graph, self.target
        found = self.measurer.profile(graph, self.feeds(), target, cancel, fresh=fresh)
        with self._changing():
            self.known.profiles[graph.fingerprint(), str(target)] = found
        return found

    def roofs(self: _Host, cancel: CancelToken | None = None) -> Roofs:
        """The target's own limits of computing and of moving data, for a roofline diagram."""
        from explorer.runtime.roofs import measure_roofs

        return measure_roofs(self.measurer, self.target, cancel)

    def runtime_view(self: _Host, cancel: CancelToken | None = None) -> RuntimeView:
        """The current graph as the runtime executes it, linked to the nodes it was made of.

        Raises:
            RuntimeFailure: the target cannot load the graph, or cannot show what it executes.
            WorkerError: the worker crashed, hung or ran out of memory.
        """
        graph, target = self.graph, self.target
        found = self.measurer.runtime_view(graph, target, cancel)
        with self._changing():
            self.known.views[graph.fingerprint(), str(target)] = found
        return found

    def measure_region(
        self: _Host,
        identifier: str,
        mode: str | Mode = Mode.SCREENING,
        progress: OnProgress = ignore_progress,
        cancel: CancelToken | None = None,
    ) -> RegionTime:
        """Time only what a candidate changes, cut out with its real shapes; cheaper than the whole model.

        Raises:
            CandidateError: no such candidate.
            RuntimeFailure: a shape on the border is unknown, or the target cannot run the region.
        """
        from explorer.runtime.region_time import measure_region

        graph = self.graph
        result = apply(graph, self.find(identifier), self.rules)
        return measure_region(graph, result, self.feeds(), self.measurer, self.target, mode, progress, cancel)

    def absorb(
        self: _Host, progress: OnProgress = ignore_progress, cancel: CancelToken | None = None
    ) -> dict[str, bool]:
        """Ask for every candidate whether the runtime does it already (place -> yes or no).

        What was asked before comes from the cache; a candidate that cannot be asked is left out.
        """
        graph, target, candidates = self.graph, self.target, self.candidates()
        answers: dict[str, bool] = {}
        for number, candidate in enumerate(candidates):
            progress(Progress(number, len(candidates), f"comparing {number + 1} of {len(candidates)}"))
            try:
                result = apply(graph, candidate, self.rules)
                found = self.measurer.is_absorbed(graph, result, target, cancel)
            except (RewriteError, RuntimeFailure, WorkerError):
                continue
            answers[candidate.place] = found
            with self._changing():
                self.known.absorbed[graph.fingerprint(), candidate.place, str(target)] = found
        return answers

    def absorbed(self: _Host, place: str) -> bool | None:
        """Whether the target's optimiser does a candidate already; None if nobody has asked."""
        return self.known.absorbed.get((self.graph.fingerprint(), place, str(self.target)))

    def predict(
        self: _Host, progress: OnProgress = ignore_progress, cancel: CancelToken | None = None
    ) -> dict[str, Delta]:
        """Predict the delta of every candidate as the sum of isolated operator times (place -> delta).

        The first call on a model and target times its operators, which takes seconds; after that only
        operators that a candidate adds are timed.
        """
        graph, target, candidates = self.graph, self.target, self.candidates()
        cost = self.known.costs.setdefault(str(target), OperatorSum(self.measurer, target, self.feeds()))
        for number, candidate in enumerate(candidates):
            progress(Progress(number, len(candidates), f"predicting {number + 1} of {len(candidates)}"))
            key = (graph.fingerprint(), candidate.place, str(target))
            if key in self.known.predicted or (cancel is not None and cancel.is_set()):
                continue
            try:
                delta = cost.compare(graph, apply(graph, candidate, self.rules))
            except (RewriteError, RuntimeFailure, WorkerError) as failure:
                self.known.unpredicted[key] = str(failure)
                continue
            with self._changing():
                self.known.predicted[key] = delta
        places = {candidate.place for candidate in candidates}
        keys = {key: delta for key, delta in self.known.predicted.items() if key[0] == graph.fingerprint()}
        return {key[1]: delta for key, delta in keys.items() if key[1] in places and key[2] == str(target)}

    def predicted(self: _Host, place: str) -> Delta | None:
        """The predicted delta of a candidate of the current graph on the current target, if there is one."""
        return self.known.predicted.get((self.graph.fingerprint(), place, str(self.target)))
