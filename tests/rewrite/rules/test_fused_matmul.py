"""D3 and D13: MatMul with its transpositions or its scale as FusedMatMul, and back."""

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

FUSE, SPLIT = "fuse-transpose-into-matmul", "split-transpose-from-matmul"
SCALE, UNSCALE = "fuse-scale-into-matmul", "split-scale-from-matmul"
MS = {"com.microsoft": 1}


def scores(body, kind="float", opset=17):
    return graph_of(
        f"({kind}[n,2,6,4] q, {kind}[n,2,6,4] k) => ({kind}[n,2,6,6] y) {{ {body} }}", opset=opset
    )


@pytest.mark.parametrize("kind", ["float", "double"])
def test_transposed_keys(kind):
    graph = scores("t = Transpose<perm=[0,1,3,2]>(k)  y = MatMul(q, t)", kind)
    (candidate,) = candidates(graph, FUSE)
    assert not candidate.portable
    result = apply_checked(graph, candidate)
    (node,) = result.nodes
    assert (node.op_type, node.domain, node.attributes.get_int("transB")) == (
        "FusedMatMul",
        "com.microsoft",
        1,
    )
    assert_inverse_restores(graph, candidate)


def test_left_operand_and_matrix_against_batch():
    graph = graph_of(
        "(float[5,4] x, float[2,3,5,6] u) => (float[2,3,4,6] y) { t = Transpose(x)  y = MatMul(t, u) }"
    )
    (candidate,) = candidates(graph, FUSE)
    assert candidate.variant == "transA"
    apply_checked(graph, candidate)


def test_both_operands_one_after_the_other():
    graph = graph_of(
        """(float[2,5,4] x, float[2,6,5] u) => (float[2,4,6] y) {
            t = Transpose<perm=[0,2,1]>(x)  s = Transpose<perm=[0,2,1]>(u)  y = MatMul(t, s)
        }"""
    )
    assert ops(apply_all(graph, FUSE)) == {"FusedMatMul": 1}


def test_second_transpose_makes_a_plain_product_again():
    graph = graph_of(
        """(float[2,5,4] x, float[2,5,6] u) => (float[2,4,6] y) {
            t = Transpose<perm=[0,2,1]>(x)  s = Transpose<perm=[0,2,1]>(t)
            y = com.microsoft.FusedMatMul<transA=1>(s, u)
        }""",
        domains=MS,
    )
    assert ops(apply_only(graph, FUSE)) == {"Transpose": 1, "MatMul": 1}


def test_transpose_of_other_axes_is_left_alone():
    graph = scores("t = Transpose<perm=[0,2,3,1]>(k)  u = Transpose<perm=[0,3,1,2]>(t)  y = MatMul(q, u)")
    assert candidates(graph, FUSE) == reasons(graph, FUSE) == []


def test_half_precision_has_no_kernel():
    graph = scores("t = Transpose<perm=[0,1,3,2]>(k)  y = MatMul(q, t)", "float16")
    assert reasons(graph, FUSE) == ["'y' has element type float16; the rule handles double, float"]


def test_transpose_with_another_reader_stays():
    graph = graph_of(
        """(float[2,5,4] x, float[2,6,4] u) => (float[2,5,6] y, float[2,4,6] z) {
            t = Transpose<perm=[0,2,1]>(u)  y = MatMul(x, t)  z = Relu(t)
        }"""
    )
    assert ops(apply_only(graph, FUSE)) == {"Transpose": 1, "FusedMatMul": 1, "Relu": 1}


def test_batch_transposition_is_refused():
    graph = graph_of(
        """(float[5,2,4] x, float[2,6,4] u) => (float[2,5,6] y) {
            y = com.microsoft.FusedMatMul<transBatchA=1, transB=1>(x, u)
        }""",
        domains=MS,
    )
    assert reasons(graph, SPLIT) == ["transBatchA is set"]


