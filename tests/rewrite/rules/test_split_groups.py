"""C8: a grouped convolution as several, and back."""

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

SPLIT, MERGE = "split-conv-groups", "merge-split-convs"
RNG = np.random.default_rng(16)


def draw(*shape, dtype="f4"):
    return RNG.standard_normal(shape).astype(dtype)


def grouped(groups, channels=8, opset=17, batch="N"):
    text = f"""(float[{batch},{channels},8,8] x) => (float[{batch},8,?,?] y) {{
        y = Conv<group={groups}, pads=[1,1,1,1], strides=[2,2]>(x, w, b)
    }}"""
    size = 8 if channels == "C" else channels
    return graph_of(text, opset=opset, w=draw(8, size // groups, 3, 3), b=draw(8))


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_every_number_of_parts_and_back(opset):
    graph = grouped(4, opset=opset)
    found = candidates(graph, SPLIT)
    assert [candidate.variant for candidate in found] == ["x2", "x4"]
    for candidate, parts in zip(found, (2, 4), strict=True):
        assert ops(apply_checked(graph, candidate)) == {"Split": 1, "Conv": parts, "Concat": 1}
        assert_inverse_restores(graph, candidate)


def test_an_omitted_bias():
    text = '(float[1,8,8,8] x) => (float[1,8,6,6] y) { y = Conv<group=2>(x, w, "") }'
    result = apply_only(graph_of(text, w=draw(8, 4, 3, 3)), SPLIT)
    assert [len(node.inputs) for node in result.nodes if node.op_type == "Conv"] == [2, 2]


def test_many_groups_are_halved_only():
    graph = graph_of(
        "(float[N,32,8,8] x) => (float[N,32,6,6] y) { y = Conv<group=32>(x, w) }", w=draw(32, 1, 3, 3)
    )
    assert [candidate.variant for candidate in candidates(graph, SPLIT)] == ["x2"]
    apply_only(graph, SPLIT)


def test_many_odd_groups_are_refused():
    graph = graph_of(
        "(float[N,9,8,8] x) => (float[N,9,6,6] y) { y = Conv<group=9>(x, w) }", w=draw(9, 1, 3, 3)
    )
    assert reasons(graph, SPLIT) == ["9 groups are odd and more than 8"]


def test_dynamic_channels_are_refused():
    assert reasons(grouped(2, channels="C"), SPLIT) == ["the channels of 'x' are not static"]


def parts(body="", axis=1, sizes=(4, 4), outputs="float[N,10,?,?] y", first="", second="", **weights):
    text = f"""(float[N,8,8,8] x) => ({outputs}) {{
        a, b = Split<axis={axis}>(x, sizes)
        p = Conv{first}(a, w)
        q = Conv{second}(b, v, c)
        y = Concat<axis=1>(p, q)
        {body}
    }}"""
    defaults = {"w": draw(5, 4, 3, 3), "v": draw(5, 4, 3, 3), "c": draw(5), "sizes": np.array(sizes)}
    return graph_of(text, **{**defaults, **weights})


def test_parts_with_one_missing_bias():
    (conv,) = apply_only(parts(), MERGE).nodes
    assert conv.attributes.get_int("group") == 2
    np.testing.assert_array_equal(conv.inputs[2].const_value.numpy()[:5], np.zeros(5, "f4"))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"sizes": (3, 5), "w": draw(5, 3, 3, 3), "v": draw(5, 5, 3, 3)}, "the parts [3, 5] differ in size"),
        ({"v": draw(4, 4, 3, 3), "c": draw(4), "outputs": "float[N,9,?,?] y"}, "4 and 5 filters differ"),
        (
            {"first": "<pads=[1,1,1,1], strides=[2,2]>", "second": "<pads=[1,1,1,1], strides=[2,2], group=2>",
             "v": draw(6, 2, 3, 3), "c": draw(6), "w": draw(6, 4, 3, 3),
             "outputs": "float[N,12,?,?] y"},
            "kernel, strides, pads, dilations or groups differ",
        ),
        (
            {"axis": 2, "w": draw(5, 8, 3, 3), "v": draw(5, 8, 3, 3)},
            "the Split is over axis 2, not over channels",
        ),
    ],
)  # fmt: skip
def test_unequal_parts_are_refused(changes, reason):
    graph = parts(**changes)
    assert candidates(graph, MERGE) == []
    assert reasons(graph, MERGE) == [reason]


def test_part_with_another_reader_is_refused():
    graph = parts("z = Relu(b)", outputs="float[N,10,?,?] y, float[N,4,8,8] z")
    assert reasons(graph, MERGE) == ["'b', inside the pattern, is also read by an unnamed Relu"]


def test_parts_in_another_order_are_something_else():
    graph = graph_of(
        """(float[N,8,8,8] x) => (float[N,10,6,6] y) {
            a, b = Split<axis=1>(x, sizes)
            p = Conv(b, w)
            q = Conv(a, v)
            y = Concat<axis=1>(p, q)
        }""",
        w=draw(5, 4, 3, 3),
        v=draw(5, 4, 3, 3),
        sizes=np.array([4, 4]),
    )
    assert candidates(graph, MERGE) == []
