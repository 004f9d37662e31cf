"""D9: distributivity of products over sums."""

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

FACTOR, DISTRIBUTE = "factor-common-matmul-operand", "distribute-matmul-over-sum"
FACTOR_ELEMENTS, DISTRIBUTE_ELEMENTS = "factor-common-multiplier", "distribute-multiplication"
RNG = np.random.default_rng(6)
A, B = RNG.standard_normal((4, 5)).astype("f4"), RNG.standard_normal((4, 5)).astype("f4")


@pytest.mark.parametrize("operator", ["Add", "Sub"])
def test_two_weights_of_one_tensor_become_one(operator):
    graph = graph_of(
        f"(float[n,3,4] x) => (float[n,3,5] y) {{ p = MatMul(x, a)  q = MatMul(x, b)  y = {operator}(p, q) }}",
        a=A,
        b=B,
    )
    (candidate,) = candidates(graph, FACTOR)
    assert candidate.bytes_delta == -A.nbytes
    (node,) = apply_checked(graph, candidate).nodes
    np.testing.assert_array_equal(node.inputs[1].const_value.numpy(), A + B if operator == "Add" else A - B)


@pytest.mark.parametrize("operator", ["Add", "Sub"])
def test_one_weight_of_two_tensors(operator):
    graph = graph_of(
        f"""(float[n,4] x, float[n,4] z) => (float[n,5] y) {{
            p = MatMul(x, a)  q = MatMul(z, a)  y = {operator}(p, q)
        }}""",
        a=A,
    )
    (candidate,) = candidates(graph, FACTOR)
    assert ops(apply_checked(graph, candidate)) == {operator: 1, "MatMul": 1}
    assert_inverse_restores(graph, candidate)


def test_computed_right_operands():
    graph = graph_of(
        """(float[3,4] x, float[4,5] u, float[4,5] v) => (float[3,5] y) {
            p = MatMul(x, u)  q = MatMul(x, v)  y = Add(p, q)
        }"""
    )
    assert_inverse_restores(graph, candidates(graph, FACTOR)[0])


def test_different_shapes_and_second_readers_are_refused():
    shapes = graph_of(
        "(float[3,4] x, float[1,4] z) => (float[3,5] y) { p = MatMul(x, a)  q = MatMul(z, a)  y = Add(p, q) }",
        a=A,
    )
    assert reasons(shapes, FACTOR) == ["'x' [3, 4] and 'z' [1, 4] have different shapes"]
    twice = graph_of(
        """(float[3,4] x) => (float[3,5] y, float[3,5] z) {
            p = MatMul(x, a)  q = MatMul(x, b)  y = Add(p, q)  z = Relu(q)
        }""",
        a=A,
        b=B,
    )
    assert reasons(twice, FACTOR) == ["'q', inside the pattern, is also read by an unnamed Relu"]


def test_products_without_a_common_operand_are_left_alone():
    graph = graph_of(
        "(float[3,4] x, float[3,4] z) => (float[3,5] y) { p = MatMul(x, a)  q = MatMul(z, b)  y = Add(p, q) }",
        a=A,
        b=B,
    )
    assert candidates(graph, FACTOR) == []
    assert reasons(graph, FACTOR) == []


def test_product_of_a_sum_is_distributed():
    graph = graph_of(
        "(float[3,4] x, float[3,4] z) => (float[3,5] y) { s = Sub(x, z)  y = MatMul(s, a) }", a=A
    )
    (candidate,) = candidates(graph, DISTRIBUTE)
    assert candidate.variant == "left"
    assert ops(apply_checked(graph, candidate)) == {"MatMul": 2, "Sub": 1}
    assert_inverse_restores(graph, candidate)


def test_sum_that_broadcasts_is_not_distributed():
    graph = graph_of(
        "(float[3,4] x) => (float[3,5] y) { s = Add(x, c)  y = MatMul(s, a) }", a=A, c=np.ones(4, "f4")
    )
    assert candidates(graph, DISTRIBUTE) == []


@pytest.mark.parametrize("body", ["p = Mul(x, u)  q = Mul(x, v)", "p = Mul(u, x)  q = Mul(x, v)"])
def test_common_multiplier_in_any_order(body):
    graph = graph_of(
        f"(float[n,3] x, float[n,3] u, float[n,1] v) => (float[n,3] y) {{ {body}  y = Sub(p, q) }}"
    )
    (candidate,) = candidates(graph, FACTOR_ELEMENTS)
    assert ops(apply_checked(graph, candidate)) == {"Sub": 1, "Mul": 1}


def test_common_multiplier_and_back():
    graph = graph_of(
        "(float[2,3] x, float[2,3] u, float[2,3] v) => (float[2,3] y) { p = Mul(x, u)  q = Mul(x, v)  y = Add(p, q) }"
    )
    assert_inverse_restores(graph, candidates(graph, FACTOR_ELEMENTS)[0])


def test_both_operands_common():
    graph = graph_of(
        "(float[2,3] x, float[2,3] u) => (float[2,3] y) { p = Mul(x, u)  q = Mul(u, x)  y = Add(p, q) }"
    )
    found = candidates(graph, FACTOR_ELEMENTS)
    assert len(found) == 2
    for candidate in found:
        apply_checked(graph, candidate)


def test_square_in_one_product():
    graph = graph_of(
        "(float[2,3] x, float[2,3] u) => (float[2,3] y) { p = Mul(x, x)  q = Mul(x, u)  y = Add(p, q) }"
    )
    assert ops(apply_only(graph, FACTOR_ELEMENTS)) == {"Add": 1, "Mul": 1}


def test_distribution_over_elements_leaves_constants_alone():
    computed = graph_of(
        "(float[2,3] x, float[2,3] u, float[2,3] v) => (float[2,3] y) { s = Add(u, v)  y = Mul(s, x) }"
    )
    assert ops(apply_only(computed, DISTRIBUTE_ELEMENTS)) == {"Add": 1, "Mul": 2}
    shifted = graph_of(
        "(float[2,3] x, float[2,3] u) => (float[2,3] y) { s = Add(u, c)  y = Mul(s, x) }", c=np.ones(3, "f4")
    )
    assert candidates(shifted, DISTRIBUTE_ELEMENTS) == []


def test_inverse_pair_ends_on_the_trap_model():
    from explorer.graph import load
    from tests.models import case_path

    graph = load(case_path("split_and_merge_undo_each_other"))
    for rule in (FACTOR, DISTRIBUTE, FACTOR_ELEMENTS, DISTRIBUTE_ELEMENTS):
        apply_all(graph, rule)


def test_match_inside_a_branch_and_in_double():
    graph = graph_of(
        """(bool c, double[3,4] x) => (double[3,5] y) {
            y = If(c) <
                then_branch = t () => (double[3,5] o) { p = MatMul(x, a)  q = MatMul(x, b)  o = Add(p, q) },
                else_branch = e () => (double[3,5] r) { m = MatMul(x, a)  r = Neg(m) }
            >
        }""",
        a=A.astype("f8"),
        b=B.astype("f8"),
    )
    assert ops(apply_only(graph, FACTOR)) == {"If": 1, "MatMul": 2, "Neg": 1}
