"""``Measurer``: measure and run graphs; the one door of this package for the rest of explorer.

It writes graphs to files, asks the cache, recognises rewrites that the runtime absorbs, and sends the
rest to an executor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar
from uuid import uuid4

from explorer.errors import InputError, RuntimeFailure
from explorer.runtime import jobs
from explorer.runtime.backend import Feeds, as_feeds, backend_for
from explorer.runtime.cache import Cache, ResultCache
from explorer.runtime.environment import Environment
from explorer.runtime.estimate import identical
from explorer.runtime.executor import CancelToken, WorkerExecutor, run_job
from explorer.runtime.lane import JobOptions
from explorer.runtime.marked import own_names
from explorer.runtime.measurement import FORMAT, Latency, Measurement
from explorer.runtime.profile import Profile, profile_from
from explorer.runtime.progress import OnProgress, Progress, ignore_progress
from explorer.runtime.protocol import Mode, Protocol
from explorer.runtime.request import Request, feeds_digest
from explorer.runtime.runtime_view import RuntimeView, runtime_view
from explorer.runtime.store import ModelStore
from explorer.runtime.target import Target

if TYPE_CHECKING:
    from explorer.graph import Graph

Result = TypeVar("Result", Measurement, Latency, Profile)
Answer = TypeVar("Answer", str, Sequence[str])

REFERENCE = "ort:level=disable,threads=1"
"""Where outputs are computed for comparison: a runtime's own optimiser can be wrong."""

_RUN_TIMEOUT_S = 600.0


