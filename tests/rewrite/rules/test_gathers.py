"""G12: Gather at constant places, Slice and Squeeze."""

import numpy as np
import pytest

from tests.rewrite.harness import apply_only, assert_inverse_restores, candidates, graph_of, ops, reasons

CUT, PICK = "gather-to-slice", "slice-to-gather"


@pytest.mark.parametrize("opset", [9, 11, 17])
@pytest.mark.parametrize(
    ("x", "axis", "place"),
    [("5,3", 0, 2), ("5,3", 1, 0), ("5,3", -1, -1), ("N,3", 0, 1), ("N,3", 0, -1), ("N,4", 0, -2)],
)
def test_gather_of_one_place_and_back(x, axis, place, opset):
    graph = graph_of(
        f"(float[{x}] x) => (float[?] y) {{ h = Gather<axis={axis}>(x, i) y = Relu(h) }}",
        opset=opset,
        i=np.array(place),
    )
    (candidate,) = candidates(graph, CUT)
    result = apply_only(graph, CUT)
    assert ops(result) == {"Slice": 1, "Squeeze": 1, "Relu": 1}
    if axis >= 0 and (place >= 0 or x[0] == "N"):
        assert_inverse_restores(graph, candidate)


@pytest.mark.parametrize("places", [[1], [1, 2, 3], [-2, -1]])
def test_gather_of_consecutive_places_becomes_one_slice(places):
    graph = graph_of(
        "(float[2,5] x) => (float[2,?] y) { h = Gather<axis=1>(x, i) y = Relu(h) }", i=np.array(places)
    )
    assert ops(apply_only(graph, CUT)) == {"Slice": 1, "Relu": 1}


@pytest.mark.parametrize("places", [[0, 2], [2, 1], [1, 1], [[0, 1]]])
def test_scattered_places_stay(places):
    graph = graph_of("(float[2,5] x) => (float[] y) { y = Gather<axis=1>(x, i) }", i=np.array(places))
    assert candidates(graph, CUT) == []


def test_places_outside_or_of_unknown_direction_are_refused():
    graph = graph_of("(float[2,5] x) => (float[] y) { y = Gather<axis=1>(x, i) }", i=np.array(5))
    assert reasons(graph, CUT) == ["place 5 is outside of 5"]
    graph = graph_of("(float[N,5] x) => (float[] y) { y = Gather(x, i) }", i=np.array([-2, -1]))
    assert reasons(graph, CUT) == ["negative places of a dynamic dim"]


def test_computed_places_stay():
    graph = graph_of("(float[2,5] x, int64 i) => (float[2] y) { y = Gather<axis=1>(x, i) }")
    assert candidates(graph, CUT) == []


@pytest.mark.parametrize("dtype", ["float16", "int64", "double", "bool"])
def test_other_types(dtype):
    graph = graph_of(f"({dtype}[9,9] x) => ({dtype}[9] y) {{ y = Gather(x, i) }}", i=np.array(4))
    assert ops(apply_only(graph, CUT)) == {"Slice": 1, "Squeeze": 1}


def test_strings_are_refused():
    graph = graph_of("(string[9,9] x) => (string[9] y) { y = Gather(x, i) }", i=np.array(4))
    assert candidates(graph, CUT) == []
    assert reasons(graph, CUT) == ["'x' holds strings, whose Gather is wrong in ONNX Runtime 1.32"]


def sliced(x, start, end, axis=0, squeeze=(0,)):
    return graph_of(
        f"(float[{x}] x) => (float[] y) {{ h = Slice(x, b, e, a) k = Squeeze(h, s) y = Relu(k) }}",
        b=np.array([start]),
        e=np.array([end]),
        a=np.array([axis]),
        s=np.array(squeeze),
    )


@pytest.mark.parametrize(
    ("x", "start", "end", "place"),
    [("5,3", 2, 3, 2), ("5,3", -1, 99, 4), ("N,3", 1, 2, 1), ("N,3", -2, -1, -2), ("N,3", -1, 2**63 - 1, -1)],
)
def test_slice_of_one_place_becomes_gather(x, start, end, place):
    result = apply_only(sliced(x, start, end), PICK)
    assert ops(result) == {"Gather": 1, "Relu": 1}
    assert result.nodes[0].inputs[1].const_value.numpy() == place


@pytest.mark.parametrize(("start", "end"), [(0, 2), (-1, 0), (-1, 5)])
def test_slices_that_may_hold_more_are_refused(start, end):
    graph = sliced("N,3", start, end)
    assert candidates(graph, PICK) == []
    assert reasons(graph, PICK) == ["'h' is not known to be one place along axis 0"]


def test_squeeze_of_another_axis_is_something_else():
    assert candidates(sliced("5,1", 2, 3, axis=0, squeeze=(1,)), PICK) == []


def test_slice_with_another_reader_is_refused():
    graph = graph_of(
        "(float[5,3] x) => (float[3] y, float[1,3] z) { h = Slice(x, b, e) y = Squeeze(h, s) z = Neg(h) }",
        b=np.array([1]),
        e=np.array([2]),
        s=np.array([0]),
    )
    assert reasons(graph, PICK) == ["'h', inside the pattern, is also read by an unnamed Neg"]


def test_inside_a_branch():
    graph = graph_of(
        """(bool c, float[4,3] x) => (float[3] y) {
            y = If(c) <
                then_branch = t () => (float[3] a) { a = Gather(x, i) },
                else_branch = e () => (float[3] b) { b = ReduceMax<axes=[0], keepdims=0>(x) }
            >
        }""",
        i=np.array(2),
    )
    assert ops(apply_only(graph, CUT)) == {"If": 1, "Slice": 1, "Squeeze": 1, "ReduceMax": 1}


def test_places_from_the_end_to_the_front_are_no_slice():
    graph = graph_of("(float[2,3] x) => (float[2,3] y) { y = Gather(x, i) }", i=np.array([-1, 0]))
    assert candidates(graph, "gather-to-slice") == []
    assert reasons(graph, "gather-to-slice") == ["the places go from the end to the front"]
