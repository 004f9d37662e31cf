"""Long commands in the background: one runner thread per session, with progress and cancel."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from enum import StrEnum
from typing import Generic, TypeVar

from explorer.errors import Cancelled, ExplorerError
from explorer.runtime import OnProgress, Progress
from explorer.runtime.progress import part_of

T = TypeVar("T")


class JobState(StrEnum):
    """Where a job is in its life."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Job(Generic[T]):
    """A command that runs in the session's runner thread.

    Attributes:
        label: what it does, for a status line.
        progress: the last report of progress, or None.
        state: where it is.
        error: why it failed, if it did; an ExplorerError has a message for people.
    """

    def __init__(self, label: str, changed: Callable[[], None]) -> None:
        self.label = label
        self.progress: Progress | None = None
        self.state = JobState.WAITING
        self.error: BaseException | None = None
        self.token = threading.Event()
        self._changed = changed
        self._future: Future[T] | None = None

    @property
    def is_over(self) -> bool:
        """Whether it ended, in whatever way."""
        return self.state not in {JobState.WAITING, JobState.RUNNING}

    def cancel(self) -> None:
        """Ask it to stop; it ends as CANCELLED shortly after."""
        self.token.set()

    def report(self, progress: Progress) -> None:
        """Note progress and tell listeners; callable from any thread."""
        self.progress = progress
        self._changed()

    def part(self, number: int, count: int) -> OnProgress:
        """A listener for the progress of one of ``count`` equal parts, numbered from 0."""
        return part_of(self.report, number, count)

    def raise_if_cancelled(self) -> None:
        """Raise Cancelled if the job was asked to stop."""
        if self.token.is_set():
            raise Cancelled(f"{self.label} was stopped.")

    def result(self, timeout_s: float | None = None) -> T:
        """Wait for the result; raises what the job raised."""
        if self._future is None:
            raise ExplorerError(f"{self.label} was never started.")
        return self._future.result(timeout_s)

    def run(self, function: Callable[[Job[T]], T]) -> T:
        """Run the function in this thread and keep the books; used by the runner."""
        self.state = JobState.RUNNING
        try:
            self.raise_if_cancelled()
            value = function(self)
        except Cancelled as error:
            self._end(JobState.CANCELLED, error)
            raise
        except BaseException as error:
            self._end(JobState.FAILED, error)
            raise
        self._end(JobState.DONE, None)
        return value

    def drop(self) -> None:
        """Mark a job that will never run as CANCELLED; no effect on one that has run."""
        if not self.is_over:
            self._end(JobState.CANCELLED, Cancelled(f"{self.label} was stopped."))

    def _end(self, state: JobState, error: BaseException | None) -> None:
        self.error, self.state = error, state
        self._changed()


class Runner:
    """Runs jobs one after the other in a thread that starts with the first and ends with ``close``."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="explorer-job")
        self._jobs: list[Job[object]] = []

    def start(self, label: str, function: Callable[[Job[T]], T]) -> Job[T]:
        """Queue a job and return it at once."""
        job: Job[T] = Job(label, self._changed)
        self._jobs = [old for old in self._jobs if not old.is_over]
        self._jobs.append(job)  # type: ignore[arg-type]  # only its state is used here
        job._future = self._pool.submit(job.run, function)  # noqa: SLF001 (the runner makes jobs)
        self._changed()
        return job

    @property
    def current(self) -> Job[object] | None:
        """The job that runs or waits first, if any."""
        return next((job for job in self._jobs if not job.is_over), None)

    def close(self) -> None:
        """Cancel what runs and wait for the thread to end."""
        for job in self._jobs:
            job.cancel()
        self._pool.shutdown(wait=True, cancel_futures=True)
        for job in self._jobs:
            job.drop()
