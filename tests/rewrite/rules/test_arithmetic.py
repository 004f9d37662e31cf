"""E1 and E2: powers and divisions by constants as multiplications."""

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

POW, SQUARE, DIV = "pow-to-mul", "mul-to-square", "div-to-mul"


def elementwise(body, kind="float", out="2,3,4", opset=17, **constants):
    return graph_of(f"({kind}[2,3,4] x) => ({kind}[{out}] y) {{ {body} }}", opset=opset, **constants)


@pytest.mark.parametrize(("kind", "dtype"), [("float", "f4"), ("double", "f8"), ("float16", "f2")])
@pytest.mark.parametrize("power", [2, 3])
def test_small_powers(power, kind, dtype):
    graph = elementwise("y = Pow(x, p)", kind, p=np.array(power, dtype))
    assert ops(apply_only(graph, POW)) == {"Mul": power - 1}


def test_integer_exponent_and_constant_node():
    graph = elementwise("p = Constant<value = int64[1] {2}>()  y = Pow(x, p)")
    assert ops(apply_only(graph, POW)) == {"Mul": 1}


def test_square_and_back():
    graph = elementwise("y = Pow(x, p)", p=np.array(2, "f4"))
    assert_inverse_restores(graph, candidates(graph, POW)[0])
    graph = elementwise("y = Mul(x, x)")
    (candidate,) = candidates(graph, SQUARE)
    assert candidate.bytes_delta == 4
    assert_inverse_restores(graph, candidate)


def test_shared_exponent_is_kept():
    graph = elementwise("a = Pow(x, p)  b = Pow(a, p)  y = Add(a, b)", p=np.array(2, "f4"))
    assert [c.bytes_delta for c in candidates(graph, POW)] == [0, 0]
    assert ops(apply_all(graph, POW)) == {"Mul": 2, "Add": 1}


def test_other_and_enlarging_exponents_are_refused():
    assert reasons(elementwise("y = Pow(x, p)", p=np.array(2.5, "f4")), POW) == [
        "the exponent is 2.5, not 2 or 3"
    ]
    enlarging = elementwise("y = Pow(x, p)", out="1,2,3,4", p=np.full((1, 1, 1, 1), 2, "f4"))
    assert reasons(enlarging, POW) == ["exponent 'p' may enlarge the result: the rank of 'x' is 3"]
    assert candidates(elementwise("y = Pow(x, p)", p=np.full(4, 2, "f4")), POW) == []


def test_exponent_that_is_an_input_is_left_alone():
    graph = graph_of("(float[2] x, float p) => (float[2] y) { y = Pow(x, p) }", p=np.array(2, "f4"))
    assert candidates(graph, POW) == []


def test_integer_powers_and_squares_are_refused():
    graph = graph_of("(int32[2,3] x) => (int32[2,3] y) { y = Pow(x, p) }", p=np.array(2, "i4"))
    assert reasons(graph, POW) == [
        "'y' has element type int32; the rule handles bfloat16, double, float, float16"
    ]
    assert reasons(elementwise("y = Mul(x, x)", opset=11), SQUARE) == [
        "the result needs opset 12, the model imports 11"
    ]


@pytest.mark.parametrize(("kind", "dtype"), [("float", "f4"), ("double", "f8"), ("float16", "f2")])
@pytest.mark.parametrize("shape", [(), (4,), (3, 1), (1, 2, 3, 4)])
def test_division_by_a_constant(shape, kind, dtype):
    divisor = np.random.default_rng(0).uniform(0.5, 4, shape).astype(dtype)
    out = "1,2,3,4" if len(shape) == 4 else "2,3,4"
    result = apply_only(elementwise("y = Div(x, c)", kind, out=out, c=divisor), DIV)
    assert ops(result) == {"Mul": 1}


def test_zero_and_extreme_divisors_are_refused():
    for bad in (0.0, 1e39, np.inf, 1e-42):
        with np.errstate(all="ignore"):
            graph = elementwise("y = Div(x, c)", c=np.array([1, 2, 3, bad], "f4"))
        assert reasons(graph, DIV) == ["'c' holds a zero or a value without a reciprocal"]


def test_integer_division_and_computed_divisors_are_left_alone():
    integers = graph_of("(int64[2,3] x) => (int64[2,3] y) { y = Div(x, c) }", c=np.array(2))
    assert candidates(integers, DIV) == reasons(integers, DIV) == []
    graph = elementwise("c = Exp(x)  y = Div(x, c)")
    assert candidates(graph, DIV) == reasons(graph, DIV) == []
    inverted = elementwise("y = Div(c, x)", c=np.array(2, "f4"))
    assert candidates(inverted, DIV) == []


def test_large_divisor_is_refused():
    graph = graph_of(
        "(float[1,65537] x) => (float[1,65537] y) { y = Div(x, c) }", c=np.full((1, 65537), 2, "f4")
    )
    assert reasons(graph, DIV) == ["'c' has 65537 elements"]


def test_matches_inside_a_loop_body():
    graph = graph_of(
        """(float[2,3] x) => (float[2,3] y) {
            y = Loop(n, , x) <body = body (int64 i, bool k, float[2,3] a) => (bool g, float[2,3] out) {
                g = Identity(k)  p = Pow(a, two)  out = Div(p, c)
            }>
        }""",
        n=np.array(2),
        two=np.array(2, "f4"),
        c=np.array(3, "f4"),
    )
    assert ops(apply_checked(graph, candidates(graph, POW)[0])) == {
        "Loop": 1,
        "Identity": 1,
        "Mul": 1,
        "Div": 1,
    }
    assert ops(apply_only(graph, DIV)) == {"Loop": 1, "Identity": 1, "Pow": 1, "Mul": 1}


def test_names_do_not_clash_when_a_rule_fires_twice():
    graph = elementwise(
        "a = Div(x, c)  b = Div(a, d)  y = Add(a, b)", c=np.array(2, "f4"), d=np.array(3, "f4")
    )
    result = apply_all(graph, DIV)
    names = [value.name for value in result.initializers()]
    assert sorted(names) == ["reciprocal", "reciprocal_1"]


def test_constant_that_is_also_an_output_stays_and_is_counted():
    graph = graph_of(
        "(float[3] x) => (float[3] y, float p) { p = Constant<value=float {2}>() y = Pow(x, p) }"
    )
    assert [value.name for value in apply_only(graph, POW).outputs] == ["y", "p"]
