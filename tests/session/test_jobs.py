from __future__ import annotations

import threading

import pytest

from explorer.errors import Cancelled, InputError
from explorer.runtime.progress import Progress
from explorer.session import Job, JobState, Runner

WAIT_S = 20


@pytest.fixture
def runner():
    made = Runner(lambda: None)
    yield made
    made.close()


def test_result_and_state(runner: Runner):
    job = runner.start("adding", lambda _job: 1 + 1)
    assert job.result(WAIT_S) == 2
    assert (job.state, job.error, job.label) == (JobState.DONE, None, "adding")


def test_jobs_run_one_after_the_other(runner: Runner):
    gate, order = threading.Event(), []
    first = runner.start("first", lambda _job: (gate.wait(WAIT_S), order.append(1)))
    second = runner.start("second", lambda _job: order.append(2))
    assert runner.current is first
    assert second.state is JobState.WAITING
    gate.set()
    second.result(WAIT_S)
    assert order == [1, 2]
    assert runner.current is None


def test_an_error_is_kept_and_the_next_job_runs(runner: Runner):
    def fail(_job: Job[None]) -> None:
        raise InputError("no such thing")

    failed = runner.start("failing", fail)
    with pytest.raises(InputError, match="no such thing"):
        failed.result(WAIT_S)
    assert failed.state is JobState.FAILED
    assert isinstance(failed.error, InputError)
    assert runner.start("after", lambda _job: 5).result(WAIT_S) == 5


def test_cancel_reaches_a_job_that_runs(runner: Runner):
    started = threading.Event()

    def work(job: Job[None]) -> None:
        started.set()
        while True:
            job.raise_if_cancelled()

    job = runner.start("working", work)
    started.wait(WAIT_S)
    job.cancel()
    with pytest.raises(Cancelled, match="working was stopped"):
        job.result(WAIT_S)
    assert job.state is JobState.CANCELLED


def test_cancel_reaches_a_job_that_waits(runner: Runner):
    gate, ran = threading.Event(), []
    runner.start("first", lambda _job: gate.wait(WAIT_S))
    second = runner.start("second", lambda _job: ran.append(2))
    second.cancel()
    gate.set()
    with pytest.raises(Cancelled):
        second.result(WAIT_S)
    assert ran == []


def test_listeners_hear_of_start_progress_and_end():
    heard: list[tuple[JobState, Progress | None]] = []
    runner = Runner(lambda: heard.append((job.state, job.progress)) if job else None)
    job: Job[None] | None = None
    gate = threading.Event()

    def work(own: Job[None]) -> None:
        gate.wait(WAIT_S)
        own.report(Progress(1, 2, "half"))

    job = runner.start("working", work)
    gate.set()
    job.result(WAIT_S)
    runner.close()
    assert (JobState.RUNNING, Progress(1, 2, "half")) in heard
    assert heard[-1] == (JobState.DONE, Progress(1, 2, "half"))


def test_progress_of_a_part_counts_for_the_whole(runner: Runner):
    job = runner.start("parts", lambda own: own.part(2, 4)(Progress(1, 5, "round 1 of 5")))
    job.result(WAIT_S)
    assert job.progress == Progress(11, 20, "3 of 4, round 1 of 5")


def test_close_stops_what_runs_and_drops_what_waits():
    runner = Runner(lambda: None)
    started = threading.Event()

    def work(job: Job[None]) -> None:
        started.set()
        while True:
            job.raise_if_cancelled()

    jobs = [runner.start("first", work), runner.start("second", work)]
    started.wait(WAIT_S)
    runner.close()
    assert [job.state for job in jobs] == [JobState.CANCELLED, JobState.CANCELLED]
    assert not any(thread.name.startswith("explorer-job") for thread in threading.enumerate())
