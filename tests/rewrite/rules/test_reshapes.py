"""A5 reshapes that do nothing or follow each other, G9 Flatten and Reshape."""

import numpy as np
import pytest

from explorer.graph import load
from tests.models import case_path
from tests.rewrite.harness import (
    apply_all,
    apply_only,
    assert_inverse_restores,
    candidates,
    graph_of,
    ops,
    reasons,
)

ONE, TWO = "eliminate-reshape", "merge-reshapes"
FLAT, UNFLAT = "flatten-to-reshape", "reshape-to-flatten"


def shape(*sizes):
    return np.array(sizes, "i8")


def chain(first, second, *, x="2,3,4", y="?,?", attribute=""):
    return graph_of(
        f"(float[{x}] x) => (float[{y}] y) {{ h = Reshape(x, a) k = Reshape{attribute}(h, b) y = Relu(k) }}",
        a=shape(*first),
        b=shape(*second),
    )


@pytest.mark.parametrize("target", [(2, 3), (0, 0), (-1, 3), (0, -1)])
def test_reshape_to_the_same_static_shape_disappears(target):
    graph = graph_of("(float[2,3] x) => (float[2,3] y) { h = Reshape(x, s) y = Relu(h) }", s=shape(*target))
    assert ops(apply_only(graph, ONE)) == {"Relu": 1}


@pytest.mark.parametrize("target", [(0, 3), (-1, 3), (0, -1), (0, 0)])
def test_reshape_to_the_same_dynamic_shape_disappears(target):
    graph = graph_of("(float[N,3] x) => (float[?,3] y) { h = Reshape(x, s) y = Relu(h) }", s=shape(*target))
    assert ops(apply_only(graph, ONE)) == {"Relu": 1}


def test_flatten_and_squeeze_that_do_nothing_disappear():
    graph = graph_of("(float[2,3] x) => (float[2,3] y) { f = Flatten(x) h = Squeeze(f) y = Relu(h) }")
    assert ops(apply_all(graph, ONE)) == {"Relu": 1}


def test_reshape_to_another_shape_stays():
    graph = graph_of("(float[2,3] x) => (float[3,2] y) { h = Reshape(x, s) y = Relu(h) }", s=shape(3, 2))
    assert candidates(graph, ONE) == []
    unknown = graph_of("(float[N,M] x) => (float[?,?] y) { h = Reshape(x, s) y = Relu(h) }", s=shape(3, -1))
    assert candidates(unknown, ONE) == []


def test_two_reshapes_become_one_that_keeps_the_target():
    graph = chain((6, 4), (4, 6))
    result = apply_only(graph, TWO)
    (reshape, _) = result.nodes
    assert reshape.inputs[1].name == "b"
    assert sum(1 for _ in result.initializers()) == 1


def test_zero_that_copies_a_static_dim_is_written_out():
    graph = chain((6, 4), (0, -1))
    result = apply_only(graph, TWO)
    np.testing.assert_array_equal(result.nodes[0].inputs[1].const_value.numpy(), [6, 4])


def test_zero_that_copies_the_same_dynamic_dim_stays():
    graph = chain((0, 12), (0, 3, 4), x="N,3,4", y="?,?,?")
    result = apply_only(graph, TWO)
    np.testing.assert_array_equal(result.nodes[0].inputs[1].const_value.numpy(), [0, 3, 4])


def test_zero_that_copies_another_dynamic_dim_becomes_minus_one():
    graph = chain((12, -1), (12, 0), x="N,3,4", y="?,?")
    result = apply_only(graph, TWO)
    np.testing.assert_array_equal(result.nodes[0].inputs[1].const_value.numpy(), [12, -1])


def test_zero_that_copies_an_unknown_dim_next_to_another_is_refused():
    graph = chain((-1, 0, 6), (0, 6, -1), x="N,?,6", y="?,?,?")
    assert candidates(graph, TWO) == []
    reason = "the target of 'k' copies a dynamic dim and cannot be written as a constant"
    assert reasons(graph, TWO) == [reason]


