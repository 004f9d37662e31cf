from __future__ import annotations

import numpy as np
import pytest

from explorer.graph import Graph
from explorer.rewrite.rules import winograd
from explorer.rewrite.rules.kernel_size import Window
from explorer.rewrite.rules.winograd import TILES, Layout, transforms
from tests.rewrite.harness import (
    apply_checked,
    apply_only,
    candidates,
    graph_of,
    ops,
    reasons,
    run,
)

RULE = "winograd-conv"
RNG = np.random.default_rng(7)


def conv(
    kernel: tuple[int, int] = (3, 3),
    attributes: str = "pads=[1,1,1,1]",
    size: tuple[int | str, int | str] = (8, 9),
    channels: tuple[int, int] = (64, 72),
    batch: int | str = 1,
    tail: str = "",
    opset: int = 17,
    bias: bool = True,
) -> Graph:
    weights = {"w": RNG.normal(0, 0.1, (channels[1], channels[0], *kernel)).astype(np.float32)}
    if bias:
        weights["b"] = RNG.normal(0, 1, channels[1]).astype(np.float32)
    last = "y" if not tail else "c"
    text = (
        f"(float[{batch},{channels[0]},{size[0]},{size[1]}] x) => (float[B,M,H,W] y) "
        f"{{ {last} = Conv{f'<{attributes}>' if attributes else ''}(x, w{', b' if bias else ''}) {tail} }}"
    )
    return graph_of(text, opset=opset, **weights)


@pytest.mark.parametrize("kernel", sorted(TILES))
def test_the_algorithm_computes_a_correlation(kernel: int):
    tile = TILES[kernel]
    found = transforms(tile, kernel)
    data, weight = RNG.normal(size=tile + kernel - 1), RNG.normal(size=kernel)
    expected = np.correlate(data, weight, "valid")
    np.testing.assert_allclose(
        found.output @ ((found.weight @ weight) * (found.data @ data)), expected, atol=1e-11
    )


def test_f_4_3_is_the_published_one():
    found = transforms(4, 3)
    assert found.data[0].tolist() == [4, 0, -5, 0, 1, 0]
    assert found.output.tolist() == [
        [1, 1, 1, 1, 1, 0],
        [0, 1, -1, 2, -2, 0],
        [0, 1, 1, 4, 4, 0],
        [0, 1, -1, 8, -8, 1],
    ]
    np.testing.assert_allclose(found.weight[1], [-1 / 6, -1 / 6, -1 / 6])


def test_products_read_only_the_rows_that_have_a_factor():
    window = Window((3, 3), (1, 1), (1, 1), (1, 1), (1, 1))
    layout = Layout.of(window, 0, 8)
    assert [(r.first, r.step, r.count) for r in layout.reads] == [
        (0, 2, 3), (1, 1, 4), (1, 1, 4), (1, 1, 4), (1, 1, 4), (1, 2, 3),
    ]  # fmt: skip
    assert (layout.tiles, layout.size, layout.cut) == (2, 8, {})


@pytest.mark.parametrize(
    ("kernel", "attributes", "size"),
    [
        ((3, 3), "pads=[1,1,1,1]", (8, 9)),
        ((3, 3), "pads=[1,1,1,1]", (7, 7)),
        ((3, 3), "", (11, 6)),
        ((3, 3), "pads=[0,1,2,1]", (6, 5)),
        ((3, 3), "pads=[2,0,0,1]", (5, 8)),
        ((3, 1), "pads=[1,0,1,0]", (4, 3)),
        ((3, 3), "pads=[1,1,1,1], strides=[1,2]", (8, 8)),
        ((3, 3), "pads=[1,2,1,2], dilations=[1,2]", (9, 8)),
        ((5, 5), "pads=[2,2,2,2]", (7, 8)),
        ((5, 5), "", (9, 9)),
        ((7, 1), "pads=[3,0,3,0]", (17, 5)),
        ((1, 7), "pads=[0,3,0,3]", (5, 17)),
        ((1, 3), "pads=[0,1,0,1]", (3, 8)),
        ((3, 3), "pads=[1,1,1,1], strides=[2,1]", (9, 7)),
        ((3, 3), "pads=[1,1,1,1]", (1, 1)),
    ],
)
def test_every_window_is_computed_right(kernel, attributes, size):
    graph = conv(kernel, attributes, size)
    result = apply_only(graph, RULE)
    axis = 0 if kernel[0] > 1 and "strides=[2" not in attributes else 1
    products = TILES[kernel[axis]] + kernel[axis] - 1
    assert ops(result)["Conv"] == 2 * products
    assert ops(result)["MatMul"] == 1


