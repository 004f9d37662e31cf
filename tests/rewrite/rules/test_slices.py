"""A8 slices that keep everything or follow each other, G7 slices that tile an axis."""

import numpy as np
import pytest

from tests.rewrite.harness import (
    apply_all,
    apply_checked,
    apply_only,
    assert_inverse_restores,
    candidates,
    graph_of,
    ops,
    reasons,
)

ONE, TWO, TILE, CUT = "eliminate-slice", "merge-slices", "slices-to-split", "split-to-slices"
END = 2**63 - 1


def sliced(x, *cuts, opset=17):
    """Slices one after the other, each (starts, ends, axes, steps)."""
    rank, nodes, weights, value = len(x.split(",")), [], {}, "x"
    for i, (starts, ends, axes, steps) in enumerate(cuts):
        if opset < 10:
            nodes.append(f"s{i} = Slice<starts={starts}, ends={ends}, axes={axes}>({value})")
        else:
            names = []
            for name, values in zip("betp", (starts, ends, axes, steps), strict=True):
                names.append(f"{name}{i}")
                weights[f"{name}{i}"] = np.array(values, "i8")
            nodes.append(f"s{i} = Slice({value}, {', '.join(names)})")
        value = f"s{i}"
    y = ",".join("?" * rank)
    return graph_of(
        f"(float[{x}] x) => (float[{y}] y) {{ {' '.join(nodes)} y = Relu({value}) }}", opset=opset, **weights
    )


@pytest.mark.parametrize(
    ("x", "cut"),
    [
        ("2,3", ([0], [3], [1], [1])),
        ("2,3", ([0], [END], [-1], [1])),
        ("2,3", ([-3, -2], [99, 2], [1, 0], [1, 1])),
        ("N,3", ([0], [2**31 - 1], [0], [1])),
    ],
)
def test_slice_that_keeps_everything_disappears(x, cut):
    assert ops(apply_only(sliced(x, cut), ONE)) == {"Relu": 1}


@pytest.mark.parametrize(
    ("x", "cut"),
    [
        ("2,3", ([1], [3], [1], [1])),
        ("2,3", ([0], [-1], [1], [1])),
        ("N,3", ([0], [5], [0], [1])),
        ("2,3", ([-1], [-4], [1], [-1])),
        ("2,4", ([0], [4], [1], [2])),
    ],
)
def test_slice_that_cuts_or_turns_stays(x, cut):
    assert candidates(sliced(x, cut), ONE) == []


def test_computed_bounds_are_refused():
    graph = graph_of(
        "(float[2,3] x, int64[1] e) => (float[?,?] y) { y = Slice(x, b, e, a) }",
        b=np.array([0]),
        a=np.array([1]),
    )
    assert reasons(graph, ONE) == ["the ends of 'y' are not constant"]


@pytest.mark.parametrize(
    ("x", "first", "second"),
    [
        ("9,9", ([1], [8], [0], [1]), ([2], [6], [1], [1])),
        ("9,9", ([1], [8], [1], [1]), ([2], [4], [1], [1])),
        ("9,9", ([1], [8], [1], [1]), ([2], [99], [1], [1])),
        ("9,9", ([-8], [-1], [1], [1]), ([-5], [-1], [-1], [1])),
        ("N,9", ([0], [8], [0], [1]), ([1], [2], [0], [1])),
        ("9,9", ([8], [0], [0], [-1]), ([1], [9], [1], [2])),
        ("N,9", ([0, 1], [END, 9], [0, 1], [1, 1]), ([0], [4], [1], [1])),
    ],
)
def test_two_slices_become_one(x, first, second):
    assert ops(apply_only(sliced(x, first, second), TWO)) == {"Slice": 1, "Relu": 1}


def test_slices_before_opset_10():
    graph = sliced("9,9", ([1], [8], [1], [1]), ([2], [4], [1], [1]), opset=9)
    result = apply_only(graph, TWO)
    assert result.nodes[0].attributes["starts"].value == (3,)
    assert result.nodes[0].attributes["ends"].value == (5,)


@pytest.mark.parametrize(
    ("x", "first", "second"),
    [
        ("9,9", ([0], [9], [1], [2]), ([1], [3], [1], [1])),
        ("N,9", ([-4], [-1], [0], [1]), ([1], [2], [0], [1])),
        ("N,9", ([1], [9], [0], [1]), ([-2], [-1], [0], [1])),
    ],
)
def test_bounds_that_cannot_be_added_are_refused(x, first, second):
    graph = sliced(x, first, second)
    assert candidates(graph, TWO) == []
    axis = first[2][0]
    assert reasons(graph, TWO) == [f"the bounds along axis {axis} cannot be added"]


