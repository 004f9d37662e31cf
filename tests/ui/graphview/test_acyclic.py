from __future__ import annotations

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from explorer.ui.graphview.acyclic import cut_cycles, forward_edges, topological

COUNT = 14
pairs = st.lists(st.tuples(st.integers(0, COUNT - 1), st.integers(0, COUNT - 1)), max_size=50)
paths = st.lists(
    st.lists(st.sampled_from("abc"), max_size=3).map(lambda keys: tuple((key, 0) for key in keys)),
    min_size=COUNT,
    max_size=COUNT,
)


@given(pairs)
def test_forward_edges_join_the_same_nodes_without_cycles(edges: list[tuple[int, int]]) -> None:
    forward = forward_edges(COUNT, edges)
    assert {frozenset(e) for e in forward} == {frozenset(e) for e in edges if e[0] != e[1]}
    assert nx.is_directed_acyclic_graph(nx.DiGraph(forward))


def test_only_the_edge_that_closes_a_cycle_is_turned() -> None:
    assert forward_edges(3, [(0, 1), (1, 2), (2, 0), (1, 1)]) == [(0, 1), (0, 2), (1, 2)]


def test_topological_prefers_small_numbers() -> None:
    assert topological(4, [(3, 0), (1, 2)]) == [1, 2, 3, 0]


@given(pairs, paths)
def test_contracted_groups_form_no_cycle(edges: list[tuple[int, int]], groups: list) -> None:
    forward = forward_edges(COUNT, edges)
    cut = cut_cycles(groups, forward)
    assert [tuple(key for key, _ in path) for path in cut] == [
        tuple(key for key, _ in path) for path in groups
    ]
    for depth in range(4):
        inside: dict = {}
        for a, b in forward:
            if cut[a][:depth] == cut[b][:depth]:
                inside.setdefault(cut[a][:depth], nx.DiGraph()).add_edges_from([(a, b)])
        for graph in inside.values():
            name = {v: cut[v][: depth + 1] if len(cut[v]) > depth else v for v in graph}
            joined = nx.DiGraph((name[a], name[b]) for a, b in graph.edges if name[a] != name[b])
            assert nx.is_directed_acyclic_graph(joined)


def test_a_group_in_order_is_left_whole() -> None:
    groups = [(("a", 0),), (("a", 0),), (("b", 0),)]
    assert cut_cycles(groups, [(0, 1), (1, 2)]) == groups


def test_a_module_used_twice_is_cut_in_two() -> None:
    relu, conv = (("relu", 0),), (("conv", 0),)
    cut = cut_cycles([relu, conv, relu], [(0, 1), (1, 2)])
    assert cut[0] != cut[2]
    assert cut[0][0][0] == cut[2][0][0] == "relu"