def test_multiplications_fall_by_half():
    graph = conv(size=(8, 9), channels=(64, 64))
    (found,) = candidates(graph, RULE)
    assert found.summary == "'y': 4 rows by 6 products instead of 12"
    dense = [
        n for n in apply_checked(graph, found).nodes if n.op_type == "Conv" and "group" not in n.attributes
    ]
    work = [int(np.prod([*n.inputs[1].shape, *n.outputs[0].shape[2:]])) for n in dense]
    assert sum(work) * 2 == 64 * 64 * 3 * 3 * 8 * 9


@pytest.mark.parametrize("bias", [True, False])
def test_batch_and_width_may_be_unknown(bias: bool):
    graph = conv(size=(6, "W"), batch="N", bias=bias)
    result = apply_only(graph, RULE)
    feeds = {"x": RNG.normal(size=(3, 64, 6, 5)).astype(np.float32)}
    (before,), (after,) = run(graph, [feeds]), run(result, [feeds])
    assert after["y"].shape == (3, 72, 6, 5)
    np.testing.assert_allclose(after["y"], before["y"], rtol=1e-4, atol=1e-4)


def test_its_own_products_are_left_alone():
    graph = apply_only(conv((3, 3), size=(4, 4), channels=(64, 64)), RULE)
    assert candidates(graph, RULE) == []
    graph = apply_only(conv((1, 3), "pads=[0,1,0,1]", size=(4, 4), channels=(64, 64)), RULE)
    assert candidates(graph, RULE) == []


def test_an_older_slice_is_written_in_its_own_form():
    result = apply_only(conv(size=(7, 7), opset=9), RULE)
    (cut,) = [node for node in result.nodes if node.op_type == "Slice"]
    assert cut.attributes.get_ints("ends") == (7,)


def test_two_convolutions_may_share_a_weight():
    graph = conv(tail="d = Relu(c) y = Conv<pads=[1,1,1,1]>(d, w, b)", channels=(64, 64))
    first, second = candidates(graph, RULE)
    between = apply_checked(graph, first)
    (again,) = [found for found in candidates(between, RULE) if found.nodes == second.nodes]
    result = apply_checked(between, again)
    assert ops(result)["MatMul"] == 2
    assert (first.bytes_delta, again.bytes_delta) == (first.bytes_delta, first.bytes_delta - 64 * 64 * 9 * 4)


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (conv(channels=(64, 48)), "with 48 channels the transforms would cost more"),
        (conv(size=("H", 8)), "the height of 'x' is not known"),
        (conv((1, 3), "pads=[0,1,0,1]", size=(8, "W")), "the width of 'x' is not known"),
    ],
)
def test_near_misses_say_why(graph: Graph, reason: str):
    assert candidates(graph, RULE) == []
    assert any(reason in found for found in reasons(graph, RULE))


def test_a_normalisation_behind_is_folded_first():
    ones = {name: RNG.uniform(0.5, 1.5, 72).astype(np.float32) for name in ("s", "m", "v")}
    graph = graph_of(
        "(float[1,64,8,8] x) => (float[B,M,H,W] y) "
        "{ c = Conv<pads=[1,1,1,1]>(x, w) y = BatchNormalization(c, s, m, m, v) }",
        w=RNG.normal(0, 0.1, (72, 64, 3, 3)).astype(np.float32),
        **ones,
    )
    assert any("fold it first" in reason for reason in reasons(graph, RULE))
    assert len(candidates(apply_only(graph, "fold-batchnorm-into-conv"), RULE)) == 1


@pytest.mark.parametrize(
    "graph",
    [
        conv((3, 3), "pads=[1,1,1,1], strides=[2,2]"),
        conv((3, 3), "pads=[2,2,2,2], dilations=[2,2]"),
        conv((1, 1), ""),
        conv((3, 3), 'auto_pad="SAME_UPPER"'),
        conv((4, 4), ""),
    ],
)
def test_other_convolutions_are_not_mentioned(graph: Graph):
    assert candidates(graph, RULE) == []
    assert reasons(graph, RULE) == []


def test_weights_of_a_double_are_refused():
    graph = graph_of(
        "(double[1,64,8,8] x) => (double[B,M,H,W] y) { y = Conv<pads=[1,1,1,1]>(x, w) }",
        w=RNG.normal(0, 0.1, (64, 64, 3, 3)),
    )
    assert any("element type double" in reason for reason in reasons(graph, RULE))


def test_the_limit_on_channels_is_stated():
    assert str(winograd.LEAST_CHANNELS) in winograd.WinogradConv.preconditions
