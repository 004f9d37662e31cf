"""C17, C18 and C20: com.microsoft FusedConv, and back."""

import numpy as np
import pytest

from explorer.graph import load
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

FUSE, SUM, UNFUSE = "fuse-conv-activation", "fuse-conv-add-activation", "unfuse-conv-activation"
RNG = np.random.default_rng(23)


def draw(*shape, dtype="f4"):
    return RNG.standard_normal(shape).astype(dtype)


def activated(
    activation, opset=17, conv="Conv<pads=[1,1,1,1]>(x, w, b)", outputs="float[N,4,?,?] y", tail="", **weights
):
    text = f"""(float[N,3,8,8] x) => ({outputs}) {{
        c = {conv}
        y = {activation}
        {tail}
    }}"""
    return graph_of(text, opset=opset, **{"w": draw(4, 3, 3, 3), "b": draw(4), **weights})


@pytest.mark.parametrize(
    "activation",
    ["Relu(c)", "Sigmoid(c)", "Tanh(c)", "LeakyRelu<alpha=0.3>(c)", "HardSigmoid<alpha=0.3, beta=0.4>(c)"],
)
def test_fused_and_separated_again(activation):
    graph = activated(activation)
    (candidate,) = candidates(graph, FUSE)
    assert not candidate.portable
    assert_inverse_restores(graph, candidate)


def test_clip_with_constant_bounds():
    graph = activated("Clip(c, low, high)", low=np.array(-0.5, "f4"), high=np.array(1.5, "f4"))
    (candidate,) = candidates(graph, FUSE)
    assert_inverse_restores(graph, candidate)


def test_clip_of_old_opsets():
    result = apply_only(activated("Clip<min=-0.5, max=1.5>(c)", opset=10), FUSE)
    assert ops(apply_only(result, UNFUSE)) == {"Conv": 1, "Clip": 1}


def test_clip_with_variable_bounds_is_refused():
    graph = graph_of(
        "(float[1,3,8,8] x, float low) => (float[1,4,6,6] y) { c = Conv(x, w)\n y = Clip(c, low) }",
        w=draw(4, 3, 3, 3),
    )
    assert reasons(graph, FUSE) == ["the min of Clip is not a constant"]


def test_intermediate_result_that_others_read():
    graph = load("tests/cases/fused_intermediate_second_consumer.onnx")
    assert candidates(graph, FUSE) == []
    assert len(reasons(graph, FUSE)) == 1
    assert "is also read by" in reasons(graph, FUSE)[0]


def test_half_precision_is_refused():
    graph = graph_of(
        "(float16[1,3,8,8] x) => (float16[1,4,6,6] y) { c = Conv(x, w)\n y = Relu(c) }",
        w=draw(4, 3, 3, 3, dtype="f2"),
    )
    assert reasons(graph, FUSE) == ["'y' has element type float16; the rule handles float"]


def test_one_dimensional_convolution_is_refused():
    graph = graph_of("(float[1,3,8] x) => (float[1,4,6] y) { c = Conv(x, w)\n y = Relu(c) }", w=draw(4, 3, 3))
    assert reasons(graph, FUSE) == ["the convolution is not known to be 2-D (4-D input)"]


# With a sum


def test_either_convolution_may_absorb_the_sum():
    graph = activated(
        "Relu(s)", conv="Conv<pads=[1,1,1,1]>(x, w, b)\n d = Conv<pads=[1,1,1,1]>(x, v, e)\n s = Add(c, d)",
        v=draw(4, 3, 3, 3), e=draw(4),
    )  # fmt: skip
    found = candidates(graph, SUM)
    assert [candidate.variant for candidate in found] == ["operand0", "operand1"]
    for candidate in found:
        assert ops(apply_checked(graph, candidate)) == {"FusedConv": 1, "Conv": 1}
    assert_inverse_restores(graph, found[0])


def residual(add="Add(c, z)", z="float[N,4,6,6] z", conv="Conv(x, w)"):
    text = f"""(float[N,3,8,8] x, {z}) => (float[N,4,6,6] y) {{
        c = {conv}
        s = {add}
        y = LeakyRelu<alpha=0.25>(s)
    }}"""
    weights = {"w": draw(4, 3, 3, 3), "b": draw(4)}
    return graph_of(text, **{k: v for k, v in weights.items() if f", {k}" in conv})


@pytest.mark.parametrize("add", ["Add(c, z)", "Add(z, c)"])
def test_missing_bias_becomes_zeros(add):
    (conv,) = apply_only(residual(add), SUM).nodes
    np.testing.assert_array_equal(conv.inputs[2].const_value.numpy(), np.zeros(4, "f4"))


def test_separated_into_three_nodes():
    result = apply_only(residual(conv="Conv(x, w, b)"), SUM)
    assert ops(apply_only(result, UNFUSE)) == {"Conv": 1, "Add": 1, "LeakyRelu": 1}


@pytest.mark.parametrize("z", ["float[4,6,6] z", "float[N,1,6,6] z", "float[M,4,6,6] z"])
def test_sum_that_may_broadcast_is_refused(z):
    graph = residual(z=z)
    assert candidates(graph, SUM) == []
    assert reasons(graph, SUM) == ["'z' is not known to have the shape of 'c'"]


def test_sum_that_others_read_is_refused():
    graph = activated(
        "Relu(s)", conv="Conv(x, w, b)\n s = Add(c, c2)\n c2 = Neg(x2)\n x2 = Conv(x, w)", outputs="float[N,4,?,?] y, float[N,4,?,?] u", tail="u = Neg(s)",
    )  # fmt: skip
    assert candidates(graph, SUM) == []
    assert reasons(graph, SUM) == ["'s', inside the pattern, is also read by an unnamed Neg"]


# Separating


def fused(attributes, inputs="x, w"):
    text = f"""(float[N,3,8,8] x) => (float[N,4,6,6] y) {{
        y = com.microsoft.FusedConv<{attributes}>({inputs})
    }}"""
    return graph_of(text, domains={"com.microsoft": 1}, w=draw(4, 3, 3, 3))


def test_result_is_portable():
    rule = all_rules()[UNFUSE]
    assert rule.portable
    assert ops(apply_only(fused('activation="Tanh", kernel_shape=[3,3]'), UNFUSE)) == {"Conv": 1, "Tanh": 1}


def test_unknown_activation_is_refused():
    assert reasons(fused('activation="Swish"'), UNFUSE) == ["activation 'Swish' is not known"]


def test_inside_a_branch():
    graph = graph_of(
        """(float[1,3,8,8] x, bool flag) => (float[1,4,6,6] y) {
            y = If(flag) <
                then_branch = then () => (float[1,4,6,6] a) { c = Conv(x, w)\n a = Relu(c) },
                else_branch = else () => (float[1,4,6,6] d) { d = Conv(x, w) }
            >
        }""",
        w=draw(4, 3, 3, 3),
    )
    assert ops(apply_only(graph, FUSE)) == {"If": 1, "FusedConv": 1, "Conv": 1}
