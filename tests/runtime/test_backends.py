"""The contract that every installed runtime keeps."""

from __future__ import annotations

import gc
import sys
import weakref

import numpy as np
import pytest

from explorer.errors import RuntimeFailure, TargetError
from explorer.graph import load, make_feeds
from explorer.runtime import InlineExecutor, Measurer, Protocol, Target
from explorer.runtime.backend import backend_for, backend_names, is_installed
from explorer.runtime.cache import NoCache
from explorer.runtime.protocol import Mode
from tests.models import model
from tests.runtime.models import (
    CHAIN,
    CHAIN_WITH_DETOUR,
    CHAIN_WITH_IDENTITY,
    TWO_INPUTS,
    graph,
    proto,
    write,
)

INSTALLED = [name for name in backend_names() if is_installed(name)]
QUICK = Protocol(
    mode=Mode.SCREENING, rounds=2, samples=2, min_samples=2, sample_ns=50_000, warmup_ns=100_000, trim=0
)
X = np.linspace(-2, 2, 2048, dtype=np.float32).reshape(1, 8, 16, 16)


def conv_net():
    rng = np.random.default_rng(7)
    return model(
        """(float[1,3,12,12] x) => (float[1,5] y) {
            c = Conv<pads=[1,1,1,1], strides=[2,2]>(x, w, b)
            r = Relu(c)
            p = GlobalAveragePool(r)
            f = Flatten(p)
            y = Gemm<transB=1>(f, g, h)
        }""",
        w=rng.standard_normal((4, 3, 3, 3)).astype("f4"),
        b=rng.standard_normal(4).astype("f4"),
        g=rng.standard_normal((5, 4)).astype("f4"),
        h=rng.standard_normal(5).astype("f4"),
    )


def attention():
    rng = np.random.default_rng(8)
    return model(
        """(float[1,6,8] x) => (float[1,6,8] y) {
            k = MatMul(x, w)
            t = Transpose<perm=[0,2,1]>(k)
            s = MatMul(x, t)
            p = Softmax<axis=-1>(s)
            a = MatMul(p, x)
            y = LayerNormalization<axis=-1, epsilon=0.00001>(a, g, b)
        }""",
        w=(rng.standard_normal((8, 8)) / 3).astype("f4"),
        g=rng.standard_normal(8).astype("f4"),
        b=rng.standard_normal(8).astype("f4"),
    )


@pytest.fixture(params=INSTALLED)
def runtime(request):
    return request.param


@pytest.fixture
def measurer():
    with Measurer(executor=InlineExecutor(), cache=NoCache()) as one:
        yield one


def test_onnx_runtime_is_always_there():
    assert "ort" in INSTALLED


def test_the_spec_is_canonical_and_states_its_threads(runtime):
    target = Target.parse(f"{runtime}:threads=02")
    assert target.threads == 2
    assert Target.parse(str(target)) == target
    assert target.label.endswith("2 threads") or "2 threads" in target.label
    with pytest.raises(TargetError, match="allowed"):
        Target.parse(f"{runtime}:threads=none")


def test_environment_names_version_settings_and_clock(runtime, measurer):
    found = measurer.environment(f"{runtime}:threads=1")
    assert found.threads == 1
    assert found.timer in {"thread_time_ns", "perf_counter_ns"}
    assert found.settings
    assert backend_for(runtime).requires in found.versions
    assert measurer.environment(f"{runtime}:threads=2").timer == "perf_counter_ns"


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("source", [CHAIN, TWO_INPUTS, conv_net, attention])
def test_outputs_equal_the_reference(runtime, measurer, source, threads):
    net = load(proto(source) if isinstance(source, str) else source())
    feeds = make_feeds(net, seed=3)
    (expected,) = measurer.run(net, [feeds])
    (found,) = measurer.run(net, [feeds], f"{runtime}:threads={threads}")
    assert list(found) == list(expected)
    for name, value in expected.items():
        assert found[name].dtype == value.dtype
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-5 * np.abs(value).max())


def test_runs_on_other_inputs_do_not_remember_the_first(runtime, measurer):
    feeds = [{"x": X}, {"x": -X}, {"x": X}]
    first, second, third = measurer.run(graph(CHAIN), feeds, f"{runtime}:threads=1")
    np.testing.assert_array_equal(first["y"], third["y"])
    assert not np.allclose(first["y"], second["y"])


