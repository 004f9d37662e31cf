"""B10: gain and offset of LayerNormalization fold into the products that read it."""

import numpy as np
import pytest

from tests.rewrite.harness import apply_only, candidates, graph_of, ops, reasons

RULE = "fold-layernorm-scale-into-matmul"
RNG = np.random.default_rng(3)


def draw(*shape, dtype="f4"):
    return RNG.standard_normal(shape).astype(dtype)


def norm(body, outputs="float[N,5,4] y", opset=17, dtype="f4", **weights):
    kind = "float" if dtype == "f4" else "double"
    text = f"({kind}[N,5,6] x) => ({outputs}) {{ {body} }}"
    defaults = {"g": draw(6, dtype=dtype), "o": draw(6, dtype=dtype), "w": draw(6, 4, dtype=dtype)}
    return graph_of(text, opset=opset, **{**defaults, **weights})


def test_gain_and_offset_move_into_the_product():
    graph = norm("n = LayerNormalization(x, g, o)\n y = MatMul(n, w)")
    result = apply_only(graph, RULE)
    assert ops(result) == {"LayerNormalization": 1, "MatMul": 1, "Add": 1}
    normalised = result.nodes[0]
    assert len(normalised.inputs) == 2
    np.testing.assert_array_equal(normalised.inputs[1].const_value.numpy(), np.ones(6, "f4"))
    assert candidates(result, RULE) == []


def test_double_precision():
    graph = norm("n = LayerNormalization(x, g, o)\n y = MatMul(n, w)", outputs="double[N,5,4] y", dtype="f8")
    apply_only(graph, RULE)


def test_every_product_past_reshape_and_transpose():
    graph = norm(
        """n = LayerNormalization<axis=2>(x, g, o)
        p = MatMul(n, w)
        y = Add(p, b)
        r = Reshape(n, rows)
        z = Gemm<transB=1>(r, w2, b2)
        t = Transpose<perm=[1,0,2]>(n)
        u = MatMul(t, w3)""",
        outputs="float[N,5,4] y, float[M,3] z, float[5,N,2] u",
        b=draw(4),
        rows=np.array([-1, 6]),
        w2=draw(3, 6),
        b2=draw(3),
        w3=draw(6, 2),
    )
    result = apply_only(graph, RULE)
    assert ops(result) == {
        "LayerNormalization": 1, "MatMul": 2, "Add": 2, "Reshape": 1, "Gemm": 1, "Transpose": 1,
    }  # fmt: skip


def test_without_an_offset_no_bias_appears():
    graph = norm("n = LayerNormalization(x, g)\n y = MatMul(n, w)")
    assert ops(apply_only(graph, RULE)) == {"LayerNormalization": 1, "MatMul": 1}


def test_rms_normalization():
    graph = norm("n = RMSNormalization(x, g)\n y = MatMul(n, w)", opset=23)
    found = candidates(graph, RULE)
    assert len(found) == 1
    assert reasons(graph, RULE) == []


@pytest.mark.parametrize(
    ("reader", "named"),
    [("z = Relu(n)", "Relu"), ("z = Add(n, x)", "Add")],
)
def test_another_reader_is_refused(reader, named):
    graph = norm(
        f"n = LayerNormalization(x, g, o)\n y = MatMul(n, w)\n {reader}",
        outputs="float[N,5,4] y, float[N,5,6] z",
    )
    assert reasons(graph, RULE) == [f"'n' is also read by {named} ''"]


def test_graph_output_is_refused():
    graph = norm(
        "n = LayerNormalization(x, g, o)\n y = MatMul(n, w)", outputs="float[N,5,4] y, float[N,5,6] n"
    )
    assert reasons(graph, RULE) == ["'n' is a graph output"]


def test_reshape_that_mixes_the_features_is_refused():
    graph = norm(
        "n = LayerNormalization(x, g, o)\n y = MatMul(n, w)\n z = Reshape(n, flat)",
        outputs="float[N,5,4] y, float[N,30] z",
        flat=np.array([0, 30]),
    )
    assert reasons(graph, RULE) == ["'n' is also read by Reshape ''"]


def test_reader_behind_a_long_chain_of_moves_is_refused():
    graph = norm(
        """n = LayerNormalization(x, g, o)
        y = MatMul(n, w)
        a = Transpose<perm=[1,0,2]>(n)
        b = Transpose<perm=[1,0,2]>(a)
        c = Transpose<perm=[1,0,2]>(b)
        z = Relu(c)""",
        outputs="float[N,5,4] y, float[5,N,6] z",
    )
    assert reasons(graph, RULE) == ["'b' is also read by Transpose ''"]


def test_several_normalised_axes_are_refused():
    graph = norm("n = LayerNormalization<axis=1>(x, g, o)\n y = MatMul(n, w)", g=draw(5, 6), o=draw(5, 6))
    assert reasons(graph, RULE) == ["'g' has rank 2: the normalisation covers several axes"]


def test_variable_weight_is_refused():
    text = "(float[2,5,6] x, float[6,4] w) => (float[2,5,4] y) { n = LayerNormalization(x, g)\n y = MatMul(n, w) }"
    assert reasons(graph_of(text, g=draw(6)), RULE) == ["right operand 'w' is a graph input, not a constant"]


def test_statistics_that_are_read_are_refused():
    graph = norm(
        "n, mean = LayerNormalization(x, g, o)\n y = MatMul(n, w)",
        outputs="float[N,5,4] y, float[N,5,1] mean",
    )
    assert reasons(graph, RULE) == ["'mean', inside the pattern, is a graph output"]
