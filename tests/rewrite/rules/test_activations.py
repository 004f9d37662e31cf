"""E11, E12 and E13: Where(Not), PRelu and LeakyRelu, Mish."""

import numpy as np
import pytest

from tests.rewrite.harness import (
    apply_checked,
    apply_only,
    assert_inverse_restores,
    candidates,
    graph_of,
    ops,
    reasons,
)

WHERE, LEAKY, PRELU = "swap-where-of-not", "prelu-to-leakyrelu", "leakyrelu-to-prelu"
MISH, PARTS = "fuse-mish", "split-mish"


@pytest.mark.parametrize("kind", ["float", "int64", "double", "string"])
def test_branches_swap(kind):
    graph = graph_of(
        f"(bool[2,3] c, {kind}[2,3] a, {kind}[3] b) => ({kind}[2,3] y) {{ n = Not(c)  y = Where(n, a, b) }}"
    )
    assert ops(apply_only(graph, WHERE)) == {"Where": 1}


def test_negation_that_is_read_elsewhere_stays():
    graph = graph_of(
        "(bool[2] c, float[2] a, float[2] b) => (float[2] y, bool[2] z) { n = Not(c)  y = Where(n, a, b)  z = And(n, c) }"
    )
    assert ops(apply_only(graph, WHERE)) == {"Not": 1, "Where": 1, "And": 1}


@pytest.mark.parametrize("slope", [np.full((), 0.2), np.full(3, 0.2), np.full((3, 1, 1), 0.2)])
@pytest.mark.parametrize(("kind", "dtype"), [("float", "f4"), ("float16", "f2")])
def test_one_slope_is_a_leaky_relu(slope, kind, dtype):
    last = 3 if slope.ndim == 1 else 4
    graph = graph_of(
        f"({kind}[n,3,2,{last}] x) => ({kind}[n,3,2,{last}] y) {{ y = PRelu(x, s) }}", s=slope.astype(dtype)
    )
    (node,) = apply_only(graph, LEAKY).nodes
    assert node.attributes.get_float("alpha") == pytest.approx(0.2, rel=1e-3)


def test_leaky_relu_and_back():
    graph = graph_of("(float[2,3] x) => (float[2,3] y) { y = LeakyRelu<alpha=0.3>(x) }")
    (candidate,) = candidates(graph, PRELU)
    assert candidate.bytes_delta == 4
    assert_inverse_restores(graph, candidate)


def test_different_slopes_and_double_are_refused_and_computed_ones_left_alone():
    different = graph_of(
        "(float[2,3] x) => (float[2,3] y) { y = PRelu(x, s) }", s=np.array([0.1, 0.2, 0.3], "f4")
    )
    assert reasons(different, LEAKY) == ["the elements of slope 's' differ"]
    computed = graph_of("(float[2,3] x, float[3] s) => (float[2,3] y) { y = PRelu(x, s) }")
    assert candidates(computed, LEAKY) == reasons(computed, LEAKY) == []
    double = graph_of("(double[2,3] x) => (double[2,3] y) { y = PRelu(x, s) }", s=np.array([0.1]))
    assert reasons(double, LEAKY) == ["'y' has element type double; the rule handles float, float16"]


@pytest.mark.parametrize("product", ["Mul(x, t)", "Mul(t, x)"])
def test_mish_in_any_order(product):
    graph = graph_of(
        f"(float[n,3] x) => (float[n,3] y) {{ s = Softplus(x)  t = Tanh(s)  y = {product} }}", opset=18
    )
    assert ops(apply_only(graph, MISH)) == {"Mish": 1}


def test_mish_and_back_and_in_half_precision():
    for kind in ("float", "float16"):
        graph = graph_of(f"({kind}[2,3] x) => ({kind}[2,3] y) {{ y = Mish(x) }}", opset=18)
        (candidate,) = candidates(graph, PARTS)
        assert ops(apply_checked(graph, candidate)) == {"Softplus": 1, "Tanh": 1, "Mul": 1}
        assert_inverse_restores(graph, candidate)


def test_gate_of_something_else_old_opset_and_second_reader():
    other = graph_of(
        "(float[2] x, float[2] z) => (float[2] y) { s = Softplus(x)  t = Tanh(s)  y = Mul(z, t) }", opset=18
    )
    assert candidates(other, MISH) == reasons(other, MISH) == []
    old = graph_of("(float[2] x) => (float[2] y) { s = Softplus(x)  t = Tanh(s)  y = Mul(x, t) }")
    assert reasons(old, MISH) == ["the result needs opset 18, the model imports 17"]
    shared = graph_of(
        "(float[2] x) => (float[2] y, float[2] z) { s = Softplus(x)  t = Tanh(s)  y = Mul(x, t)  z = Neg(s) }",
        opset=18,
    )
    assert reasons(shared, MISH) == ["'s', inside the pattern, is also read by an unnamed Neg"]


def test_match_inside_a_branch():
    graph = graph_of(
        """(bool k, bool[2] c, float[2] a) => (float[2] y) {
            y = If(k) <
                then_branch = t () => (float[2] o) { n = Not(c)  b = Neg(a)  o = Where(n, a, b) },
                else_branch = e () => (float[2] q) { q = Relu(a) }
            >
        }"""
    )
    assert ops(apply_only(graph, WHERE)) == {"If": 1, "Neg": 1, "Where": 1, "Relu": 1}


def test_slope_that_enlarges_is_refused():
    graph = graph_of(
        "(float[N,1,2,4] x) => (float[N,?,2,4] y) { y = PRelu(x, s) }", s=np.full((3, 1, 1), 0.2, "f4")
    )
    assert candidates(graph, "prelu-to-leakyrelu") == []
    assert reasons(graph, "prelu-to-leakyrelu") == ["slope 's' may enlarge 'x'"]