def test_pairs_are_measured_by_the_protocol(runtime, measurer):
    result = measurer.measure(graph(CHAIN), graph(CHAIN_WITH_DETOUR), {"x": X}, f"{runtime}:threads=1", QUICK)
    assert len(result.rounds) == 2
    assert result.a_ns > 0
    assert result.b_ns > 0
    assert result.control is not None
    assert result.target == str(Target.parse(runtime))


def test_inputs_that_do_not_fit_are_refused(runtime, tmp_path):
    path = write(TWO_INPUTS, tmp_path / "sum.onnx")
    target, x = Target.parse(runtime), np.ones((2, 3), np.float32)
    session = backend_for(runtime).open(path, target)
    with pytest.raises(RuntimeFailure, match=r"'sum\.onnx' needs a value for its input 'right'"):
        session.bind({"left": x})
    for wrong in (x.astype(np.int64), x.astype(np.float64), x[:1], x.ravel()):
        with pytest.raises(RuntimeFailure, match=r"'sum\.onnx'"):
            session.bind({"left": wrong, "right": x})()
    session.close()


def test_what_cannot_be_loaded_is_a_runtime_failure_that_names_the_file(runtime, tmp_path):
    target = Target.parse(runtime)
    unknown = write(CHAIN, tmp_path / "unknown.onnx")
    unknown.write_bytes(unknown.read_bytes().replace(b"Relu", b"Rxlu"))
    (tmp_path / "junk.onnx").write_bytes(b"\xff" * 100)
    for path in (unknown, tmp_path / "junk.onnx", tmp_path / "missing.onnx"):
        with pytest.raises(RuntimeFailure, match=f"'{path.name}'"):
            backend_for(runtime).open(path, target)


def test_a_closed_session_is_freed_and_refuses_to_run(runtime, tmp_path):
    path = write(CHAIN, tmp_path / "net.onnx")
    session = backend_for(runtime).open(path, Target.parse(runtime))
    held = {"ort": "_session", "openvino": "_compiled", "tvm": "_machine"}[runtime]
    inner = weakref.ref(getattr(session, held))
    call = session.bind({"x": X})
    call()
    del call
    session.close()
    gc.collect()
    assert inner() is None
    with pytest.raises(RuntimeFailure, match="closed"):
        session.bind({"x": X})


def test_a_runtime_without_an_optimised_graph_absorbs_nothing_but_equal_graphs(runtime, measurer, tmp_path):
    if backend_for(runtime).saves_optimized:
        pytest.skip("it can show its graph")
    path = write(CHAIN, tmp_path / "net.onnx")
    with pytest.raises(RuntimeFailure, match=r"cannot write 'net\.onnx'"):
        backend_for(runtime).save_optimized(path, Target.parse(runtime), tmp_path / "out.onnx")
    assert not measurer.is_absorbed(graph(CHAIN), graph(CHAIN_WITH_DETOUR), runtime)
    assert measurer.is_absorbed(graph(CHAIN), graph(CHAIN), runtime)


def test_a_runtime_names_its_acting_optimisers_or_says_that_it_cannot(runtime, measurer, tmp_path):
    backend, target = backend_for(runtime), Target.parse(runtime)
    path = write(CHAIN_WITH_IDENTITY, tmp_path / "net.onnx")
    if not backend.names_optimizers:
        with pytest.raises(RuntimeFailure, match=r"does not say how it optimises 'net\.onnx'"):
            backend.acting_optimizers(path, target)
        assert measurer.acting_optimizers(graph(CHAIN_WITH_IDENTITY), runtime) == ()
        return
    named = backend.acting_optimizers(path, target)
    assert named
    for name in named:
        assert target.replace(disabled=name).disabled == (name,)


def test_profiles_cover_the_model_where_they_are_offered(runtime, measurer):
    net = load(conv_net())
    feeds = make_feeds(net)
    if not backend_for(runtime).profiles:
        with pytest.raises(RuntimeFailure, match="no time per node"):
            measurer.profile(net, feeds, runtime)
        return
    profile = measurer.profile(net, feeds, runtime, rounds=2, budget_s=0.01)
    assert {"n0", "n1", "n2", "n4"} <= profile.by_node().keys()
    assert profile.total_ns > 0


@pytest.mark.parametrize("name", ["openvino", "tvm"])
def test_a_missing_runtime_names_the_extra(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(TargetError, match=rf"pip install 'explorer\[{name}\]'"):
        backend_for(name).versions()
