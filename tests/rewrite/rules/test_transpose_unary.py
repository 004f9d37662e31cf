"""G1: transposes through element-wise operators of one operand."""

import numpy as np
import pytest

from tests.rewrite.harness import (
    apply_all,
    apply_only,
    assert_inverse_restores,
    candidates,
    graph_of,
    ops,
    reasons,
)

SINK, HOIST = "sink-transpose-through-unary", "hoist-transpose-through-unary"


@pytest.mark.parametrize(
    "form", ["Relu(t)", "LeakyRelu<alpha=0.3>(t)", "Clip(t, lo)", "Clip(t, , hi)", "Cast<to=11>(t)", "Not(t)"]
)
def test_transpose_sinks_and_comes_back(form):
    kind = "bool" if "Not" in form else "float"
    result = "double" if "Cast" in form else kind
    graph = graph_of(
        f"({kind}[2,3,4] x) => ({result}[4,2,3] y) {{ t = Transpose<perm=[2,0,1]>(x) y = {form} }}",
        lo=np.float32(-0.2),
        hi=np.float32(0.2),
    )
    (candidate,) = candidates(graph, SINK)
    after = apply_only(graph, SINK)
    assert [node.op_type for node in after.nodes] == [form.split("<")[0].split("(")[0], "Transpose"]
    assert_inverse_restores(graph, candidate)


def test_transpose_rises_and_comes_back():
    graph = graph_of("(float[N,3,4] x) => (float[4,N,3] y) { h = Tanh(x) y = Transpose<perm=[2,0,1]>(h) }")
    (candidate,) = candidates(graph, HOIST)
    result = apply_only(graph, HOIST)
    assert [node.op_type for node in result.nodes] == ["Transpose", "Tanh"]
    assert [d if isinstance(d, int) else str(d) for d in result.nodes[0].outputs[0].shape] == [4, "N", 3]
    assert_inverse_restores(graph, candidate)


def test_sandwich_dissolves_in_two_steps():
    graph = graph_of("""(float[2,3,4] x) => (float[2,3,4] y) {
        t = Transpose<perm=[0,2,1]>(x)
        h = Sigmoid(t)
        k = Transpose<perm=[0,2,1]>(h)
        y = Softmax(k)
    }""")
    result = apply_only(apply_only(graph, SINK), "merge-transposes")
    assert ops(result) == {"Sigmoid": 1, "Softmax": 1}


def test_transpose_without_permutation_of_unknown_rank():
    graph = graph_of(
        "(float[2,3] x, int64[k] s) => (float[] y) { r = Reshape(x, s) t = Transpose(r) y = Relu(t) }"
    )
    assert len(candidates(graph, SINK)) == 1
    assert candidates(graph, HOIST) == []


def test_transpose_with_another_reader_is_refused():
    graph = graph_of(
        "(float[2,3] x) => (float[3,2] y, float[3,2] z) { t = Transpose(x) y = Relu(t) z = Neg(t) }"
    )
    assert candidates(graph, SINK) == []
    assert sorted(reasons(graph, SINK)) == [
        "'t', inside the pattern, is also read by an unnamed Neg",
        "'t', inside the pattern, is also read by an unnamed Relu",
    ]


def test_bound_that_is_computed_moves_along():
    graph = graph_of("(float[2,3] x, float lo) => (float[3,2] y) { t = Transpose(x) y = Clip(t, lo) }")
    assert ops(apply_only(graph, SINK)) == {"Clip": 1, "Transpose": 1}


def test_transposes_sink_to_the_end_and_stop():
    graph = graph_of(
        "(float[2,3] x) => (float[3,2] y) { t = Transpose(x) a = Relu(t) b = Exp(a) y = Neg(b) }"
    )
    result = apply_all(graph, SINK)
    assert [node.op_type for node in result.nodes] == ["Relu", "Exp", "Neg", "Transpose"]
    assert candidates(result, SINK) == []


def test_softmax_is_not_element_wise():
    graph = graph_of("(float[2,3] x) => (float[3,2] y) { t = Transpose(x) y = Softmax(t) }")
    assert candidates(graph, SINK) == []


def test_transpose_sinks_inside_a_loop_body():
    graph = graph_of("""(int64 n, bool c, float[3,3] x) => (float[3,3] y) {
        y = Loop(n, c, x) <body = b (int64 i, bool ci, float[3,3] v) => (bool co, float[3,3] o) {
            co = Identity(ci)
            t = Transpose(v)
            o = Tanh(t)
        }>
    }""")
    assert ops(apply_only(graph, SINK)) == {"Loop": 1, "Identity": 1, "Tanh": 1, "Transpose": 1}
