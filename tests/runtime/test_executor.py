from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import psutil
import pytest

from explorer.errors import Cancelled, RuntimeFailure, WorkerError
from explorer.runtime import InlineExecutor, WorkerExecutor
from explorer.runtime.executor import run_job
from explorer.runtime.lane import JobOptions
from tests.runtime import planted_jobs as jobs

REPOSITORY = Path(__file__).resolve().parents[2]
LIMIT_S = 60


@pytest.fixture(scope="module")
def shared():
    with WorkerExecutor(timeout_s=LIMIT_S) as executor:
        yield executor
        executor.close()


@pytest.fixture
def worker():
    executor = WorkerExecutor(timeout_s=LIMIT_S)
    yield executor
    executor.close()


def until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


def ended(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_job_runs_in_another_process(shared):
    assert shared.submit(jobs.double, 21).result(LIMIT_S) == 42
    pid = shared.submit(jobs.process_id).result(LIMIT_S)
    assert pid == shared.worker_pid != os.getpid()


def test_jobs_run_in_order_on_one_worker(shared):
    assert list(shared.map(jobs.double, range(5))) == [0, 2, 4, 6, 8]
    futures = [shared.submit(jobs.process_id) for _ in range(3)]
    assert not wait(futures, LIMIT_S).not_done
    assert len({future.result() for future in futures}) == 1


def test_what_libraries_print_does_not_reach_the_channel(shared, capfd):
    assert shared.submit(jobs.print_everywhere).result(LIMIT_S) == "clean"
    assert shared.submit(jobs.read_stdin).result(LIMIT_S) == ""
    assert capfd.readouterr().out == ""


def test_the_worker_imports_what_the_parent_can(shared):
    assert set(sys.path) - {""} <= set(shared.submit(jobs.import_path).result(LIMIT_S))


@pytest.mark.parametrize("job", [jobs.crash, jobs.crash_in_native_code])
def test_a_crash_costs_one_job(worker, job):
    before = worker.submit(jobs.process_id).result(LIMIT_S)
    with pytest.raises(WorkerError, match=f"'{job.__name__}': it crashed with SIGSEGV") as caught:
        worker.submit(job).result(LIMIT_S)
    assert "only this job is lost" in str(caught.value).lower()
    after = worker.submit(jobs.process_id).result(LIMIT_S)
    assert after != before
    assert ended(before)


def test_jobs_queued_behind_a_crash_still_run(worker):
    futures = [worker.submit(jobs.crash), worker.submit(jobs.double, 4)]
    assert isinstance(futures[0].exception(LIMIT_S), WorkerError)
    assert futures[1].result(LIMIT_S) == 8


def test_an_exit_is_reported_with_the_last_line_the_worker_wrote(worker):
    error = worker.submit(jobs.leave).exception(LIMIT_S)
    assert isinstance(error, WorkerError)
    assert "exit code 3: library says goodbye" in str(error)


def test_a_hang_ends_at_its_time_limit(worker):
    options = JobOptions("measuring net", timeout_s=0.3)
    with pytest.raises(WorkerError, match=r"measuring net: .*time limit of 0.3 s"):
        worker.submit_job(options, jobs.hang).result(LIMIT_S)
    assert worker.submit(jobs.double, 1).result(LIMIT_S) == 2


def test_a_job_within_its_time_limit_is_left_alone(worker):
    first = worker.submit_job(JobOptions(timeout_s=30), jobs.process_id).result(LIMIT_S)
    assert worker.submit_job(JobOptions(timeout_s=30), jobs.process_id).result(LIMIT_S) == first


@pytest.mark.skipif(sys.platform != "linux", reason="memory limits need Linux")
def test_an_allocation_bomb_meets_the_memory_limit():
    with WorkerExecutor(memory_limit_bytes=400_000_000, timeout_s=LIMIT_S) as executor:
        before = executor.submit(jobs.process_id).result(LIMIT_S)
        with pytest.raises(WorkerError, match=r"allocate_for_ever: needed more memory .* of 400 MB"):
            executor.submit(jobs.allocate_for_ever).result(LIMIT_S)
        assert executor.submit(jobs.process_id).result(LIMIT_S) != before


def test_a_running_job_can_be_cancelled(worker, tmp_path):
    started = tmp_path / "pid"
    future = worker.submit(jobs.write_then_hang, started)
    until(lambda: started.exists() and started.read_text())
    assert future.running()
    assert future.cancel()
    with pytest.raises(Cancelled, match="write_then_hang"):
        future.result(LIMIT_S)
    assert future.cancelled()
    until(lambda: ended(int(started.read_text())))
    assert worker.submit(jobs.double, 3).result(LIMIT_S) == 6


def test_a_waiting_job_can_be_cancelled_without_harm_to_the_running_one(worker):
    lock = threading.Event()
    first = worker.submit_job(JobOptions(on_progress=lambda _: lock.wait(LIMIT_S)), jobs.count_to, 1)
    second = worker.submit(jobs.double, 1)
    third = worker.submit(jobs.double, 2)
    assert second.cancel()
    with pytest.raises(Cancelled):
        second.result(LIMIT_S)
    lock.set()
    assert first.result(LIMIT_S) == 1
    assert third.result(LIMIT_S) == 4
    assert not third.cancel()
    assert not third.cancelled()


def test_expected_errors_arrive_as_themselves(worker):
    before = worker.submit(jobs.process_id).result(LIMIT_S)
    with pytest.raises(RuntimeFailure, match=r"'net.onnx' cannot be loaded"):
        worker.submit(jobs.refuse).result(LIMIT_S)
    assert worker.submit(jobs.process_id).result(LIMIT_S) == before


def test_other_exceptions_become_worker_errors_with_the_traceback_as_a_note(worker):
    error = worker.submit(jobs.stumble).exception(LIMIT_S)
    assert isinstance(error, WorkerError)
    assert str(error) == ("stumble: failed in the worker with KeyError: 'weight'; only this job is lost.")
    assert "planted_jobs.py" in error.__notes__[0]


def test_a_result_that_cannot_be_sent_is_an_error(worker):
    error = worker.submit(jobs.give_a_lambda).exception(LIMIT_S)
    assert isinstance(error, WorkerError)
    assert "lambda" in str(error)


def test_an_argument_that_cannot_be_sent_is_an_error(worker):
    error = worker.submit(jobs.double, threading.Lock()).exception(LIMIT_S)
    assert isinstance(error, WorkerError)
    assert "'double' cannot be sent" in str(error)


def test_progress_arrives_in_order(worker):
    seen = []
    future = worker.submit_job(JobOptions(on_progress=seen.append), jobs.count_to, 4)
    assert future.result(LIMIT_S) == 4
    assert seen == [0, 1, 2, 3]
    assert worker.submit(jobs.count_to, 2).result(LIMIT_S) == 2


def test_a_failing_listener_does_not_cost_the_job(worker, caplog):
    def broken(_step):
        raise ValueError("listener")

    options = JobOptions("counting", on_progress=broken)
    assert worker.submit_job(options, jobs.count_to, 2).result(LIMIT_S) == 2
    assert "the progress listener of 'counting' failed" in caplog.text


def test_the_worker_is_replaced_after_some_jobs():
    with WorkerExecutor(max_jobs_per_worker=2, timeout_s=LIMIT_S) as executor:
        pids = [executor.submit(jobs.process_id).result(LIMIT_S) for _ in range(5)]
    assert pids[0] == pids[1] != pids[2]
    assert pids[2] == pids[3] != pids[4]
    assert all(ended(pid) for pid in pids)


def test_close_ends_the_worker_and_what_runs(worker, tmp_path):
    started = tmp_path / "pid"
    running = worker.submit(jobs.write_then_hang, started)
    waiting = worker.submit(jobs.double, 1)
    until(lambda: started.exists() and started.read_text())
    worker.close()
    worker.close()
    assert isinstance(running.exception(LIMIT_S), Cancelled)
    assert isinstance(waiting.exception(LIMIT_S), Cancelled)
    assert ended(int(started.read_text()))
    with pytest.raises(WorkerError, match="closed"):
        worker.submit(jobs.double, 1)


def test_shutdown_finishes_what_was_queued():
    executor = WorkerExecutor(timeout_s=LIMIT_S)
    futures = [executor.submit(jobs.double, n) for n in range(3)]
    executor.shutdown()
    assert [future.result(0) for future in futures] == [0, 2, 4]
    assert executor.worker_pid is None


def test_closing_without_a_job_starts_nothing():
    executor = WorkerExecutor()
    executor.close()
    assert executor.worker_pid is None
    assert "explorer-worker" not in {t.name for t in threading.enumerate() if not t.is_alive()}


def test_an_executor_nobody_uses_ends_its_worker():
    executor = WorkerExecutor(timeout_s=LIMIT_S)
    pid = executor.submit(jobs.process_id).result(LIMIT_S)
    del executor
    gc.collect()
    until(lambda: ended(pid))


def test_a_dropped_executor_still_delivers_what_it_was_given():
    assert WorkerExecutor().submit(jobs.double, 4).result(LIMIT_S) == 8


def run_script(folder, body):
    """Run a user's script, without ``if __name__ == "__main__"``, from a folder of its own."""
    script = folder / "user_script.py"
    script.write_text(textwrap.dedent(body), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(
        [sys.executable, script.name],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def test_an_unguarded_script_works_and_leaves_no_worker(tmp_path):
    done = run_script(
        tmp_path,
        """
        print("script runs")
        from explorer.errors import WorkerError
        from explorer.runtime import WorkerExecutor
        from tests.runtime.planted_jobs import process_id

        def mine():
            return 1

        executor = WorkerExecutor()
        print(executor.submit(process_id).result())
        print(executor.submit(mine).exception())
        """,
    )
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert lines[0] == "script runs"
    assert lines.count("script runs") == 1
    assert "'mine' is defined in the running script or notebook" in lines[2]
    until(lambda: ended(int(lines[1])))


def test_files_in_the_working_folder_do_not_get_in_the_way(tmp_path):
    (tmp_path / "explorer").mkdir()
    (tmp_path / "pickle.py").write_text("raise RuntimeError('shadowed')", encoding="utf-8")
    with WorkerExecutor(timeout_s=LIMIT_S) as executor:
        here = Path.cwd()
        os.chdir(tmp_path)
        try:
            assert executor.submit(jobs.double, 2).result(LIMIT_S) == 4
        finally:
            os.chdir(here)


def test_the_worker_dies_with_a_parent_that_is_killed(tmp_path):
    started = tmp_path / "pid"
    body = f"""
        from pathlib import Path
        from explorer.runtime import WorkerExecutor
        from tests.runtime.planted_jobs import write_then_hang
        WorkerExecutor().submit(write_then_hang, Path({str(started)!r})).result()
        """
    script = tmp_path / "user_script.py"
    script.write_text(textwrap.dedent(body), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    parent = subprocess.Popen([sys.executable, str(script)], env=environment)
    try:
        until(lambda: started.exists() and started.read_text(), LIMIT_S)
    finally:
        parent.kill()
        parent.wait()
    until(lambda: ended(int(started.read_text())))


def test_the_inline_twin_gives_the_same_results_and_errors():
    executor, seen = InlineExecutor(), []
    assert executor.submit(jobs.process_id).result() == os.getpid()
    options = JobOptions(on_progress=seen.append)
    assert executor.submit_job(options, jobs.count_to, 3).result() == 3
    assert seen == [0, 1, 2]
    assert isinstance(executor.submit(jobs.refuse).exception(), RuntimeFailure)


def test_run_job_stops_when_the_token_is_set(worker):
    token = threading.Event()
    threading.Timer(0.3, token.set).start()
    with pytest.raises(Cancelled, match="measuring net"):
        run_job(worker, JobOptions("measuring net"), token, jobs.hang)
    assert run_job(worker, JobOptions("doubling"), token.__class__(), jobs.double, 2) == 4


def test_run_job_takes_any_executor():
    options = JobOptions("sleeping", timeout_s=0.1)
    with ThreadPoolExecutor(1) as pool:
        assert run_job(pool, JobOptions(), None, jobs.double, 5) == 10
        assert run_job(pool, JobOptions(timeout_s=LIMIT_S), None, jobs.double, 5) == 10
        with pytest.raises(RuntimeFailure):
            run_job(pool, JobOptions(), threading.Event(), jobs.refuse)
        with pytest.raises(WorkerError, match="sleeping took longer"):
            run_job(pool, options, None, time.sleep, 1)
