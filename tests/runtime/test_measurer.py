from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from explorer.errors import Cancelled, InputError, RuntimeFailure, TargetError, WorkerError
from explorer.graph import load, make_feeds
from explorer.runtime import (
    InlineExecutor,
    Measurer,
    Protocol,
    Target,
    Verdict,
    WorkerExecutor,
)
from explorer.runtime.backend import backend_for
from explorer.runtime.cache import NoCache, ResultCache
from explorer.runtime.dummy import PlantedMeasurer
from explorer.runtime.progress import ignore_progress
from explorer.runtime.protocol import Mode
from explorer.runtime.request import Request, feeds_digest
from explorer.runtime.store import ModelStore
from tests.runtime.models import (
    BOMB,
    CHAIN,
    CHAIN_RENAMED,
    CHAIN_WITH_DETOUR,
    CHAIN_WITH_IDENTITY,
    graph,
)

CASES = Path(__file__).resolve().parents[1] / "cases"
QUICK = Protocol(mode=Mode.SCREENING, rounds=3, samples=3, sample_ns=100_000, warmup_ns=500_000, trim=0)
FEEDS = {"x": np.linspace(-1, 1, 2048, dtype=np.float32).reshape(1, 8, 16, 16)}
DISABLE, ALL = "ort:level=disable", "ort:level=all"


class Counting(InlineExecutor):
    """Runs jobs at once and notes their names."""

    def __init__(self):
        self.names = []

    def submit_job(self, options, fn, /, *args, **kwargs):
        self.names.append(fn.__name__)
        return super().submit_job(options, fn, *args, **kwargs)


@pytest.fixture
def executor():
    return Counting()


@pytest.fixture
def measurer(executor, tmp_path):
    with Measurer(executor=executor, cache=ResultCache(tmp_path / "cache")) as one:
        yield one


def test_a_difference_is_measured_and_named_by_fingerprints(measurer):
    a, b = graph(CHAIN), graph(CHAIN_WITH_DETOUR)
    result = measurer.measure(a, b, FEEDS, DISABLE, QUICK)
    assert (result.a, result.b) == (a.fingerprint(), b.fingerprint())
    assert result.target == "ort:level=disable,threads=1"
    assert result.delta.verdict is not Verdict.IDENTICAL
    assert len(result.rounds) == 3


def test_what_the_runtime_absorbs_is_identical_and_not_timed(measurer, executor):
    a, b = graph(CHAIN), graph(CHAIN_WITH_IDENTITY)
    result = measurer.measure(a, b, FEEDS, ALL, QUICK)
    assert result.delta.verdict is Verdict.IDENTICAL
    assert (result.delta.low, result.delta.ratio, result.delta.high) == (1, 1, 1)
    assert "measure_pair" not in executor.names
    assert measurer.measure(a, b, FEEDS, DISABLE, QUICK).delta.verdict is not Verdict.IDENTICAL
    assert executor.names.count("measure_pair") == 1


def test_equal_graphs_are_identical_on_every_target(measurer, executor):
    result = measurer.measure(graph(CHAIN), graph(CHAIN_RENAMED), FEEDS, DISABLE, QUICK)
    assert result.delta.verdict is Verdict.IDENTICAL
    assert set(executor.names) == {"environment"}


def test_equal_graphs_can_be_timed_on_demand(measurer):
    a = graph(CHAIN)
    result = measurer.measure(a, a, FEEDS, ALL, QUICK, absorb=False)
    assert result.delta.verdict is not Verdict.IDENTICAL
    assert result.a == result.b


def test_a_second_request_comes_from_the_cache(measurer, executor, tmp_path):
    a, b = graph(CHAIN), graph(CHAIN_WITH_DETOUR)
    first = measurer.measure(a, b, FEEDS, DISABLE, QUICK)
    executor.names.clear()
    assert measurer.measure(a, b, FEEDS, DISABLE, QUICK) == first
    with Measurer(executor=executor, cache=ResultCache(tmp_path / "cache")) as other:
        again = other.measure(graph(CHAIN_RENAMED), b, FEEDS, DISABLE, QUICK)
    assert again == first
    assert again.measured_at == first.measured_at
    assert executor.names == ["environment"]


@pytest.mark.parametrize(
    "change",
    [
        {"target": ALL},
        {"target": "ort:level=disable,threads=2"},
        {"mode": replace(QUICK, samples=4)},
        {"feeds": {"x": 2 * FEEDS["x"]}},
        {"fresh": True},
    ],
)
def test_what_matters_for_a_timing_is_part_of_the_key(measurer, executor, change):
    a, b = graph(CHAIN), graph(CHAIN_WITH_DETOUR)
    request = {"feeds": FEEDS, "target": DISABLE, "mode": QUICK}
    measurer.measure(a, b, **request)
    executor.names.clear()
    measurer.measure(a, b, **{**request, **change})
    assert executor.names.count("measure_pair") == 1


