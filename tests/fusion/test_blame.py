"""Exact blame: differences of the scheme's own demand, worked out by hand on a residual block."""

from __future__ import annotations

from explorer.fusion import FusionGroup, Lbdf, blame
from tests.fusion.networks import BIG, everything, network_of, sample

ROW = 8 * 4 * 2
WEIGHTS = 4 * 4 * 9 * 2


def residual():
    return network_of(
        """(float[1,4,8,8] x) => (float[1,4,8,8] y) {
            p = Relu(x)
            a = Conv <pads=[1,1,1,1]> (p, w)
            b = Conv <pads=[1,1,1,1]> (a, v)
            y = Add(p, b)
        }""",
        w=(4, 4, 3, 3),
        v=(4, 4, 3, 3),
    )


def test_the_shortcut_edge_holds_the_rows_that_wait_for_it() -> None:
    network = residual()
    found = blame(Lbdf(network, BIG), everything(network))
    assert found.demand_bytes == 2 * WEIGHTS + 6 * ROW + 2 * ROW
    edges = {(e.source, e.target): (e.held_bytes, e.relief_bytes) for e in found.edges}
    assert edges == {
        ("n0", "n1"): (0, 0),  # a still has its window, and p still has to wait for b
        ("n1", "n2"): (1 * ROW, 1 * ROW),
        ("n2", "n3"): (2 * ROW, 2 * ROW),
        ("n0", "n3"): (2 * ROW, 2 * ROW),
    }


def test_a_node_holds_its_weights_its_window_and_the_waiting_it_causes() -> None:
    network = residual()
    nodes = {n.node: n for n in blame(Lbdf(network, BIG), everything(network)).nodes}
    assert nodes["n0"].held_bytes == 2 * ROW  # without it the shortcut comes from outside
    assert nodes["n1"].held_bytes == WEIGHTS + 3 * ROW + ROW
    assert nodes["n2"].held_bytes == WEIGHTS + 3 * ROW + 2 * ROW
    assert nodes["n3"].held_bytes == 2 * ROW


def test_relief_is_what_a_cut_there_is_worth() -> None:
    network = network_of(
        """(float[1,4,8,8] x) => (float[1,4,8,8] c) {
            a = Conv <pads=[1,1,1,1]> (x, w)
            b = Conv <pads=[1,1,1,1]> (a, v)
            c = Conv <pads=[1,1,1,1]> (b, u)
        }""",
        **dict.fromkeys("wvu", (4, 4, 3, 3)),
    )
    one = WEIGHTS + 3 * ROW
    found = blame(Lbdf(network, BIG), everything(network))
    assert {(e.source, e.target): (e.held_bytes, e.relief_bytes) for e in found.edges} == {
        ("n0", "n1"): (0, one),
        ("n1", "n2"): (0, one),
    }
    assert {n.node: (n.held_bytes, n.relief_bytes) for n in found.nodes} == {
        "n0": (one, one),
        "n1": (one, 2 * one),
        "n2": (one, one),
    }


def test_a_single_operation_is_to_blame_for_everything() -> None:
    network = sample("resnet18")
    group = FusionGroup.of(network, ["n4"])
    (node,) = blame(Lbdf(network, BIG), group).nodes
    assert node.nodes == ("n4", "n5")
    assert node.held_bytes == node.relief_bytes == blame(Lbdf(network, BIG), group).demand_bytes
