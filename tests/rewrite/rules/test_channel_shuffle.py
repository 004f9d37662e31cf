from __future__ import annotations

import numpy as np

from explorer.graph import Graph
from tests.rewrite.harness import apply_checked, candidates, graph_of, ops, reasons

RULE = "gather-shuffled-channels"
SHUFFLE = "a = Reshape(x, five) t = Transpose<perm=[0,2,1,3,4]>(a)"


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def graph(tail: str, outputs: str = "float[N,6,2,3] y", five=(0, 2, 3, 2, 3), **more: np.ndarray) -> Graph:
    return graph_of(
        f"(float[N,6,2,3] x) => ({outputs}) {{ {SHUFFLE} {tail} }}",
        five=ints(*five),
        four=ints(0, 6, 2, 3),
        **more,
    )


def test_a_shuffle_is_one_gather():
    net = graph("y = Reshape(t, four)")
    (found,) = candidates(net, RULE)
    result = apply_checked(net, found)
    assert ops(result) == {"Gather": 1}
    assert result.nodes[-1].inputs[1].const_value.numpy().tolist() == [0, 3, 1, 4, 2, 5]


def test_parts_that_are_cut_out_gather_their_own_channels():
    cuts = "r = Reshape(t, four) y = Slice(r, zero, two, one) z = Slice(r, two, six, one)"
    net = graph(
        cuts,
        "float[N,2,2,3] y, float[N,4,2,3] z",
        zero=ints(0),
        one=ints(1),
        two=ints(2),
        six=ints(2**40),
    )
    whole, parts = candidates(net, RULE)
    assert (whole.variant, parts.variant) == ("", "parts")
    result = apply_checked(net, parts)
    assert ops(result) == {"Gather": 2}
    assert [n.inputs[1].const_value.numpy().tolist() for n in result.nodes] == [[0, 3], [1, 4, 2, 5]]
    assert ops(apply_checked(net, whole)) == {"Gather": 1, "Slice": 2}


def test_parts_need_constant_bounds_along_the_channels():
    cuts = "r = Reshape(t, four) y = Slice(r, zero, two, axis)"
    net = graph(cuts, "float[N,6,2,2] y", zero=ints(0), two=ints(2), axis=ints(3))
    assert [c.variant for c in candidates(net, RULE)] == [""]


def test_another_reshape_behind_is_no_shuffle():
    net = graph_of(
        f"(float[1,6,2,3] x) => (float[1,3,4,3] y) {{ {SHUFFLE} y = Reshape(t, four) }}",
        five=ints(1, 2, 3, 2, 3),
        four=ints(1, 3, 4, 3),
    )
    assert candidates(net, RULE) == []
    assert any("not what is shuffled" in reason for reason in reasons(net, RULE))


def test_unknown_channels_are_refused():
    net = graph_of(
        "(float[1,C,2,3] x) => (float[1,D,2,3] y) "
        "{ a = Reshape(x, five) t = Transpose<perm=[0,2,1,3,4]>(a) y = Reshape(t, four) }",
        five=ints(1, 2, -1, 2, 3),
        four=ints(1, -1, 2, 3),
    )
    assert any("not static" in reason for reason in reasons(net, RULE))
