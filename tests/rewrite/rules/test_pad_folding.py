"""C1: Pad folds into the convolution or pool after it."""

import numpy as np
import pytest

from explorer.graph import load
from tests.rewrite.harness import apply_only, candidates, graph_of, ops, reasons

CONV, AVERAGE, MAX = "fold-pad-into-conv", "fold-pad-into-average-pool", "fold-pad-into-max-pool"
RNG = np.random.default_rng(10)
PADS = np.array([0, 0, 1, 0, 0, 0, 2, 1])


def draw(*shape, dtype="f4"):
    return RNG.standard_normal(shape).astype(dtype)


def padded(reader, inputs="x, pads", attributes="", opset=17, outputs="float[N,4,?,?] y", **weights):
    pad = f"Pad<{attributes}>" if attributes else "Pad"
    text = f"(float[N,3,8,8] x) => ({outputs}) {{ p = {pad}({inputs})\n {reader} }}"
    defaults = {"pads": PADS, "w": draw(4, 3, 3, 3), "zero": np.zeros((), "f4")}
    weights = {**defaults, **weights}
    return graph_of(text, opset=opset, **{k: v for k, v in weights.items() if k in f"{inputs} {reader}"})


@pytest.mark.parametrize(
    "reader", ["y = Conv(p, w)", "y = Conv<pads=[1,1,0,2], strides=[2,1], dilations=[1,2]>(p, w)"]
)
def test_pads_add_up(reader):
    result = apply_only(padded(reader), CONV)
    assert ops(result) == {"Conv": 1}
    own = [1, 1, 0, 2] if "pads" in reader else [0, 0, 0, 0]
    (conv,) = result.nodes
    assert list(conv.attributes.get_ints("pads")) == [a + b for a, b in zip(own, [1, 0, 2, 1], strict=True)]


def test_valid_means_no_pads_of_its_own():
    (conv,) = apply_only(padded('y = Conv<auto_pad="VALID">(p, w)'), CONV).nodes
    assert "auto_pad" not in conv.attributes


def test_same_padding_is_refused():
    graph = padded('y = Conv<auto_pad="SAME_UPPER", strides=[2,2]>(p, w)')
    assert reasons(graph, CONV) == [
        "auto_pad is SAME_UPPER: its pads depend on the padded size; make them explicit first"
    ]


def test_the_case_that_others_get_wrong():
    graph = load("tests/cases/pad_before_conv_same_upper.onnx")
    assert candidates(graph, CONV) == []
    assert len(reasons(graph, CONV)) == 1


def test_attributes_of_old_opsets():
    graph = padded("y = Conv(p, w)", inputs="x", attributes="pads=[0,0,1,0,0,0,2,1]", opset=10)
    assert ops(apply_only(graph, CONV)) == {"Conv": 1}


def test_explicit_value_and_axes():
    graph = padded(
        "y = Conv(p, w)", inputs="x, pads, zero, axes", opset=18, pads=np.array([2, 1]), axes=np.array([-1])
    )
    (conv,) = apply_only(graph, CONV).nodes
    assert list(conv.attributes.get_ints("pads")) == [0, 2, 0, 1]


def test_every_convolution_that_reads_it():
    graph = padded(
        "y = Conv(p, w)\n z = Conv<strides=[2,2]>(p, v)",
        outputs="float[N,4,?,?] y, float[N,5,?,?] z",
        v=draw(5, 3, 3, 3),
    )
    assert ops(apply_only(graph, CONV)) == {"Conv": 2}


def test_half_precision():
    text = "(float16[N,3,8,8] x) => (float16[N,4,?,?] y) { p = Pad(x, pads)\n y = Conv(p, w) }"
    assert ops(apply_only(graph_of(text, pads=PADS, w=draw(4, 3, 3, 3, dtype="f2")), CONV)) == {"Conv": 1}


def test_integer_convolution_pads_with_its_zero_point():
    text = """(uint8[1,3,8,8] x) => (int32[1,4,?,?] y) {
        p = Pad(x, pads, VALUE)
        y = ConvInteger(p, w, zero)
    }"""
    weights = {"pads": PADS, "w": RNG.integers(-5, 5, (4, 3, 3, 3)).astype("i1")}
    weights |= {"zero": np.array(7, "u1"), "other": np.array(3, "u1")}
    assert ops(apply_only(graph_of(text.replace("VALUE", "zero"), **weights), CONV)) == {"ConvInteger": 1}
    graph = graph_of(text.replace("VALUE", "other"), **weights)
    assert reasons(graph, CONV) == ["the Pad value is 3, the convolution pads with 7"]


