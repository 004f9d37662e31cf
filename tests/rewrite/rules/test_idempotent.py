"""A12: functions applied twice."""

import numpy as np
import pytest

from explorer.graph import load
from tests.models import case_path
from tests.rewrite.harness import apply_all, apply_only, candidates, graph_of, ops, reasons

TWICE, BACK, CLIPS = "eliminate-idempotent", "eliminate-involution", "merge-clips"


@pytest.mark.parametrize("op", ["Abs", "Ceil", "Floor", "Relu", "Round", "Sign"])
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_function_applied_twice(op, dtype):
    graph = graph_of(f"({dtype}[N,30] x) => ({dtype}[N,30] y) {{ h = {op}(x) k = {op}(h) y = Neg(k) }}")
    assert ops(apply_only(graph, TWICE)) == {op: 1, "Neg": 1}


def test_three_times_is_once():
    graph = graph_of("(float[4] x) => (float[4] y) { a = Relu(x) b = Relu(a) c = Relu(b) y = Neg(c) }")
    assert ops(apply_all(graph, TWICE)) == {"Relu": 1, "Neg": 1}


def test_both_results_outputs_is_refused():
    graph = graph_of("(float[4] x) => (float[4] y, float[4] z) { y = Relu(x) z = Relu(y) }")
    assert candidates(graph, TWICE) == []
    assert reasons(graph, TWICE) == ["outputs 'z' and 'y' would be the same tensor"]


def test_functions_that_are_not_idempotent_stay():
    graph = graph_of("(float[4] x) => (float[4] y) { h = Sigmoid(x) k = Sigmoid(h) y = Neg(k) }")
    assert candidates(graph, TWICE) == candidates(graph, BACK) == []


@pytest.mark.parametrize(("op", "dtype"), [("Neg", "float"), ("Not", "bool"), ("Neg", "int32")])
def test_two_negations_cancel(op, dtype):
    graph = graph_of(
        f"({dtype}[3,9] x) => ({dtype}[3,9] y) {{ h = {op}(x) k = {op}(h) y = Transpose(k) }}".replace(
            "[3,9] y", "[9,3] y"
        )
    )
    assert ops(apply_only(graph, BACK)) == {"Transpose": 1}


def clips(first, second, dtype="float", opset=17):
    """Two Clips with bounds (low, high), None where left out."""
    nodes, weights, numpy = [], {}, {"float": "f4", "double": "f8", "int64": "i8"}[dtype]
    for source, target, bounds in (("x", "h", first), ("h", "k", second)):
        if opset < 11:
            listed = [f"{n}={b}" for n, b in zip(("min", "max"), map(float, bounds), strict=True)]
            nodes.append(f"{target} = Clip<{', '.join(listed)}>({source})")
            continue
        names = ["", ""]
        for i, bound in enumerate(bounds):
            if bound is not None:
                names[i] = f"{target}{i}"
                weights[names[i]] = np.array(bound, numpy)
        nodes.append(f"{target} = Clip({source}, {', '.join(names)})".replace(", )", ")").replace(", )", ")"))
    return graph_of(
        f"({dtype}[99] x) => ({dtype}[99] y) {{ {' '.join(nodes)} y = Neg(k) }}", opset=opset, **weights
    )


@pytest.mark.parametrize(
    ("first", "second", "bounds"),
    [
        ((-1, 1), (0, 6), (0, 1)),
        ((0, 6), (-1, 1), (0, 1)),
        ((0, None), (None, 6), (0, 6)),
        ((None, 6), (-3, None), (-3, 6)),
    ],
)
@pytest.mark.parametrize("dtype", ["float", "double", "int64"])
def test_clips_merge(first, second, bounds, dtype):
    result = apply_only(clips(first, second, dtype), CLIPS)
    clip = result.nodes[0]
    assert [v.const_value.numpy().item() for v in clip.inputs[1:]] == list(bounds)
    assert sum(1 for _ in result.initializers()) == 2


def test_one_bound_is_left_out():
    result = apply_only(clips((0, None), (-1, None)), CLIPS)
    assert len(result.nodes[0].inputs) == 2


def test_clips_before_opset_11():
    result = apply_only(clips((-1, 1), (0, 6), opset=10), CLIPS)
    clip = result.nodes[0]
    assert (clip.attributes["min"].value, clip.attributes["max"].value) == (0.0, 1.0)


def test_disjoint_intervals_are_refused():
    graph = clips((0, 1), (2, 3))
    assert candidates(graph, CLIPS) == []
    assert reasons(graph, CLIPS) == ["the two intervals do not meet"]


def test_computed_and_nan_bounds_are_refused():
    graph = graph_of(
        "(float[9] x, float m) => (float[9] y) { h = Clip(x, m) y = Clip(h, z) }", z=np.zeros((), "f4")
    )
    assert reasons(graph, CLIPS) == ["the min of Clip 'h' is not a constant"]
    nan = graph_of(
        "(float[9] x) => (float[9] y) { h = Clip(x, m) y = Clip(h, z) }",
        z=np.zeros((), "f4"),
        m=np.array(np.nan, "f4"),
    )
    assert reasons(nan, CLIPS) == ["the min of Clip 'h' is NaN"]


def test_relu_before_clip_is_another_rule():
    graph = load(case_path("relu_then_clip_negative_min_double"))
    assert candidates(graph, CLIPS) == []


def test_idempotent_inside_a_loop_body():
    graph = graph_of("""(int64 n, bool c, float[4] x) => (float[4] y) {
        y = Loop(n, c, x) <body = b (int64 i, bool ci, float[4] a) => (bool co, float[4] o) {
            co = Identity(ci)
            h = Relu(a)
            k = Relu(h)
            o = Neg(k)
        }>
    }""")
    assert ops(apply_only(graph, TWICE)) == {"Loop": 1, "Identity": 1, "Relu": 1, "Neg": 1}
