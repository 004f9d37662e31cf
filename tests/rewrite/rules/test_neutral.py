"""A11: operands that change nothing."""

import numpy as np
import pytest

from explorer.graph import load
from tests.models import case_path
from tests.rewrite.harness import apply_only, candidates, graph_of, ops, reasons

ONE, ZERO, LOGIC = "eliminate-multiplication-by-one", "eliminate-addition-of-zero", "eliminate-neutral-logic"
FLOAT = {"float": "f4", "double": "f8", "float16": "f2", "int32": "i4", "int64": "i8"}


@pytest.mark.parametrize("dtype", FLOAT)
@pytest.mark.parametrize("form", ["Mul(x, c)", "Mul(c, x)", "Div(x, c)"])
def test_multiplication_by_one(form, dtype):
    graph = graph_of(
        f"({dtype}[2,3] x) => ({dtype}[2,3] y) {{ h = {form} y = Abs(h) }}", c=np.ones((), FLOAT[dtype])
    )
    assert ops(apply_only(graph, ONE)) == {"Abs": 1}


@pytest.mark.parametrize("exponent", [np.float32(1), np.int64(1)])
def test_first_power(exponent):
    graph = graph_of("(float[2,3] x) => (float[2,3] y) { h = Pow(x, c) y = Relu(h) }", c=np.asarray(exponent))
    assert ops(apply_only(graph, ONE)) == {"Relu": 1}


@pytest.mark.parametrize("form", ["Add(x, c)", "Add(c, x)", "Sub(x, c)"])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (1, 3), (2, 3)])
def test_addition_of_zero(form, shape):
    graph = graph_of(
        f"(float[2,3] x) => (float[2,3] y) {{ h = {form} y = Relu(h) }}", c=np.zeros(shape, "f4")
    )
    assert ops(apply_only(graph, ZERO)) == {"Relu": 1}


@pytest.mark.parametrize("form", ["Div(c, x)", "Pow(c, x)", "Sub(z, x)"])
def test_operands_that_are_not_neutral_on_the_left(form):
    graph = graph_of(
        f"(float[2,3] x) => (float[2,3] y) {{ y = {form} }}", c=np.ones((), "f4"), z=np.zeros((), "f4")
    )
    assert candidates(graph, ONE) == candidates(graph, ZERO) == []


def test_x_times_zero_is_never_zero():
    graph = graph_of("(float[2,3] x) => (float[2,3] y) { h = Mul(x, c) y = Relu(h) }", c=np.zeros((), "f4"))
    assert candidates(graph, ONE) == candidates(graph, ZERO) == []


def test_constants_that_enlarge_the_result_are_refused():
    graph = load(case_path("mul_one_add_zero_broadcasts"))
    assert candidates(graph, ONE) == candidates(graph, ZERO) == []
    assert len(reasons(graph, ONE)) == len(reasons(graph, ZERO)) == 1
    assert "may enlarge" in reasons(graph, ONE)[0]


@pytest.mark.parametrize(
    ("x", "shape", "words"),
    [
        ("3", (1, 1), "'c' of shape [1, 1] may enlarge 'x' of shape [3]"),
        ("1,3", (2, 1), "'c' of shape [2, 1] may enlarge 'x' of shape [1, 3]"),
        ("N,3", (4, 3), "'c' of shape [4, 3] may enlarge 'x' of shape [N, 3]"),
    ],
)
def test_near_misses_name_both_shapes(x, shape, words):
    graph = graph_of(f"(float[{x}] x) => (float[] y) {{ h = Mul(x, c) y = Relu(h) }}", c=np.ones(shape, "f4"))
    assert reasons(graph, ONE) == [words]


def test_unknown_rank_takes_a_scalar_only():
    text = "(float[2,3] x, int64[k] s) => (float[] y) { r = Reshape(x, s) h = Mul(r, c) y = Relu(h) }"
    assert len(candidates(graph_of(text, c=np.ones((), "f4")), ONE)) == 1
    assert reasons(graph_of(text, c=np.ones((1, 1), "f4")), ONE) == [
        "'c' of shape [1, 1] may enlarge 'r' of shape unknown"
    ]


def test_other_values_and_overridable_ones_stay():
    graph = graph_of("(float[2] x) => (float[2] y) { y = Mul(x, c) }", c=np.array([1, 1.5], "f4"))
    assert candidates(graph, ONE) == []
    overridable = graph_of("(float[2] x, float[1] c) => (float[2] y) { y = Mul(x, c) }", c=np.ones(1, "f4"))
    assert candidates(overridable, ONE) == []


@pytest.mark.parametrize(("form", "value"), [("And(x, c)", True), ("Or(c, x)", False), ("Xor(x, c)", False)])
def test_logic(form, value):
    graph = graph_of(f"(bool[2,9] x) => (bool[2,9] y) {{ h = {form} y = Not(h) }}", c=np.array([value]))
    assert ops(apply_only(graph, LOGIC)) == {"Not": 1}


def test_logic_that_decides_stays():
    graph = graph_of("(bool[2,9] x) => (bool[2,9] y) { y = And(x, c) }", c=np.array([False]))
    assert candidates(graph, LOGIC) == []


def test_old_broadcasting_is_refused():
    graph = graph_of(
        "(float[2,3] x) => (float[2,3] y) { h = Mul<broadcast=1>(x, c) y = Relu(h) }",
        opset=6,
        c=np.ones(1, "f4"),
    )
    assert reasons(graph, ONE) == ["the result needs opset 7, the model imports 6"]


def test_constant_node_is_a_constant():
    graph = graph_of(
        "(float[2,3] x) => (float[2,3] y) { c = Constant<value=float {1.0}>() h = Mul(x, c) y = Relu(h) }"
    )
    result = apply_only(graph, ONE)
    assert [node.op_type for node in result.nodes] == ["Relu"]
