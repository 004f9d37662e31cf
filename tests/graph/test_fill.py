"""Seeded weights: the same for a seed, different for another, and activations of ordinary size."""

from __future__ import annotations

import zlib

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from explorer.graph import Graph, constant_tensor, load, save
from explorer.graph.fill import fill_bytes, weight_inputs
from tests import models


def weights(graph: Graph) -> dict[str, np.ndarray]:
    return {v.name: v.const_value.numpy() for v in graph.model.graph.initializers.values()}


def filled(text: str, seed: int = 0, **constants: np.ndarray) -> Graph:
    return load(models.model(text, **constants), fill_weights=seed)


TEXT = "(float[1,64] x, float[64,32] w, float[32] b) => (float[1,32] y) { h = MatMul(x, w) y = Add(h, b) }"


def test_weight_inputs_become_initializers() -> None:
    graph = filled(TEXT, seed=7)
    assert [v.name for v in graph.model.graph.inputs] == ["x"]
    assert {name: array.shape for name, array in weights(graph).items()} == {"w": (64, 32), "b": (32,)}
    assert all(constant_tensor(v) is not None for v in graph.model.graph.initializers.values())
    (notice,) = graph.notices
    assert notice.startswith("2 weights were filled with seeded random values (seed 7): timings are real, ")
    assert graph.passes_checker


def test_without_a_seed_nothing_is_filled() -> None:
    graph = load(models.model(TEXT))
    assert [v.name for v in graph.inputs] == ["x", "w", "b"]
    assert graph.notices == ()


def test_what_counts_as_a_weight() -> None:
    text = """(float[1,4] x, float[4,4] w, int64[4] ids, float[n,4] more, float16[4] half, double[4] wide, bool[4] mask, float[4] d = {1,2,3,4})
      => (float[1,4] y) { y = MatMul(x, w) }"""
    model = ir.serde.deserialize_model(models.model(text))
    assert [v.name for v in weight_inputs(model)] == ["w", "half", "wide"]
    assert fill_bytes(model) == 4 * 16 + 2 * 4 + 8 * 4
    graph = filled(text)
    assert [v.name for v in graph.inputs] == ["x", "ids", "more", "mask"]
    assert [v.name for v in graph.overridable] == ["d"]
    assert {name: array.dtype for name, array in weights(graph).items()} == {
        "d": np.float32,
        "w": np.float32,
        "half": np.float16,
        "wide": np.float64,
    }
    assert weights(graph)["d"].tolist() == [1, 2, 3, 4]


def test_the_first_input_is_data_even_if_it_is_the_only_one() -> None:
    graph = filled("(float[4,4] x) => (float[4,4] y) { y = Relu(x) }")
    assert [v.name for v in graph.inputs] == ["x"]
    assert graph.notices == ()


def test_a_seed_always_gives_the_same_weights() -> None:
    once, again, other = (weights(filled(TEXT, seed)) for seed in (0, 0, 1))
    for name in ("w", "b"):
        np.testing.assert_array_equal(once[name], again[name])
        assert not np.array_equal(once[name], other[name])
    assert filled(TEXT, 0).fingerprint() == filled(TEXT, 0).fingerprint() != filled(TEXT, 1).fingerprint()


def test_the_values_of_seed_0_stay_what_they_are() -> None:
    w = weights(filled(TEXT))["w"]
    np.testing.assert_allclose(w.ravel()[:3], [0.1321707, 0.1236898, 0.1136294], rtol=1e-5)


def test_weights_do_not_depend_on_each_other_s_order() -> None:
    swapped = TEXT.replace("float[64,32] w, float[32] b", "float[32] b, float[64,32] w")
    for name, array in weights(filled(TEXT)).items():
        np.testing.assert_array_equal(weights(filled(swapped))[name], array)


def test_values_are_made_when_they_are_first_needed() -> None:
    graph = load("vgg16")
    tensors = [v.const_value for v in graph.initializers()]
    assert all(isinstance(tensor, ir.LazyTensor) for tensor in tensors if tensor.size > 16)
    assert tensors[1].numpy() is tensors[1].numpy()
    assert graph.clone().model.graph.initializers[tensors[1].name].const_value is tensors[1]


