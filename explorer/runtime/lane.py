"""The queue of a ``WorkerExecutor`` and the one thread that talks to its worker process.

It holds no reference to the executor, so that an executor nobody uses any more can be collected, which
ends the thread and the process.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from explorer.errors import Cancelled, ExplorerError, WorkerError
from explorer.runtime.channel import Reply, unpack
from explorer.runtime.process import WorkerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class JobOptions:
    """How to run a job.

    Args:
        label: what the job does, for messages: "measuring resnet18".
        timeout_s: time limit, counted from the start of the job; None for the executor's default.
        on_progress: called with whatever the job reports.
    """

    label: str = ""
    timeout_s: float | None = None
    on_progress: Callable[[Any], None] | None = None

    def with_defaults(self, *, label: str, timeout_s: float | None) -> JobOptions:
        """The same options with gaps filled."""
        limit = timeout_s if self.timeout_s is None else self.timeout_s
        return replace(self, label=self.label or label, timeout_s=limit)


class Stop(Enum):
    """Why a job was stopped from outside."""

    CANCELLED = auto()
    TIMED_OUT = auto()


@dataclass(eq=False)
class Job:
    """One call on its way through the lane."""

    options: JobOptions
    payload: bytes = b""
    future: Future[Any] = field(default_factory=Future)
    stop: Stop | None = None

    def failed_error(self, reason: WorkerError) -> WorkerError:
        """The error of a job whose worker gave ``reason``; notes (a traceback) are kept."""
        error = WorkerError(f"{self.options.label}: {reason}; only this job is lost.")
        for note in getattr(reason, "__notes__", ()):
            error.add_note(note)
        return error

    def stopped_error(self) -> ExplorerError:
        """The error of a job that was stopped."""
        if self.stop is Stop.CANCELLED:
            return Cancelled(f"Cancelled: {self.options.label}.")
        return WorkerError(
            f"{self.options.label}: stopped after the time limit of {self.options.timeout_s:g} s; "
            "only this job is lost."
        )


class Lane:
    """Runs jobs in order on one worker process.

    Args:
        max_jobs: jobs after which the process is replaced.
        memory_limit_bytes: passed to the process; None or 0 for no limit.
    """

    def __init__(self, *, max_jobs: int, memory_limit_bytes: int | None) -> None:
        self._max_jobs = max_jobs
        self._memory_limit_bytes = memory_limit_bytes
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._lock = threading.RLock()
        self._waiting: list[Job] = []
        self._current: Job | None = None
        self._process: WorkerProcess | None = None
        self._thread: threading.Thread | None = None
        self._closed = False
        self._owner_pid = os.getpid()

    @property
    def worker_pid(self) -> int | None:
        """Process id of the present worker, None if there is none."""
        process = self._process
        return process.pid if process else None

    def put(self, job: Job) -> None:
        """Queue a job; raises WorkerError if the lane is closed."""
        with self._lock:
            if self._closed:
                raise WorkerError("The worker is closed and takes no more jobs; open a new session.")
            self._waiting.append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="explorer-worker", daemon=True)
                self._thread.start()
        self._queue.put(job)

    def cancel(self, job: Job) -> bool:
        """Stop a job that waits or runs; False if it is too late."""
        with self._lock:
            if job in self._waiting:
                self._waiting.remove(job)
                job.stop = Stop.CANCELLED
            else:
                return self._stop_running(job, Stop.CANCELLED)
        job.future.set_exception(job.stopped_error())
        return True

    def close(self, *, cancel_queued: bool, cancel_running: bool, wait: bool) -> None:
        """Take no more jobs; the thread ends the process after the last one."""
        with self._lock:
            first, self._closed = not self._closed, True
            waiting, current, thread = list(self._waiting), self._current, self._thread
        for job in waiting if cancel_queued else ():
            self.cancel(job)
        if current and cancel_running:
            self.cancel(current)
        if first:
            self._queue.put(None)
        if wait and thread and thread is not threading.current_thread():
            thread.join()

    def abandon(self) -> None:
        """End everything without waiting: the executor is gone or Python ends."""
        if os.getpid() == self._owner_pid:
            self.close(cancel_queued=True, cancel_running=True, wait=False)
            process = self._process
            if process:
                process.kill()

    def _stop_running(self, job: Job, reason: Stop) -> bool:
        with self._lock:
            if self._current is not job or self._process is None:
                return False
            if job.stop is None:
                job.stop = reason
                self._process.kill()
            return True

    def _run(self) -> None:
        while (job := self._queue.get()) is not None:
            try:
                self._serve(job)
            except BaseException as error:  # noqa: BLE001 (a job must end, whatever happens here)
                self._give_up(job, error)
            del job  # its future keeps the executor alive
        self._drop_process()

    def _serve(self, job: Job) -> None:
        with self._lock:
            if job not in self._waiting:
                return
            process = self._process = self._process or WorkerProcess(self._memory_limit_bytes)
            self._waiting.remove(job)
            self._current = job
        job.future.set_running_or_notify_cancel()
        with self._time_limit(job):
            kind, content = _converse(job, process)
        with self._lock:
            self._current = None
        if job.stop is not None:
            kind, content = None, job.stopped_error()
        process.jobs_done += 1
        if kind in {None, Reply.EXHAUSTED} or process.jobs_done >= self._max_jobs:
            self._drop_process()
        if kind in {Reply.UNEXPECTED, Reply.EXHAUSTED}:
            content = job.failed_error(content)
        if kind is Reply.RESULT:
            job.future.set_result(content)
        else:
            job.future.set_exception(content)

    def _give_up(self, job: Job, error: BaseException) -> None:
        with self._lock:
            self._current = None
            if job in self._waiting:
                self._waiting.remove(job)
        self._drop_process()
        if not job.future.done():
            job.future.set_exception(error)

    @contextmanager
    def _time_limit(self, job: Job) -> Iterator[None]:
        if job.options.timeout_s is None:
            yield
            return
        timer = threading.Timer(job.options.timeout_s, self._stop_running, (job, Stop.TIMED_OUT))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _drop_process(self) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.close()


def _converse(job: Job, process: WorkerProcess) -> tuple[Reply | None, Any]:
    """Send a job and read until it ends; a broken pipe means that the process ended first."""
    try:
        process.channel.send(job.payload)
        while True:
            kind, content = unpack(process.channel.receive())
            if kind is not Reply.PROGRESS:
                return kind, content
            _notify(job, content)
    except (EOFError, OSError):
        return None, WorkerError(
            f"The worker process was lost during '{job.options.label}': {process.describe_exit()}. "
            "Only this job is lost; the next one gets a fresh worker."
        )


def _notify(job: Job, content: object) -> None:
    if job.options.on_progress is None:
        return
    try:
        job.options.on_progress(content)
    except Exception:  # noqa: BLE001 (a listener must not cost the job; it is logged)
        _log.exception("the progress listener of '%s' failed", job.options.label)
