"""D7 and D10: products stacked over rows or over the summed axis."""

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

STACK, MERGE, SPLIT = "stack-matmuls-of-same-weight", "merge-sum-of-matmuls", "split-matmul-of-concat"
RNG = np.random.default_rng(4)
W = RNG.standard_normal((4, 5)).astype("f4")
A, B = RNG.standard_normal((3, 5)).astype("f4"), RNG.standard_normal((4, 5)).astype("f4")


@pytest.mark.parametrize("opset", [11, 17])
def test_products_with_one_weight_are_stacked(opset):
    graph = graph_of(
        "(float[n,2,4] x, float[n,3,4] z) => (float[n,2,5] y, float[n,3,5] v) { y = MatMul(x, w)  v = MatMul(z, w) }",
        opset=opset,
        w=W,
    )
    assert ops(apply_only(graph, STACK)) == {"Concat": 1, "MatMul": 1, "Split": 1}


def test_all_together_and_every_pair():
    graph = graph_of(
        """(float[2,4] a, float[3,4] b, float[1,4] c, float[4,5] u) => (float[2,5] p, float[3,5] q, float[1,5] r) {
            p = MatMul(a, u)  q = MatMul(b, u)  r = MatMul(c, u)
        }"""
    )
    found = candidates(graph, STACK)
    assert sorted(len(c.nodes) for c in found) == [2, 2, 2, 3]
    for candidate in found:
        apply_checked(graph, candidate)


def test_product_of_a_product_is_refused():
    graph = graph_of(
        "(float[2,4] x) => (float[2,4] z) { y = MatMul(x, w)  r = Relu(y)  z = MatMul(r, w) }", w=W[:, :4]
    )
    assert reasons(graph, STACK) == ["'r' depends on 'y'"]


@pytest.mark.parametrize(
    ("left", "reason"),
    [
        ("float[2,2,4] z", "'z' has rank 3, 'x' rank 2"),
        ("float[n,4] z", "the number of rows of 'z' is not static: [n, 4]"),
    ],
)
def test_operands_that_cannot_be_stacked_are_refused(left, reason):
    graph = graph_of(
        f"(float[2,4] x, {left}) => (float[2,5] y, float{'[2,2,5]' if '2,2' in left else '[n,5]'} v)"
        "{ y = MatMul(x, w)  v = MatMul(z, w) }",
        w=W,
    )
    assert reasons(graph, STACK) == [reason]


def test_other_leading_dims_and_equal_operands_are_refused():
    graph = graph_of(
        "(float[2,2,4] x, float[3,2,4] z) => (float[2,2,5] y, float[3,2,5] v) { y = MatMul(x, w)  v = MatMul(z, w) }",
        w=W,
    )
    assert reasons(graph, STACK) == ["'z' [3, 2, 4] and 'x' [2, 2, 4] differ beside the rows"]
    same = graph_of(
        "(float[2,4] x) => (float[2,5] y, float[2,5] v) { y = MatMul(x, w)  v = MatMul(x, w) }", w=W
    )
    assert reasons(same, STACK) == ["'x' is multiplied with the same weight twice; merge equal nodes instead"]


def test_sum_of_products_becomes_one_product():
    graph = graph_of(
        """(float[n,2,3] x, float[n,2,4] z) => (float[n,2,5] y) {
            p = MatMul(x, a)  q = MatMul(z, b)  y = Add(p, q)
        }""",
        a=A,
        b=B,
    )
    (candidate,) = candidates(graph, MERGE)
    assert candidate.bytes_delta == 0
    result = apply_checked(graph, candidate)
    assert ops(result) == {"Concat": 1, "MatMul": 1}
    assert_inverse_restores(graph, candidate)


def test_sums_that_cannot_be_merged_are_refused():
    def total(x, z, a, b, out):
        text = f"(float{x} x, float{z} z) => (float{out} y) {{ p = MatMul(x, a)  q = MatMul(z, b)  y = Add(p, q) }}"
        return graph_of(text, a=a, b=b)

    broadcast = total("[2,3]", "[1,4]", A, B, "[2,5]")
    assert reasons(broadcast, MERGE) == ["'x' [2, 3] and 'z' [1, 4] do not line up"]
    narrow = total("[2,3]", "[2,4]", A, B[:, :1].copy(), "[2,5]")
    assert reasons(narrow, MERGE) == ["the products have 5 and 1 columns"]
    batch = total("[2,2,3]", "[2,2,4]", np.stack([A, A]), B, "[2,2,5]")
    assert reasons(batch, MERGE) == ["weight 'a' has rank 3, not 2"]


def test_second_reader_of_a_product_is_refused():
    graph = graph_of(
        """(float[2,3] x, float[2,4] z) => (float[2,5] y, float[2,5] r) {
            p = MatMul(x, a)  q = MatMul(z, b)  y = Add(p, q)  r = Relu(p)
        }""",
        a=A,
        b=B,
    )
    assert reasons(graph, MERGE) == ["'p', inside the pattern, is also read by an unnamed Relu"]


def test_product_of_a_concat_is_taken_apart():
    graph = graph_of(
        """(float[n,1] x, float[n,2] u, float[n,1] z) => (float[n,5] y) {
            c = Concat<axis=1>(x, u, z)  y = MatMul(c, w)
        }""",
        w=W,
    )
    assert ops(apply_only(graph, SPLIT)) == {"MatMul": 3, "Add": 2}


def test_concat_over_rows_or_of_unknown_width_is_refused():
    rows = graph_of(
        "(float[1,4] x, float[2,4] z) => (float[3,5] y) { c = Concat<axis=0>(x, z)  y = MatMul(c, w) }", w=W
    )
    assert reasons(rows, SPLIT) == ["the Concat is over axis 0, not over the last axis"]
    unknown = graph_of(
        "(float[2,k] x, float[2,l] z) => (float[2,5] y) { c = Concat<axis=-1>(x, z)  y = MatMul(c, w) }", w=W
    )
    assert reasons(unknown, SPLIT) == ["the last dim of 'x' is not static"]


def test_concat_with_another_reader_stays():
    graph = graph_of(
        """(float[2,1] x, float[2,3] z) => (float[2,5] y, float[2,4] r) {
            c = Concat<axis=1>(x, z)  y = MatMul(c, w)  r = Relu(c)
        }""",
        w=W,
    )
    assert ops(apply_only(graph, SPLIT)) == {"Concat": 1, "MatMul": 2, "Add": 1, "Relu": 1}


def test_half_precision_and_a_branch():
    graph = graph_of(
        """(bool c, float16[2,3] x, float16[2,4] z) => (float16[2,5] y) {
            y = If(c) <
                then_branch = t () => (float16[2,5] o) { p = MatMul(x, a)  q = MatMul(z, b)  o = Add(q, p) },
                else_branch = e () => (float16[2,5] n) { m = MatMul(x, a)  n = Relu(m) }
            >
        }""",
        a=A.astype("f2"),
        b=B.astype("f2"),
    )
    (candidate,) = candidates(graph, MERGE)
    assert candidate.bytes_delta == A.nbytes // 2  # 'a' is read by the other branch too
    assert ops(apply_checked(graph, candidate)) == {"If": 1, "Concat": 1, "MatMul": 2, "Relu": 1}