def test_one_graph_is_timed_on_two_targets(measurer, executor):
    a = graph(CHAIN_WITH_IDENTITY)
    basic = "ort:level=basic,threads=1"
    result = measurer.measure(a, a, FEEDS, DISABLE, QUICK, b_target=basic)
    assert (result.target, result.b_target) == ("ort:level=disable,threads=1", basic)
    assert result.delta.target == f"{basic} against ort:level=disable,threads=1"
    assert result.control.target == "ort:level=disable,threads=1"
    assert result.a == result.b
    assert result.delta.verdict is not Verdict.IDENTICAL
    assert measurer.measure(a, a, FEEDS, DISABLE, QUICK, b_target=basic) == result
    assert executor.names.count("measure_pair") == 1
    assert measurer.measure(a, a, FEEDS, DISABLE, QUICK).b_target == ""


def test_each_side_runs_on_its_own_target(monkeypatch, measurer):
    opened = []
    real = backend_for("ort").open

    def noting(path, target):
        opened.append((path.name.split(".")[0], target.level))
        return real(path, target)

    monkeypatch.setattr(type(backend_for("ort")), "open", lambda _self, path, target: noting(path, target))
    a, b = graph(CHAIN), graph(CHAIN_WITH_DETOUR)
    measurer.measure(a, b, FEEDS, DISABLE, QUICK, b_target="ort:level=extended")
    assert sorted(opened) == sorted([(a.name, "disable")] * 6 + [(b.name, "extended")] * 3)


def test_targets_that_execute_the_same_graph_are_identical(measurer, executor):
    result = measurer.measure(graph(CHAIN), graph(CHAIN), FEEDS, "ort:level=extended", QUICK, b_target=ALL)
    assert result.delta.verdict is Verdict.IDENTICAL
    assert result.b_target == "ort:level=all,threads=1"
    assert "measure_pair" not in executor.names


@pytest.mark.parametrize("other", ["ort:threads=2", "openvino"])
def test_targets_that_cannot_take_turns_are_refused(measurer, executor, other):
    with pytest.raises(InputError, match="need the same runtime and as many threads"):
        measurer.measure(graph(CHAIN), graph(CHAIN), FEEDS, ALL, QUICK, b_target=other)
    assert executor.names == []


def test_acting_optimisers_are_asked_once(measurer, executor):
    net = graph(CHAIN_WITH_IDENTITY)
    assert measurer.acting_optimizers(net, ALL) == ("Level1_RuleBasedTransformer",)
    assert measurer.acting_optimizers(graph(CHAIN_WITH_IDENTITY), ALL) == ("Level1_RuleBasedTransformer",)
    assert measurer.acting_optimizers(net, DISABLE) == ()
    assert executor.names.count("acting_optimizers") == 2


def test_a_worker_of_its_own_names_acting_optimisers(tmp_path):
    with Measurer(cache=ResultCache(tmp_path)) as measurer:
        assert measurer.acting_optimizers(graph(CHAIN_WITH_IDENTITY), ALL) == ("Level1_RuleBasedTransformer",)


def test_the_optimised_graph_of_the_base_is_made_once(measurer, executor):
    base = graph(CHAIN)
    for other in (CHAIN_WITH_IDENTITY, CHAIN_WITH_DETOUR):
        measurer.is_absorbed(base, graph(other), ALL)
    assert executor.names.count("optimized_fingerprint") == 3


def test_a_damaged_cache_entry_is_measured_again(measurer, executor):
    a, b = graph(CHAIN), graph(CHAIN_WITH_DETOUR)
    measurer.measure(a, b, FEEDS, DISABLE, QUICK)
    request = Request(FEEDS, Target.parse(DISABLE), QUICK, ignore_progress, None)
    key = measurer._key("pair", (a, b), request) | {"absorb": True}
    stored = measurer._cache.get(key)
    stored["delta"]["ratio"] = "fast"
    measurer._cache.put(key, stored)
    executor.names.clear()
    measurer.measure(a, b, FEEDS, DISABLE, QUICK)
    assert executor.names == ["measure_pair"]


def test_latency(measurer, executor):
    net = graph(CHAIN)
    result = measurer.latency(net, FEEDS, DISABLE, QUICK)
    assert result.model == net.fingerprint()
    assert 0 < result.low_ns <= result.ns <= result.high_ns
    assert measurer.latency(net, FEEDS, DISABLE, QUICK) == result
    assert executor.names.count("measure_one") == 1


