"""E1 and E2: square roots written as powers, divisions written with Reciprocal."""

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

ROOT, DIV, MUL = "pow-to-sqrt", "mul-reciprocal-to-div", "div-to-mul-reciprocal"


def positive(body, kind="float", **constants):
    return graph_of(f"({kind}[2,3] x) => ({kind}[2,3] y) {{ p = Exp(x)  {body} }}", **constants)


@pytest.mark.parametrize(("kind", "dtype"), [("float", "f4"), ("double", "f8")])
def test_powers_of_a_half(kind, dtype):
    root = positive("y = Pow(p, h)", kind, h=np.array(0.5, dtype))
    assert ops(apply_only(root, ROOT)) == {"Exp": 1, "Sqrt": 1}
    inverse = positive("y = Pow(p, h)", kind, h=np.array([-0.5], dtype))
    assert ops(apply_only(inverse, ROOT)) == {"Exp": 1, "Sqrt": 1, "Reciprocal": 1}


def test_root_is_opt_in_and_refuses_an_exponent_that_enlarges():
    from explorer.rewrite import default_rules

    assert ROOT not in default_rules()
    graph = graph_of("(float[2,3] x) => (float[1,2,3] y) { y = Pow(x, h) }", h=np.full((1, 1, 1), 0.5, "f4"))
    assert reasons(graph, ROOT) == ["exponent 'h' may enlarge the result"]
    assert candidates(positive("y = Pow(p, h)", h=np.array(0.25, "f4")), ROOT) == []


@pytest.mark.parametrize("product", ["Mul(x, r)", "Mul(r, x)"])
def test_reciprocal_factor_becomes_a_division(product):
    graph = positive(f"r = Reciprocal(p)  y = {product}")
    assert ops(apply_only(graph, DIV)) == {"Exp": 1, "Div": 1}


def test_reciprocal_that_is_read_elsewhere_stays():
    graph = graph_of(
        "(float[2,3] x) => (float[2,3] y, float[2,3] z) { p = Exp(x)  r = Reciprocal(p)  y = Mul(x, r)  z = Neg(r) }"
    )
    assert ops(apply_only(graph, DIV)) == {"Exp": 1, "Reciprocal": 1, "Div": 1, "Neg": 1}


def test_product_of_two_reciprocals_has_two_candidates():
    graph = positive("q = Exp(p)  r = Reciprocal(p)  s = Reciprocal(q)  y = Mul(r, s)")
    assert [c.variant for c in candidates(graph, DIV)] == ["operand0", "operand1"]
    for candidate in candidates(graph, DIV):
        apply_checked(graph, candidate)


def test_division_by_a_computed_tensor_and_back():
    graph = positive("y = Div(x, p)")
    (candidate,) = candidates(graph, MUL)
    assert ops(apply_checked(graph, candidate)) == {"Exp": 1, "Reciprocal": 1, "Mul": 1}
    assert_inverse_restores(graph, candidate)


def test_integer_and_constant_divisions_are_left_alone():
    integers = graph_of("(int64[2,3] x, int64[2,3] z) => (int64[2,3] y) { y = Div(x, z) }")
    assert candidates(integers, MUL) == reasons(integers, MUL) == []
    assert candidates(positive("y = Div(p, c)", c=np.array(2, "f4")), MUL) == []


def test_match_inside_a_branch():
    graph = graph_of(
        """(bool k, float[2,3] x) => (float[2,3] y) {
            y = If(k) <
                then_branch = t () => (float[2,3] o) { p = Exp(x)  r = Reciprocal(p)  o = Mul(x, r) },
                else_branch = e () => (float[2,3] q) { q = Relu(x) }
            >
        }"""
    )
    assert ops(apply_only(graph, DIV)) == {"If": 1, "Exp": 1, "Div": 1, "Relu": 1}
