"""D16 and the batched form of D1: products of flattened matrices against broadcasting products."""

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

DROP, FLATTEN = "unflatten-matmul", "flatten-matmul-add-to-gemm"
RNG = np.random.default_rng(9)
W, B = RNG.standard_normal((4, 5)).astype("f4"), RNG.standard_normal(5).astype("f4")
FLAT, DEEP = np.array([-1, 4]), np.array([2, 3, 5])


def around(product, source="float[2,3,4] x", result="float[2,3,5] y", more="", **weights):
    text = f"({source}) => ({result}{more}) {{ f = Reshape(x, flat)  m = {product}  y = Reshape(m, deep) }}"
    return graph_of(text, **{"w": W, "b": B, "flat": FLAT, "deep": DEEP, **weights})


def test_reshapes_around_a_product_go():
    (candidate,) = candidates(around("MatMul(f, w)"), DROP)
    assert candidate.bytes_delta == -8 * (2 + 3)
    assert ops(apply_checked(around("MatMul(f, w)"), candidate)) == {"MatMul": 1}


@pytest.mark.parametrize("bias", [(5,), (1, 5), (1,), ()])
def test_gemm_becomes_product_and_sum(bias):
    graph = around("Gemm(f, w, b)", b=RNG.standard_normal(bias).astype("f4"))
    assert ops(apply_only(graph, DROP)) == {"MatMul": 1, "Add": 1}


def test_transposed_weight_is_stored_as_it_is_used():
    graph = around("Gemm<transB=1>(f, w, b)", w=np.ascontiguousarray(W.T))
    (candidate,) = candidates(graph, DROP)
    assert candidate.bytes_delta == -8 * 5
    apply_checked(graph, candidate)


def test_equal_symbols_are_a_proof():
    graph = graph_of(
        """(float[n,3,4] x, int64[3] deep) => (float[n,3,5] y) {
            f = Reshape(x, flat)  m = MatMul(f, w)  y = Reshape(m, deep)
        }""",
        w=W,
        flat=FLAT,
    )
    assert len(candidates(graph, DROP)) == 1  # checked without running: the target comes from outside


def test_one_reshape_stays_where_the_source_has_other_axes():
    graph = around("Gemm(f, w, b)", "float[2,3,2,2] x")
    result = apply_only(graph, DROP)
    assert ops(result) == {"Reshape": 1, "MatMul": 1, "Add": 1}


def test_first_reshape_with_another_reader_stays():
    graph = graph_of(
        """(float[2,3,4] x) => (float[2,3,5] y, float[6,4] z) {
            f = Reshape(x, flat)  m = MatMul(f, w)  y = Reshape(m, deep)  z = Relu(f)
        }""",
        w=W,
        flat=FLAT,
        deep=DEEP,
    )
    assert ops(apply_only(graph, DROP)) == {"Reshape": 1, "MatMul": 1, "Relu": 1}


def test_what_is_not_proved_is_refused():
    columns = around("MatMul(f, w)", result="float[2,5,3] y", deep=np.array([2, 5, 3]))
    assert reasons(columns, DROP) == ["'y' [2, 5, 3] does not keep the columns of 'm'"]
    dynamic = around("MatMul(f, w)", "float[n,3,4] x", "float[p,q,5] y", deep=np.array([3, -1, 5]))
    (reason,) = reasons(dynamic, DROP)
    assert reason.endswith("are not provably the same but for the last dim")


@pytest.mark.parametrize(
    ("product", "reason"),
    [
        ("Gemm<alpha=0.5>(f, w, b)", "alpha or beta of the Gemm is not 1"),
        ("Gemm(f, w, c)", "'c' [6, 1] is not one row for all rows of the product"),
    ],
)
def test_gemms_that_are_no_product_plus_a_row_are_refused(product, reason):
    assert reasons(around(product, c=np.ones((6, 1), "f4")), DROP) == [reason]


def test_product_that_is_an_output_is_refused():
    graph = around("MatMul(f, w)", more=", float[6,5] m")
    assert reasons(graph, DROP) == ["'m', inside the pattern, is a graph output"]


def test_batched_product_and_sum_become_a_gemm_and_come_back():
    graph = graph_of("(float[2,3,4] x) => (float[2,3,5] y) { m = MatMul(x, w)  y = Add(b, m) }", w=W, b=B)
    (candidate,) = candidates(graph, FLATTEN)
    assert candidate.bytes_delta == 8 * 5
    result = apply_checked(graph, candidate)
    assert ops(result) == {"Reshape": 2, "Gemm": 1}
    plain = graph_of("(float[2,3,4] x) => (float[2,3,5] y) { m = MatMul(x, w)  y = Add(m, b) }", w=W, b=B)
    assert_inverse_restores(plain, candidates(plain, FLATTEN)[0])


def test_one_dynamic_dim_is_enough_two_are_refused():
    one = graph_of("(float[n,3,4] x) => (float[n,3,5] y) { m = MatMul(x, w)  y = Add(m, b) }", w=W, b=B)
    apply_only(one, FLATTEN)
    two = graph_of("(float[n,s,4] x) => (float[n,s,5] y) { m = MatMul(x, w)  y = Add(m, b) }", w=W, b=B)
    assert reasons(two, FLATTEN) == ["'x' [n, s, 4] has 2 dynamic leading dims"]


def test_bias_that_is_no_row_is_left_alone():
    graph = graph_of(
        "(float[2,3,4] x) => (float[2,3,5] y) { m = MatMul(x, w)  y = Add(m, b) }",
        w=W,
        b=np.ones((3, 5), "f4"),
    )
    assert candidates(graph, FLATTEN) == []


def test_match_inside_a_branch_in_double():
    graph = graph_of(
        """(bool c, double[2,3,4] x) => (double[2,3,5] y) {
            y = If(c) <
                then_branch = t () => (double[2,3,5] o) { f = Reshape(x, flat)  m = MatMul(f, w)  o = Reshape(m, deep) },
                else_branch = e () => (double[2,3,5] p) { q = MatMul(x, w)  p = Neg(q) }
            >
        }""",
        w=W.astype("f8"),
        flat=FLAT,
        deep=DEEP,
    )
    assert ops(apply_only(graph, DROP)) == {"If": 1, "MatMul": 2, "Neg": 1}
