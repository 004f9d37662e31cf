"""C4 and C5: convolutions of the same tensor merged into one, and a merged one split again."""

import numpy as np
import pytest

from explorer.rewrite import all_rules, apply
from tests.rewrite.harness import (
    apply_checked,
    apply_only,
    assert_inverse_restores,
    candidates,
    graph_of,
    ops,
    reasons,
)

MERGE, SPLIT = "merge-parallel-convs", "split-merged-conv"
RNG = np.random.default_rng(22)


def draw(*shape, dtype="f4"):
    return RNG.standard_normal(shape).astype(dtype)


def parallel(
    first="Conv(x, w, b)", second="Conv(x, v, c)", opset=17, tail="", outputs="", signature="", **weights
):
    text = f"""(float[N,3,8,8] x{signature}) => (float[N,4,?,?] y, float[N,5,?,?] z{outputs}) {{
        y = {first}
        z = {second}
        {tail}
    }}"""
    defaults = {"w": draw(4, 3, 3, 3), "b": draw(4), "v": draw(5, 3, 3, 3), "c": draw(5)}
    weights = {**defaults, **weights}
    return graph_of(
        text, opset=opset, **{k: v for k, v in weights.items() if f" {k}" in first + second + tail}
    )


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_merged_and_split_again(opset):
    graph = parallel(opset=opset)
    (candidate,) = candidates(graph, MERGE)
    assert_inverse_restores(graph, candidate)
    assert ops(apply_checked(graph, candidate)) == {"Conv": 1, "Split": 1}


def test_missing_bias_is_zeros():
    result = apply_only(parallel("Conv(x, w)"), MERGE)
    conv = next(node for node in result.nodes if node.op_type == "Conv")
    np.testing.assert_array_equal(conv.inputs[2].const_value.numpy()[:4], np.zeros(4, "f4"))


def test_no_bias_at_all():
    result = apply_only(parallel("Conv(x, w)", "Conv(x, v)"), MERGE)
    assert [len(node.inputs) for node in result.nodes if node.op_type == "Conv"] == [2]


def test_three_offer_every_pair():
    graph = parallel(tail="u = Conv(x, t)", outputs=", float[N,2,?,?] u", t=draw(2, 3, 3, 3))
    found = candidates(graph, MERGE)
    assert sorted(len(candidate.nodes) for candidate in found) == [2, 2, 2, 3]
    for candidate in found:
        apply_checked(graph, candidate)


@pytest.mark.parametrize(
    ("second", "weights"),
    [
        ("Conv<pads=[1,1,1,1]>(x, v, c)", {}),
        ("Conv<strides=[2,2]>(x, v, c)", {}),
        ("Conv(x, v, c)", {"v": draw(5, 3, 1, 1)}),
    ],
)
def test_other_windows_are_refused(second, weights):
    graph = parallel(second=second, **weights)
    assert candidates(graph, MERGE) == []
    assert reasons(graph, MERGE) == [
        "kernel, strides, pads or dilations differ from the first convolution of this tensor"
    ]


def test_variable_weight_is_refused():
    graph = parallel(second="Conv(x, r, c)", signature=", float[5,3,3,3] r")
    assert reasons(graph, MERGE) == ["weight 'r' is a graph input, not a constant"]


def test_convolution_that_depends_on_the_other_is_refused():
    graph = graph_of(
        """(float[N,3,8,8] x) => (float[N,3,8,8] z) {
            y = Conv<pads=[1,1,1,1]>(x, w)
            m = ReduceMean(y)
            r = Reshape(m, one)
            c = Concat<axis=0>(r, r, r)
            z = Conv<pads=[1,1,1,1]>(x, v, c)
        }""",
        w=draw(3, 3, 3, 3),
        v=draw(3, 3, 3, 3),
        one=np.array([1]),
    )
    assert candidates(graph, MERGE) == []
    assert reasons(graph, MERGE) == ["bias 'c' is computed at run time, not a constant"]


def test_merging_twice_takes_fresh_names():
    graph = parallel(
        tail="u = Conv<strides=[2,2]>(x, w, b)\n t = Conv<strides=[2,2]>(x, v, c)",
        outputs=", float[N,4,?,?] u, float[N,5,?,?] t",
    )
    first = candidates(graph, MERGE)[0]
    result = apply(graph, first, all_rules())
    names = [value.name for value in result.initializers()]
    assert len(names) == len(set(names))
    apply_checked(graph, first)


# Splitting


def merged(split="Split<axis=1>(p, sizes)", sizes=(4, 5), w=None, group=""):
    text = f"""(float[N,3,8,8] x) => (float[N,4,?,?] y, float[N,5,?,?] z) {{
        p = Conv{group}(x, w, b)
        y, z = {split}
    }}"""
    weight = draw(9, 3, 3, 3) if w is None else w
    extra = {"sizes": np.array(sizes)} if "sizes" in split else {}
    return graph_of(text, opset=17 if extra else 11, w=weight, b=draw(9), **extra)


@pytest.mark.parametrize("split", ["Split<axis=1>(p, sizes)", "Split<axis=1, split=[4,5]>(p)"])
def test_sizes_as_attribute_or_input(split):
    assert ops(apply_only(merged(split), SPLIT)) == {"Conv": 2}


def test_split_over_the_height_is_refused():
    graph = graph_of(
        """(float[N,3,8,8] x) => (float[N,9,?,6] y, float[N,9,?,6] z) {
            p = Conv(x, w)
            y, z = Split<axis=2>(p, sizes)
        }""",
        w=draw(9, 3, 3, 3),
        sizes=np.array([2, 4]),
    )
    assert reasons(graph, SPLIT) == ["the Split is over axis 2, not over channels"]


def test_sizes_computed_at_run_time_are_refused():
    graph = graph_of(
        """(float[1,3,8,8] x, int64[2] r) => (float[1,?,6,6] y, float[1,?,6,6] z) {
            p = Conv(x, w)
            y, z = Split<axis=1>(p, r)
        }""",
        w=draw(9, 3, 3, 3),
    )
    assert reasons(graph, SPLIT) == ["the sizes of the Split are not constant"]


def test_convolution_that_others_read_is_something_else():
    graph = graph_of(
        """(float[N,3,8,8] x) => (float[N,4,?,?] y, float[N,5,?,?] z, float[N,9,?,?] u) {
            p = Conv(x, w)
            y, z = Split<axis=1>(p, sizes)
            u = Relu(p)
        }""",
        w=draw(9, 3, 3, 3),
        sizes=np.array([4, 5]),
    )
    assert candidates(graph, SPLIT) == []
