"""A candidate that crashes, hangs or exhausts memory costs itself, not the session."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from explorer.errors import RuntimeFailure
from explorer.graph import load
from explorer.runtime import Measurer, Mode, Protocol, WorkerExecutor, jobs, measurer
from explorer.runtime.cache import NoCache
from explorer.runtime.memory import can_limit_memory
from explorer.session import Session
from tests.models import model
from tests.runtime import planted_jobs

pytestmark = pytest.mark.slow

QUICK = Protocol(
    mode=Mode.SCREENING, rounds=2, samples=2, min_samples=2, sample_ns=50_000, warmup_ns=100_000, trim=0
)
W = np.random.default_rng(3).standard_normal((4, 3, 3, 3)).astype("f4")
V = np.linspace(0.5, 2, 4, dtype="f4")
NET = """(float[1,3,8,8] x) => (float[1,4,8,8] y) {
    i = Identity(x)
    c = Conv<pads=[1,1,1,1]>(i, w)
    b = BatchNormalization(c, v, v, v, v)
    r = Relu(b)
    d = Identity(r)
    y = Relu(d)
}"""
BAD = [planted_jobs.crash_on, planted_jobs.hang_on]
if can_limit_memory():
    BAD.append(planted_jobs.allocate_on)


@pytest.fixture
def misbehaving(monkeypatch):
    """The first measurements misbehave in the worker, the later ones do not."""
    waiting, really_run = list(BAD), measurer.run_job

    def run_job(executor, options, cancel, fn, /, *args):
        if fn is jobs.measure_pair and waiting:
            fn, options = waiting.pop(0), replace(options, timeout_s=3.0)
        return really_run(executor, options, cancel, fn, *args)

    monkeypatch.setattr(measurer, "run_job", run_job)
    return waiting


def test_each_costs_one_candidate_and_the_rest_is_measured(misbehaving):
    executor = WorkerExecutor(memory_limit_bytes=1_500_000_000 if can_limit_memory() else 0)
    with (
        Measurer(executor=executor, cache=NoCache()) as one,
        Session(load(model(NET, w=W, v=V)), target="ort:level=disable", measurer=one) as session,
    ):
        places = [candidate.place for candidate in session.candidates()]
        job = session.start("measuring", lambda job: session.measure_all(mode=QUICK, job=job))
        with pytest.raises(RuntimeFailure, match=rf"{len(BAD)} of {len(places)} could not be measured"):
            job.result(120)
        measured = [place for place in places if session.measured(place) is not None]
        assert len(measured) == len(places) - len(BAD)
        assert misbehaving == []
        assert session.measure(places[0], QUICK).rounds
    executor.close()
