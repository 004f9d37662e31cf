"""B11: chains of additions and multiplications by constants."""

import numpy as np
import pytest

from explorer.graph import load
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

SHIFTS, SCALES, DISTRIBUTE = "merge-constant-shifts", "merge-constant-scales", "distribute-scale-over-shift"
RNG = np.random.default_rng(5)


def draw(*shape, dtype="f4"):
    return (RNG.standard_normal(shape) + 3).astype(dtype)


def chain(first, second, shape=(), other=(), dtype="float", opset=17, **weights):
    kind = {"float": "f4", "double": "f8", "float16": "f2"}[dtype]
    text = f"({dtype}[N,4] x) => ({dtype}[N,4] y) {{ a = {first}\n y = {second} }}"
    defaults = {"c": draw(*shape, dtype=kind), "k": draw(*other, dtype=kind)}
    return graph_of(text, opset=opset, **{**defaults, **weights})


@pytest.mark.parametrize("first", ["Add(x, c)", "Add(c, x)", "Sub(x, c)", "Sub(c, x)"])
@pytest.mark.parametrize("second", ["Add(k, a)", "Sub(a, k)", "Sub(k, a)"])
def test_two_shifts_become_one(first, second):
    result = apply_only(chain(first, second, (4,), (1, 4)), SHIFTS)
    assert len(result.nodes) == 1


@pytest.mark.parametrize("first", ["Mul(x, c)", "Mul(c, x)", "Div(x, c)"])
@pytest.mark.parametrize("second", ["Mul(k, a)", "Div(a, k)"])
@pytest.mark.parametrize("dtype", ["float", "double", "float16"])
def test_two_scales_become_one(first, second, dtype):
    assert ops(apply_only(chain(first, second, (4,), (), dtype), SCALES)) == {"Mul": 1}


@pytest.mark.parametrize("first", ["Add(x, c)", "Sub(x, c)"])
@pytest.mark.parametrize("second", ["Mul(a, k)", "Mul(k, a)", "Div(a, k)"])
def test_scale_moves_before_the_shift(first, second):
    result = apply_only(chain(first, second, (4,), ()), DISTRIBUTE)
    assert [node.op_type for node in result.nodes] == [second[:3], "Add"]
    assert candidates(result, DISTRIBUTE) == []


def test_constant_divided_by_a_tensor_is_no_chain():
    graph = chain("Div(c, x)", "Mul(a, k)")
    assert candidates(graph, SCALES) == []


def test_combination_larger_than_both_is_refused():
    graph = graph_of(
        "(float[4,5] x) => (float[4,5] y) { a = Add(x, c)\n y = Add(a, k) }", c=draw(4, 1), k=draw(1, 5)
    )
    assert reasons(graph, SHIFTS) == ["'c' and 'k' combine to 80 bytes, more than both"]


def test_overflow_is_refused():
    graph = chain("Mul(x, c)", "Mul(a, k)", c=np.array(1e30, "f4"), k=np.array(1e30, "f4"))
    assert candidates(graph, SCALES) == []
    assert reasons(graph, SCALES) == ["a folded weight is too large for float32"]


def test_underflow_is_refused():
    graph = chain("Mul(x, c)", "Mul(a, k)", c=np.array(1e-30, "f4"), k=np.array(1e-30, "f4"))
    assert reasons(graph, SCALES) == ["the product of 'c' and 'k' underflows to zero"]


def test_division_by_zero_is_refused():
    graph = chain("Div(x, c)", "Mul(a, k)", c=np.array(0, "f4"))
    assert reasons(graph, SCALES) == ["combined with 'k' a constant is not finite"]


def test_inner_result_with_another_reader_is_refused():
    graph = graph_of(
        "(float[4] x) => (float[4] y, float[4] z) { a = Add(x, c)\n y = Add(a, k)\n z = Relu(a) }",
        c=draw(4),
        k=draw(4),
    )
    assert reasons(graph, SHIFTS) == ["'a', inside the pattern, is also read by an unnamed Relu"]


def test_overridable_constant_is_refused():
    graph = graph_of(
        "(float[4] x, float[4] c = {1, 2, 3, 4}) => (float[4] y) { a = Add(x, k)\n y = Add(a, c) }", k=draw(4)
    )
    expected = "'c' is a graph input with a default that callers may override, not a constant"
    assert reasons(graph, SHIFTS) == [expected]


def test_integers_are_left_alone():
    graph = graph_of(
        "(int64[4] x) => (int64[4] y) { a = Add(x, c)\n y = Add(a, k) }", c=np.arange(4), k=np.array(7)
    )
    assert candidates(graph, SHIFTS) == []
    assert reasons(graph, SHIFTS) == []


def test_old_broadcasting_is_refused():
    graph = chain("Add(x, c)", "Add(a, k)", opset=6, c=draw(4), k=draw(4))
    assert candidates(graph, SHIFTS) == []


def test_long_chain_ends_with_one_node():
    graph = graph_of(
        "(float[N,4] x) => (float[N,4] y) { a = Add(x, c)\n b = Sub(a, d)\n e = Add(f, b)\n y = Sub(g, e) }",
        c=draw(4),
        d=draw(),
        f=draw(4),
        g=draw(4),
    )
    assert ops(apply_all(graph, SHIFTS)) == {"Sub": 1}


def test_subtraction_and_addition_are_inverse():
    graph = graph_of("(float[N,4] x) => (float[N,4] y) { y = Sub(x, c) }", c=draw(4) + 10)
    (candidate,) = candidates(graph, "sub-to-add")
    assert_inverse_restores(graph, candidate)


def test_only_negative_constants_are_taken_away():
    graph = graph_of("(float[N,2] x) => (float[N,2] y) { y = Add(x, c) }", c=np.array([-1, 2], "f4"))
    assert candidates(graph, "add-to-sub") == []
    graph = graph_of("(float[N,2] x) => (float[N,2] y) { y = Add(c, x) }", c=np.array([-1, -2], "f4"))
    assert ops(apply_only(graph, "add-to-sub")) == {"Sub": 1}


def test_distribution_stops_on_the_case_that_loops_others():
    graph = load("tests/cases/split_and_merge_undo_each_other.onnx")
    for _ in range(10):
        found = [c for rule in (SHIFTS, SCALES, DISTRIBUTE) for c in candidates(graph, rule)]
        if not found:
            break
        graph = apply_checked(graph, found[0])
    assert [c for rule in (SHIFTS, SCALES, DISTRIBUTE) for c in candidates(graph, rule)] == []
