"""C2: automatic padding written out."""

import numpy as np
import pytest

from tests.rewrite.harness import apply_only, candidates, graph_of, ops, reasons

RULE = "explicit-pads"
RNG = np.random.default_rng(11)


def draw(*shape, dtype="f4"):
    return RNG.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("auto", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("attributes", ["strides=[1,1]", "strides=[2,3]", "strides=[4,1]"])
@pytest.mark.parametrize("size", [7, 10])
def test_convolution(auto, attributes, size):
    graph = graph_of(
        f'(float[N,3,{size},9] x) => (float[N,4,?,?] y) {{ y = Conv<auto_pad="{auto}", {attributes}>(x, w) }}',
        w=draw(4, 3, 3, 2),
    )
    (conv,) = apply_only(graph, RULE).nodes
    assert "auto_pad" not in conv.attributes


@pytest.mark.parametrize("auto", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("stride", [1, 2, 4])
@pytest.mark.parametrize("pool", ["MaxPool", "AveragePool"])
def test_pool(auto, stride, pool):
    graph = graph_of(
        f"""(float[N,3,10,9] x) => (float[N,3,?,?] y) {{
            y = {pool}<auto_pad="{auto}", kernel_shape=[3,2], strides=[{stride},{stride}]>(x)
        }}"""
    )
    assert ops(apply_only(graph, RULE)) == {pool: 1}


def test_known_numbers():
    graph = graph_of(
        '(float[1,1,5,6] x) => (float[1,1,3,3] y) { y = Conv<auto_pad="SAME_UPPER", strides=[2,2]>(x, w) }',
        w=draw(1, 1, 3, 3),
    )
    (conv,) = apply_only(graph, RULE).nodes
    assert list(conv.attributes.get_ints("pads")) == [1, 0, 1, 1]


def test_both_outputs_of_a_pool():
    graph = graph_of(
        """(float[1,3,9,9] x) => (float[1,3,?,?] y, int64[1,3,?,?] i) {
            y, i = MaxPool<auto_pad="SAME_LOWER", kernel_shape=[2,2]>(x)
        }"""
    )
    assert ops(apply_only(graph, RULE)) == {"MaxPool": 1}


def test_dynamic_size_is_refused_for_same_only():
    text = '(float[N,3,H,9] x) => (float[N,4,?,?] y) { y = Conv<auto_pad="AUTO">(x, w) }'
    graph = graph_of(text.replace("AUTO", "SAME_UPPER"), w=draw(4, 3, 3, 3))
    assert reasons(graph, RULE) == ["axis 2 of 'x' is dynamic, and SAME padding depends on it"]
    apply_only(graph_of(text.replace("AUTO", "VALID"), w=draw(4, 3, 3, 3)), RULE)


def test_size_rounded_up_is_refused():
    graph = graph_of(
        """(float[N,3,9,9] x) => (float[N,3,?,?] y) {
            y = MaxPool<auto_pad="SAME_UPPER", kernel_shape=[2,2], ceil_mode=1>(x)
        }"""
    )
    assert reasons(graph, RULE) == ["the pool rounds its size up (ceil_mode = 1)"]


def test_dilated_kernel_is_refused_for_same_only():
    text = '(float[N,3,9,9] x) => (float[N,4,?,?] y) { y = Conv<auto_pad="AUTO", dilations=[2,1]>(x, w) }'
    graph = graph_of(text.replace("AUTO", "SAME_UPPER"), w=draw(4, 3, 3, 3))
    assert reasons(graph, RULE) == ["the kernel is dilated; runtimes disagree about SAME padding then"]
    apply_only(graph_of(text.replace("AUTO", "VALID"), w=draw(4, 3, 3, 3)), RULE)


def test_explicit_pads_are_left_alone():
    graph = graph_of(
        '(float[N,3,9,9] x) => (float[N,4,?,?] y) { y = Conv<auto_pad="NOTSET", pads=[1,1,1,1]>(x, w) }',
        w=draw(4, 3, 3, 3),
    )
    assert candidates(graph, RULE) == []