class Measurer:
    """Measures graphs on targets.

    Args:
        executor: where jobs run; a ``WorkerExecutor`` of its own by default.
        cache: where results are kept; the user's cache on disk by default.
        store: where models are written; a temporary folder of its own by default.

    ``close`` ends what was made here and leaves alone what was passed in.
    """

    def __init__(
        self,
        *,
        executor: Executor | None = None,
        cache: Cache | None = None,
        store: ModelStore | None = None,
    ) -> None:
        self._own_executor = WorkerExecutor() if executor is None else None
        self._own_store = ModelStore() if store is None else None
        self._executor: Executor = executor or self._own_executor  # type: ignore[assignment]  # one of the two is set
        self._store: ModelStore = store or self._own_store  # type: ignore[assignment]  # one of the two is set
        self._cache: Cache = ResultCache() if cache is None else cache
        self._environments: dict[Target, Environment] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    @property
    def cache(self) -> Cache:
        """Where results are kept."""
        return self._cache

    @property
    def folder(self) -> Path:
        """Where models are written; gone after ``close`` if it was made here."""
        return self._store.folder

    def measure(
        self,
        a: Graph,
        b: Graph,
        feeds: Feeds,
        target: str | Target,
        mode: str | Mode | Protocol = Mode.VALIDATED,
        progress: OnProgress = ignore_progress,
        cancel: CancelToken | None = None,
        *,
        fresh: bool = False,
        absorb: bool = True,
        b_target: str | Target | None = None,
    ) -> Measurement:
        """How the time of ``b`` compares with that of ``a``.

        Args:
            a: base of the ratio.
            b: the other graph.
            feeds: inputs for both.
            target: where.
            mode: ``"validated"``, ``"screening"``, ``"adaptive"`` or a protocol of one's own; with several
                threads it gets a wider floor.
            progress: called from another thread while it runs.
            cancel: stops the measurement when set.
            fresh: measure even if a result is in the cache.
            absorb: call graphs IDENTICAL, without timing, that the runtime turns into the same one.
            b_target: where ``b`` runs, if elsewhere: other options of the same runtime, as many threads.

        Raises:
            InputError: bad target or mode, or two targets that cannot be compared.
            RuntimeFailure: the runtime cannot load or run one of them.
            WorkerError: the worker crashed, hung or ran out of memory.
            Cancelled: ``cancel`` was set.
        """
        request = Request.of(feeds, target, mode, progress, cancel, b_target)
        key = self._key("pair", (a, b), request) | {"absorb": absorb}
        known = None if fresh else self._cached(key, Measurement)
        if known is not None:
            return known
        if absorb:
            progress(Progress(0, request.protocol.rounds, "comparing what the runtime makes of both graphs"))
        if absorb and self.is_absorbed(a, b, target, cancel, b_target=request.b_target):
            names = (a.fingerprint(), b.fingerprint())
            where = self.environment(target, cancel)
            result = identical(names, request.target, request.protocol, where, request.b_target)
        else:
            result = self._time_pair(a, b, request)
        self._cache.put(key, result.to_json())
        return result

    def latency(
        self,
        graph: Graph,
        feeds: Feeds,
        target: str | Target,
        mode: str | Mode | Protocol = Mode.SCREENING,
        progress: OnProgress = ignore_progress,
        cancel: CancelToken | None = None,
        *,
        fresh: bool = False,
    ) -> Latency:
        """Time of one run of a graph; arguments and errors as in ``measure``."""
        request = Request.of(feeds, target, mode, progress, cancel)
        key = self._key("latency", (graph,), request)
        known = None if fresh else self._cached(key, Latency)
        if known is not None:
            return known
        result = self._time_one(graph, request)
        self._cache.put(key, result.to_json())
        return result

    def run(
        self,
        graph: Graph,
        feeds_list: Sequence[Feeds],
        target: str | Target = REFERENCE,
        cancel: CancelToken | None = None,
    ) -> list[dict[str, Any]]:
        """Outputs by name for each set of inputs; by default without the runtime's optimiser.

        Raises:
            RuntimeFailure: the runtime cannot load or run the graph.
            WorkerError: the worker crashed, hung or ran out of memory.
        """
        options = JobOptions(f"running '{graph.name}' on {target}", _RUN_TIMEOUT_S)
        arrays = [as_feeds(feeds) for feeds in feeds_list]
        arguments = (self._store.put(graph), arrays, Target.parse(target))
        return run_job(self._executor, options, cancel, jobs.run_model, *arguments)

    def is_absorbed(
        self,
        a: Graph,
        b: Graph,
        target: str | Target,
        cancel: CancelToken | None = None,
        *,
        b_target: Target | None = None,
    ) -> bool:
        """Whether the runtime executes the same graph for both, so that their times are equal.

        False where the runtime cannot show what it executes. Arguments as for ``measure``.
        """
        target = Target.parse(target)
        other = b_target or target
        if a.fingerprint() == b.fingerprint() and target == other:
            return True
        if not backend_for(target.runtime).saves_optimized:
            return False
        try:
            return self._optimized(a, target, cancel) == self._optimized(b, other, cancel)
        except RuntimeFailure:
            return False

    def profile(
        self,
        graph: Graph,
        feeds: Feeds,
        target: str | Target,
        cancel: CancelToken | None = None,
        *,
        rounds: int = 3,
        budget_s: float = 3.0,
        fresh: bool = False,
    ) -> Profile:
        """Time per node of a graph, by the runtime's own profiler.

        Raises:
            RuntimeFailure: the runtime cannot load or run the graph, or has no profiler.
            WorkerError: the worker crashed, hung or ran out of memory.
        """
        target, arrays = Target.parse(target), as_feeds(feeds)
        path = self._store.put_marked(graph)
        where = self.environment(target, cancel)
        key = {
            "kind": "profile",
            "format": FORMAT,
            "graph": path.stem,
            "target": str(target),
            "feeds": feeds_digest(arrays),
            "settings": [rounds, budget_s],
            "environment": where.to_json(),
        }
        known = None if fresh else self._cached(key, Profile)
        if known is not None:
            return known
        options = JobOptions(f"profiling '{graph.name}' on {target}", _RUN_TIMEOUT_S)
        arguments = (path, arrays, target, rounds, round(budget_s * 1e9))
        with own_names(graph):
            executed = run_job(self._executor, options, cancel, jobs.profile_model, *arguments)
        result = profile_from(graph, executed, target, where)
        self._cache.put(key, result.to_json())
        return result

    def acting_optimizers(
        self, graph: Graph, target: str | Target, cancel: CancelToken | None = None
    ) -> tuple[str, ...]:
        """Which of the runtime's own optimisers change a graph on a target, in the order in which they ran.

        Empty where the runtime does not say, or has none that a target can disable.

        Raises:
            RuntimeFailure: the runtime cannot load the graph.
            WorkerError: the worker crashed, hung or ran out of memory.
        """
        target = Target.parse(target)
        if not backend_for(target.runtime).names_optimizers:
            return ()
        found = self._asked("acting", jobs.acting_optimizers, graph, target, cancel)
        return tuple(found)

    def optimized_model(
        self, graph: Graph, target: str | Target, out_path: Path, cancel: CancelToken | None = None
    ) -> Path:
        """Write the graph as the runtime executes it, to be looked at; see ``jobs.optimized_model``."""
        options = JobOptions(f"optimising '{graph.name}' on {target}", _RUN_TIMEOUT_S)
        arguments = (self._store.put(graph), Target.parse(target), out_path)
        return run_job(self._executor, options, cancel, jobs.optimized_model, *arguments)

    def runtime_view(
        self, graph: Graph, target: str | Target, cancel: CancelToken | None = None
    ) -> RuntimeView:
        """The graph as the runtime executes it, linked to the nodes it was made of.

        Raises:
            RuntimeFailure: the runtime cannot load the graph, or cannot show what it executes.
            WorkerError: the worker crashed, hung or ran out of memory.
        """
        from explorer.graph import load

        target = Target.parse(target)
        path = self._store.put_marked(graph)
        out_path = path.with_name(f"view-{uuid4().hex}.onnx")
        options = JobOptions(f"optimising '{graph.name}' on {target}", _RUN_TIMEOUT_S)
        with own_names(graph):
            run_job(self._executor, options, cancel, jobs.optimized_model, path, target, out_path)
        optimized = load(out_path, name=f"{graph.name} on {target}")
        return runtime_view(graph, optimized, target)

    def environment(self, target: str | Target, cancel: CancelToken | None = None) -> Environment:
        """Where the executor measures; asked once per target."""
        target = Target.parse(target)
        if target not in self._environments:
            options = JobOptions(f"starting {target}", _RUN_TIMEOUT_S)
            found = run_job(self._executor, options, cancel, jobs.environment, target)
            self._environments[target] = found
        return self._environments[target]

    def close(self) -> None:
        """End the worker and remove the models written; safe to call twice."""
        if self._own_executor is not None:
            self._own_executor.close()
        if self._own_store is not None:
            self._own_store.close()

    def _time_pair(
        self,
        a: Graph,
        b: Graph,
        request: Request,
    ) -> Measurement:
        options = request.options(f"measuring '{b.name}' against '{a.name}'")
        paths = (self._store.put(a), self._store.put(b))
        arguments = (*paths, *request.arguments, request.b_target)
        measured = run_job(self._executor, options, request.cancel, jobs.measure_pair, *arguments)
        return replace(measured, a=a.fingerprint(), b=b.fingerprint())

    def _time_one(
        self,
        graph: Graph,
        request: Request,
    ) -> Latency:
        options = request.options(f"timing '{graph.name}'")
        path = self._store.put(graph)
        measured = run_job(
            self._executor, options, request.cancel, jobs.measure_one, path, *request.arguments
        )
        return replace(measured, model=graph.fingerprint())

    def _optimized(self, graph: Graph, target: Target, cancel: CancelToken | None) -> str:
        return str(self._asked("optimized", jobs.optimized_fingerprint, graph, target, cancel))

    def _asked(
        self,
        kind: str,
        job: Callable[[Path, Target], Answer],
        graph: Graph,
        target: Target,
        cancel: CancelToken | None,
    ) -> Answer:
        """What the runtime says of a graph, which does not change: asked once per environment."""
        key = {
            "kind": kind,
            "graph": graph.fingerprint(),
            "target": str(target),
            "environment": self.environment(target, cancel).to_json(),
        }
        known = self._cache.get(key)
        if isinstance(known, str | list):
            return known  # type: ignore[return-value]  # what was put here under this kind
        options = JobOptions(f"optimising '{graph.name}' on {target}", _RUN_TIMEOUT_S)
        found = run_job(self._executor, options, cancel, job, self._store.put(graph), target)
        self._cache.put(key, found)
        return found

    def _key(self, kind: str, graphs: Sequence[Graph], request: Request) -> dict[str, Any]:
        where = self.environment(request.target, request.cancel)
        return request.key(kind, [graph.fingerprint() for graph in graphs], where)

    def _cached(self, key: Mapping[str, Any], kind: type[Result]) -> Result | None:
        value = self._cache.get(key)
        if value is None:
            return None
        try:
            return kind.from_json(value)
        except InputError:
            self._cache.remove(key)
            return None
