from __future__ import annotations

import json

import numpy as np
import onnx
import pytest

from explorer.bench.calibrate import Plan, calibrate, read_trials, share, summarise
from explorer.errors import InputError
from explorer.graph import load
from explorer.runtime import InlineExecutor, Measurer, Mode, Protocol, Target
from explorer.runtime.cache import NoCache
from explorer.runtime.dummy import PlantedMeasurer
from explorer.runtime.planting import PLANTED, plant, plant_share, planted_feeds
from tests.models import model, run

TARGET = Target.parse("ort")
NET = "(float[4,4] x) => (float[4,4] y) { a = Exp(x)\n y = Neg(a) }"
MS = 1_000_000.0
EMPTY_NS = 5_000.0


@pytest.fixture
def path(tmp_path):
    onnx.save(model(NET), tmp_path / "net.onnx")
    return str(tmp_path / "net.onnx")


def planted_time(graph, _target):
    """10 ms for the model's own nodes, 2 ns for each element of a planted operator."""
    elements = sum(int(v.shape.numpy()[0]) for v in graph.inputs if v.name == PLANTED)
    own = 10 * MS if any(n.op_type == "Exp" for n in graph.nodes) else 0.0
    return EMPTY_NS + own + 2.0 * elements


def test_a_planted_operator_changes_no_result_and_is_not_folded():
    net = load(model(NET))
    feeds = {"x": np.ones((4, 4), "f4")}
    y, extra = run(plant(net, 8), {**feeds, **planted_feeds(8)}, optimised=True)
    np.testing.assert_array_equal(y, run(net, feeds)[0])
    np.testing.assert_allclose(extra, np.sin(np.linspace(-3, 3, 8)), rtol=1e-5)
    assert len(net.nodes) == 2


@pytest.mark.parametrize("share", [0.02, 0.1])
def test_the_planted_share_is_what_was_asked_for(share):
    net = load(model(NET))
    with PlantedMeasurer(planted_time) as measurer:
        _, feeds, expected = plant_share(net, share, {}, measurer, TARGET)
    assert expected == pytest.approx(1 + share, rel=0.001)
    assert len(feeds[PLANTED]) == pytest.approx(share * 10 * MS / 2, rel=0.01)


def test_planted_differences_are_found_and_equal_models_are_not(path):
    plan = Plan(TARGET, models=(path,), pairs=12, planted=3, effects=(0.02, 0.1))
    with PlantedMeasurer(planted_time, noise=0.005) as measurer:
        summary = summarise(calibrate(plan, measurer), plan)
    assert (summary["pairs"], summary["claims"]) == (12, 0)
    assert summary["false_claims"]["high"] < 0.3
    assert [p["found"]["share"] for p in summary["power"]] == [1.0, 1.0]
    assert summary["power"][1]["median_error"] == pytest.approx(0, abs=0.01)
    json.dumps(summary)


def test_a_noisy_machine_is_seen(path):
    class Biased(PlantedMeasurer):
        calls = 0

        def _rounds(self, run_ns, request):
            type(self).calls += 1
            return super()._rounds({**run_ns, "b": run_ns["b"] * 1.1} if "b" in run_ns else run_ns, request)

    plan = Plan(TARGET, models=(path,), pairs=5, planted=0, effects=())
    with Biased(planted_time) as measurer:
        summary = summarise(calibrate(plan, measurer), plan)
    assert summary["claims"] == 5
    assert summary["largest_claim_ratio"] == pytest.approx(0.1, abs=0.01)


def test_an_interrupted_run_goes_on_where_it_was(path, tmp_path):
    record = tmp_path / "trials.jsonl"
    plan = Plan(TARGET, models=(path,), pairs=2, planted=1, effects=(0.1,))
    seen = []
    with PlantedMeasurer(planted_time) as measurer:
        first = calibrate(plan, measurer, record)
        measurer.measure = lambda *a, **k: seen.append(a)
        assert calibrate(plan, measurer, record) == first
    assert seen == []
    assert read_trials(record) == first
    record.write_text("nonsense\n")
    with pytest.raises(InputError, match="Line 1"):
        read_trials(record)


def test_trials_of_another_protocol_do_not_count(path, tmp_path):
    record = tmp_path / "trials.jsonl"
    with PlantedMeasurer(planted_time) as measurer:
        calibrate(Plan(TARGET, (path,), 1, 0, ()), measurer, record)
        calibrate(Plan(TARGET, (path,), 1, 0, (), Protocol.screening()), measurer, record)
    assert len(read_trials(record)) == 2


def test_shares_have_wilson_intervals():
    assert share(0, 200) == {"share": 0.0, "low": 0.0, "high": pytest.approx(0.01885, abs=1e-4)}
    assert share(10, 200)["high"] == pytest.approx(0.0896, abs=1e-3)
    assert share(0, 0) is None


def test_it_runs_on_a_real_runtime(path):
    quick = Protocol(
        mode=Mode.SCREENING, rounds=2, samples=2, min_samples=2, sample_ns=50_000, warmup_ns=100_000, trim=0
    )
    plan = Plan(TARGET, (path,), 1, 1, (0.1,), quick)
    with Measurer(executor=InlineExecutor(), cache=NoCache()) as measurer:
        trials = calibrate(plan, measurer)
    assert [t.effect for t in trials] == [0.0, 0.1]
    assert trials[0].expected == 1
    assert trials[1].expected >= 1  # so few elements may cost no more than an empty run
