from __future__ import annotations

import gc
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest

from explorer.errors import RuntimeFailure
from explorer.graph import load
from explorer.runtime import Target
from explorer.runtime.jobs import run_model
from explorer.runtime.store import EXTERNAL_FROM_BYTES, ModelStore
from tests.runtime.models import graph

DISABLE = Target.parse("ort:level=disable")

_WEIGHT = ",".join(str(n % 7 - 3) for n in range(4096))
_BIAS = ",".join(str(n) for n in range(64))
LARGE_AND_SMALL = f"""
net (float[2,64] x) => (float[2,64] y)
<float[64,64] w = {{{_WEIGHT}}}, float[64] b = {{{_BIAS}}}>
{{
    m = MatMul(x, w)
    y = Add(m, b)
}}
"""

BRANCH = """
net (bool flag, float[4] x) => (float[4] y) {
    y = If(flag) <
        then_branch = yes () => (float[4] a) { a = Add(x, x) },
        else_branch = no () => (float[4] b) { b = Neg(x) }
    >
}
"""


@pytest.fixture
def store(tmp_path):
    with ModelStore(tmp_path) as one:
        yield one


def files(store, pattern="*"):
    return sorted(path.name for path in store.folder.glob(pattern))


def test_a_stored_graph_runs_like_the_original(store):
    net = graph(LARGE_AND_SMALL)
    x = np.random.default_rng(0).normal(size=(2, 64)).astype(np.float32)
    w, b = (net.model.graph.initializers[n].const_value.numpy() for n in "wb")
    (outputs,) = run_model(store.put(net), [{"x": x}], DISABLE)
    np.testing.assert_allclose(outputs["y"], x @ w + b, rtol=1e-5, atol=1e-4)


def test_large_weights_go_beside_the_model_and_small_ones_stay_inside(store):
    path = store.put(graph(LARGE_AND_SMALL))
    model = onnx.load(path, load_external_data=False)
    places = {i.name: i.data_location for i in model.graph.initializer}
    assert places == {"w": onnx.TensorProto.EXTERNAL, "b": onnx.TensorProto.DEFAULT}
    (weights,) = store.folder.glob("*.bin")
    assert weights.stat().st_size == 4096 * 4 >= EXTERNAL_FROM_BYTES
    (entry,) = [e for i in model.graph.initializer for e in i.external_data if e.key == "location"]
    assert entry.value == weights.name
    onnx.checker.check_model(path)


def test_variants_share_the_weights_they_have_in_common(store):
    first = graph(LARGE_AND_SMALL)
    second = graph(LARGE_AND_SMALL.replace("Add(m, b)", "Sub(m, b)"))
    assert store.put(first) != store.put(second)
    assert len(files(store, "*.onnx")) == 2
    assert len(files(store, "*.bin")) == 1


def test_the_same_content_is_written_once(store):
    path = store.put(graph(LARGE_AND_SMALL))
    written = path.stat().st_mtime_ns
    renamed = graph(LARGE_AND_SMALL.replace("net (", "other ("))
    assert store.put(renamed) == path
    assert path.stat().st_mtime_ns == written


def test_the_graph_keeps_its_own_weights(store):
    net = graph(LARGE_AND_SMALL)
    tensor, before = net.model.graph.initializers["w"].const_value, net.fingerprint()
    store.put(net)
    assert net.model.graph.initializers["w"].const_value is tensor
    assert net.clone().fingerprint() == before


def test_weights_of_a_sample_are_written_as_they_are(store):
    net = load("squeezenet1_1")
    path = store.put(net)
    stored = load(path)
    assert stored.fingerprint() == net.fingerprint()
    assert path.stat().st_size < 100_000


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.int64, np.bool_, ml_dtypes.bfloat16])
def test_types_of_weights(store, dtype):
    net = graph(LARGE_AND_SMALL)
    array = (np.arange(4096).reshape(64, 64) % 2).astype(dtype)
    value = ir.Value(name="extra", const_value=ir.tensor(array, name="extra"))
    value.dtype, value.shape = value.const_value.dtype, value.const_value.shape
    net.model.graph.register_initializer(value)
    stored = ir.load(store.put(net.renumbered()))
    np.testing.assert_array_equal(stored.graph.initializers["extra"].const_value.numpy(), array)


def test_bodies_of_control_flow_survive(store):
    path = store.put(graph(BRANCH))
    x = np.arange(4, dtype=np.float32)
    outputs = run_model(path, [{"flag": np.array(f), "x": x} for f in (True, False)], DISABLE)
    np.testing.assert_array_equal(outputs[0]["y"], 2 * x)
    np.testing.assert_array_equal(outputs[1]["y"], -x)


def test_large_weights_inside_bodies_are_found_by_the_runtime(store):
    net = graph(BRANCH.replace("float[4]", "float[512]"))
    body = next(b for b in net.model.graphs() if b.name == "yes")
    weight = np.linspace(0, 1, 512, dtype=np.float32)
    value = ir.Value(name="w", const_value=ir.tensor(weight, name="w"))
    value.dtype, value.shape = ir.DataType.FLOAT, ir.Shape([512])
    body.register_initializer(value)
    body[0].replace_input_with(1, value)
    path = store.put(net.renumbered())
    assert len(files(store, "*.bin")) == 1
    (outputs,) = run_model(path, [{"flag": np.array(True), "x": np.ones(512, np.float32)}], DISABLE)
    np.testing.assert_allclose(outputs["y"], 1 + weight)


def test_several_threads_may_store(store):
    nets = [
        graph(LARGE_AND_SMALL.replace("Add(m, b)", f"{op}(m, b)"))
        for op in ("Add", "Sub", "Mul", "Max", "Min") * 2
    ]
    with ThreadPoolExecutor(4) as pool:
        paths = list(pool.map(store.put, nets))
    assert len(set(paths)) == 5
    assert files(store, "partial*") == []
    for path in set(paths):
        onnx.checker.check_model(path)


def test_a_failed_write_is_explained_and_leaves_nothing_half_done(store, monkeypatch):
    def full(*_arguments, **_options):
        raise OSError(28, "No space left on device")

    net = graph(LARGE_AND_SMALL)
    with monkeypatch.context() as patch:
        patch.setattr(ir, "save", full)
        with pytest.raises(RuntimeFailure, match="No space left on device; free some space"):
            store.put(net)
    assert files(store, "*.onnx") == files(store, "partial*") == []
    assert store.put(net).exists()


def test_closing_removes_the_folder(tmp_path):
    store = ModelStore(tmp_path)
    store.put(graph(LARGE_AND_SMALL))
    store.close()
    store.close()
    assert list(tmp_path.iterdir()) == []


def test_a_forgotten_store_removes_its_folder(tmp_path):
    store = ModelStore(tmp_path)
    store.put(graph(LARGE_AND_SMALL))
    del store
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_a_script_that_ends_without_closing_leaves_nothing(tmp_path):
    code = f"from explorer.runtime.store import ModelStore; s = ModelStore({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert list(tmp_path.iterdir()) == []
