"""C4 and C5 through a Concat, and fire modules: joined convolutions of one tensor."""

import numpy as np
import pytest

from explorer.rewrite import all_rules
from tests.rewrite.harness import (
    apply_checked,
    apply_only,
    assert_inverse_restores,
    candidates,
    graph_of,
    ops,
    reasons,
)

MERGE, FIRE, SPLIT = "merge-convs-of-concat", "merge-fire-module", "split-conv-channels"
RNG = np.random.default_rng(13)


def draw(*shape, dtype="f4"):
    return RNG.standard_normal(shape).astype(dtype)


def joined(body, outputs="float[N,9,?,?] y", **weights):
    defaults = {"w": draw(4, 3, 3, 3), "v": draw(5, 3, 3, 3), "b": draw(4), "c": draw(5)}
    weights = {**defaults, **weights}
    return graph_of(
        f"(float[N,3,8,8] x) => ({outputs}) {{ {body} }}",
        **{k: v for k, v in weights.items() if f"{k}" in body},
    )


def test_two_convolutions_become_one_without_a_split():
    graph = joined("p = Conv(x, w, b)\n q = Conv(x, v, c)\n y = Concat<axis=1>(p, q)")
    assert ops(apply_only(graph, MERGE)) == {"Conv": 1}


def test_missing_bias_is_zeros():
    graph = joined("p = Conv(x, w)\n q = Conv(x, v, c)\n y = Concat<axis=-3>(q, p)")
    (conv,) = apply_only(graph, MERGE).nodes
    np.testing.assert_array_equal(conv.inputs[2].const_value.numpy()[5:], np.zeros(4, "f4"))


@pytest.mark.parametrize("activation", ["Relu", "LeakyRelu<alpha=0.1>", "Sigmoid"])
def test_equal_activations_are_merged_as_well(activation):
    name, _, rest = activation.partition("<")
    attributes = f"<{rest}" if rest else ""
    body = f"""p = Conv(x, w)
        q = Conv(x, v)
        r = {name}{attributes}(p)
        s = {name}{attributes}(q)
        y = Concat<axis=1>(r, s)"""
    assert ops(apply_only(joined(body), MERGE)) == {"Conv": 1, name: 1}


def test_clips_with_equal_bounds():
    body = """p = Conv(x, w)
        q = Conv(x, v)
        r = Clip(p, low1, high)
        s = Clip(q, low2, high)
        y = Concat<axis=1>(r, s)"""
    bounds = {"low1": np.array(-1, "f4"), "low2": np.array(-1, "f4"), "high": np.array(2, "f4")}
    graph = joined(body, **bounds)
    assert "low2" not in {value.name for value in apply_only(graph, MERGE).initializers()}
    assert candidates(joined(body, **{**bounds, "low2": np.array(0, "f4")}), MERGE) == []


def test_run_inside_a_longer_concat():
    body = """p = Conv<pads=[1,1,1,1]>(x, w)
        q = Conv<pads=[1,1,1,1]>(x, v)
        y = Concat<axis=1>(x, p, q, x)"""
    result = apply_only(joined(body, outputs="float[N,15,8,8] y"), MERGE)
    assert ops(result) == {"Conv": 1, "Concat": 1}


@pytest.mark.parametrize(
    "body",
    [
        "p = Conv(x, w)\n q = Conv(x, v)\n r = Relu(p)\n y = Concat<axis=1>(r, q)",
        "p = Conv(x, w)\n q = Conv(x, v)\n r = Relu(p)\n s = Tanh(q)\n y = Concat<axis=1>(r, s)",
        "z = Relu(x)\n p = Conv(x, w)\n q = Conv(z, v)\n y = Concat<axis=1>(p, q)",
        "p = Conv(x, w)\n y = Concat<axis=1>(p, p)",
    ],
)
def test_other_joins_are_something_else(body):
    outputs = "float[N,8,?,?] y" if "(p, p)" in body else "float[N,9,?,?] y"
    graph = joined(body, outputs=outputs)
    assert candidates(graph, MERGE) == []
    assert reasons(graph, MERGE) == []


def test_join_over_another_axis_is_something_else():
    graph = joined(
        "p = Conv(x, w)\n q = Conv(x, u)\n y = Concat<axis=2>(p, q)", "float[N,4,?,?] y", u=draw(4, 3, 3, 3)
    )
    assert candidates(graph, MERGE) == []


