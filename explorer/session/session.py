"""``Session``: one model, one target, and everything a person can do with them.

Tests, notebooks, the command line and the widgets call the same methods. Commands run in the calling thread;
``start`` runs any of them in the background. State changes under a lock and is handed out as a ``Snapshot``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from explorer.errors import VerificationError
from explorer.graph import Graph, GraphDiff, diff, load
from explorer.rewrite import (
    Candidate,
    EquivalenceReport,
    NumericClass,
    check_equivalence,
    loosest,
)
from explorer.runtime import Measurement, Measurer, Mode, Protocol, Target
from explorer.runtime.executor import CancelToken
from explorer.runtime.progress import OnProgress, ignore_progress
from explorer.search import FREEZE, Step, Trajectory
from explorer.session.costs import MEASURED, Way
from explorer.session.history import Entry, Switched
from explorer.session.insights import Insights
from explorer.session.jobs import Job, Runner
from explorer.session.optimise import OptimiseEvent, optimise
from explorer.session.reference import Reference
from explorer.session.screening import measure_all
from explorer.session.snapshot import Snapshot
from explorer.session.switches import check_switch, outcome
from explorer.session.taking import ExportResult, export, trajectory
from explorer.session.view import take_snapshot

if TYPE_CHECKING:
    from explorer.session.fusion import FusionBench

T = TypeVar("T")
DEFAULT_TARGET = "ort:level=all,threads=1"


class Session(Insights):
    """Open a model and work on it.

    Args:
        model: path, bytes, sample name or a Graph.
        target: where its time counts.
        fill_weights: seed for structures without weights.
        dims: sizes of named dynamic dims, for measuring and checking.
        opt_in: also offer rules of class D (domain-restricted) and A (approximate).
        protocol: how candidates and totals are timed unless a command says otherwise.
        name: what to call a model that comes as bytes.
        measurer: measures and runs graphs; one with a worker process of its own by default.

    Raises:
        ModelError: the model cannot be opened.
        TargetError: the target is not understood.
    """

    def __init__(
        self,
        model: str | Path | bytes | Graph,
        *,
        target: str | Target = DEFAULT_TARGET,
        fill_weights: int | None = None,
        dims: Mapping[str, int] | None = None,
        opt_in: bool = False,
        protocol: str | Mode | Protocol = Mode.VALIDATED,
        name: str | None = None,
        measurer: Measurer | None = None,
    ) -> None:
        where, how = Target.parse(target), Protocol.of(protocol)
        graph = model if isinstance(model, Graph) else load(model, fill_weights=fill_weights, name=name)
        super().__init__(graph, where, how, opt_in, dims, measurer or Measurer())
        self.origin = str(model) if isinstance(model, str | Path) else ""
        self.fill_weights = fill_weights
        self._owns_measurer = measurer is None
        self._reference = Reference(graph, self.measurer)
        self.runner = Runner(self._tell)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        """Model, target and number of accepted rewrites."""
        return f"Session({self.original.name!r}, {self._target}, {len(self.steps)} accepted)"

    def close(self) -> None:
        """Stop what runs and end the worker; safe to call twice."""
        self._listeners.clear()
        self.runner.close()
        if self._owns_measurer:
            self.measurer.close()

    def preview(self, identifier: str) -> tuple[Graph, GraphDiff]:
        """The graph after a candidate, and what differs from the current one."""
        result, _ = outcome(self.find(identifier), self.graph, self.rules)
        return result, diff(self.graph, result)

    def snapshot(self, *, wait: bool = True) -> Snapshot:
        """A consistent view of everything a screen shows.

        Args:
            wait: enumerate the current graph if that has not been done; else the snapshot says that it is
                not ready and has no rows.
        """
        if wait:
            self.enumeration()
        with self._lock:
            return take_snapshot(self, self._number)

    # Measuring and checking

    def measure(
        self,
        identifier: str,
        mode: str | Mode | Protocol | None = None,
        progress: OnProgress = ignore_progress,
        cancel: CancelToken | None = None,
        *,
        fresh: bool = False,
    ) -> Measurement:
        """Time a candidate's result against the current graph on the target, or a switch against the target.

        Args:
            identifier: id or place of the candidate or switch.
            mode: how; the session's own protocol by default.
            progress: called from another thread while it runs.
            cancel: stops it when set.
            fresh: measure even if a result is in the cache.
        """
        with self._lock:
            candidate, base, target = self.find(identifier), self.graph, self._target
        (result, on), how = outcome(candidate, base, self.rules), mode or self._protocol
        measurement = self.measurer.measure(
            base, result, self.feeds(), target, how, progress, cancel, fresh=fresh, b_target=on
        )
        with self._changing():
            self._memory.candidates[base.fingerprint(), candidate.place, str(target)] = measurement
        return measurement

    def measure_all(
        self, identifiers: Sequence[str] | None = None, mode: str | Mode = Mode.SCREENING, *, job: Job[None]
    ) -> None:
        """Measure several candidates (all that are not rejected) one after the other, in a job.

        Raises:
            RuntimeFailure: some could not be measured; the others were.
            Cancelled: the job was stopped; what was measured stays.
        """
        wanted = identifiers if identifiers is not None else [c.id for c in self._open_candidates()]
        measure_all(self, wanted, mode, job)

    def check(
        self,
        graph: Graph | None = None,
        extra: NumericClass | None = None,
        cancel: CancelToken | None = None,
        *,
        frozen: bool = False,
        on: Target | None = None,
        least_tolerance: float = 0.0,
    ) -> EquivalenceReport:
        """Compare a graph (the current one) numerically with the original.

        Args:
            graph: what to check.
            extra: numeric class of a rewrite that is not in the history yet.
            cancel: stops it when set.
            frozen: whether its weights that were inputs no longer are.
            on: where to run it; by default where the original runs, without the runtime's optimiser.
            least_tolerance: accepted even if the classes allow less.
        """
        classes = [entry.numeric_class for entry in self._history.past]
        numeric_class = loosest([*classes, extra or NumericClass.EXACT])
        run = partial(self._reference.run, cancel=cancel)
        there = None if on is None else partial(self.measurer.run, target=on, cancel=cancel)
        may_override = not (frozen or self._history.is_frozen)
        return check_equivalence(
            self.original, graph or self.graph, run, numeric_class, self.dims,
            override=may_override, run_candidate=there, least_tolerance=least_tolerance,
        )  # fmt: skip

    # Deciding

    def accept(self, identifier: str, cancel: CancelToken | None = None) -> EquivalenceReport:
        """Apply a candidate or a switch, if the result is numerically equal to the original.

        A switch of the runtime is checked on the target it leads to; see ``check_switch``.

        Raises:
            CandidateError: no such candidate in the current graph.
            VerificationError: the result differs; nothing was changed.
            Cancelled: ``cancel`` was set; nothing was changed.
        """
        with self._lock:
            candidate, base, target = self.find(identifier), self.graph, self._target
        result, on = outcome(candidate, base, self.rules)
        freezes = candidate.place == FREEZE
        if on is None:
            report = self.check(result, candidate.numeric_class, cancel, frozen=freezes)
        else:
            report = check_switch(self.check, candidate, target, on, cancel)
        if not report.passed:
            raise VerificationError(f"'{candidate.place}' was not accepted: {report.sentence()}.")
        known = self._memory.candidates.get(self._key(base, candidate.place))
        predicted = self._memory.predicted.get(self._key(base, candidate.place))
        step = replace(Step.of(candidate, known.delta if known else None), predicted=predicted)
        kind = candidate.numeric_class if on is None else NumericClass.EXACT  # the graph is the same
        switched = None if on is None else Switched(target, on)
        self.extend(Entry(result, (step,), candidate.summary, report, kind, switched), base)
        return report

    # Searching

    def optimise(
        self,
        *,
        budget: int = 30,
        cost: str = MEASURED,
        scout: str | None = None,
        confirm: bool = True,
        progress: OnProgress = ignore_progress,
        cancel: CancelToken | None = None,
    ) -> Iterator[OptimiseEvent]:
        """Greedy search as events; each move taken is in the history at once.

        See ``explorer.session.optimise.optimise``; ``cost`` and ``scout`` are names from ``explorer.session.costs``.

        Raises:
            InputError: there is no such cost model, or the scout does not predict.
        """
        way = Way(cost, scout)
        return optimise(self, budget=budget, confirm=confirm, progress=progress, cancel=cancel, way=way)

    # Taking away

    def export(self, path: str | Path, cancel: CancelToken | None = None) -> ExportResult:
        """Write the current graph as ONNX, after checking it numerically against the original.

        Args:
            path: where to.
            cancel: stops the check when set; nothing is written then.

        Raises:
            VerificationError: it differs from the original; nothing was written.
            ModelError: the place cannot be written.
        """
        return export(self, path, cancel)

    def trajectory(self, **settings: str) -> Trajectory:
        """The accepted rewrites as a replayable record, with settings that tell how they were found."""
        return trajectory(self, settings)

    def save(self, path: str | Path) -> Path:
        """Write model reference, history, rejected places and measurements as JSON."""
        from explorer.session.storage import write_session

        return write_session(self, path)

    @classmethod
    def reopen(cls, path: str | Path, measurer: Measurer | None = None) -> Session:
        """Open what ``save`` wrote; raises InputError if the model is no longer the same."""
        from explorer.session.storage import read_session

        return read_session(path, measurer)

    # Beside rewrites

    @cached_property
    def fusion(self) -> FusionBench:
        """Fusion groups against a buffer, plans and their searches, on the current graph."""
        from explorer.session.fusion import FusionBench

        return FusionBench(self)

    # Background

    def start(self, label: str, function: Callable[[Job[T]], T]) -> Job[T]:
        """Run a command in the background, after those started before."""
        return self.runner.start(label, function)

    def _open_candidates(self) -> list[Candidate]:
        return [c for c in self.candidates() if c.place not in self._rejected]
