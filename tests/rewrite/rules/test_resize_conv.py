"""C15: a 1x1 convolution on either side of a Resize."""

import numpy as np
import pytest

from tests.rewrite.harness import apply_only, assert_inverse_restores, candidates, graph_of, ops, reasons

AFTER, BEFORE = "resize-after-pointwise-conv", "resize-before-pointwise-conv"
RNG = np.random.default_rng(20)


def draw(*shape, dtype="f4"):
    return RNG.standard_normal(shape).astype(dtype)


def resized(attributes='mode="nearest"', inputs="x, , scales", opset=17, batch="N", conv="Conv", **weights):
    text = f"""(float[{batch},3,4,5] x) => (float[{batch},6,?,?] y) {{
        r = Resize<{attributes}>({inputs})
        y = {conv}(r, w, b)
    }}"""
    defaults = {"w": draw(6, 3, 1, 1), "b": draw(6), "scales": np.array([1, 1, 2, 3], "f4")}
    weights = {**defaults, **weights}
    used = {"w", "b", *inputs.replace(" ", "").split(",")}
    return graph_of(text, opset=opset, **{k: v for k, v in weights.items() if k in used})


MODES = [
    'mode="nearest"',
    'mode="linear"',
    'mode="linear", coordinate_transformation_mode="align_corners"',
    'mode="cubic", coordinate_transformation_mode="half_pixel"',
]


@pytest.mark.parametrize("mode", MODES)
def test_resize_moves_and_moves_back(mode):
    graph = resized(mode)
    (candidate,) = candidates(graph, AFTER)
    assert_inverse_restores(graph, candidate)


def test_order_of_the_result():
    assert [node.op_type for node in apply_only(resized(), AFTER).nodes] == ["Conv", "Resize"]


def test_constant_sizes_get_the_new_channels():
    graph = resized(inputs="x, , , sizes", batch="2", sizes=np.array([2, 3, 8, 9]))
    result = apply_only(graph, AFTER)
    np.testing.assert_array_equal(result.nodes[1].inputs[3].const_value.numpy(), [2, 6, 8, 9])
    assert ops(apply_only(result, BEFORE)) == {"Resize": 1, "Conv": 1}


def test_spatial_axes_only():
    graph = resized('mode="linear", axes=[-2,-1]', "x, , , sizes", opset=18, sizes=np.array([8, 9]))
    apply_only(graph, AFTER)
    graph = resized('mode="nearest", axes=[2,3]', opset=18, scales=np.array([2, 2], "f4"))
    apply_only(graph, AFTER)


def test_grouped_convolution():
    text = """(float[N,4,4,5] x) => (float[N,6,?,?] y) {
        r = Resize<mode="linear">(x, , scales)
        y = Conv<group=2>(r, w)
    }"""
    apply_only(graph_of(text, w=draw(6, 2, 1, 1), scales=np.array([1, 1, 2, 2], "f4")), AFTER)


def test_upsample_of_old_opsets():
    text = """(float[N,3,4,5] x) => (float[N,6,?,?] y) {
        r = Upsample<mode="nearest">(x, scales)
        y = Conv(r, w)
    }"""
    graph = graph_of(text, opset=9, w=draw(6, 3, 1, 1), scales=np.array([1, 1, 2, 2], "f4"))
    assert ops(apply_only(graph, AFTER)) == {"Conv": 1, "Upsample": 1}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"scales": np.array([1, 2, 1, 1], "f4"), "w": draw(6, 6, 1, 1)},
            "the scales [1.0, 2.0, 1.0, 1.0] also change batch or channels",
        ),
        (
            {"inputs": "x, , , sizes", "sizes": np.array([2, 3, 8, 9])},
            "the sizes [2, 3, 8, 9] are not known to keep batch and channels",
        ),
        (
            {"attributes": 'coordinate_transformation_mode="tf_crop_and_resize", mode="linear"',
             "inputs": "x, roi, scales", "roi": np.zeros(8, "f4")},
            "tf_crop_and_resize fills what lies outside with a constant",
        ),
    ],
)  # fmt: skip
def test_other_resizes_are_refused(changes, reason):
    graph = resized(**changes)
    assert candidates(graph, AFTER) == []
    assert reasons(graph, AFTER) == [reason]


def test_sizes_computed_at_run_time_are_refused():
    graph = graph_of(
        """(float[N,3,4,5] x, int64[4] sizes) => (float[?,6,?,?] y) {
            r = Resize<mode="nearest">(x, , , sizes)
            y = Conv(r, w)
        }""",
        w=draw(6, 3, 1, 1),
    )
    assert reasons(graph, AFTER) == ["the sizes 'sizes' are not constant"]


@pytest.mark.parametrize("conv", ["Conv<strides=[2,2]>", "Conv<pads=[1,1,1,1]>"])
def test_stride_or_padding_is_something_else(conv):
    assert candidates(resized(conv=conv), AFTER) == []


def test_another_reader_is_refused():
    graph = graph_of(
        """(float[N,3,4,5] x) => (float[N,6,?,?] y, float[N,3,?,?] z) {
            r = Resize<mode="nearest">(x, , scales)
            y = Conv(r, w)
            z = Relu(r)
        }""",
        w=draw(6, 3, 1, 1),
        scales=np.array([1, 1, 2, 2], "f4"),
    )
    assert reasons(graph, AFTER) == ["'r', inside the pattern, is also read by an unnamed Relu"]
