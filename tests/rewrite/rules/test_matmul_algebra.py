"""D11 and D12: transposes of products, scalar factors before or after one."""

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

TURN, JOIN = "transpose-of-product", "product-of-transposes"
BEFORE, AFTER = "move-scale-before-matmul", "move-scale-after-matmul"
RNG = np.random.default_rng(7)
W = RNG.standard_normal((4, 5)).astype("f4")
C = np.array(0.5, "f4")


def test_transpose_of_a_product_and_back():
    graph = graph_of(
        """(float[n,3,4] x, float[n,4,5] z) => (float[n,5,3] y) {
            m = MatMul(x, z)  y = Transpose<perm=[0,2,1]>(m)
        }"""
    )
    (candidate,) = candidates(graph, TURN)
    assert ops(apply_checked(graph, candidate)) == {"Transpose": 2, "MatMul": 1}
    assert_inverse_restores(graph, candidate)


def test_constant_operand_is_stored_transposed():
    graph = graph_of(
        "(float[3,4] x) => (float[5,3] y) { m = MatMul(x, w)  y = Transpose<perm=[1,0]>(m) }", w=W
    )
    (candidate,) = candidates(graph, TURN)
    assert candidate.bytes_delta == 0
    result = apply_checked(graph, candidate)
    assert ops(result) == {"Transpose": 1, "MatMul": 1}
    assert_inverse_restores(graph, candidate)


def test_operands_of_different_rank():
    graph = graph_of(
        "(float[2,3,4] x) => (float[2,5,3] y) { m = MatMul(x, w)  y = Transpose<perm=[0,2,1]>(m) }", w=W
    )
    apply_only(graph, TURN)


def test_other_permutations_vectors_and_second_readers():
    moved = graph_of(
        "(float[2,3,4] x) => (float[3,2,5] y) { m = MatMul(x, w)  y = Transpose<perm=[1,0,2]>(m) }", w=W
    )
    assert candidates(moved, TURN) == reasons(moved, TURN) == []
    vector = graph_of("(float[2,3,4] x, float[4] v) => (float[3,2] y) { m = MatMul(x, v)  y = Transpose(m) }")
    assert reasons(vector, TURN) == ["'v' has rank 1"]
    twice = graph_of(
        "(float[3,4] x) => (float[5,3] y, float[3,5] z) { m = MatMul(x, w)  y = Transpose(m)  z = Relu(m) }",
        w=W,
    )
    assert reasons(twice, TURN) == ["'m', inside the pattern, is also read by an unnamed Relu"]


def test_transpose_with_another_reader_stays():
    graph = graph_of(
        """(float[4,3] x, float[5,4] u) => (float[3,5] y, float[3,4] z) {
            t = Transpose(x)  s = Transpose(u)  y = MatMul(t, s)  z = Relu(t)
        }"""
    )
    assert ops(apply_only(graph, JOIN)) == {"Transpose": 2, "MatMul": 1, "Relu": 1}


def test_square_of_one_transpose():
    graph = graph_of("(float[4,4] x) => (float[4,4] y) { t = Transpose(x)  y = MatMul(t, t) }")
    assert ops(apply_only(graph, JOIN)) == {"MatMul": 1, "Transpose": 1}


@pytest.mark.parametrize("scale", ["Mul(m, c)", "Mul(c, m)", "Div(m, c)"])
def test_scale_moves_to_either_operand_and_back(scale):
    graph = graph_of(
        f"(float[n,3,4] x, float[n,4,5] z) => (float[n,3,5] y) {{ m = MatMul(x, z)  y = {scale} }}", c=C
    )
    found = candidates(graph, BEFORE)
    assert [c.variant for c in found] == ["left", "right"]
    for candidate in found:
        assert candidate.bytes_delta == 0
        apply_checked(graph, candidate)
        assert_inverse_restores(graph, candidate)


def test_constant_operand_and_enlarging_factor_are_left_alone():
    constant = graph_of("(float[3,4] x) => (float[3,5] y) { m = MatMul(x, w)  y = Mul(m, c) }", w=W, c=C)
    assert [c.variant for c in candidates(constant, BEFORE)] == ["left"]
    wide = graph_of(
        "(float[3,4] x, float[2,4,5] z) => (float[2,3,5] y) { m = MatMul(x, z)  y = Mul(m, c) }",
        c=C.reshape(1, 1, 1),
    )
    assert [c.variant for c in candidates(wide, BEFORE)] == ["right"]  # x has rank 2, c rank 3
    vector = graph_of(
        "(float[3,4] x, float[4,5] z) => (float[3,5] y) { m = MatMul(x, z)  y = Mul(m, c) }",
        c=np.ones(5, "f4"),
    )
    assert candidates(vector, BEFORE) == []


def test_both_scales_of_attention_move_behind_the_product():
    graph = graph_of(
        """(float[1,2,6,4] q, float[1,2,4,6] k) => (float[1,2,6,6] y) {
            a = Mul(q, c)  b = Mul(k, c)  y = MatMul(a, b)
        }""",
        c=np.array([0.25], "f4"),
    )
    result = apply_all(graph, AFTER)
    assert [node.op_type for node in result.nodes] == ["MatMul", "Mul", "Mul"]


def test_scaled_operand_with_a_second_reader_is_refused():
    graph = graph_of(
        """(float[3,4] q, float[4,6] k) => (float[3,6] y, float[3,4] z) {
            a = Mul(q, c)  y = MatMul(a, k)  z = Relu(a)
        }""",
        c=C,
    )
    assert reasons(graph, AFTER) == ["'a', inside the pattern, is also read by an unnamed Relu"]


def test_match_inside_a_branch_in_half_precision():
    graph = graph_of(
        """(bool k, float16[3,4] x, float16[4,5] z) => (float16[3,5] y) {
            y = If(k) <
                then_branch = t () => (float16[3,5] o) { m = MatMul(x, z)  o = Mul(m, c) },
                else_branch = e () => (float16[3,5] p) { p = MatMul(x, z) }
            >
        }""",
        c=C.astype("f2"),
    )
    apply_checked(graph, candidates(graph, BEFORE)[0])
