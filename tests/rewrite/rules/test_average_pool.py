"""C11 and C12: averages as pools, convolutions and reductions."""

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

TO_CONV, TO_POOL = "average-pool-to-depthwise-conv", "depthwise-conv-to-average-pool"
TO_GLOBAL, TO_MEAN = "reduce-mean-to-global-average-pool", "global-average-pool-to-reduce-mean"
RNG = np.random.default_rng(19)


def pool(attributes, channels="3", opset=17):
    return graph_of(
        f"(float[N,{channels},9,9] x) => (float[N,{channels},?,?] y) {{ y = AveragePool<{attributes}>(x) }}",
        opset=opset,
    )


@pytest.mark.parametrize(
    "attributes",
    [
        "kernel_shape=[3,2], strides=[2,1], count_include_pad=1, ceil_mode=0",
        "kernel_shape=[3,3], pads=[1,2,0,1], count_include_pad=1, ceil_mode=0",
    ],
)
def test_pool_to_convolution_and_back(attributes):
    graph = pool(attributes)
    (candidate,) = candidates(graph, TO_CONV)
    assert_inverse_restores(graph, candidate)


def test_valid_padding_and_dilation():
    assert ops(apply_only(pool('kernel_shape=[3,2], auto_pad="VALID"'), TO_CONV)) == {"Conv": 1}
    graph = pool("kernel_shape=[3,2], dilations=[2,3], pads=[1,1,1,1], count_include_pad=1", opset=19)
    assert ops(apply_only(graph, TO_CONV)) == {"Conv": 1}


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ("kernel_shape=[3,3], pads=[1,1,1,1]", "the pool leaves its padding out of the average"),
        ("kernel_shape=[2,2], strides=[2,2], ceil_mode=1", "the pool rounds its size up (ceil_mode = 1)"),
        (
            'kernel_shape=[3,3], auto_pad="SAME_UPPER"',
            "auto_pad is not explicit; make the pads explicit first",
        ),
    ],
)
def test_uneven_windows_are_refused(attributes, reason):
    assert reasons(pool(attributes), TO_CONV) == [reason]


def test_dynamic_channels_are_refused():
    assert reasons(pool("kernel_shape=[2,2]", channels="C"), TO_CONV) == [
        "the channels of 'x' are not static"
    ]


def depthwise(weight, attributes="group=3", **bias):
    inputs = "x, w, b" if bias else "x, w"
    text = f"(float[N,3,9,9] x) => (float[N,3,?,?] y) {{ y = Conv<{attributes}>({inputs}) }}"
    return graph_of(text, w=weight, **bias)


EQUAL = np.full((3, 1, 3, 3), 1 / 9, "f4")


def test_weights_that_do_not_average_are_something_else():
    assert candidates(depthwise(EQUAL * 2), TO_POOL) == []
    unequal = EQUAL.copy()
    unequal[2, 0, 2, 2] = 0.5
    assert candidates(depthwise(unequal), TO_POOL) == []


@pytest.mark.parametrize(
    ("attributes", "bias", "reason"),
    [
        ("group=3, dilations=[2,2]", {}, "the convolution is dilated"),
        (
            "group=3, pads=[3,0,0,0]",
            {},
            "the pads are not explicit, or not smaller than the kernel [3, 3]",
        ),
        ("group=3", {"b": np.ones(3, "f4")}, "the convolution has a bias, 'b'"),
    ],
)
def test_other_averaging_convolutions_are_refused(attributes, bias, reason):
    assert reasons(depthwise(EQUAL, attributes, **bias), TO_POOL) == [reason]


# Global averages


@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize("axes", [[2, 3], [-1, -2]])
def test_mean_to_global_average_and_back(opset, axes):
    if opset >= 18:
        text = "(float[N,3,9,7] x) => (float[N,3,1,1] y) { y = ReduceMean<keepdims=1>(x, axes) }"
        graph = graph_of(text, opset=opset, axes=np.array(axes))
    else:
        text = f"(float[N,3,9,7] x) => (float[N,3,1,1] y) {{ y = ReduceMean<axes={axes}, keepdims=1>(x) }}"
        graph = graph_of(text, opset=opset)
    (candidate,) = candidates(graph, TO_GLOBAL)
    result = apply_checked(graph, candidate)
    assert ops(result) == {"GlobalAveragePool": 1}
    if axes == [2, 3]:
        assert_inverse_restores(graph, candidate)


def test_mean_that_drops_the_dims_needs_a_flatten():
    graph = graph_of("(float[N,3,9,7] x) => (float[N,3] y) { y = ReduceMean<axes=[2,3], keepdims=0>(x) }")
    (candidate,) = candidates(graph, TO_GLOBAL)
    assert ops(apply_checked(graph, candidate)) == {"GlobalAveragePool": 1, "Flatten": 1}
    assert_inverse_restores(graph, candidate)


@pytest.mark.parametrize("axes", [[2], [1, 2, 3], [0, 2, 3]])
def test_other_axes_are_something_else(axes):
    graph = graph_of(
        f"(float[N,3,9,7] x) => (float y) {{ y = ReduceMean<axes={axes}, keepdims=1>(x) }}".replace(
            "(float y)", "(float[?,?,?,?] y)"
        )
    )
    assert candidates(graph, TO_GLOBAL) == []


def test_mean_over_the_features_of_a_sequence_is_something_else():
    graph = graph_of("(float[N,5,8] x) => (float[N,5,1] y) { y = ReduceMean<axes=[-1]>(x) }")
    assert candidates(graph, TO_GLOBAL) == []


def test_double_precision_has_no_pool():
    graph = graph_of("(double[N,3,9,7] x) => (double[N,3,1,1] y) { y = ReduceMean<axes=[2,3]>(x) }")
    assert reasons(graph, TO_GLOBAL) == ["'y' has element type double; the rule handles float, float16"]


def test_pool_alone_and_with_its_flatten():
    graph = graph_of(
        "(float[N,3,9,7] x) => (float[N,3] y) { g = GlobalAveragePool(x)\n y = Flatten(g) }", opset=18
    )
    found = {candidate.variant: candidate for candidate in candidates(graph, TO_MEAN)}
    assert set(found) == {"", "flat"}
    assert ops(apply_checked(graph, found[""])) == {"ReduceMean": 1, "Flatten": 1}
    assert ops(apply_checked(graph, found["flat"])) == {"ReduceMean": 1}


def test_flatten_beside_another_reader_stays():
    graph = graph_of(
        """(float[N,3,9,7] x) => (float[N,3] y, float[N,3,1,1] z) {
            g = GlobalAveragePool(x)
            y = Flatten(g)
            z = Relu(g)
        }"""
    )
    assert [candidate.variant for candidate in candidates(graph, TO_MEAN)] == [""]
