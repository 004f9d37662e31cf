"""C13 and C14: pools of pools, and activations on either side of a pool."""

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

MERGE, SPLIT = "merge-max-pools", "split-max-pool"
AFTER, BEFORE = "move-activation-after-max-pool", "move-activation-before-max-pool"


def pools(first, second, size=12, outputs="float[N,3,?,?] y", tail=""):
    return graph_of(
        f"""(float[N,3,{size},11] x) => ({outputs}) {{
            p = MaxPool<{first}>(x)
            y = MaxPool<{second}>(p)
            {tail}
        }}"""
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("kernel_shape=[3,3]", "kernel_shape=[2,3]"),
        ("kernel_shape=[3,3], strides=[2,2]", "kernel_shape=[2,2], strides=[2,1]"),
        ("kernel_shape=[3,3], pads=[1,1,1,1]", "kernel_shape=[3,2], pads=[1,1,1,0], strides=[2,3]"),
        ("kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]", "kernel_shape=[3,3], pads=[2,2,0,0]"),
        ("kernel_shape=[3,3], strides=[3,2]", "kernel_shape=[2,2], pads=[1,1,1,1]"),
    ],
)
def test_two_pools_become_one(first, second):
    assert ops(apply_only(pools(first, second), MERGE)) == {"MaxPool": 1}


def test_known_window():
    graph = pools("kernel_shape=[3,3], strides=[2,2], pads=[1,1,0,0]", "kernel_shape=[2,3], strides=[2,1]")
    (pool,) = apply_only(graph, MERGE).nodes
    found = [list(pool.attributes.get_ints(name)) for name in ("kernel_shape", "strides", "pads")]
    assert found == [[5, 7], [4, 2], [1, 1, 0, 0]]


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (
            "kernel_shape=[2,2], ceil_mode=1",
            "kernel_shape=[2,2]",
            "the pool rounds its size up (ceil_mode = 1)",
        ),
        ("kernel_shape=[2,2]", "kernel_shape=[2,2], dilations=[2,1]", "the pool is dilated"),
        (
            'kernel_shape=[2,2], auto_pad="SAME_UPPER"',
            "kernel_shape=[2,2]",
            "auto_pad is not explicit; make the pads explicit first",
        ),
        (
            "kernel_shape=[2,2], strides=[2,2]",
            "kernel_shape=[2,2], pads=[0,0,0,1]",
            "along axis 3 the first pool may leave out elements that the padding of the second covers",
        ),
    ],
)
def test_other_pools_are_refused(first, second, reason):
    graph = pools(first, second)
    assert candidates(graph, MERGE) == []
    assert reasons(graph, MERGE) == [reason]


def test_dynamic_size_with_padding_after_a_stride_is_refused():
    graph = pools("kernel_shape=[2,1], strides=[2,1]", "kernel_shape=[2,2], pads=[0,0,1,1]", size="H")
    assert reasons(graph, MERGE) == [
        "along axis 2 the first pool may leave out elements that the padding of the second covers"
    ]
    apply_only(pools("kernel_shape=[2,1]", "kernel_shape=[2,2], pads=[0,0,1,1]", size="H"), MERGE)


def test_pool_with_another_reader_is_refused():
    graph = pools(
        "kernel_shape=[2,2]",
        "kernel_shape=[2,2]",
        outputs="float[N,3,?,?] y, float[N,3,?,?] z",
        tail="z = Relu(p)",
    )
    assert reasons(graph, MERGE) == ["'p', inside the pattern, is also read by an unnamed Relu"]


def test_indices_are_refused():
    graph = graph_of(
        """(float[N,3,9,9] x) => (float[N,3,?,?] y, int64[N,3,?,?] i) {
            p = MaxPool<kernel_shape=[2,2]>(x)
            y, i = MaxPool<kernel_shape=[2,2]>(p)
        }"""
    )
    assert reasons(graph, MERGE) == ["'i', inside the pattern, is a graph output"]


