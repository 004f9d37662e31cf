"""C3: a kernel enlarged with zeros, and cropped."""

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

ENLARGE, CROP = "enlarge-conv-kernel", "crop-conv-kernel"
RNG = np.random.default_rng(12)


def draw(*shape, dtype="f4"):
    return RNG.standard_normal(shape).astype(dtype)


def pair(small, large, shapes=((4, 3, 1, 1), (5, 3, 3, 3))):
    return graph_of(
        f"""(float[N,3,9,9] x) => (float[N,4,?,?] y, float[N,5,?,?] z) {{
            y = Conv<{small}>(x, w, b)
            z = Conv<{large}>(x, v)
        }}""",
        w=draw(*shapes[0]),
        b=draw(4),
        v=draw(*shapes[1]),
    )


@pytest.mark.parametrize(
    ("small", "large"),
    [
        ("pads=[0,0,0,0], kernel_shape=[1,1]", "pads=[1,1,1,1]"),
        ("pads=[1,0,0,1], strides=[2,2], kernel_shape=[1,1]", "pads=[2,1,1,2], strides=[2,2]"),
    ],
)
def test_enlarged_to_the_sibling_and_cropped_again(small, large):
    graph = pair(small, large)
    (candidate,) = candidates(graph, ENLARGE)
    assert candidate.variant == "3x3"
    assert_inverse_restores(graph, candidate)


def test_enlarged_convolutions_can_be_merged():
    result = apply_only(pair("pads=[0,0,0,0]", "pads=[1,1,1,1]"), ENLARGE)
    assert ops(apply_only(result, "merge-parallel-convs")) == {"Conv": 1, "Split": 1}


def test_dilation_of_a_single_tap_does_not_matter():
    graph = pair("pads=[0,0,0,0]", "pads=[2,2,2,2], dilations=[2,2]")
    result = apply_only(graph, ENLARGE)
    assert [list(n.attributes.get_ints("dilations", ())) for n in result.nodes].count([2, 2]) == 2


def test_dilation_goes_with_the_border():
    graph = pair("pads=[0,0,0,0], dilations=[1,1]", "pads=[2,2,2,2], dilations=[2,2]")
    (candidate,) = candidates(graph, ENLARGE)
    assert_inverse_restores(graph, candidate)


def test_odd_border_on_one_side():
    graph = pair("pads=[0,0,0,0]", "pads=[1,0,0,1]", ((4, 3, 1, 1), (5, 3, 2, 2)))
    apply_only(graph, ENLARGE)


@pytest.mark.parametrize(
    ("small", "large"),
    [("pads=[0,0,0,0]", "pads=[0,0,0,0]"), ("strides=[2,2]", "pads=[1,1,1,1]")],
)
def test_windows_that_do_not_line_up_are_refused(small, large):
    graph = pair(small, large)
    assert candidates(graph, ENLARGE) == []
    assert reasons(graph, ENLARGE) == ["a window of 3x3 with its strides and pads does not cover this one"]


def test_automatic_padding_has_no_window():
    assert candidates(pair('auto_pad="SAME_UPPER"', "pads=[1,1,1,1]"), ENLARGE) == []


def cropped(weight, attributes="pads=[1,1,1,1]"):
    text = f"(float[N,3,9,9] x) => (float[N,4,?,?] y) {{ y = Conv<{attributes}>(x, w) }}"
    return graph_of(text, w=weight)


def test_only_zero_borders_are_cropped():
    weight = draw(4, 3, 3, 3)
    assert candidates(cropped(weight), CROP) == []
    weight[:, :, 0] = 0
    (candidate,) = candidates(cropped(weight), CROP)
    assert candidate.variant == "2x3"
    (conv,) = apply_checked(cropped(weight), candidate).nodes
    assert list(conv.attributes.get_ints("pads")) == [0, 1, 1, 1]


def test_zero_border_of_one_filter_only_is_kept():
    weight = draw(4, 3, 3, 3)
    weight[0, :, 0] = 0
    assert candidates(cropped(weight), CROP) == []


def test_border_wider_than_the_pads_is_cropped_as_far_as_they_go():
    weight = np.zeros((4, 3, 5, 5), "f4")
    weight[:, :, 2, 2] = draw(4, 3)
    (candidate,) = candidates(cropped(weight), CROP)
    assert candidate.variant == "3x3"
    apply_checked(cropped(weight), candidate)


def test_border_without_pads_is_refused():
    weight = draw(4, 3, 3, 3)
    weight[..., 0] = 0
    graph = cropped(weight, "strides=[1,1]")
    assert candidates(graph, CROP) == []
    assert reasons(graph, CROP) == ["the border of 'w' is zero, but the pads are [0, 0, 0, 0]"]


def test_weight_that_is_an_input_has_no_border():
    text = "(float[1,3,9,9] x, float[4,3,3,3] w) => (float[1,4,?,?] y) { y = Conv<pads=[1,1,1,1]>(x, w) }"
    assert candidates(graph_of(text), CROP) == []
