"""E3: chains of Add as one Sum, and back."""

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

FUSE, SPLIT = "fuse-add-chain", "split-sum"
INPUTS = "(float[2,3] a, float[2,3] b, float[2,3] c, float[2,3] d) => (float[2,3] y)"


def total(body, **constants):
    return graph_of(f"{INPUTS} {{ {body} }}", **constants)


def test_chain_becomes_a_sum_and_comes_back():
    graph = total("s = Add(a, b)  t = Add(s, c)  y = Add(t, d)")
    (candidate,) = candidates(graph, FUSE)
    (node,) = apply_checked(graph, candidate).nodes
    assert [value.name for value in node.inputs] == ["a", "b", "c", "d"]
    assert_inverse_restores(graph, candidate)


@pytest.mark.parametrize(
    "body",
    [
        "s = Add(a, b)  t = Add(c, d)  y = Add(s, t)",
        "s = Add(b, c)  t = Add(a, s)  y = Add(t, d)",
        "s = Sum(a, b, c)  y = Add(s, d)",
        "s = Add(a, b)  y = Sum(c, s, d)",
    ],
)
def test_other_brackets(body):
    assert ops(apply_only(total(body), FUSE)) == {"Sum": 1}


def test_broadcasting_terms():
    graph = graph_of(
        "(float[n,3] a, float[3] b, float[2,1,1] c) => (float[2,n,3] y) { s = Add(b, a)  y = Add(s, c) }"
    )
    assert ops(apply_only(graph, FUSE)) == {"Sum": 1}


def test_inner_sum_that_others_read_stays():
    graph = graph_of(
        "(float[2] a, float[2] b, float[2] c, float[2] d) => (float[2] y, float[2] z) "
        "{ s = Add(a, b)  t = Add(s, c)  y = Add(t, d)  z = Relu(s) }"
    )
    assert ops(apply_only(graph, FUSE)) == {"Add": 1, "Sum": 1, "Relu": 1}


def test_doubled_term_and_two_terms_are_left_alone():
    assert candidates(total("s = Add(a, b)  y = Add(s, s)"), FUSE) == []
    assert candidates(total("y = Add(a, b)"), FUSE) == []


def test_old_opset_and_integers_are_refused():
    old = graph_of(
        "(float[2] a, float[2] b, float[2] c) => (float[2] y) { s = Add(a, b)  y = Add(s, c) }", opset=7
    )
    assert reasons(old, FUSE) == ["the result needs opset 8, the model imports 7"]
    ints = graph_of("(int64[2] a, int64[2] b, int64[2] c) => (int64[2] y) { s = Add(a, b)  y = Add(s, c) }")
    assert reasons(ints, FUSE) == ["'y' has element type int64; the rule handles double, float, float16"]


def test_sum_of_one_is_left_alone_and_two_become_an_add():
    assert candidates(total("y = Sum(a)"), SPLIT) == []
    assert ops(apply_only(total("y = Sum(a, b)"), SPLIT)) == {"Add": 1}


def test_long_chain_is_cut():
    steps = "".join(f"  s{i + 1} = Add(s{i}, a)" for i in range(20))
    graph = graph_of(f"(float[2] a, float[2] s0) => (float[2] y) {{ {steps}  y = Relu(s20) }}")
    (candidate,) = candidates(graph, FUSE)
    assert ops(apply_checked(graph, candidate)) == {"Add": 5, "Sum": 1, "Relu": 1}


def test_match_inside_a_branch_in_half_precision():
    graph = graph_of(
        """(bool k, float16[2,3] a, float16[3] b) => (float16[2,3] y) {
            y = If(k) <
                then_branch = t () => (float16[2,3] o) { s = Add(a, b)  o = Add(s, c) },
                else_branch = e () => (float16[2,3] q) { q = Add(a, b) }
            >
        }""",
        c=np.ones(3, "f2"),
    )
    assert ops(apply_only(graph, FUSE)) == {"If": 1, "Sum": 1, "Add": 1}
