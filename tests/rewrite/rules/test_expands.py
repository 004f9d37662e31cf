"""A10: Expands that enlarge nothing, or that broadcasting would do anyway."""

import numpy as np
import pytest

from tests.rewrite.harness import apply_only, candidates, graph_of, ops, reasons

ONE, DROP = "eliminate-expand", "drop-expand-before-broadcast"


@pytest.mark.parametrize(("x", "target"), [("2,3", [2, 3]), ("2,3", [1, 3]), ("2,3", [3])])
def test_expand_of_nothing_disappears(x, target):
    graph = graph_of(
        f"(float[{x}] x) => (float[{x}] y) {{ h = Expand(x, s) y = Relu(h) }}", s=np.array(target)
    )
    assert ops(apply_only(graph, ONE)) == {"Relu": 1}


@pytest.mark.parametrize(("x", "target"), [("1,3", [2, 3]), ("3", [1, 3])])
def test_expand_that_enlarges_stays(x, target):
    graph = graph_of(
        f"(float[{x}] x) => (float[?,?] y) {{ h = Expand(x, s) y = Relu(h) }}", s=np.array(target)
    )
    assert candidates(graph, ONE) == []


def test_dynamic_dim_stays():
    graph = graph_of("(float[N,3] x) => (float[?,?] y) { h = Expand(x, s) y = Relu(h) }", s=np.array([4, 3]))
    assert candidates(graph, ONE) == []


@pytest.mark.parametrize("form", ["Add(h, z)", "Sub(z, h)", "Where(m, h, z)", "Max(z, h)"])
@pytest.mark.parametrize(("x", "z"), [("1,3", "2,3"), ("3", "2,3"), ("2,1", "1,3")])
def test_broadcasting_enlarges_by_itself(form, x, z):
    graph = graph_of(
        f"(float[{x}] x, float[{z}] z) => (float[2,3] y) {{ h = Expand(x, s) y = {form} }}",
        s=np.array([2, 3]),
        m=np.array([True, False, True]),
    )
    result = apply_only(graph, DROP)
    assert "Expand" not in ops(result)
    assert all(v.name != "s" for v in result.initializers())


def test_both_operands_expanded_are_two_sites():
    graph = graph_of(
        "(float[2,1] x, float[1,3] z) => (float[2,3] y) { h = Expand(x, s) k = Expand(z, s) y = Add(h, k) }",
        s=np.array([2, 3]),
    )
    assert [c.variant for c in candidates(graph, DROP)] == ["0", "1"]


@pytest.mark.parametrize(("x", "z"), [("1,3", "1,3"), ("3", "3"), ("3", "1")])
def test_result_that_would_shrink_is_refused(x, z):
    graph = graph_of(
        f"(float[{x}] x, float[{z}] z) => (float[2,3] y) {{ h = Expand(x, s) y = Add(h, z) }}",
        s=np.array([2, 3]),
    )
    assert candidates(graph, DROP) == []
    reason = "'y' may be smaller without 'h': no other operand is known to have its shape"
    assert reasons(graph, DROP) == [reason]


def test_rank_that_would_shrink_is_refused():
    graph = graph_of(
        "(float[3] x, float[3] z) => (float[1,3] y) { h = Expand(x, s) y = Add(h, z) }", s=np.array([1, 3])
    )
    assert candidates(graph, DROP) == []


def test_dynamic_dims_with_the_same_symbol():
    text = """(float[1,3] x, float[N,3] z) => (float[N,3] y) {
        size = Shape(z)
        h = Expand(x, size)
        y = Add(h, z)
    }"""
    assert ops(apply_only(graph_of(text), DROP)) == {"Add": 1, "Shape": 1}
    other = graph_of(
        "(float[1,3] x, float[M,3] z, int64[2] s) => (float[?,3] y) { h = Expand(x, s) y = Add(h, z) }"
    )
    assert candidates(other, DROP) == []


def test_expand_with_another_reader_stays():
    graph = graph_of(
        "(float[1,3] x, float[2,3] z) => (float[2,3] y, float[2,3] w) { h = Expand(x, s) y = Add(h, z) w = Relu(h) }",
        s=np.array([2, 3]),
    )
    result = apply_only(graph, DROP)
    assert ops(result) == {"Expand": 1, "Add": 1, "Relu": 1}
    assert [v.name for v in next(n for n in result.nodes if n.op_type == "Add").inputs] == ["x", "z"]


def test_same_expand_on_both_sides():
    graph = graph_of(
        "(float[1,3] x, float[2,3] z) => (float[2,3] y) { h = Expand(x, s) y = Where(m, h, h) }",
        s=np.array([2, 3]),
        m=np.array([[True], [False]]),
    )
    result = apply_only(graph, DROP)
    assert ops(result) == {"Where": 1}
    smaller = graph_of(
        "(float[1,3] x) => (float[2,3] y) { h = Expand(x, s) y = Add(h, h) }", s=np.array([2, 3])
    )
    assert candidates(smaller, DROP) == []