@pytest.mark.parametrize(
    ("attributes", "pads", "reason"),
    [
        ('mode="reflect"', PADS, "the Pad mode is 'reflect', not 'constant'"),
        ("", np.array([0, 0, -1, 0, 0, 0, 1, 0]), "the Pad crops (pads [0, 0, -1, 0, 0, 0, 1, 0])"),
        ("", np.array([0, 1, 0, 0, 0, 0, 1, 0]), "the Pad enlarges axis 1, which is not spatial"),
    ],
)
def test_other_paddings_are_refused(attributes, pads, reason):
    channels = 4 if pads[1] else 3
    graph = padded("y = Conv(p, w)", attributes=attributes, pads=pads, w=draw(4, channels, 3, 3))
    assert reasons(graph, CONV) == [reason]


def test_other_values_are_refused():
    graph = padded("y = Conv(p, w)", inputs="x, pads, one", one=np.ones((), "f4"))
    assert reasons(graph, CONV) == ["the Pad value is 1, the convolution pads with 0"]


def test_pads_computed_at_run_time_are_refused():
    graph = graph_of(
        "(float[1,3,8,8] x, int64[8] q) => (float[1,4,?,?] y) { p = Pad(x, q)\n y = Conv(p, w) }",
        w=draw(4, 3, 3, 3),
    )
    assert reasons(graph, CONV) == ["the pads of 'p' are not constant"]


def test_another_reader_is_refused():
    graph = padded("y = Conv(p, w)\n z = Relu(p)", outputs="float[N,4,?,?] y, float[N,3,?,?] z")
    assert reasons(graph, CONV) == ["'p', inside the pattern, is also read by an unnamed Relu"]


def test_inside_a_loop_body():
    graph = graph_of(
        """(float[1,3,8,8] x, int64 trips) => (float[1,3,8,8] y) {
            go = Constant<value = bool {1}>()
            y = Loop(trips, go, x) <
                body = body (int64 i, bool cond, float[1,3,8,8] a) => (bool again, float[1,3,8,8] next) {
                    again = Identity(cond)
                    p = Pad(a, pads)
                    next = Conv(p, w)
                }
            >
        }""",
        pads=np.array([0, 0, 1, 1, 0, 0, 1, 1]),
        w=draw(3, 3, 3, 3) / 8,
    )
    assert ops(apply_only(graph, CONV)) == {"Loop": 1, "Identity": 1, "Conv": 1}


# Pools


def test_average_that_counts_its_padding():
    graph = padded("y = AveragePool<kernel_shape=[3,3], count_include_pad=1>(p)", outputs="float[N,3,?,?] y")
    assert ops(apply_only(graph, AVERAGE)) == {"AveragePool": 1}


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ("kernel_shape=[3,3]", "the pool leaves its padding out of the average (count_include_pad = 0)"),
        (
            "kernel_shape=[3,3], count_include_pad=1, ceil_mode=1",
            "the pool rounds its size up (ceil_mode = 1)",
        ),
        (
            "kernel_shape=[2,2], count_include_pad=1",
            "pads [1, 0, 2, 1] are not smaller than the kernel [2, 2]",
        ),
    ],
)
def test_other_averages_are_refused(attributes, reason):
    graph = padded(f"y = AveragePool<{attributes}>(p)", outputs="float[N,3,?,?] y")
    assert reasons(graph, AVERAGE) == [reason]


def test_maximum_with_minus_infinity():
    graph = padded(
        "y = MaxPool<kernel_shape=[3,3], strides=[2,2]>(p)",
        inputs="x, pads, low",
        low=np.array(-np.inf, "f4"),
        outputs="float[N,3,?,?] y",
    )
    assert ops(apply_only(graph, MAX)) == {"MaxPool": 1}


def test_maximum_with_zeros_is_refused():
    graph = padded("y = MaxPool<kernel_shape=[3,3]>(p)", outputs="float[N,3,?,?] y")
    assert reasons(graph, MAX) == ["the Pad value is 0, the pool pads with -inf"]


def test_indices_of_the_padded_tensor_are_refused():
    graph = padded(
        "y, i = MaxPool<kernel_shape=[3,3]>(p)",
        inputs="x, pads, low",
        low=np.array(-np.inf, "f4"),
        outputs="float[N,3,?,?] y, int64[N,3,?,?] i",
    )
    assert reasons(graph, MAX) == ["'i', inside the pattern, is a graph output"]


def test_the_pools_that_others_get_wrong():
    graph = load("tests/cases/pad_before_pools.onnx")
    assert candidates(graph, AVERAGE) == []
    assert candidates(graph, MAX) == []
