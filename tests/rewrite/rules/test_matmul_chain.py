"""D8: associativity of products, and folding of constant ones."""

import numpy as np
import pytest

from tests.rewrite.harness import (
    apply_all,
    apply_checked,
    apply_only,
    assert_inverse_restores,
    candidates,
    graph_of,
    ops,
    reasons,
)

RIGHT, LEFT, FOLD = "reassociate-matmul-right", "reassociate-matmul-left", "fold-matmul-chain"
RNG = np.random.default_rng(5)
B, C = RNG.standard_normal((4, 6)).astype("f4"), RNG.standard_normal((6, 3)).astype("f4")
BIAS = RNG.standard_normal(6).astype("f4")


def test_right_pair_first_and_back():
    graph = graph_of(
        """(float[2,8,4] x, float[4,6] b, float[6,3] c) => (float[2,8,3] y) {
            m = MatMul(x, b)  y = MatMul(m, c)
        }"""
    )
    (candidate,) = candidates(graph, RIGHT)
    assert candidate.summary.endswith("(336 multiply-adds before, 168 after, per matrix of 'x')")
    result = apply_checked(graph, candidate)
    assert [value.name for value in result.nodes[0].inputs] == ["b", "c"]
    assert_inverse_restores(graph, candidate)


def test_left_pair_first_and_back():
    graph = graph_of(
        "(float[n,4] x, float[4,6] b, float[6,3] c) => (float[n,3] y) { m = MatMul(b, c)  y = MatMul(x, m) }"
    )
    (candidate,) = candidates(graph, LEFT)
    assert "multiply-adds" not in candidate.summary  # the number of rows is unknown
    apply_checked(graph, candidate)
    assert_inverse_restores(graph, candidate)


def test_vector_times_matrices():
    graph = graph_of(
        "(float[4] x, float[4,6] b, float[6,3] c) => (float[3] y) { m = MatMul(x, b)  y = MatMul(m, c) }"
    )
    apply_only(graph, RIGHT)


def test_chain_of_three_has_every_bracketing():
    graph = graph_of(
        """(float[2,4] x, float[4,6] b, float[6,3] c, float[3,5] d) => (float[2,5] y) {
            m = MatMul(x, b)  n = MatMul(m, c)  y = MatMul(n, d)
        }"""
    )
    assert len(candidates(graph, RIGHT)) == 2
    assert ops(apply_all(graph, RIGHT)) == {"MatMul": 3}


def test_batched_operand_and_second_reader_are_refused():
    batched = graph_of(
        """(float[2,8,4] x, float[2,4,6] b, float[6,3] c) => (float[2,8,3] y) {
            m = MatMul(x, b)  y = MatMul(m, c)
        }"""
    )
    assert reasons(batched, RIGHT) == ["'b' has rank 3, not 2"]
    twice = graph_of(
        """(float[8,4] x, float[4,6] b, float[6,3] c) => (float[8,3] y, float[8,6] z) {
            m = MatMul(x, b)  y = MatMul(m, c)  z = Relu(m)
        }"""
    )
    assert reasons(twice, RIGHT) == ["'m', inside the pattern, is also read by an unnamed Relu"]


@pytest.mark.parametrize(("kind", "dtype"), [("float", "f4"), ("double", "f8"), ("float16", "f2")])
def test_constant_chain_is_folded(kind, dtype):
    graph = graph_of(
        f"({kind}[n,7,4] x) => ({kind}[n,7,3] y) {{ m = MatMul(x, b)  y = MatMul(m, c) }}",
        b=B.astype(dtype),
        c=C.astype(dtype),
    )
    (candidate,) = candidates(graph, FOLD)
    assert candidate.bytes_delta == np.dtype(dtype).itemsize * (4 * 3 - 4 * 6 - 6 * 3)
    (node,) = apply_checked(graph, candidate).nodes
    np.testing.assert_allclose(node.inputs[1].const_value.numpy(), B @ C, rtol=0.02, atol=0.02)


def test_bias_between_the_products_is_folded():
    graph = graph_of(
        "(float[n,4] x) => (float[n,3] y) { m = MatMul(x, b)  a = Add(bias, m)  y = MatMul(a, c) }",
        b=B,
        c=C,
        bias=BIAS,
    )
    assert ops(apply_only(graph, FOLD)) == {"MatMul": 1, "Add": 1}


def test_bottleneck_says_what_it_becomes():
    graph = graph_of(
        "(float[n,64] x) => (float[n,64] y) { m = MatMul(x, b)  y = MatMul(m, c) }",
        b=RNG.standard_normal((64, 2)).astype("f4"),
        c=RNG.standard_normal((2, 64)).astype("f4"),
    )
    (candidate,) = candidates(graph, FOLD)
    assert candidate.summary == "64 x 2 x 64 becomes one product of 64 x 64"
    assert candidate.bytes_delta == 4 * (64 * 64 - 2 * 2 * 64)


def test_bias_that_is_no_vector_is_refused():
    graph = graph_of(
        "(float[5,4] x) => (float[5,3] y) { m = MatMul(x, b)  a = Add(m, bias)  y = MatMul(a, c) }",
        b=B,
        c=C,
        bias=np.ones((5, 1), "f4"),
    )
    assert reasons(graph, FOLD) == ["'bias' is not a vector of 6 elements"]


def test_weights_that_are_inputs_are_left_alone():
    graph = graph_of(
        "(float[5,4] x, float[4,6] b) => (float[5,3] y) { m = MatMul(x, b)  y = MatMul(m, c) }", b=B, c=C
    )
    assert candidates(graph, FOLD) == []


def test_shared_weight_is_kept():
    graph = graph_of(
        """(float[5,4] x) => (float[5,3] y, float[5,6] z) {
            m = MatMul(x, b)  y = MatMul(m, c)  n = Relu(x)  z = MatMul(n, b)
        }""",
        b=B,
        c=C,
    )
    (candidate,) = candidates(graph, FOLD)
    assert candidate.bytes_delta == 4 * (4 * 3 - 6 * 3)
    apply_checked(graph, candidate)


def test_match_inside_a_branch():
    graph = graph_of(
        """(bool k, float[5,4] x) => (float[5,3] y) {
            y = If(k) <
                then_branch = t () => (float[5,3] o) { m = MatMul(x, b)  o = MatMul(m, c) },
                else_branch = e () => (float[5,3] p) { n = MatMul(x, b)  r = Relu(n)  p = MatMul(r, c) }
            >
        }""",
        b=B,
        c=C,
    )
    assert ops(apply_only(graph, FOLD)) == {"If": 1, "MatMul": 3, "Relu": 1}


@pytest.mark.parametrize("rule", [RIGHT, LEFT])
def test_a_product_that_is_multiplied_by_itself_stays(rule):
    graph = graph_of("(float[4,4] x, float[4,4] b) => (float[4,4] y) { m = MatMul(x, b)  y = MatMul(m, m) }")
    assert candidates(graph, rule) == []
    assert reasons(graph, rule) == ["'m' is multiplied by itself"]