def tiles(bounds, total=6, opset=17):
    nodes, weights = [], {"axis": np.array([1])}
    for i, (start, end) in enumerate(bounds):
        if opset < 10:
            nodes.append(f"h{i} = Slice<starts=[{start}], ends=[{end}], axes=[1]>(x)")
        else:
            weights |= {f"b{i}": np.array([start]), f"e{i}": np.array([end])}
            nodes.append(f"h{i} = Slice(x, b{i}, e{i}, axis)")
        nodes.append(f"y{i} = Relu(h{i})")
    outputs = ", ".join(f"float[2,?] y{i}" for i in range(len(bounds)))
    weights = weights if opset >= 10 else {}
    return graph_of(f"(float[2,{total}] x) => ({outputs}) {{ {' '.join(nodes)} }}", opset=opset, **weights)


@pytest.mark.parametrize("opset", [9, 11, 17])
@pytest.mark.parametrize("bounds", [[(0, 2), (2, 6)], [(2, 6), (0, 2)], [(0, 1), (-4, 9999), (1, 2)]])
def test_slices_that_tile_an_axis_become_a_split(bounds, opset):
    graph = tiles(bounds, opset=opset)
    result = apply_only(graph, TILE)
    assert ops(result) == {"Split": 1, "Relu": len(bounds)}


def test_tiling_slices_come_back():
    graph = tiles([(0, 2), (2, 6)])
    (candidate,) = candidates(graph, TILE)
    assert_inverse_restores(graph, candidate)


def test_every_tiling_is_offered():
    graph = tiles([(0, 2), (2, 6), (0, 4), (4, 6), (2, 4)])
    found = candidates(graph, TILE)
    assert [len(c.nodes) for c in found] == [3, 2, 2]
    for candidate in found:
        assert ops(apply_checked(graph, candidate))["Split"] == 1


def test_slice_beside_the_tiles_stays():
    graph = tiles([(0, 2), (2, 6), (1, 4)])
    assert ops(apply_only(graph, TILE)) == {"Split": 1, "Slice": 1, "Relu": 3}


@pytest.mark.parametrize(
    ("bounds", "covered"),
    [([(0, 2), (3, 6)], "0:2, 3:6"), ([(0, 4), (3, 6)], "0:4, 3:6"), ([(0, 2), (2, 5)], "0:2, 2:5")],
)
def test_slices_with_gaps_or_overlaps_are_refused(bounds, covered):
    graph = tiles(bounds)
    assert candidates(graph, TILE) == []
    assert reasons(graph, TILE) == [f"the slices {covered} do not tile dim 1 of 'x' (6)"]


def test_slices_of_a_dynamic_dim_are_refused():
    graph = tiles([(0, 2), (2, 6)], total="N")
    assert reasons(graph, TILE) == ["dim 1 of 'x' is not static"]


def test_slices_that_are_outputs_keep_their_names():
    graph = graph_of(
        "(float[4] x) => (float[2] z, float[2] y) { y = Slice(x, b, m) z = Slice(x, m, e) }",
        b=np.array([0]),
        m=np.array([2]),
        e=np.array([4]),
    )
    result = apply_only(graph, TILE)
    assert ops(result) == {"Split": 1}
    assert [v.name for v in result.outputs] == ["z", "y"]


@pytest.mark.parametrize("opset", [9, 12, 17, 18])
def test_split_becomes_slices_and_comes_back(opset):
    if opset < 13:
        text = "p, q, r = Split<axis=1, split=[1,2,3]>(x)"
        weights = {}
    else:
        text, weights = "p, q, r = Split<axis=1>(x, sizes)", {"sizes": np.array([1, 2, 3])}
    graph = graph_of(
        f"(float[N,6] x) => (float[N,?] a, float[N,?] b, float[N,?] c) {{ {text} a=Relu(p) b=Relu(q) c=Relu(r) }}",
        opset=opset,
        **weights,
    )
    (candidate,) = candidates(graph, CUT)
    assert ops(apply_only(graph, CUT)) == {"Slice": 3, "Relu": 3}
    assert_inverse_restores(graph, candidate)


def test_uneven_split_with_num_outputs():
    graph = graph_of(
        """(float[2,7] x) => (float[2,?] a, float[2,?] b, float[2,?] c) {
            p, q, r = Split<axis=1, num_outputs=3>(x) a=Relu(p) b=Relu(q) c=Relu(r)
        }""",
        opset=18,
    )
    assert ops(apply_only(graph, CUT)) == {"Slice": 3, "Relu": 3}


def test_split_of_a_dynamic_dim_into_equal_parts_is_refused():
    graph = graph_of(
        "(float[2,N] x) => (float[2,?] a, float[2,?] b) { p, q = Split<axis=1>(x) a=Relu(p) b=Relu(q) }"
    )
    assert reasons(graph, CUT) == ["the sizes of the parts of 'x' are not known"]


def test_slices_merge_inside_a_branch():
    graph = graph_of(
        """(bool c, float[9] x) => (float[?] y) {
            y = If(c) <
                then_branch = t () => (float[?] a) { h = Slice(x, one, seven) k = Slice(h, one, four) a = Relu(k) },
                else_branch = e () => (float[?] b) { b = Slice(x, one, four) }
            >
        }""",
        one=np.array([1]),
        four=np.array([4]),
        seven=np.array([7]),
    )
    result = apply_all(graph, TWO)
    assert ops(result) == {"If": 1, "Slice": 2, "Relu": 1}
