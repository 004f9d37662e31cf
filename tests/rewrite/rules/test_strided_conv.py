"""C16: slice first, or let the stride do it."""

import numpy as np
import pytest

from tests.rewrite.harness import (
    apply_only,
    assert_inverse_restores,
    candidates,
    graph_of,
    ops,
    reasons,
)

SLICE, STRIDE = "slice-before-strided-conv", "stride-instead-of-slice"
RNG = np.random.default_rng(21)


def draw(*shape, dtype="f4"):
    return RNG.standard_normal(shape).astype(dtype)


def strided(attributes="strides=[2,3]", function="Relu(x)", opset=17, size=9, **weights):
    text = f"""(float[N,3,{size},10] x) => (float[N,4,?,?] y) {{
        a = {function}
        y = Conv<{attributes}>(a, w)
    }}"""
    return graph_of(text, opset=opset, **{"w": draw(4, 3, 1, 1), **weights})


@pytest.mark.parametrize("function", ["Relu(x)", "LeakyRelu<alpha=0.3>(x)", "Clip(x, low)"])
def test_slice_first_and_back(function):
    bounds = {"low": np.array(-0.5, "f4")} if "low" in function else {}
    graph = strided(function=function, **bounds)
    (candidate,) = candidates(graph, SLICE)
    assert_inverse_restores(graph, candidate)


def test_one_strided_axis_and_a_dynamic_one():
    result = apply_only(strided("strides=[2,1]", size="H"), SLICE)
    assert [node.op_type for node in result.nodes] == ["Slice", "Relu", "Conv"]


def test_batch_normalization():
    statistics = {name: RNG.uniform(0.5, 1.5, 3).astype("f4") for name in "sbmv"}
    graph = strided(function="BatchNormalization(x, s, b, m, v)", **statistics)
    assert ops(apply_only(graph, SLICE)) == {"Slice": 1, "BatchNormalization": 1, "Conv": 1}


@pytest.mark.parametrize("attributes", ["strides=[1,1]", "kernel_shape=[1,1]"])
def test_no_stride_is_something_else(attributes):
    assert candidates(strided(attributes), SLICE) == []


def test_larger_kernel_is_something_else():
    assert candidates(strided(w=draw(4, 3, 3, 3)), SLICE) == []


def test_padding_is_refused():
    assert reasons(strided("strides=[2,2], pads=[0,1,0,0]"), SLICE) == ["the convolution pads"]


def test_opset_without_steps_is_refused():
    assert reasons(strided(opset=9), SLICE) == ["the result needs opset 10, the model imports 9"]


def test_another_reader_is_refused():
    graph = graph_of(
        """(float[N,3,9,9] x) => (float[N,4,?,?] y, float[N,3,9,9] z) {
            a = Relu(x)
            y = Conv<strides=[2,2]>(a, w)
            z = Neg(a)
        }""",
        w=draw(4, 3, 1, 1),
    )
    assert reasons(graph, SLICE) == ["'a', inside the pattern, is also read by an unnamed Neg"]


def test_slice_without_steps_is_something_else():
    graph = sliced(starts=(1, 0), steps=(1, 1))
    assert candidates(graph, STRIDE) == []
    assert reasons(graph, STRIDE) == []


def sliced(starts=(0, 0), ends=(9, 2**31 - 1), axes=(2, 3), steps=(2, 2), body="y = Conv(s, w)", channels=3):
    text = f"""(float[N,3,9,10] x) => (float[N,4,?,?] y) {{
        s = Slice(x, starts, ends, axes, steps)
        {body}
    }}"""
    bounds = {"starts": starts, "ends": ends, "axes": axes, "steps": steps}
    return graph_of(text, w=draw(4, channels, 1, 1), **{k: np.array(v) for k, v in bounds.items()})


def test_slice_directly_before_the_convolution():
    (conv,) = apply_only(sliced(), STRIDE).nodes
    assert list(conv.attributes.get_ints("strides")) == [2, 2]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"starts": (1, 0)}, "the Slice does not keep every n-th position of axis 2"),
        ({"ends": (9, 8)}, "the Slice does not keep every n-th position of axis 3"),
        ({"axes": (1, 2), "channels": 2}, "the Slice is over axis 1, which is not spatial"),
        (
            {"starts": (-1, 0), "ends": (-99, 99), "steps": (-2, 2)},
            "the Slice does not keep every n-th position of axis 2",
        ),
    ],
)
def test_other_slices_are_refused(changes, reason):
    graph = sliced(**changes)
    assert candidates(graph, STRIDE) == []
    assert reasons(graph, STRIDE) == [reason]
