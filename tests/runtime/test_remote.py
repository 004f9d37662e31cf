"""A cluster of two workers on this machine, one of them tagged as a device."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

from explorer.errors import Cancelled, RuntimeFailure, TargetError, WorkerError
from explorer.graph import load
from explorer.runtime import Measurer, Protocol, Verdict
from explorer.runtime.cache import NoCache
from explorer.runtime.lane import JobOptions
from explorer.runtime.protocol import Mode
from explorer.runtime.remote import DeviceExecutor, connect
from tests.models import model
from tests.runtime import planted_jobs
from tests.runtime.models import CHAIN, CHAIN_WITH_DETOUR, CHAIN_WITH_IDENTITY, graph

pytest.importorskip("distributed")
pytestmark = pytest.mark.slow

QUICK = Protocol(
    mode=Mode.SCREENING, rounds=2, samples=2, min_samples=2, sample_ns=50_000, warmup_ns=100_000, trim=0
)
FEEDS = {"x": np.linspace(-1, 1, 2048, dtype=np.float32).reshape(1, 8, 16, 16)}


@contextmanager
def cluster():
    """A client of two workers, one of them tagged."""
    import dask
    from distributed import Client, Nanny, Scheduler, SpecCluster

    def worker(**options):
        return {"cls": Nanny, "options": {"nthreads": 1, "dashboard_address": None, **options}}

    with dask.config.set({"distributed.worker.daemon": False}):
        workers = SpecCluster(
            scheduler={"cls": Scheduler, "options": {"dashboard": False, "dashboard_address": ":0"}},
            workers={"plain": worker(), "tagged": worker(resources={"device-a": 1})},
            silence_logs=50,
        )
        with workers, Client(workers) as client:
            client.wait_for_workers(2)
            yield client


@pytest.fixture(scope="module")
def client():
    with cluster() as one:
        yield one


@pytest.fixture(scope="module")
def executor(client):
    return DeviceExecutor(client, "device-a")


@pytest.fixture
def doomed_client():
    """A cluster whose workers a test may kill: under load their replacements take their time."""
    with cluster() as one:
        yield one


@pytest.fixture
def measurer(executor):
    with Measurer(executor=executor, cache=NoCache()) as one:
        yield one


def test_jobs_run_on_the_tagged_worker_in_a_process_of_their_own(executor, client):
    workers = client.scheduler_info()["workers"].values()
    assert len(workers) == 2
    assert executor.submit(planted_jobs.device).result(60) == "device-a"
    process = executor.submit(planted_jobs.process_id).result(60)
    assert process not in client.run(planted_jobs.process_id).values()


def test_measurements_are_made_there_and_carry_the_device(measurer):
    result = measurer.measure(graph(CHAIN), graph(CHAIN_WITH_DETOUR), FEEDS, "ort:level=disable", QUICK)
    assert result.environment.device == "device-a"
    assert len(result.rounds) == 2
    assert measurer.environment("ort").device == "device-a"


def test_models_with_large_weights_travel_with_their_side_files(measurer):
    weight = np.random.default_rng(0).standard_normal((64, 64)).astype("f4")
    net = load(model("(float[1,64] x) => (float[1,64] y) { y = MatMul(x, w) }", w=weight))
    x = np.ones((1, 64), "f4")
    (found,) = measurer.run(net, [{"x": x}])
    np.testing.assert_allclose(found["y"], x @ weight, rtol=1e-5)


def test_files_that_a_job_writes_come_home(measurer, tmp_path):
    out = tmp_path / "optimised.onnx"
    assert measurer.is_absorbed(graph(CHAIN), graph(CHAIN_WITH_IDENTITY), "ort:level=basic")
    view = measurer.runtime_view(graph(CHAIN_WITH_IDENTITY), "ort:level=basic")
    assert "Identity" not in view.summary.ops()
    path = measurer.optimized_model(graph(CHAIN), "ort:level=basic", measurer.folder / out.name)
    assert path.exists()


def test_profiles_are_made_there(measurer):
    profile = measurer.profile(graph(CHAIN), FEEDS, "ort:level=disable", rounds=1, budget_s=0.01)
    assert set(profile.by_node()) == {"n0", "n1", "n2"}
    assert profile.environment.device == "device-a"


def test_failures_arrive_as_what_they_are(executor):
    with pytest.raises(RuntimeFailure, match=r"'net\.onnx' cannot be loaded"):
        executor.submit(planted_jobs.refuse).result(60)
    with pytest.raises(WorkerError, match="KeyError"):
        executor.submit(planted_jobs.stumble).result(60)


def test_a_crash_and_a_hang_cost_their_job_only(executor):
    with pytest.raises(WorkerError, match="SIGSEGV"):
        executor.submit(planted_jobs.crash).result(60)
    with pytest.raises(WorkerError, match="time limit of 1 s"):
        executor.submit_job(JobOptions("hanging", 1.0), planted_jobs.hang).result(60)
    assert executor.submit(planted_jobs.double, 21).result(60) == 42


def test_a_job_whose_worker_is_killed_is_given_to_the_next_one(doomed_client, tmp_path):
    executor = DeviceExecutor(doomed_client, "device-a")
    future = executor.submit(planted_jobs.kill_the_parent_once, str(tmp_path / "killed"))
    assert future.result(240) == "second attempt"


def test_a_job_that_kills_every_worker_is_reported_and_nothing_else_is_lost(doomed_client):
    executor = DeviceExecutor(doomed_client, "device-a")
    before = executor.submit(planted_jobs.double, 3)
    deadly = executor.submit_job(JobOptions("deadly job"), planted_jobs.kill_the_parent)
    behind = [executor.submit(planted_jobs.double, n) for n in (5, 6)]
    other = doomed_client.submit(planted_jobs.double, 4)
    with pytest.raises(WorkerError, match="deadly job: the workers of 'device-a' were lost 2 times"):
        deadly.result(240)
    assert before.result(60) == 6
    assert [one.result(60) for one in behind] == [10, 12]
    assert other.result(60) == 8


def test_jobs_that_wait_when_the_client_is_closed_are_reported(doomed_client):
    executor = DeviceExecutor(doomed_client, "device-a")
    running = executor.submit_job(JobOptions("slow", 60.0), planted_jobs.hang)
    waiting = executor.submit(planted_jobs.double, 1)
    doomed_client.close()
    for job in (running, waiting):
        with pytest.raises((WorkerError, Cancelled)):
            job.result(30)


def test_what_waits_can_be_cancelled(executor):
    running = executor.submit_job(JobOptions("slow", 3.0), planted_jobs.hang)
    waiting = executor.submit(planted_jobs.double, 1)
    assert waiting.cancel()
    with pytest.raises(Cancelled):
        waiting.result(10)
    with pytest.raises(WorkerError, match="time limit"):
        running.result(60)
    assert not waiting.cancel()


def test_an_unknown_device_is_refused_with_those_there_are(client):
    with pytest.raises(WorkerError, match=r"No worker is tagged 'device-b' \(workers are tagged device-a\)"):
        DeviceExecutor(client, "device-b")


def test_no_scheduler_is_one_sentence():
    with pytest.raises(WorkerError, match="There is no scheduler at"):
        connect("tcp://127.0.0.1:1", timeout_s=0.5)


def test_a_missing_library_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(TargetError, match=r"explorer\[distributed\]"):
        connect("tcp://127.0.0.1:1")


def test_equal_graphs_need_no_journey(measurer):
    result = measurer.measure(graph(CHAIN), graph(CHAIN), FEEDS, "ort", QUICK)
    assert result.delta.verdict is Verdict.IDENTICAL
