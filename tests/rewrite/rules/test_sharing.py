"""A14: the same computation done twice."""

import numpy as np
import pytest

from explorer.graph import load
from tests.models import case_path
from tests.rewrite.harness import apply_all, apply_only, candidates, graph_of, ops, reasons

RULE = "eliminate-common-subexpression"


def test_equal_nodes_are_computed_once():
    graph = graph_of("(float[4] x) => (float[4] y) { a = Exp(x) b = Exp(x) y = Add(a, b) }")
    (candidate,) = candidates(graph, RULE)
    assert candidate.nodes == ("n1",)
    result = apply_only(graph, RULE)
    assert ops(result) == {"Exp": 1, "Add": 1}


def test_chains_of_equal_nodes_collapse():
    graph = graph_of("""(float[4] x) => (float[4] y) {
        a = Exp(x) b = Neg(a) c = Exp(x) d = Neg(c) e = Exp(x) f = Neg(e)
        g = Add(b, d)
        y = Mul(g, f)
    }""")
    assert ops(apply_all(graph, RULE)) == {"Exp": 1, "Neg": 1, "Add": 1, "Mul": 1}


def test_equal_constants_under_other_names_count_as_equal():
    graph = graph_of(
        "(float[4] x) => (float[4] y) { a = Mul(x, u) b = Mul(x, v) y = Sub(a, b) z = Add(a, b) y = Add(z, z) }".replace(
            "y = Sub(a, b) ", ""
        ),
        u=np.full(4, 3, "f4"),
        v=np.full(4, 3, "f4"),
    )
    result = apply_only(graph, RULE)
    assert ops(result)["Mul"] == 1
    assert [value.name for value in result.initializers()] == ["u"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("LeakyRelu<alpha=0.1>(x)", "LeakyRelu<alpha=0.2>(x)"),
        ("Add(x, u)", "Add(x, v)"),
        ("Sub(x, u)", "Sub(u, x)"),
        ("Cast<to=10>(x)", "Cast<to=11>(x)"),
    ],
)
def test_different_attributes_or_operands_stay(first, second):
    graph = graph_of(
        f"(float[4] x) => (float[4] y, float[4] z) {{ a = {first} b = {second} y = Cast<to=1>(a) z = Cast<to=1>(b) }}",
        u=np.full(4, 3, "f4"),
        v=np.full(4, 4, "f4"),
    )
    assert candidates(graph, RULE) == []


def test_two_outputs_keep_their_names():
    graph = load(case_path("twin_subgraphs_both_outputs"))
    result = apply_all(graph, RULE)
    assert [v.name for v in result.outputs] == [v.name for v in graph.outputs]
    assert ops(result)["Sigmoid"] == 1
    assert ops(result)["Identity"] == 1


def test_random_nodes_differ():
    graph = graph_of(
        "(float[4] x) => (float[4] y) { a = RandomNormalLike(x) b = RandomNormalLike(x) y = Add(a, b) }"
    )
    assert candidates(graph, RULE) == []
    assert reasons(graph, RULE) == ["an unnamed RandomNormalLike is random"]


def test_dropouts_in_training_mode_differ():
    graph = graph_of(
        "(float[4] x, bool t) => (float[4] y) { a = Dropout(x, r, t) b = Dropout(x, r, t) y = Add(a, b) }",
        r=np.array(0.5, "f4"),
    )
    assert candidates(graph, RULE) == []


def test_custom_operators_may_keep_state():
    graph = graph_of(
        "(float[4] x) => (float[4] y) { a = my.ops.Next(x) b = my.ops.Next(x) y = Add(a, b) }",
        domains={"my.ops": 1},
    )
    assert candidates(graph, RULE) == []


def test_nodes_with_several_outputs():
    graph = graph_of("""(float[4] x) => (float[2] y, float[2] z) {
        a, b = Split<axis=0>(x)
        c, d = Split<axis=0>(x)
        y = Add(a, d)
        z = Sub(b, c)
    }""")
    assert ops(apply_only(graph, RULE)) == {"Split": 1, "Add": 1, "Sub": 1}


def test_twin_that_leaves_an_output_out_does_not_stand_in():
    graph = graph_of("""(float[1,2,4] x) => (float[1,2,4] y, int64[1,2,4] z) {
        a = MaxPool<kernel_shape=[1]>(x)
        b, i = MaxPool<kernel_shape=[1]>(x)
        y = Add(a, b)
        z = Identity(i)
    }""")
    assert candidates(graph, RULE) == []


def test_equal_nodes_inside_one_body_and_not_across():
    graph = graph_of("""(bool c, float[4] x) => (float[4] y, float[4] z) {
        z = Exp(x)
        y = If(c) <
            then_branch = t () => (float[4] a) { h = Exp(x) k = Exp(x) a = Add(h, k) },
            else_branch = e () => (float[4] b) { b = Neg(x) }
        >
    }""")
    assert ops(apply_only(graph, RULE)) == {"Exp": 2, "If": 1, "Add": 1, "Neg": 1}


def test_string_constants_are_compared():
    graph = graph_of(
        """(string[9] x) => (bool[9] y, bool[9] z) { y = Equal(x, u) z = Equal(x, v) }""",
        opset=19,
        u=np.array(["explorer"]),
        v=np.array(["explorer"]),
    )
    assert ops(apply_only(graph, RULE)) == {"Equal": 1, "Identity": 1}


def test_constants_of_operators_with_tensors_as_attributes():
    text = """(int64[1] n) => (float[?] y) {
        a = ConstantOfShape<value=float[1] {2}>(n)
        b = ConstantOfShape<value=float[1] {VALUE}>(n)
        y = Add(a, b)
    }"""
    assert candidates(graph_of(text.replace("VALUE", "3")), RULE) == []
    assert len(candidates(graph_of(text.replace("VALUE", "2")), RULE)) == 1
