"""Executors that measure: one worker process that may crash, hang or be cancelled, and its inline twin.

Both are ``concurrent.futures`` executors. What they add (a time limit per job, progress, a name for
messages) is passed by ``submit_job``; ``run_job`` uses it where it exists, so that any other executor
can take their place.
"""

from __future__ import annotations

import pickle
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, Protocol, TypeVar, cast, runtime_checkable

from explorer.errors import Cancelled, WorkerError
from explorer.runtime.channel import pack
from explorer.runtime.lane import Job, JobOptions, Lane
from explorer.runtime.memory import default_limit_bytes
from explorer.runtime.progress import accepts_progress

P = ParamSpec("P")
T = TypeVar("T")

MAX_JOBS_PER_WORKER = 50
_POLL_S = 0.05


@runtime_checkable
class JobExecutor(Protocol):
    """An executor that understands ``JobOptions``."""

    def submit_job(
        self, options: JobOptions, fn: Callable[..., T], /, *args: object, **kwargs: object
    ) -> Future[T]:
        """Queue a job."""


class CancelToken(Protocol):
    """Anything that can say "stop"; a ``threading.Event`` is one."""

    def is_set(self) -> bool:
        """Whether the job should stop."""


class JobFuture(Future[T]):
    """The result of a job to come; ``cancel`` also stops a job that is running.

    A cancelled job ends with ``explorer.errors.Cancelled``, whether it had begun or not.
    """

    def __init__(self, executor: WorkerExecutor, cancel: Callable[[], bool]) -> None:
        super().__init__()
        self._executor: WorkerExecutor | None = executor  # keeps it alive while work is open
        self._cancel: Callable[[], bool] | None = cancel
        self.add_done_callback(lambda _: self._release())

    def cancel(self) -> bool:
        """Stop the job; False if it has already finished."""
        cancel = self._cancel
        return cancel() if cancel else self.cancelled()

    def cancelled(self) -> bool:
        """Whether it ended because it was cancelled."""
        return self.done() and isinstance(self.exception(), Cancelled)

    def _release(self) -> None:
        self._executor = self._cancel = None


class WorkerExecutor(Executor):
    """Runs jobs one after the other in a child process that is replaced when it breaks.

    Args:
        timeout_s: time limit of a job unless its options say otherwise; None for no limit.
        max_jobs_per_worker: jobs after which the process is replaced, because runtimes leak.
        memory_limit_bytes: data memory of the process; by default four fifths of the machine's (Linux
            only), 0 for no limit.

    Job functions must be importable from a module. One that has a parameter ``progress`` gets a
    function for it whose calls arrive at the job's ``on_progress``, in a thread of this executor.
    """

    def __init__(
        self,
        *,
        timeout_s: float | None = None,
        max_jobs_per_worker: int = MAX_JOBS_PER_WORKER,
        memory_limit_bytes: int | None = None,
    ) -> None:
        limit = default_limit_bytes() if memory_limit_bytes is None else memory_limit_bytes
        self._timeout_s = timeout_s
        self._lane = Lane(max_jobs=max_jobs_per_worker, memory_limit_bytes=limit)
        self._finalizer = weakref.finalize(self, Lane.abandon, self._lane)

    @property
    def worker_pid(self) -> int | None:
        """Process id of the present worker, None if there is none."""
        return self._lane.worker_pid

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Queue a job with the default options."""
        return self.submit_job(JobOptions(), fn, *args, **kwargs)

    def submit_job(
        self, options: JobOptions, fn: Callable[..., T], /, *args: object, **kwargs: object
    ) -> Future[T]:
        """Queue ``fn(*args, **kwargs)``.

        Args:
            options: name for messages, time limit, progress listener.
            fn: a function that the worker can import.
            *args: picklable arguments.
            **kwargs: picklable arguments.

        Returns:
            A future. It ends with the result, with the ``ExplorerError`` the job raised, with
            WorkerError (crash, time limit, memory limit, any other exception) or with Cancelled.

        Raises:
            WorkerError: this executor is closed.
        """
        options = options.with_defaults(label=getattr(fn, "__name__", "job"), timeout_s=self._timeout_s)
        job = Job(options)
        future: JobFuture[T] = JobFuture(self, lambda: self._lane.cancel(job))
        job.future = cast("Future[Any]", future)
        try:
            job.payload = _payload(fn, args, kwargs)
        except WorkerError as error:
            future.set_exception(error)
            return future
        self._lane.put(job)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more jobs and end the worker after those queued, as ``Executor`` says."""
        self._lane.close(cancel_queued=cancel_futures, cancel_running=False, wait=wait)

    def close(self) -> None:
        """Cancel everything and end the worker now; safe to call twice."""
        self._lane.close(cancel_queued=True, cancel_running=True, wait=True)


class InlineExecutor(Executor):
    """Runs each job at once in the calling thread: for tests and for debugging.

    Time limits do not apply, and a crash is the caller's crash.
    """

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a job with the default options."""
        return self.submit_job(JobOptions(), fn, *args, **kwargs)

    def submit_job(
        self, options: JobOptions, fn: Callable[..., T], /, *args: object, **kwargs: object
    ) -> Future[T]:
        """Run ``fn(*args, **kwargs)`` and return a finished future."""
        if options.on_progress is not None and accepts_progress(fn):
            kwargs.setdefault("progress", options.on_progress)
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 (a future carries whatever its job raised)
            future.set_exception(error)
        return future


def run_job(
    executor: Executor,
    options: JobOptions,
    cancel: CancelToken | None,
    fn: Callable[..., T],
    /,
    *args: object,
) -> T:
    """Submit a job to any executor and wait for it.

    Args:
        executor: where to run; options beyond the time limit need a ``JobExecutor``.
        options: name for messages, time limit, progress listener.
        cancel: checked several times a second while waiting; None to wait without.
        fn: the job.
        *args: its arguments.

    Raises:
        Cancelled: ``cancel`` was set. The job has been stopped where the executor can do that.
        WorkerError: the job took longer than its time limit, or as the executor reports.
    """
    if isinstance(executor, JobExecutor):
        future = executor.submit_job(options, fn, *args)
        deadline = None  # the executor's business: its clock starts when the job does
    else:
        future = executor.submit(fn, *args)
        deadline = None if options.timeout_s is None else time.monotonic() + options.timeout_s
    try:
        return _wait(future, options, cancel, deadline)
    except BaseException:
        future.cancel()  # also on Ctrl-C: nothing may go on running that nobody waits for
        raise


def _wait(future: Future[T], options: JobOptions, cancel: CancelToken | None, deadline: float | None) -> T:
    poll = None if cancel is None and deadline is None else _POLL_S
    finished = threading.Event()
    future.add_done_callback(lambda _: finished.set())
    while not finished.wait(poll):
        if cancel is not None and cancel.is_set():
            raise Cancelled(f"{options.label or 'The job'} was cancelled.")
        if deadline is not None and time.monotonic() > deadline:
            raise WorkerError(f"{options.label} took longer than {options.timeout_s:.0f} s.")
    return future.result()


def _payload(fn: Callable[..., Any], args: tuple[object, ...], kwargs: dict[str, object]) -> bytes:
    name = getattr(fn, "__qualname__", repr(fn))
    if getattr(fn, "__module__", None) == "__main__":
        raise WorkerError(
            f"'{name}' is defined in the running script or notebook, which a worker process does not "
            "load; put it into a module."
        )
    try:
        return pack((fn, args, kwargs))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise WorkerError(f"'{name}' cannot be sent to a worker process: {error}.") from error
