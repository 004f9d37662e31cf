from __future__ import annotations

import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.ui.graphview import layering
from explorer.ui.graphview.coordinates import place
from explorer.ui.graphview.layering import Layers, by_fast_sugiyama, by_rank, layers_of, ranks_of


@st.composite
def connected_dags(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    count = draw(st.integers(2, 24))
    edges = {(draw(st.integers(0, i - 1)), i) for i in range(1, count)}
    extra = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    edges |= {(min(p), max(p)) for p in draw(st.lists(extra, max_size=20)) if p[0] != p[1]}
    return count, sorted(edges)


def check_layers(layers: Layers, count: int, edges: list[tuple[int, int]]) -> None:
    row = {v: r for r, vertices in enumerate(layers.rows) for v in vertices}
    assert set(range(count)) <= set(row)
    assert len(row) == sum(map(len, layers.rows))
    for edge in edges:
        stops = [edge[0], *layers.bends[edge], edge[1]]
        assert all(row[b] - row[a] == 1 for a, b in pairwise(stops))


@given(connected_dags())
def test_fast_sugiyama_puts_every_edge_downwards(dag: tuple[int, list[tuple[int, int]]]) -> None:
    check_layers(by_fast_sugiyama(*dag), *dag)


@given(connected_dags())
def test_the_fallback_puts_every_edge_downwards(dag: tuple[int, list[tuple[int, int]]]) -> None:
    check_layers(by_rank(*dag), *dag)


@given(connected_dags())
def test_igraph_puts_every_edge_downwards(dag: tuple[int, list[tuple[int, int]]]) -> None:
    pytest.importorskip("igraph")
    check_layers(layering.by_igraph(*dag), *dag)


@given(connected_dags(), st.sampled_from([by_fast_sugiyama, by_rank]), st.randoms())
def test_boxes_of_any_size_never_overlap(dag, engine, random) -> None:
    count, edges = dag
    widths = [random.choice([0, 40, 172, 900]) for _ in range(count)]
    heights = [random.choice([0, 34, 46, 2000]) for _ in range(count)]
    found = place(engine(count, edges), widths, heights)
    assert min(found.x[v] - widths[v] / 2 for v in range(count)) >= -1e-6
    for vertices in engine(count, edges).rows:
        boxes = [v for v in vertices if v < count]
        for a, b in pairwise(boxes):
            assert found.x[b] - widths[b] / 2 - (found.x[a] + widths[a] / 2) >= 29.9
    assert all(low >= high for high, low in zip(found.bottom, found.top[1:], strict=False))
    for v in range(count):
        assert found.bottom[found.row[v]] - found.top[found.row[v]] >= heights[v] - 1e-6


def test_sources_stand_near_their_consumers() -> None:
    assert ranks_of(4, [(0, 1), (1, 2), (3, 2)]) == [0, 1, 2, 1]


def test_an_engine_that_loses_an_edge_is_not_believed() -> None:
    def broken(count: int, edges: object) -> Layers:
        return Layers(count, ((0, 1), (2,)), {0: 0, 1: 1, 2: 2}, {(0, 1): (), (1, 2): ()})

    layers = layers_of(3, [(0, 1), (1, 2)], broken)
    check_layers(layers, 3, [(0, 1), (1, 2)])


def test_without_any_engine_rows_by_rank_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layering, "find_spec", lambda name: None)
    assert layering.default_engine() is by_rank
    monkeypatch.setattr(layering, "find_spec", lambda name: name == "igraph" or None)
    assert layering.default_engine() is layering.by_igraph


def test_the_main_path_runs_straight_beside_a_skip() -> None:
    edges = [(0, 1), (1, 2), (2, 3), (0, 3), (3, 4)]
    found = place(layers_of(5, edges), [172] * 5, [46] * 5)
    assert len({round(found.x[v], 3) for v in range(5)}) == 1


def test_two_equal_branches_stand_left_and_right() -> None:
    found = place(layers_of(4, [(0, 1), (0, 2), (1, 3), (2, 3)]), [172] * 4, [46] * 4)
    assert found.x[0] == pytest.approx((found.x[1] + found.x[2]) / 2)
    assert found.x[3] == pytest.approx(found.x[0])


def test_importing_the_layout_loads_no_engine() -> None:
    import subprocess

    code = (
        "import sys, explorer.ui.graphview.layout as l; "
        "assert not {'fast_sugiyama', 'igraph'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_a_wide_graph_has_three_rows() -> None:
    edges = [(0, i) for i in range(1, 40)] + [(i, 40) for i in range(1, 40)]
    layers = layers_of(41, edges)
    assert [len(row) for row in layers.rows] == [1, 39, 1]
