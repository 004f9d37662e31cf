from __future__ import annotations

import numpy as np
import pytest

from explorer.graph import Graph
from tests.rewrite.harness import apply_only, candidates, graph_of, reasons

RULE = "crop-padding-taps"
RNG = np.random.default_rng(3)


def conv(attributes: str, kernel: tuple[int, ...] = (3, 3), size: str = "5,5", weight=None) -> Graph:
    weight = RNG.normal(size=(4, 3, *kernel)).astype("f4") if weight is None else weight
    dims = "H,W" if len(kernel) == 2 else "L"
    text = f"(float[1,3,{size}] x) => (float[B,M,{dims}] y) {{ y = Conv<{attributes}>(x, w) }}"
    return graph_of(text, w=weight)


def kernel_of(graph: Graph) -> tuple[list[int], list[int], list[int]]:
    (node,) = graph.nodes
    names = ("pads", "dilations")
    return list(node.inputs[1].shape[2:]), *(list(node.attributes.get_ints(n)) for n in names)


@pytest.mark.parametrize(
    ("attributes", "size", "kernel", "pads"),
    [
        ("dilations=[5,5], pads=[5,5,5,5]", "5,5", [1, 1], [0, 0, 0, 0]),
        ("dilations=[6,4], pads=[6,4,6,4]", "5,5", [1, 3], [0, 4, 0, 4]),
        ("dilations=[4,4], pads=[8,4,0,4]", "4,6", [1, 3], [0, 4, 0, 4]),
        ("dilations=[5,5], pads=[5,5,5,5], strides=[2,2]", "5,5", [1, 1], [0, 0, 0, 0]),
    ],
)
def test_outer_taps_in_the_padding_go(attributes: str, size: str, kernel: list[int], pads: list[int]):
    result = apply_only(conv(attributes, size=size), RULE)
    assert kernel_of(result)[:2] == (kernel, pads)


def test_one_axis_of_a_signal():
    result = apply_only(conv("dilations=[7], pads=[7,7]", (3,), "6"), RULE)
    assert kernel_of(result) == ([1], [0, 0], [1])


def test_a_tap_that_meets_one_row_stays():
    graph = conv("dilations=[4,4], pads=[4,4,4,4]")
    assert candidates(graph, RULE) == []
    assert reasons(graph, RULE) == []


def test_a_size_that_is_not_known_is_refused():
    graph = conv("dilations=[5,5], pads=[5,5,5,5]", size="N,5")
    assert reasons(graph, RULE) == ["the spatial size of 'x' is not known"]


def test_an_infinite_weight_is_refused():
    weight = np.ones((4, 3, 3, 3), dtype="f4")
    weight[0, 0, 0, 0] = np.inf
    graph = conv("dilations=[5,5], pads=[5,5,5,5]", weight=weight)
    assert reasons(graph, RULE) == ["'w' has values that are not finite"]


def test_taps_are_cropped_only_as_far_as_the_pads_reach():
    """Along the width the outer taps meet padding only, but they lie further off than the pads are wide."""
    graph = graph_of(
        "(float[1,3,5,5] x) => (float[1,4,5,3] y) { y = Conv<dilations=[5,6], pads=[5,5,5,5]>(x, w) }",
        w=np.random.default_rng(3).standard_normal((4, 3, 3, 3)).astype("f4"),
    )
    (conv,) = apply_only(graph, "crop-padding-taps").nodes
    assert list(conv.inputs[1].shape) == [4, 3, 1, 3]
    assert list(conv.attributes["pads"].as_ints()) == [0, 5, 0, 5]