def test_integers():
    text = """(int8[1,3,9,9] x) => (int8[1,3,7,7] y) {
        p = MaxPool<kernel_shape=[2,2]>(x)
        y = MaxPool<kernel_shape=[2,2]>(p)
    }"""
    assert ops(apply_only(graph_of(text), MERGE)) == {"MaxPool": 1}


@pytest.mark.parametrize("kernel", [4, 5, 7])
@pytest.mark.parametrize("padding", [0, 1, 3])
def test_large_pool_is_split_and_merged_again(kernel, padding):
    graph = graph_of(
        f"""(float[N,3,12,11] x) => (float[N,3,?,?] y) {{
            y = MaxPool<kernel_shape=[{kernel},5], strides=[2,1], pads=[{padding},2,{padding},2]>(x)
        }}"""
    )
    (candidate,) = candidates(graph, SPLIT)
    assert_inverse_restores(graph, candidate)


def test_small_pool_is_not_split():
    graph = graph_of("(float[N,3,9,9] x) => (float[N,3,7,7] y) { y = MaxPool<kernel_shape=[3,3]>(x) }")
    assert candidates(graph, SPLIT) == []


# Activations


@pytest.mark.parametrize(
    "activation",
    ["Relu(ARG)", "Sigmoid(ARG)", "LeakyRelu<alpha=0.2>(ARG)", "Clip(ARG, low, high)", "Elu(ARG)"],
)
def test_activation_moves_and_moves_back(activation):
    text = f"""(float[N,3,9,9] x) => (float[N,3,?,?] y) {{
        a = {activation.replace("ARG", "x")}
        y = MaxPool<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(a)
    }}"""
    bounds = {"low": np.array(-0.5, "f4"), "high": np.array(0.5, "f4")} if "low" in text else {}
    graph = graph_of(text, **bounds)
    (candidate,) = candidates(graph, AFTER)
    assert_inverse_restores(graph, candidate)


@pytest.mark.parametrize("rule", [AFTER, BEFORE])
def test_decreasing_activation_is_refused(rule):
    body = (
        "a = LeakyRelu<alpha=-0.5>(x)\n y = MaxPool<kernel_shape=[2,2]>(a)"
        if rule == AFTER
        else "a = MaxPool<kernel_shape=[2,2]>(x)\n y = LeakyRelu<alpha=-0.5>(a)"
    )
    graph = graph_of(f"(float[N,3,9,9] x) => (float[N,3,8,8] y) {{ {body} }}")
    assert candidates(graph, rule) == []
    assert reasons(graph, rule) == ["its slope -0.5 is negative"]


def test_other_functions_are_something_else():
    graph = graph_of(
        "(float[N,3,9,9] x) => (float[N,3,8,8] y) { a = Abs(x)\n y = MaxPool<kernel_shape=[2,2]>(a) }"
    )
    assert candidates(graph, AFTER) == []


def test_windows_in_the_padding_are_refused():
    graph = graph_of(
        """(float[N,3,1,9] x) => (float[N,3,?,?] y) {
            a = Relu(x)
            y = MaxPool<kernel_shape=[2,2], dilations=[3,1], pads=[2,0,2,0]>(a)
        }"""
    )
    assert reasons(graph, AFTER) == ["a window of the dilated pool may lie wholly in the padding"]


def test_activation_with_another_reader_is_refused():
    graph = graph_of(
        """(float[N,3,9,9] x) => (float[N,3,8,8] y, float[N,3,9,9] z) {
            a = Relu(x)
            y = MaxPool<kernel_shape=[2,2]>(a)
            z = Neg(a)
        }"""
    )
    assert reasons(graph, AFTER) == ["'a', inside the pattern, is also read by an unnamed Neg"]


def test_indices_of_the_pool_stay_where_they_are():
    graph = graph_of(
        """(float[N,3,9,9] x) => (float[N,3,8,8] y, int64[N,3,8,8] i) {
            p, i = MaxPool<kernel_shape=[2,2]>(x)
            y = Relu(p)
        }"""
    )
    assert reasons(graph, BEFORE) == ["'i', inside the pattern, is a graph output"]
