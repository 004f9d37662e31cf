"""C6: a sum of convolutions and a convolution of joined inputs."""

import numpy as np
import pytest

from tests.rewrite.harness import apply_only, assert_inverse_restores, candidates, graph_of, ops, reasons

MERGE, SPLIT = "merge-conv-sum", "split-conv-inputs"
RNG = np.random.default_rng(14)


def draw(*shape, dtype="f4"):
    return RNG.standard_normal(shape).astype(dtype)


def added(first="Conv(x, w)", second="Conv(z, v)", signature="float[N,3,8,8] x, float[N,2,8,8] z", **weights):
    text = f"({signature}) => (float[N,4,?,?] y) {{ p = {first}\n q = {second}\n y = Add(p, q) }}"
    defaults = {"w": draw(4, 3, 3, 3), "v": draw(4, 2, 3, 3), "b": draw(4), "c": draw(4)}
    weights = {**defaults, **weights}
    return graph_of(text, **{k: v for k, v in weights.items() if f" {k}" in first + second})


@pytest.mark.parametrize(
    ("first", "second", "inputs"),
    [
        ("Conv(x, w)", "Conv(z, v)", 2),
        ("Conv(x, w, b)", "Conv(z, v)", 3),
        ("Conv(x, w)", "Conv(z, v, c)", 3),
        ("Conv(x, w, b)", "Conv(z, v, c)", 3),
    ],
)
def test_two_convolutions_become_one_of_joined_inputs(first, second, inputs):
    attributes = "<pads=[1,1,0,0], strides=[2,1]>"
    graph = added(first.replace("(", f"{attributes}("), second.replace("(", f"{attributes}("))
    result = apply_only(graph, MERGE)
    assert [node.op_type for node in result.nodes] == ["Concat", "Conv"]
    assert len(result.nodes[1].inputs) == inputs


def test_one_input_read_twice():
    graph = added("Conv(x, w)", "Conv(x, v)", signature="float[N,3,8,8] x", v=draw(4, 3, 3, 3))
    assert ops(apply_only(graph, MERGE)) == {"Concat": 1, "Conv": 1}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"second": "Conv<pads=[1,1,1,1]>(z, v)"}, "kernel, strides, pads or dilations differ"),
        ({"v": draw(1, 2, 3, 3)}, "4 and 1 filters are added"),
        (
            {"signature": "float[N,3,8,8] x, float[M,2,8,8] z"},
            "axis 0 of 'x' and 'z' is not known to be equal",
        ),
        (
            {"signature": "float[N,3,8,8] x, float[N,2,8,H] z"},
            "axis 3 of 'x' and 'z' is not known to be equal",
        ),
    ],
)
def test_unequal_convolutions_are_refused(changes, reason):
    graph = added(**changes)
    assert candidates(graph, MERGE) == []
    assert reasons(graph, MERGE) == [reason]


def test_groups_are_refused():
    group = "Conv<group=2>(x, w)"
    graph = added(group, group.replace("w", "v"), "float[N,4,8,8] x", w=draw(4, 2, 3, 3), v=draw(4, 2, 3, 3))
    assert reasons(graph, MERGE) == ["the convolution has 2 groups"]


def test_variable_weight_is_refused():
    graph = added(signature="float[N,3,8,8] x, float[N,2,8,8] z, float[4,2,3,3] r", second="Conv(z, r)")
    assert reasons(graph, MERGE) == ["weight 'r' is a graph input, not a constant"]


def test_another_reader_is_refused():
    graph = graph_of(
        """(float[N,3,8,8] x) => (float[N,4,6,6] y, float[N,4,6,6] u) {
            p = Conv(x, w)
            q = Conv(x, v)
            y = Add(p, q)
            u = Relu(q)
        }""",
        w=draw(4, 3, 3, 3),
        v=draw(4, 3, 3, 3),
    )
    assert reasons(graph, MERGE) == ["'q', inside the pattern, is also read by an unnamed Relu"]


def test_convolution_of_the_other_is_something_else():
    graph = graph_of(
        """(float[N,4,8,8] x) => (float[N,4,8,8] y) {
            p = Conv<pads=[1,1,1,1]>(x, w)
            q = Conv<pads=[1,1,1,1]>(p, v)
            y = Add(p, q)
        }""",
        w=draw(4, 4, 3, 3),
        v=draw(4, 4, 3, 3),
    )
    assert candidates(graph, MERGE) == []
    assert reasons(graph, MERGE) == []


def joined(parts="x, z", attributes="axis=1", outputs="float[N,4,?,?] y", tail="", **weights):
    text = f"""(float[N,3,8,8] x, float[N,2,8,8] z) => ({outputs}) {{
        j = Concat<{attributes}>({parts})
        y = Conv<pads=[1,1,1,1]>(j, w, b)
        {tail}
    }}"""
    return graph_of(text, **{"w": draw(4, 5, 3, 3), "b": draw(4), **weights})


def test_joined_inputs_are_split_and_merged_again():
    graph = joined()
    (candidate,) = candidates(graph, SPLIT)
    assert_inverse_restores(graph, candidate)


def test_three_parts():
    result = apply_only(joined("z, x, z", w=draw(4, 7, 3, 3)), SPLIT)
    assert ops(result) == {"Conv": 3, "Add": 2}


def test_join_that_others_read_is_refused():
    graph = joined(outputs="float[N,4,?,?] y, float[N,5,8,8] u", tail="u = Relu(j)")
    assert reasons(graph, SPLIT) == ["'j', inside the pattern, is also read by an unnamed Relu"]


def test_dynamic_channels_are_refused():
    graph = graph_of(
        "(float[1,C,8,8] x, float[1,D,8,8] z) => (float[1,4,6,6] y) { j = Concat<axis=1>(x, z)\n y = Conv(j, w) }",
        w=draw(4, 5, 3, 3),
    )
    assert reasons(graph, SPLIT) == ["the channels of the parts of 'j' are not known"]


def test_join_over_the_width_is_something_else():
    graph = graph_of(
        "(float[1,3,8,8] x) => (float[1,4,?,?] y) { j = Concat<axis=3>(x, x)\n y = Conv(j, w) }",
        w=draw(4, 3, 3, 3),
    )
    assert candidates(graph, SPLIT) == []
    assert reasons(graph, SPLIT) == []
