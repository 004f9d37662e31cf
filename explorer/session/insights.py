"""What a session can say about its graph without changing it: profiles, the runtime's view, predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from explorer.cost import OperatorSum
from explorer.errors import Cancelled, InputError, RewriteError, RuntimeFailure, WorkerError
from explorer.rewrite import apply
from explorer.runtime import Delta, Latency, Measurement, Mode, Protocol
from explorer.runtime.executor import CancelToken
from explorer.runtime.measurement import targets_text
from explorer.runtime.operators import OperatorTimes
from explorer.runtime.progress import OnProgress, Progress, ignore_progress, part_of
from explorer.session.state import State

if TYPE_CHECKING:
    from explorer.runtime.profile import Profile
    from explorer.runtime.region_time import RegionTime
    from explorer.runtime.roofs import Roofs
    from explorer.runtime.runtime_view import RuntimeView
    from explorer.search.portability import Matrix
    from explorer.session.portability import Plan


class Insights(State):
    """Commands of ``Session`` that look and do not touch."""

    def measured(self, place: str) -> Measurement | None:
        """The measurement of a candidate of the current graph on the current target."""
        return self._memory.candidates.get(self._key(self.graph, place))

    def total(self) -> Measurement | None:
        """The measurement of the current graph against the original, if it was made."""
        start = self.history.start_target(self.target)
        return self._memory.totals.get((self.graph.fingerprint(), targets_text(start, self.target)))

    def measure_total(
        self,
        mode: str | Mode | Protocol | None = None,
        progress: OnProgress = ignore_progress,
        cancel: CancelToken | None = None,
    ) -> Measurement:
        """Time the current graph against the original, arguments as for ``measure``.

        Where switches of the runtime were accepted, the original runs on the target they began with.
        """
        with self._lock:
            before, after, target = self.original, self.graph, self.target
            start = self.history.start_target(target)
        how = mode or self.protocol
        found = self.measurer.measure(
            before, after, self.feeds(), start, how, progress, cancel, b_target=target
        )
        with self._changing():
            self._memory.totals[after.fingerprint(), found.delta.target] = found
        return found

    def latency(self, mode: str | Mode = Mode.SCREENING) -> Latency:
        """Time of one run of the current graph."""
        return self.measurer.latency(self.graph, self.feeds(), self.target, mode)

    def profile(self, cancel: CancelToken | None = None, *, fresh: bool = False) -> Profile:
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

    def roofs(self, cancel: CancelToken | None = None) -> Roofs:
        """The target's own limits of computing and of moving data, for a roofline diagram."""
        from explorer.runtime.roofs import measure_roofs

        found = measure_roofs(self.measurer, self.target, cancel)
        with self._changing():
            self.known.roofs[found.target] = found
        return found

    def runtime_view(self, cancel: CancelToken | None = None) -> RuntimeView:
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
        self,
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
        self, progress: OnProgress = ignore_progress, cancel: CancelToken | None = None
    ) -> dict[str, bool]:
        """Ask for every candidate whether the runtime does it already (place -> yes or no).

        What was asked before comes from the cache; a candidate that cannot be asked is left out.

        Raises:
            Cancelled: ``cancel`` was set; what was answered stays.
        """
        graph, target, candidates = self.graph, self.target, self.candidates()
        answers: dict[str, bool] = {}
        for number, candidate in enumerate(candidates):
            progress(Progress(number, len(candidates), f"comparing {number + 1} of {len(candidates)}"))
            _stop_if(cancel)
            try:
                result = apply(graph, candidate, self.rules)
                found = self.measurer.is_absorbed(graph, result, target, cancel)
            except (RewriteError, RuntimeFailure, WorkerError):
                continue
            answers[candidate.place] = found
            with self._changing():
                self._memory.absorbed[graph.fingerprint(), candidate.place, str(target)] = found
        return answers

    def absorbed(self, place: str) -> bool | None:
        """Whether the target's optimiser does a candidate already; None if nobody has asked."""
        return self._memory.absorbed.get(self._key(self.graph, place))

    def predict(
        self,
        progress: OnProgress = ignore_progress,
        cancel: CancelToken | None = None,
        *,
        only: Sequence[str] | None = None,
    ) -> dict[str, Delta]:
        """Predict deltas of candidates as the sum of isolated operator times (place -> delta).

        The first call on a model and target times its operators, which takes seconds; after that only
        operators that a candidate adds are timed. A candidate with an operator that cannot be timed alone
        is left out; ``unpredicted`` says why.

        Args:
            progress: called for every operator that is timed and every candidate.
            cancel: stops when set.
            only: ids or places of the candidates to predict; all by default.

        Raises:
            CandidateError: no such candidate.
            Cancelled: ``cancel`` was set; what was predicted stays.
        """
        graph, target = self.graph, self.target
        candidates = self.candidates() if only is None else [self.find(one) for one in only]
        times = self.known.operators.setdefault(str(target), OperatorTimes(self.measurer, target))
        cost = OperatorSum(self.measurer, target, self.feeds(), cancel=cancel, operators=times)
        parts, found = len(candidates) + 1, dict[str, Delta]()
        replace(cost, progress=part_of(progress, 0, parts)).total_ns(graph)
        for number, candidate in enumerate(candidates, start=1):
            report, key = (
                part_of(progress, number, parts),
                (graph.fingerprint(), candidate.place, str(target)),
            )
            report(Progress(0, 1, "adding up operator times"))
            _stop_if(cancel)
            delta = self._memory.predicted.get(key)
            if delta is None:
                try:
                    result = apply(graph, candidate, self.rules)
                    delta = replace(cost, progress=report).compare(graph, result)
                except (RewriteError, RuntimeFailure, WorkerError) as failure:
                    with self._changing():
                        self.known.unpredicted[key] = str(failure)
                    continue
                with self._changing():
                    self._memory.predicted[key] = delta
            found[candidate.place] = delta
        return found

    def predicted(self, place: str) -> Delta | None:
        """The predicted delta of a candidate of the current graph on the current target, if there is one."""
        return self._memory.predicted.get(self._key(self.graph, place))

    def unpredicted(self, place: str) -> str:
        """Why a candidate could not be predicted; "" if that is not so."""
        return self.known.unpredicted.get(self._key(self.graph, place), "")

    def portability(
        self,
        plan: Plan,
        progress: OnProgress = ignore_progress,
        cancel: CancelToken | None = None,
    ) -> Matrix:
        """Optimise the original once per row of a plan and measure each result on every column.

        What is accepted in this session plays no part and is not touched. The matrix is in the snapshot
        and grows while this runs.

        Args:
            plan: rows, columns and budget; whatever model it names, this session's original is taken.
            progress: called for every search, every cell, and while they are measured.
            cancel: stops when set.

        Raises:
            Cancelled: ``cancel`` was set; the cells that were filled stay.
        """
        from explorer.session.portability import portability_of

        def note(matrix: Matrix) -> None:
            with self._changing():
                self.known.matrix = matrix

        return portability_of(self, plan, progress, cancel, note)  # type: ignore[arg-type]  # a session is a host

    def read_matrix(self, path: str | Path) -> Matrix:
        """Show a portability matrix that was written earlier, here or by the command line.

        Raises:
            InputError: it cannot be read, or is none.
        """
        from explorer.session.portability import read_matrix

        found = read_matrix(path)
        with self._changing():
            self.known.matrix = found
        return found

    def write_matrix(self, path: str | Path) -> Path:
        """Write the portability matrix: as a page of its own if the name ends in .html, else as JSON.

        Raises:
            InputError: there is none, or the place cannot be written.
        """
        from explorer.session.portability import write_matrix

        if self.known.matrix is None:
            raise InputError("There is no portability matrix yet: measure one, or load one.")
        return write_matrix(self.known.matrix, path)


def _stop_if(cancel: CancelToken | None) -> None:
    if cancel is not None and cancel.is_set():
        raise Cancelled("Stopped.")