def test_groups_are_refused():
    graph = graph_of(
        """(float[N,4,8,8] x) => (float[N,8,?,?] y) {
            p = Conv<group=2>(x, w)
            q = Conv<group=2>(x, v)
            y = Concat<axis=1>(p, q)
        }""",
        w=draw(4, 2, 3, 3),
        v=draw(4, 2, 3, 3),
    )
    assert reasons(graph, MERGE) == ["the convolution has 2 groups"]


def test_another_reader_is_refused():
    body = "p = Conv(x, w)\n q = Conv(x, v)\n y = Concat<axis=1>(p, q)\n z = Relu(q)"
    graph = joined(body, outputs="float[N,9,?,?] y, float[N,5,?,?] z")
    assert reasons(graph, MERGE) == ["'q', inside the pattern, is also read by an unnamed Relu"]


# Fire modules

FIRE_MODULE = """p = Conv<kernel_shape=[1,1]>(x, w, b)
    q = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, v, c)
    r = Relu(p)
    s = Relu(q)
    y = Concat<axis=1>(r, s)"""


def test_fire_module():
    graph = joined(FIRE_MODULE, w=draw(4, 3, 1, 1))
    result = apply_only(graph, FIRE)
    assert ops(result) == {"Conv": 1, "Relu": 1}
    assert candidates(graph, MERGE) == []
    assert not all_rules()[FIRE].default


def test_fire_module_in_the_other_order_and_with_strides():
    body = FIRE_MODULE.replace("(r, s)", "(s, r)").replace("kernel_shape", "strides=[2,2], kernel_shape")
    assert ops(apply_only(joined(body, w=draw(4, 3, 1, 1)), FIRE)) == {"Conv": 1, "Relu": 1}


def test_windows_that_do_not_line_up_are_refused():
    graph = joined(FIRE_MODULE.replace("[1,1,1,1]", "[2,2,0,0]"), w=draw(4, 3, 2, 2))
    assert candidates(graph, FIRE) == []
    graph = joined(FIRE_MODULE.replace("kernel_shape=[1,1]", "pads=[0,1,2,1]"), w=draw(4, 3, 3, 1))
    assert reasons(graph, FIRE) == ["the window 3x3 with its strides and pads does not cover the window 3x1"]


# Splitting


def test_split_and_merged_again():
    graph = joined("y = Conv<pads=[1,1,1,1]>(x, w, b)", outputs="float[N,4,8,8] y")
    (candidate,) = candidates(graph, SPLIT)
    assert_inverse_restores(graph, candidate)
    assert ops(apply_checked(graph, candidate)) == {"Conv": 2, "Concat": 1}


def test_split_of_a_convolution_with_an_omitted_bias():
    graph = graph_of('(float[1,3,8,8] x) => (float[1,4,6,6] y) { y = Conv(x, w, "") }', w=draw(4, 3, 3, 3))
    result = apply_only(graph, SPLIT)
    assert [len(node.inputs) for node in result.nodes] == [2, 2, 2]


def test_odd_number_of_filters_is_not_split():
    assert candidates(joined("y = Conv(x, v)", outputs="float[N,5,?,?] y"), SPLIT) == []


def test_variable_bias_is_refused():
    text = "(float[1,3,8,8] x, float[4] r) => (float[1,4,6,6] y) { y = Conv(x, w, r) }"
    assert reasons(graph_of(text, w=draw(4, 3, 3, 3)), SPLIT) == ["bias 'r' is a graph input, not a constant"]


def test_inside_a_branch():
    graph = graph_of(
        """(float[1,3,8,8] x, bool flag) => (float[1,9,6,6] y) {
            y = If(flag) <
                then_branch = then () => (float[1,9,6,6] a) {
                    p = Conv(x, w)
                    q = Conv(x, v)
                    a = Concat<axis=1>(p, q)
                },
                else_branch = else () => (float[1,9,6,6] d) { d = Conv(x, u) }
            >
        }""",
        w=draw(4, 3, 3, 3),
        v=draw(5, 3, 3, 3),
        u=draw(9, 3, 3, 3),
    )
    assert ops(apply_only(graph, MERGE)) == {"If": 1, "Conv": 2}
