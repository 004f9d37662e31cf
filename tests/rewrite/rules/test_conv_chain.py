"""C10 and C19: a 1x1 convolution merged with its neighbour."""

import numpy as np
import pytest

from tests.rewrite.harness import apply_only, candidates, graph_of, ops, reasons

AFTER, BEFORE, DEPTHWISE = (
    "merge-conv-then-pointwise",
    "merge-pointwise-then-conv",
    "merge-depthwise-then-pointwise",
)
RNG = np.random.default_rng(18)


def draw(*shape, dtype="f4"):
    return RNG.standard_normal(shape).astype(dtype)


def chain(first, second, w, v, outputs="float[N,5,?,?] y", tail="", **weights):
    text = f"""(float[N,4,9,9] x) => ({outputs}) {{
        p = Conv<{first}>(x, w{", b" if "b" in weights else ""})
        y = Conv<{second}>(p, v{", c" if "c" in weights else ""})
        {tail}
    }}"""
    return graph_of(text, w=w, v=v, **weights)


WINDOW = "pads=[1,0,2,1], strides=[2,1], dilations=[1,2]"
ONE = "kernel_shape=[1,1]"
BIASES = [{}, {"b": draw(6)}, {"c": draw(5)}, {"b": draw(6), "c": draw(5)}]


@pytest.mark.parametrize("biases", BIASES)
def test_pointwise_after(biases):
    result = apply_only(chain(WINDOW, ONE, draw(6, 4, 3, 3), draw(5, 6, 1, 1), **biases), AFTER)
    assert ops(result) == {"Conv": 1}
    assert len(result.nodes[0].inputs) == (3 if biases else 2)


@pytest.mark.parametrize("biases", [{}, {"c": draw(5)}])
def test_pointwise_before_padding(biases):
    result = apply_only(chain(ONE, WINDOW, draw(6, 4, 1, 1), draw(5, 6, 3, 3), **biases), BEFORE)
    assert ops(result) == {"Conv": 1}


@pytest.mark.parametrize("biases", BIASES)
def test_pointwise_before_no_padding(biases):
    graph = chain(ONE, "strides=[2,1]", draw(6, 4, 1, 1), draw(5, 6, 3, 3), **biases)
    assert ops(apply_only(graph, BEFORE)) == {"Conv": 1}


def test_bias_before_padding_is_refused():
    graph = chain(ONE, WINDOW, draw(6, 4, 1, 1), draw(5, 6, 3, 3), b=draw(6))
    assert reasons(graph, BEFORE) == ["the bias of 'p' does not reach the padding of the second convolution"]


def test_two_pointwise_convolutions_offer_one_form():
    graph = chain(ONE, ONE, draw(6, 4, 1, 1), draw(5, 6, 1, 1))
    assert candidates(graph, BEFORE) == []
    apply_only(graph, AFTER)


@pytest.mark.parametrize("biases", [{}, {"b": draw(8), "c": draw(5)}])
@pytest.mark.parametrize("groups", [2, 4])
def test_grouped_and_pointwise(biases, groups):
    graph = chain(f"{WINDOW}, group={groups}", ONE, draw(8, 4 // groups, 3, 3), draw(5, 8, 1, 1), **biases)
    (conv,) = apply_only(graph, DEPTHWISE).nodes
    assert "group" not in conv.attributes
    assert tuple(conv.inputs[1].shape) == (5, 4, 3, 3)
    assert candidates(graph, AFTER) == []


def test_groups_after_a_pointwise_convolution_are_refused():
    graph = chain(ONE, "group=2", draw(6, 4, 1, 1), draw(4, 3, 3, 3), outputs="float[N,4,?,?] y")
    assert reasons(graph, BEFORE) == ["the convolution has 2 groups"]


def test_activation_in_between_is_something_else():
    graph = graph_of(
        """(float[N,4,9,9] x) => (float[N,5,?,?] y) {
            p = Conv(x, w)
            r = Relu(p)
            y = Conv(r, v)
        }""",
        w=draw(6, 4, 3, 3),
        v=draw(5, 6, 1, 1),
    )
    assert candidates(graph, AFTER) == []


def test_another_reader_is_refused():
    graph = chain(
        WINDOW, ONE, draw(6, 4, 3, 3), draw(5, 6, 1, 1), "float[N,5,?,?] y, float[N,6,?,?] z", "z = Relu(p)"
    )
    assert reasons(graph, AFTER) == ["'p', inside the pattern, is also read by an unnamed Relu"]


def test_growth_beyond_the_limit_is_refused():
    graph = chain("kernel_shape=[9,9]", ONE, draw(1, 4, 9, 9), draw(60000, 1, 1, 1), "float[N,60000,1,1] y")
    assert reasons(graph, AFTER) == ["the weights would grow from 241,296 to 77,760,000 bytes"]