def test_literal_zero_is_not_a_copy():
    """With allowzero=1 a zero is a size: the result is empty, and the engine leaves empty tensors alone."""
    graph = chain((0, 4), (0, 2), x="0,4", y="0,2", attribute="<allowzero=1>")
    assert candidates(graph, TWO) == []
    assert reasons(graph, TWO) == ["'k' is empty (shape [0, 2])"]


def test_chains_that_share_their_targets_do_not_overwrite_each_other():
    graph = load(case_path("reshape_chains_share_shape_tensor"))
    result = apply_all(graph, TWO)
    assert ops(result)["Reshape"] < ops(graph)["Reshape"]
    assert candidates(result, TWO) == []


@pytest.mark.parametrize(
    ("first", "static"),
    [("Flatten(x)", "2,3,4"), ("Squeeze(x, axes)", "2,1,3"), ("Unsqueeze(x, axes)", "2,3")],
)
def test_reshape_after_other_reshaping_operators(first, static):
    graph = graph_of(
        f"(float[{static}] x) => (float[?] y) {{ h = {first} k = Reshape(h, s) y = Relu(k) }}",
        s=shape(-1),
        axes=shape(1),
    )
    assert ops(apply_only(graph, TWO)) == {"Reshape": 1, "Relu": 1}


def test_computed_target_is_refused_unless_the_result_is_known():
    graph = graph_of(
        "(float[2,6] x, int64[2] s) => (float[?,?] y) { h = Reshape(x, a) k = Reshape(h, s) y = Relu(k) }",
        a=shape(3, 4),
    )
    assert reasons(graph, TWO) == ["the target of 'k' is not constant and cannot be written as a constant"]


def test_reshapes_merge_inside_a_branch():
    graph = graph_of(
        """(bool c, float[2,6] x) => (float[?,?] y) {
            y = If(c) <
                then_branch = t () => (float[?,?] a) { h = Reshape(x, s) a = Reshape(h, u) },
                else_branch = e () => (float[?,?] b) { k = Relu(x) b = Reshape(k, u) }
            >
        }""",
        s=shape(3, 4),
        u=shape(4, 3),
    )
    assert ops(apply_only(graph, TWO)) == {"If": 1, "Reshape": 2, "Relu": 1}


@pytest.mark.parametrize(
    ("x", "axis", "target"),
    [
        ("2,3,4", 1, [2, -1]),
        ("N,3,4", 1, [0, -1]),
        ("N,3,4", 2, [-1, 4]),
        ("2,3,N", 2, [6, -1]),
        ("N,3,4", 0, [1, -1]),
        ("N,3,4", -1, [-1, 4]),
    ],
)
def test_flatten_becomes_reshape_and_back(x, axis, target):
    graph = graph_of(f"(float[{x}] x) => (float[?,?] y) {{ h = Flatten<axis={axis}>(x) y = Relu(h) }}")
    (candidate,) = candidates(graph, FLAT)
    result = apply_only(graph, FLAT)
    np.testing.assert_array_equal(result.nodes[0].inputs[1].const_value.numpy(), target)
    if axis == 1:
        assert_inverse_restores(graph, candidate)
    else:
        assert len(candidates(result, UNFLAT)) <= 1


def test_flatten_of_dynamic_dims_on_both_sides_is_refused():
    graph = graph_of("(float[N,M,K] x) => (float[?,?] y) { h = Flatten<axis=2>(x) y = Relu(h) }")
    assert reasons(graph, FLAT) == ["the dims of 'x' on both sides of axis 2 are dynamic"]


@pytest.mark.parametrize(
    ("x", "target", "axis"),
    [("2,3,4", (2, 12), 1), ("2,3,4", (6, 4), 2), ("N,3,4", (0, 12), 1), ("2,3", (1, 6), 0)],
)
def test_reshape_becomes_flatten(x, target, axis):
    graph = graph_of(
        f"(float[{x}] x) => (float[?,?] y) {{ h = Reshape(x, s) y = Relu(h) }}", s=shape(*target)
    )
    result = apply_only(graph, UNFLAT)
    assert result.nodes[0].attributes["axis"].value == axis


def test_reshape_that_cuts_dims_is_no_flatten():
    graph = graph_of("(float[2,6] x) => (float[3,4] y) { h = Reshape(x, s) y = Relu(h) }", s=shape(3, 4))
    assert candidates(graph, UNFLAT) == []