@pytest.mark.parametrize(
    ("body", "variant"),
    [
        ("m = MatMul(q, k)  y = Mul(m, c)", "output"),
        ("m = MatMul(q, k)  y = Mul(c, m)", "output"),
        ("m = MatMul(q, k)  y = Div(m, c)", "output"),
        ("s = Mul(c, q)  y = MatMul(s, k)", "A"),
        ("s = Div(k, c)  y = MatMul(q, s)", "B"),
    ],
)
def test_scale_before_or_after_becomes_alpha(body, variant):
    graph = graph_of(
        f"(float[2,5,4] q, float[2,4,6] k) => (float[2,5,6] y) {{ {body} }}", c=np.array([0.125], "f4")
    )
    (candidate,) = candidates(graph, SCALE)
    assert (candidate.variant, candidate.bytes_delta) == (variant, -4)
    (node,) = apply_checked(graph, candidate).nodes
    assert node.attributes.get_float("alpha") == (8.0 if "Div" in body else 0.125)


def test_scale_after_the_product_comes_back():
    graph = graph_of(
        "(float[2,5,4] q, float[2,4,6] k) => (float[2,5,6] y) { m = MatMul(q, k)  y = Mul(m, c) }",
        c=np.array(0.5, "f4"),
    )
    assert_inverse_restores(graph, candidates(graph, SCALE)[0])


def test_scaled_operand_that_is_read_elsewhere_stays():
    graph = graph_of(
        """(float[2,5,4] q, float[2,4,6] k) => (float[2,5,6] y, float[2,5,4] z) {
            s = Mul(q, c)  y = MatMul(s, k)  z = Relu(s)
        }""",
        c=np.array(0.5, "f4"),
    )
    (candidate,) = candidates(graph, SCALE)
    assert candidate.bytes_delta == 0
    assert ops(apply_checked(graph, candidate)) == {"Mul": 1, "FusedMatMul": 1, "Relu": 1}


def test_scales_multiply():
    graph = graph_of(
        """(float[2,5,4] q, float[2,4,6] k) => (float[2,5,6] y) {
            s = Mul(q, c)  m = MatMul(s, k)  y = Div(m, d)
        }""",
        c=np.array(0.5, "f4"),
        d=np.array(4, "f4"),
    )
    (node,) = apply_all(graph, SCALE).nodes
    assert node.attributes.get_float("alpha") == 0.125


def test_zero_vector_and_enlarging_factors_are_left_alone():
    for c, out in ((np.zeros(1), "2,5,6"), (np.ones(6), "2,5,6"), (np.ones((1, 1, 1, 1)), "1,2,5,6")):
        graph = graph_of(
            f"(float[2,5,4] q, float[2,4,6] k) => (float[{out}] y) {{ m = MatMul(q, k)  y = Mul(m, c) }}",
            c=c.astype("f4"),
        )
        assert candidates(graph, SCALE) == []


def test_factor_that_float32_cannot_hold_is_refused_in_double():
    graph = graph_of(
        "(double[2,5,4] q, double[2,4,6] k) => (double[2,5,6] y) { m = MatMul(q, k)  y = Mul(m, c) }",
        c=np.array(0.1),
    )
    assert reasons(graph, SCALE) == ["the factor 0.1 would be rounded to float32"]


def test_alpha_is_split_off():
    graph = graph_of(
        """(float[2,5,4] x, float[2,6,4] u) => (float[2,5,6] y) {
            y = com.microsoft.FusedMatMul<alpha=0.25, transB=1>(x, u)
        }""",
        domains=MS,
    )
    (candidate,) = candidates(graph, UNSCALE)
    assert candidate.bytes_delta == 4
    assert ops(apply_checked(graph, candidate)) == {"FusedMatMul": 1, "Mul": 1}
    assert ops(apply_only(apply_checked(graph, candidate), SPLIT)) == {"Transpose": 1, "MatMul": 1, "Mul": 1}


def test_match_inside_a_branch():
    graph = graph_of(
        """(bool c, float[3,4] x, float[5,4] u) => (float[3,5] y) {
            y = If(c) <
                then_branch = t () => (float[3,5] a) { v = Transpose(u)  a = MatMul(x, v) },
                else_branch = e () => (float[3,5] o) { w = Transpose(u)  m = MatMul(x, w)  o = Neg(m) }
            >
        }"""
    )
    assert ops(apply_all(graph, FUSE)) == {"If": 1, "FusedMatMul": 2, "Neg": 1}
