"""Arithmetic on shapes, compared with what ONNX Runtime computes, and where it must give up."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.graph import Graph, describe, load
from explorer.graph.shape_values import ShapeEvaluator, ShapeValue, known_vectors
from tests import models

INTS = {
    "zero": np.array(0),
    "one": np.array([1]),
    "two": np.array(2),
    "last": np.array([-1]),
    "far": np.array([99]),
    "pair": np.array([3, 1]),
    "minus": np.array([-7, 5, 3, 2]),
    "axis": np.array([0]),
    "step": np.array([-1]),
}


def graph_of(body: str, inputs: str = "float[2,3,8,9] x", opset: int = 17) -> Graph:
    return load(models.model(f"({inputs}) => (int64[M] y) {{ {body} }}", opset=opset, **INTS))


def followed(graph: Graph, name: str = "y") -> np.ndarray | None:
    return {value.name: array for value, array in known_vectors(graph.model.graph).items()}.get(name)


@pytest.mark.parametrize(
    "body",
    [
        "y = Shape(x)",
        "y = Shape<start=1>(x)",
        "y = Shape<start=-3, end=-1>(x)",
        "y = Shape<start=3, end=1>(x)",
        "y = Size(x)",
        "s = Shape(x) y = Gather(s, one)",
        "s = Shape(x) y = Gather(s, zero)",
        "s = Shape(x) y = Gather(s, last)",
        "s = Shape(x) y = Gather(s, pair)",
        "s = Shape(x) y = Slice(s, one, far)",
        "s = Shape(x) y = Slice(s, last, far, axis)",
        "s = Shape(x) y = Slice(s, last, zero1, axis, step) zero1 = Constant<value_ints=[0]>()",
        "s = Shape(x) y = Concat<axis=0>(s, one, last)",
        "s = Shape(x) y = Add(s, two)",
        "s = Shape(x) y = Sub(s, minus)",
        "s = Shape(x) y = Mul(s, minus)",
        "s = Shape(x) y = Div(s, two)",
        "s = Shape(x) y = Div(minus, two)",
        "s = Shape(x) y = Mod(minus, two)",
        "s = Shape(x) y = Max(s, minus)",
        "s = Shape(x) y = Min(s, minus)",
        "s = Shape(x) g = Gather(s, zero) u = Unsqueeze(g, axis) y = Concat<axis=0>(u, u)",
        "s = Shape(x) g = Gather(s, one) q = Squeeze(g, axis) y = Unsqueeze(q, axis)",
        "s = Shape(x) i = Identity(s) c = Cast<to=6>(i) y = Cast<to=7>(c)",
        "s = Shape(x) p = ReduceProd<keepdims=0>(s) y = Unsqueeze(p, axis)",
        "s = Shape(x) e = Equal(s, two4) y = Where(e, s, minus) two4 = Constant<value_ints=[2,2,2,2]>()",
        "y = ConstantOfShape<value = int64[1] {7}>(four) four = Constant<value_ints=[4]>()",
    ],
)
def test_known_vectors_are_what_onnxruntime_computes(body: str) -> None:
    graph = graph_of(body)
    found = followed(graph)
    (wanted,) = models.run(graph, {"x": np.zeros((2, 3, 8, 9), "f4")})
    assert found is not None
    assert found.dtype == np.int64
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(found, wanted)


def test_slice_and_unsqueeze_of_old_opsets_take_attributes() -> None:
    body = "s = Shape(x) t = Slice<starts=[1], ends=[3]>(s) g = Gather(s, zero) u = Unsqueeze<axes=[0]>(g) y = Concat<axis=0>(t, u)"
    assert followed(graph_of(body, opset=9)).tolist() == [3, 8, 2]


def test_known_elements_of_a_dynamic_shape_are_followed() -> None:
    graph = graph_of("s = Shape(x) c = Gather(s, one) y = Div(c, two)", "float[N,6,h,w] x")
    assert followed(graph, "s") is None
    assert followed(graph, "c").tolist() == [6]
    assert followed(graph, "y").tolist() == [3]


def test_symbols_are_kept_by_name() -> None:
    graph = graph_of(
        "s = Shape(x) g = Gather(s, pair) y = Mul(g, k) k = Constant<value_ints=[1,2]>()", "float[N,6,h,w] x"
    )
    evaluator = ShapeEvaluator()
    values = {output.name: output for node in graph.nodes for output in node.outputs}
    assert evaluator.value_of(values["s"]) == ShapeValue(("N", 6, "h", "w"), 1)
    assert evaluator.value_of(values["g"]) == ShapeValue(("w", 6), 1)
    assert evaluator.value_of(values["y"]) == ShapeValue(("w", 12), 1)
    assert not evaluator.value_of(values["y"]).is_known
    assert evaluator.value_of(None) is None
    assert {node.op_type for node in evaluator.nodes} == {"Shape", "Gather", "Mul"}


@pytest.mark.parametrize(
    "body",
    [
        "s = Shape(x) z = Sub(s, s) y = Div(s, z)",
        "s = Shape(x) a = Mul(s, big) b = Mul(a, big) y = Mul(b, big)",
        "s = Shape(x) y = Gather(s, far)",
        "y = ConstantOfShape<value = int64[0] {}>(one)",
        "s = Shape(x) y = Add(s, empty)",
        "s = Shape(x) y = Where(cond, s, s)",
        "c = Cast<to=7>(x) y = Flatten(c)",
    ],
)
def test_what_cannot_be_followed_is_left_alone(body: str) -> None:
    extra = {
        "big": np.array(2**40),
        "empty": np.zeros(0, "i8"),
        "cond": np.zeros(0, "?"),
    }
    proto = models.model(f"(float[2,3,8,9] x) => (int64[M] y) {{ {body} }}", **INTS, **extra)
    graph = load(proto)
    assert followed(graph) is None
    assert describe(graph).outputs[0].name == "y"


def test_custom_operators_are_not_mistaken() -> None:
    proto = models.model(
        "(float[2,3] x) => (int64[M] y) { s = Shape(x) y = vendor.Add(s, s) }", domains={"vendor": 1}
    )
    assert followed(load(proto), "s").tolist() == [2, 3]
    assert followed(load(proto)) is None


def test_long_vectors_are_not_followed() -> None:
    doubling = " ".join(f"s{i + 1} = Concat<axis=0>(s{i}, s{i})" for i in range(8))
    graph = graph_of(f"s0 = Shape(x) {doubling} y = Identity(s8)")
    assert followed(graph, "s4").size == 64
    assert followed(graph, "s5") is None
    assert describe(graph).nodes[-1].outputs[0].shape == (1024,)


def test_numbers_beyond_64_bits_are_not_followed() -> None:
    assert ShapeValue((2**63 - 1, None, "N"), 1).is_plausible
    assert not ShapeValue((2**63,), 1).is_plausible


def test_channel_shuffle_gets_its_shapes() -> None:
    body = """
    s = Shape(x) c = Gather(s, one) half = Div(c, two) full = Mul(half, two)
    a = Slice(x, axis, half, one) b = Slice(x, half, full, one) y = Concat<axis=1>(b, a)
    """
    proto = models.model(f"(float[1,6,4,4] x) => (float[A,B,C,D] y) {{ {body} }}", **INTS)
    shapes = {t.name: t.shape_text for node in describe(load(proto)).nodes for t in node.outputs}
    assert (shapes["a"], shapes["b"], shapes["y"]) == ("1x3x4x4", "1x3x4x4", "1x6x4x4")