def test_no_weight_is_constant_or_zero() -> None:
    for array in weights(load("squeezenet1_1")).values():
        if array.size > 16:
            assert np.isfinite(array).all()
            assert len(np.unique(array)) > array.size * 0.9
            assert np.abs(array).max() > 0


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("(float[8,64] x, float[64,256] w) => (float[8,256] y) { y = MatMul(x, w) }", 0.8, 1.2),
        (
            "(float[8,64] x, float[64,256] w, float[256] b) => (float[8,256] y) { y = Gemm(x, w, b) }",
            0.8,
            1.2,
        ),
        ("(float[8,64] x, float[256,64] w) => (float[8,256] y) { y = Gemm<transB=1>(x, w) }", 0.8, 1.2),
        (
            "(float[8,64] x, float[256,64] w) => (float[8,256] y) { t = Transpose(w) y = MatMul(x, t) }",
            0.8,
            1.2,
        ),
        ("(float[1,16,16,16] x, float[32,16,3,3] w) => (float[1,32,14,14] y) { y = Conv(x, w) }", 0.8, 1.2),
        (
            "(float[1,16,16,16] x, float[16,1,3,3] w) => (float[1,16,14,14] y) { y = Conv<group=16>(x, w) }",
            0.8,
            1.2,
        ),
        (
            "(float[1,16,16,16] x, float[16,32,1,1] w) => (float[1,32,16,16] y) { y = ConvTranspose(x, w) }",
            0.8,
            1.2,
        ),
        (
            "(float[4,16,8,8] x, float[16] a, float[16] b, float[16] m, float[16] v) => (float[4,16,8,8] y) { y = BatchNormalization(x, a, b, m, v) }",
            0.7,
            1.3,
        ),
        (
            "(float[8,64] x, float[64] a, float[64] b) => (float[8,64] y) { y = LayerNormalization(x, a, b) }",
            0.7,
            1.3,
        ),
        ("(float[8,64] x, float[64] a) => (float[8,64] y) { y = Mul(x, a) }", 0.7, 1.4),
        ("(float[8,64] x, float[64] a) => (float[8,64] y) { y = Add(x, a) }", 0.9, 1.2),
    ],
    ids=lambda value: value.split("{")[1] if isinstance(value, str) else "",
)
def test_one_layer_keeps_the_scale(text: str, low: float, high: float, rng: np.random.Generator) -> None:
    graph = filled(text)
    shape = [int(d) for d in graph.inputs[0].shape]
    (y,) = models.run(graph, {"x": rng.standard_normal(shape, dtype="f4")})
    assert low < y.std() < high


@pytest.mark.parametrize("activation", ["Relu", "Tanh", "Sigmoid", "Elu", "LeakyRelu"])
def test_thirty_layers_keep_the_scale(activation: str, rng: np.random.Generator) -> None:
    count = 30
    inputs = ", ".join(f"float[128,128] w{i}" for i in range(count))
    steps = " ".join(f"h{i} = MatMul(a{i}, w{i}) a{i + 1} = {activation}(h{i})" for i in range(count))
    graph = filled(
        f"(float[16,128] x, {inputs}) => (float[16,128] h{count - 1}) {{ a0 = Identity(x) {steps} }}"
    )
    (y,) = models.run(graph, {"x": rng.standard_normal((16, 128), dtype="f4")})
    assert 0.02 < y.std() < 5