def test_outputs_are_computed_without_optimisation_by_default(measurer):
    outputs = measurer.run(graph(CHAIN), [FEEDS, {"x": np.zeros_like(FEEDS["x"])}])
    expected = 1 / (1 + np.exp(-np.maximum(FEEDS["x"], 0))) + FEEDS["x"]
    np.testing.assert_allclose(outputs[0]["y"], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(outputs[1]["y"], np.full_like(expected, 0.5))


def test_progress_begins_with_the_comparison_and_counts_rounds(measurer):
    seen = []
    measurer.measure(graph(CHAIN), graph(CHAIN_WITH_DETOUR), FEEDS, ALL, QUICK, seen.append)
    assert seen[0].text == "comparing what the runtime makes of both graphs"
    assert [p.done for p in seen] == [0, 0, 1, 2, 3]
    assert {p.total for p in seen} == {3}


def test_bad_requests_are_refused(measurer, executor):
    a = graph(CHAIN)
    with pytest.raises(TargetError):
        measurer.measure(a, a, FEEDS, "ort:level=turbo")
    with pytest.raises(InputError, match="validated, screening"):
        measurer.measure(a, a, FEEDS, ALL, "sloppy")
    assert executor.names == []


def test_messages_call_graphs_by_their_names(measurer):
    net = load(CASES / "unknown_custom_op.onnx")
    with pytest.raises(RuntimeFailure, match=rf"vendor.ops::FancyGate.* of '{net.name}'"):
        measurer.run(net, [{}])


def test_a_level_that_cannot_load_a_model_is_measured_where_it_can(measurer):
    net = load(CASES / "relu_then_clip_negative_min_double.onnx")
    with pytest.raises(RuntimeFailure, match="try level=disable"):
        measurer.latency(net, make_feeds(net), ALL, QUICK)
    assert measurer.latency(net, make_feeds(net), DISABLE, QUICK).ns > 0


def test_the_optimised_graph_can_be_looked_at(measurer, tmp_path):
    path = measurer.optimized_model(graph(CHAIN_WITH_IDENTITY), ALL, tmp_path / "seen.onnx")
    assert "Identity" not in [node.op_type for node in onnx.load(path).graph.node]


def test_if_the_optimised_graph_cannot_be_had_the_pair_is_measured(measurer, monkeypatch):
    def refuse(*_arguments):
        raise RuntimeFailure("cannot write")

    a, b = graph(CHAIN), graph(CHAIN_WITH_IDENTITY)
    monkeypatch.setattr("explorer.runtime.jobs.optimized_fingerprint", refuse)
    assert measurer.measure(a, b, FEEDS, ALL, QUICK).delta.verdict is not Verdict.IDENTICAL


def test_what_was_passed_in_stays_open(tmp_path):
    store, executor = ModelStore(tmp_path), WorkerExecutor()
    with Measurer(executor=executor, cache=NoCache(), store=store) as measurer:
        measurer.run(graph(CHAIN), [FEEDS])
    assert store.folder.exists()
    assert executor.worker_pid is not None
    executor.close()
    store.close()


def test_with_a_worker_of_its_own(tmp_path):
    a, b, bomb = graph(CHAIN), graph(CHAIN_WITH_DETOUR), graph(BOMB)
    with Measurer(cache=ResultCache(tmp_path)) as measurer:
        assert measurer.measure(a, b, FEEDS, DISABLE, QUICK).samples == (3, 3)
        with pytest.raises(WorkerError, match=r"running '.*needed more memory"):
            measurer.run(bomb, [{"size": np.array([2**40])}])
        token = threading.Event()
        endless = replace(QUICK, samples=10_000, sample_ns=10**8, budget_ns=10**13)
        threading.Timer(0.5, token.set).start()
        with pytest.raises(Cancelled, match="measuring"):
            measurer.measure(a, b, FEEDS, DISABLE, endless, cancel=token)
        assert measurer.run(a, [FEEDS])[0]["y"].shape == (1, 8, 16, 16)
        executor, store = measurer._own_executor, measurer._own_store
    assert executor is not None
    assert store is not None
    assert executor.worker_pid is None
    assert not store.folder.exists()


def test_a_planted_measurer_gives_real_measurements_in_no_time():
    a, b = graph(CHAIN), graph(CHAIN_WITH_DETOUR)

    def run_ns(net, target):
        return 1e6 * len(net.nodes) / target.threads

    with PlantedMeasurer(run_ns, noise=0.01) as measurer:
        result = measurer.measure(a, b, FEEDS, "ort:threads=2")
        assert result.delta.ratio == pytest.approx(len(b.nodes) / len(a.nodes), rel=0.01)
        assert result.delta.verdict is Verdict.SLOWER
        assert measurer.measure(a, graph(CHAIN_RENAMED), FEEDS, "ort").delta.verdict is (Verdict.IDENTICAL)
        assert measurer.latency(a, FEEDS, "ort").ns == pytest.approx(3e6, rel=0.01)
        assert measurer.run(a, [FEEDS])[0]["y"].shape == (1, 8, 16, 16)
        assert measurer.environment(Target.parse("ort")).cpu_model == "planted"


def test_digests_of_inputs_see_names_types_shapes_and_contents():
    x = np.arange(6, dtype=np.float32)
    variants = [
        {"x": x},
        {"y": x},
        {"x": x.astype(np.float64)},
        {"x": x.reshape(2, 3)},
        {"x": x + 1},
        {"x": np.array(["a", "b"], dtype=object)},
        {"x": np.array(["a", "c"], dtype=object)},
    ]
    assert len({feeds_digest(feeds) for feeds in variants}) == len(variants)
    assert feeds_digest({"x": x, "y": x}) == feeds_digest({"y": x.copy(), "x": x})
