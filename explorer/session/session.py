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

import numpy as np

from explorer.errors import CandidateError, VerificationError
from explorer.graph import Graph, GraphDiff, diff, load, make_feeds
from explorer.rewrite import (
    Candidate,
    Enumeration,
    EquivalenceReport,
    NumericClass,
    RuleSet,
    check_equivalence,
    loosest,
)
from explorer.runtime import Measurement, Measurer, Mode, Protocol, Target
from explorer.runtime.executor import CancelToken
from explorer.runtime.progress import OnProgress, ignore_progress
from explorer.search import FREEZE, Step, Trajectory
from explorer.session.costs import MEASURED
from explorer.session.history import Entry, History, Switched
from explorer.session.insights import Insights
from explorer.session.jobs import Job, Runner
from explorer.session.memory import Memory
from explorer.session.optimise import OptimiseEvent, optimise
from explorer.session.reference import Reference
from explorer.session.screening import measure_all
from explorer.session.sites import Sites, rules_on_offer
from explorer.session.snapshot import Snapshot
from explorer.session.switches import Switches, check_switch, is_switch, outcome
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
        super().__init__()
        self._target = Target.parse(target)
        self._protocol = Protocol.of(protocol)
        graph = model if isinstance(model, Graph) else load(model, fill_weights=fill_weights, name=name)
        self.origin = str(model) if isinstance(model, str | Path) else ""
        self.fill_weights = fill_weights
        self.dims = dict(dims or {})
        self.measurer = measurer or Measurer()
        self._owns_measurer = measurer is None
        self._history = History.of(graph)
        self._opt_in = opt_in
        self._rejected: set[str] = set()
        self._memory = Memory()
        self._sites = Sites()
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

    # What is there

    @property
    def original(self) -> Graph:
        """The graph as it was opened."""
        return self._history.original

    @property
    def graph(self) -> Graph:
        """The graph as it is now."""
        return self._history.current

    @property
    def history(self) -> History:
        """Accepted and undone rewrites."""
        return self._history

    @property
    def steps(self) -> tuple[Step, ...]:
        """Accepted rewrites, in order."""
        return self._history.steps()

    @property
    def target(self) -> Target:
        """Where time counts."""
        return self._target

    @target.setter
    def target(self, spec: str | Target) -> None:
        with self._changing():
            self._target = Target.parse(spec)

    @property
    def protocol(self) -> Protocol:
        """How candidates and totals are timed unless a command says otherwise."""
        return self._protocol

    @protocol.setter
    def protocol(self, value: str | Mode | Protocol) -> None:
        with self._changing():
            self._protocol = Protocol.of(value)

    @property
    def rules(self) -> RuleSet:
        """The rules on offer."""
        return rules_on_offer(self._opt_in)

    @property
    def opt_in(self) -> bool:
        """Whether rules of class D and A are offered."""
        return self._opt_in

    @opt_in.setter
    def opt_in(self, value: bool) -> None:
        with self._changing():
            self._opt_in = value

    @property
    def rejected(self) -> frozenset[str]:
        """Places the user does not want rewritten."""
        return frozenset(self._rejected)

    def enumeration(self) -> Enumeration:
        """Candidates and near misses of the current graph; seconds for a large graph not seen before."""
        return self._sites.find(self.graph, self._opt_in)

    def known_enumeration(self) -> Enumeration | None:
        """The same if it has been made, else None; takes no time."""
        return self._sites.known(self.graph, self._opt_in)

    def prepare(self, *, opt_in: bool | None = None, cancel: CancelToken | None = None) -> None:
        """Make the enumeration now, then its order, so that nobody waits for it later; for a background job.

        Args:
            opt_in: offer rules of class D and A from now on, or no longer; None leaves that as it is.
            cancel: stops ordering when set.
        """
        graph, wanted = self.graph, self._opt_in if opt_in is None else opt_in
        candidates = self._sites.find(graph, wanted).candidates
        with self._changing():
            self._opt_in = wanted
        self.known.ranking.learn(graph, candidates, self.rules, cancel)
        with self._changing():
            pass  # the rows have another order

    def candidates(self) -> tuple[Candidate, ...]:
        """Every place where a rule on offer applies."""
        return self.enumeration().candidates

    def find(self, identifier: str) -> Candidate:
        """A candidate of the current graph, or a switch, by id or place; raises CandidateError."""
        return self.switches.get(identifier) if is_switch(identifier) else self.enumeration().find(identifier)

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

    def feeds(self) -> dict[str, np.ndarray]:
        """Seeded inputs of a realistic size, for measuring."""
        return make_feeds(self.original, dims=self.dims)

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

    def extend(self, entry: Entry, base: Graph) -> None:
        """Add an entry that was found and checked on a graph.

        Raises:
            CandidateError: that graph is no longer the current one, or the target has changed.
        """
        self._sites.find(entry.graph, self._opt_in)
        with self._changing():
            if self.graph is not base or (entry.switched and entry.switched.before != self._target):
                raise CandidateError("Graph or target changed while the candidate was checked; choose again.")
            self._history = self._history.push(entry)
            self._target = entry.switched.after if entry.switched else self._target

    def reject(self, identifier: str) -> None:
        """Leave a place alone: searches and "measure all" skip it."""
        with self._changing():
            self._rejected.add(self.find(identifier).place)

    def restore(self, identifier: str) -> None:
        """Take a rejection back."""
        with self._changing():
            self._rejected.discard(self.find(identifier).place)

    def undo(self, count: int = 1) -> None:
        """Take back the last acceptances, with the targets they led to; harmless at the beginning."""
        self._walk(-count)

    def redo(self, count: int = 1) -> None:
        """Accept again what was undone; harmless at the end."""
        self._walk(count)

    def _walk(self, by: int) -> None:
        with self._changing():
            self._target = self._history.target_after(by, self._target)
            self._history = self._history.moved(by)

    # Searching

    def optimise(
        self,
        *,
        budget: int = 30,
        cost: str = MEASURED,
        confirm: bool = True,
        progress: OnProgress = ignore_progress,
        cancel: CancelToken | None = None,
    ) -> Iterator[OptimiseEvent]:
        """Greedy search as events; each move taken is in the history at once.

        See ``explorer.session.optimise.optimise``; the cost models are those of ``explorer.session.costs``.
        """
        return optimise(self, budget=budget, confirm=confirm, progress=progress, cancel=cancel, cost=cost)

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
    def switches(self) -> Switches:
        """Settings of the runtime, and freezing weights, that can be tried like rewrites."""
        return Switches(self, self._changing)

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

    def memory(self) -> Memory:
        """Measurements and predictions made so far."""
        return self._memory.copy()

    def recall(self, history: History, rejected: set[str], memory: Memory) -> None:
        """Restore what a saved session remembers."""
        with self._changing():
            self._history, self._rejected, self._memory = history, set(rejected), memory.copy()
