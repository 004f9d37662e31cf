"""A6: Squeeze and Unsqueeze that cancel or merge."""

import numpy as np
import pytest

from tests.rewrite.harness import apply_only, candidates, graph_of, ops, reasons

RULE = "merge-squeezes"


def pair(x, first, a, second, b, *, opset=17):
    rank = len(x.split(","))
    for op, axes in ((first, a), (second, b)):
        rank += len(axes) if op == "Unsqueeze" else -len(axes)
    y = ",".join("?" * rank)
    if opset < 13:
        text = f"h = {first}<axes={list(a)}>(x) k = {second}<axes={list(b)}>(h)"
        return graph_of(f"(float[{x}] x) => (float[{y}] y) {{ {text} y = Relu(k) }}", opset=opset)
    text = f"(float[{x}] x) => (float[{y}] y) {{ h = {first}(x, a) k = {second}(h, b) y = Relu(k) }}"
    return graph_of(text, a=np.array(a), b=np.array(b))


@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize(
    ("x", "first", "a", "second", "b"),
    [
        ("2,3", "Unsqueeze", (1,), "Squeeze", (-2,)),
        ("2,3", "Unsqueeze", (-1,), "Squeeze", (2,)),
        ("N,3", "Unsqueeze", (0, 3), "Squeeze", (3, 0)),
        ("2,1,3", "Squeeze", (1,), "Unsqueeze", (-2,)),
        ("2,1,3,1", "Squeeze", (1, 3), "Unsqueeze", (-1, 1)),
    ],
)
def test_pairs_that_cancel(x, first, a, second, b, opset):
    assert ops(apply_only(pair(x, first, a, second, b, opset=opset), RULE)) == {"Relu": 1}


@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize(
    ("x", "first", "a", "second", "b", "left", "axes"),
    [
        ("1,2,1,3", "Squeeze", (2,), "Squeeze", (0,), "Squeeze", (0, 2)),
        ("1,2,1,3", "Squeeze", (0,), "Squeeze", (1,), "Squeeze", (0, 2)),
        ("2,3", "Unsqueeze", (0,), "Unsqueeze", (2,), "Unsqueeze", (0, 2)),
        ("2,3", "Unsqueeze", (2,), "Unsqueeze", (0,), "Unsqueeze", (0, 3)),
        ("2,3", "Unsqueeze", (0, 2), "Squeeze", (2,), "Unsqueeze", (0,)),
        ("1,2,1,3", "Squeeze", (0, 2), "Unsqueeze", (0,), "Squeeze", (2,)),
    ],
)
def test_pairs_that_leave_one(x, first, a, second, b, left, axes, opset):
    result = apply_only(pair(x, first, a, second, b, opset=opset), RULE)
    assert ops(result) == {left: 1, "Relu": 1}
    node = result.nodes[0]
    found = node.attributes["axes"].value if opset < 13 else node.inputs[1].const_value.numpy()
    assert tuple(found) == axes


def test_moving_a_unit_dim_takes_two_nodes_and_stays():
    assert candidates(pair("1,2", "Squeeze", (0,), "Unsqueeze", (1,)), RULE) == []


def test_squeeze_without_axes_needs_a_static_shape():
    text = "(float[SHAPE] x) => (float[?] y) { h = Unsqueeze(x, a) k = Squeeze(h) y = Relu(k) }"
    static = graph_of(text.replace("SHAPE", "3"), a=np.array([0]))
    assert ops(apply_only(static, RULE)) == {"Relu": 1}
    dynamic = graph_of(text.replace("SHAPE", "N"), a=np.array([0]))
    assert reasons(dynamic, RULE) == ["the axes of 'k' depend on a shape that is not static"]


def test_computed_axes_are_refused():
    graph = graph_of(
        "(float[2,3] x, int64[1] a) => (float[?,?] y) { h = Unsqueeze(x, b) k = Squeeze(h, a) y = Relu(k) }",
        b=np.array([0]),
    )
    assert reasons(graph, RULE) == ["the axes of 'k' are not constant"]


def test_unknown_rank_is_refused():
    graph = graph_of(
        """(float[2,3] x, int64[k] s) => (float[] y) {
            r = Reshape(x, s) h = Unsqueeze(r, a) k = Squeeze(h, a) y = Relu(k)
        }""",
        a=np.array([0]),
    )
    assert reasons(graph, RULE) == ["the rank of 'r' is unknown"]


def test_first_one_stays_for_other_readers():
    graph = graph_of(
        "(float[2,3] x) => (float[2,3] y, float[1,2,3] z) { h = Unsqueeze(x, a) y = Squeeze(h, a) z = Relu(h) }",
        a=np.array([0]),
    )
    assert candidates(graph, RULE)[0].nodes == ("n1",)
    assert ops(apply_only(graph, RULE)) == {"Unsqueeze": 1, "Relu": 1, "Identity": 1}