def test_gates_with_biases_neither_fade_nor_let_deviations_grow(rng: np.random.Generator) -> None:
    count = 40
    inputs = ", ".join(f"float[64,64,1,1] w{i}, float[64] b{i}" for i in range(count))
    steps = " ".join(
        f"h{i} = Conv(a{i}, w{i}, b{i}) s{i} = Sigmoid(h{i}) a{i + 1} = Mul(h{i}, s{i})" for i in range(count)
    )
    graph = filled(
        f"(float[1,64,8,8] x, {inputs}) => (float[1,64,8,8] h{count - 1}) {{ a0 = Identity(x) {steps} }}"
    )
    for loudness in (0.5, 1, 1.5):
        x = loudness * rng.standard_normal((1, 64, 8, 8), dtype="f4")
        assert 0.05 < models.run(graph, {"x": x})[0].std() < 2


def test_variances_are_positive_and_filters_alike() -> None:
    arrays = weights(load("resnet18"))
    variances = [array for name, array in arrays.items() if name.endswith("running_var")]
    assert len(variances) == 20
    assert min(array.min() for array in variances) > 0.1
    filters = arrays["layer1.0.conv1.weight"]
    norms = np.sqrt((filters**2).sum(axis=(1, 2, 3)))
    np.testing.assert_allclose(norms, norms[0], rtol=1e-4)


def test_weights_that_nothing_or_a_body_reads_are_filled_too() -> None:
    value = onnx.helper.make_tensor_value_info("o", 1, [4])
    branches = {
        f"{side}_branch": onnx.helper.make_graph(
            [onnx.helper.make_node("Add", ["x", name], ["o"])], side, [], [value]
        )
        for side, name in (("then", "w"), ("else", "v"))
    }
    proto = models.model(
        "(float[4] x, bool c, float[4] w, float[4] v, float[4] unread) => (float[4] y) { y = Relu(x) }"
    )
    proto.graph.node[0].CopyFrom(onnx.helper.make_node("If", ["c"], ["y"], **branches))
    graph = load(proto, fill_weights=0)
    assert [v.name for v in graph.inputs] == ["x", "c"]
    found = weights(graph)
    assert set(found) == {"w", "v", "unread"}
    y = models.run(graph, {"x": np.zeros(4, "f4"), "c": np.array(True)})[0]
    np.testing.assert_allclose(y, found["w"], rtol=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        "(float[N,4] x, float[4] w) => (float[n] y) { a = Reshape(w, s) h = Gemm(x, a) y = Relu(h) }",
        "(float[N,4] x, float w) => (float[n] y) { a = Reshape(w, s) y = ConvTranspose(x, a) }",
        "(float[N,4] x, float w) => (float[n] y) { y = MatMul(x, w) }",
        "(float[N,4] x, float[0,3] w) => (float[n] y) { a = Reshape(w, s) y = Conv(x, a) }",
        "(float[N,4] x, float[3] w) => (float[n] y) { h = Softmax<axis=-9>(x) y = Mul(h, w) }",
        "(float[N,4] x, float[3] w) => (float[n] y) { h = vendor.Conv(w) g = vendor.Gather() y = vendor.Transpose() }",
        "(float[N,4] x, float[3] w) => (float[n] y) { h = Mul(x, big) y = Mul(h, w) }",
    ],
)
def test_odd_structures_are_filled_without_a_traceback(text: str) -> None:
    proto = models.model(text, domains={"vendor": 1}, s=np.array([-1, 1]), big=np.full(4, 3e38, "f4"))
    graph = load(proto, fill_weights=0)
    assert np.isfinite(weights(graph)["w"]).all()


def test_filled_weights_survive_saving(tmp_path) -> None:
    graph = filled(TEXT, seed=4)
    copy = load(save(graph, tmp_path / "m.onnx"))
    for name, array in weights(graph).items():
        np.testing.assert_array_equal(weights(copy)[name], array)


def test_filled_weights_are_what_one_formula_gives() -> None:
    """So that files and measurements made with an earlier version keep their meaning."""
    array = weights(filled(TEXT, seed=7))["w"]
    rng = np.random.default_rng([7, zlib.crc32(b"w")])
    drawn = 0.0 + (1 / 8) * rng.standard_normal((64, 32), dtype=np.float32)
    assert array.dtype == drawn.dtype == np.float32
    np.testing.assert_array_equal(array, drawn)
