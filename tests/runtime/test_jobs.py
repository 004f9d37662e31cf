from __future__ import annotations

import gc

import numpy as np
import onnxruntime
import pytest

from explorer.errors import RuntimeFailure
from explorer.runtime import Protocol, Target
from explorer.runtime.jobs import (
    environment,
    measure_one,
    measure_pair,
    optimized_fingerprint,
    optimized_model,
    run_model,
)
from explorer.runtime.protocol import Mode
from tests.runtime.models import (
    CHAIN,
    CHAIN_RENAMED,
    CHAIN_WITH_DETOUR,
    CHAIN_WITH_IDENTITY,
    TWO_INPUTS,
    write,
)

TARGET = Target.parse("ort")
DISABLE = Target.parse("ort:level=disable")
QUICK = Protocol(mode=Mode.SCREENING, rounds=3, samples=3, sample_ns=100_000, warmup_ns=500_000, trim=0)
FEEDS = {"x": np.linspace(-1, 1, 2048, dtype=np.float32).reshape(1, 8, 16, 16)}


def sessions():
    gc.collect()
    return sum(isinstance(o, onnxruntime.InferenceSession) for o in gc.get_objects())


def test_a_pair_is_measured_with_everything_behind_it(tmp_path):
    a, b = write(CHAIN, tmp_path / "a.onnx"), write(CHAIN_WITH_DETOUR, tmp_path / "b.onnx")
    seen = []
    result = measure_pair(a, b, FEEDS, TARGET, QUICK, progress=seen.append)
    assert (result.a, result.b, result.target) == ("a", "b", "ort:level=all,threads=1")
    assert len(result.rounds) == 3
    assert result.samples == (3, 3)
    assert result.control is not None
    assert result.environment.versions["onnxruntime"] == onnxruntime.__version__
    assert result.environment.settings["intra_op_num_threads"] == "1"
    assert len(seen) == 4
    assert sessions() == 0


def test_one_model_is_measured(tmp_path):
    result = measure_one(write(CHAIN, tmp_path / "a.onnx"), FEEDS, DISABLE, QUICK)
    assert result.low_ns <= result.ns <= result.high_ns
    assert result.target == str(DISABLE)
    assert sessions() == 0


def test_outputs_by_name_for_every_set_of_inputs(tmp_path):
    path = write(TWO_INPUTS, tmp_path / "sum.onnx")
    ones = np.ones((2, 3), np.float32)
    first, second = run_model(
        path, [{"left": ones, "right": ones}, {"left": ones, "right": 3 * ones}], DISABLE
    )
    assert (first["total"][0, 0], first["product"][0, 0]) == (2, 1)
    assert (second["total"][0, 0], second["product"][0, 0]) == (4, 3)
    assert sessions() == 0


def test_a_failing_run_closes_its_session(tmp_path):
    path = write(TWO_INPUTS, tmp_path / "sum.onnx")
    with pytest.raises(RuntimeFailure):
        run_model(path, [{"left": np.ones((9, 9), np.float32)}], DISABLE)
    assert sessions() == 0


def test_absorbed_rewrites_have_one_fingerprint_where_the_runtime_does_them(tmp_path):
    a = write(CHAIN, tmp_path / "a.onnx")
    b = write(CHAIN_WITH_IDENTITY, tmp_path / "b.onnx")
    c = write(CHAIN_WITH_DETOUR, tmp_path / "c.onnx")
    renamed = write(CHAIN_RENAMED, tmp_path / "d.onnx")
    for level, absorbed in {"disable": False, "basic": True, "extended": True, "all": True}.items():
        target = Target.parse(f"ort:level={level}")
        fingerprint = optimized_fingerprint(a, target)
        assert (optimized_fingerprint(b, target) == fingerprint) is absorbed
        assert optimized_fingerprint(c, target) != fingerprint
        assert optimized_fingerprint(renamed, target) == fingerprint
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"{n}.onnx" for n in "abcd"]


def test_an_exponent_is_part_of_what_is_executed_but_last_bits_are_not(tmp_path):
    text = "n (float[1,64] x) => (float[1,64] y) <float e = {%s}> { y = Pow(x, e) }"
    paths = {e: write(text % e, tmp_path / f"{e}.onnx") for e in ("2.0", "3.5", "3.50000024")}
    fingerprints = {e: optimized_fingerprint(path, TARGET) for e, path in paths.items()}
    assert fingerprints["2.0"] != fingerprints["3.5"] == fingerprints["3.50000024"]


def test_the_optimised_graph_cannot_be_written_for_a_model_that_does_not_load(tmp_path):
    with pytest.raises(RuntimeFailure, match=r"none.onnx"):
        optimized_model(tmp_path / "none.onnx", TARGET, tmp_path / "out.onnx")


def test_the_environment_says_which_clock_was_used():
    assert environment(Target.parse("ort:threads=2")).timer == "perf_counter_ns"
    assert environment(TARGET).timer in {"thread_time_ns", "perf_counter_ns"}
