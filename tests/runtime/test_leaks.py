"""Many measurements in one process: every session is closed and the memory stays flat."""

from __future__ import annotations

import gc

import numpy as np
import psutil
import pytest

from explorer.runtime import Protocol, Target
from explorer.runtime.backend import backend_for
from explorer.runtime.jobs import measure_pair, run_model
from explorer.runtime.protocol import Mode
from tests.runtime.models import CHAIN, CHAIN_WITH_DETOUR, write

pytestmark = pytest.mark.slow

MEASUREMENTS = 500
SHORT = Protocol(mode=Mode.SCREENING, rounds=1, samples=1, min_samples=1, sample_ns=1, warmup_ns=1, trim=0)
FEEDS = {"x": np.linspace(-1, 1, 2048, dtype=np.float32).reshape(1, 8, 16, 16)}
ALLOWED_GROWTH_BYTES = 40_000_000


class Counter:
    """Counts the sessions of a backend."""

    def __init__(self, monkeypatch, backend):
        self.opened = self.closed = 0
        really_open = backend.open

        def open_counted(path, target):
            session = really_open(path, target)
            self.opened += 1
            close = session.close

            def close_counted():
                self.closed += 1
                close()

            session.close = close_counted
            return session

        monkeypatch.setattr(backend, "open", open_counted, raising=False)


def resident_bytes():
    gc.collect()
    return psutil.Process().memory_info().rss


def test_five_hundred_measurements_open_and_close_alike_and_leave_no_memory(tmp_path, monkeypatch):
    target = Target.parse("ort")
    counter = Counter(monkeypatch, backend_for("ort"))
    paths = write(CHAIN, tmp_path / "a.onnx"), write(CHAIN_WITH_DETOUR, tmp_path / "b.onnx")
    early = 0
    gc.collect()
    gc.freeze()  # what other tests have left is not to be searched 500 times
    for number in range(MEASUREMENTS):
        measure_pair(*paths, FEEDS, target, SHORT)
        if number == MEASUREMENTS // 5:
            early = resident_bytes()
    late = resident_bytes()
    gc.unfreeze()
    assert counter.opened == counter.closed == MEASUREMENTS * 3
    assert late - early < ALLOWED_GROWTH_BYTES


def test_sessions_are_closed_even_if_a_run_fails(tmp_path, monkeypatch):
    counter = Counter(monkeypatch, backend_for("ort"))
    path = write(CHAIN, tmp_path / "a.onnx")
    for bad in ({}, {"x": FEEDS["x"][:, :2]}):
        with pytest.raises(Exception, match=r"a\.onnx"):
            run_model(path, [bad], Target.parse("ort"))
        with pytest.raises(Exception, match=r"a\.onnx"):
            measure_pair(path, path, bad, Target.parse("ort"), SHORT)
    assert counter.opened == counter.closed > 0
