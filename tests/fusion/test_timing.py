"""Eager against lazy timing: where the strict recursion differs, by how much, and why."""

from __future__ import annotations

import pytest

from explorer.fusion import FusionGroup, Lbdf, TermKind, optimum
from tests.fusion.networks import BIG, network_of, sample
from tests.fusion.strict import LazyLbdf

FIRE = """(float[1,4,8,8] x) => (float[1,16,8,8] y) {
    s = Relu(x)
    a = Conv (s, w)
    b = Conv <pads=[1,1,1,1]> (s, v)
    y = Concat <axis=1> (a, b)
}"""


def test_in_a_fire_module_the_eager_1x1_convolution_makes_one_row_wait() -> None:
    """By hand: weights 4*8*2 + 4*8*9*2, three rows of s (8*4*2 each), and one row of a (8*8*2).

    Held back until the concat wants its row, the 1x1 convolution reads the middle one of the three rows
    of s that are there anyway, and nothing waits.
    """
    network = network_of(FIRE, w=(8, 4, 1, 1), v=(8, 4, 3, 3))
    mask = network.all_nodes
    assert Lbdf(network, BIG).demand_bytes(mask) == 64 + 576 + 3 * 64 + 128
    assert LazyLbdf(network, BIG).demand_bytes(mask) == 64 + 576 + 3 * 64


def test_where_the_early_side_is_narrow_eager_timing_needs_less() -> None:
    """A wide p, a 1x1 convolution to 1 channel beside three 3x3 convolutions.

    Eager: 3 rows of p, and 3 rows of a. Lazy: p is kept from the first 3x3 window (3 rows ahead of the sum)
    back to the row the sum is at: 4 rows of p.
    """
    network = network_of(
        """(float[1,64,8,8] x) => (float[1,1,8,8] y) {
            p = Relu(x)
            a = Conv (p, w)
            b = Conv <pads=[1,1,1,1]> (p, v)
            c = Conv <pads=[1,1,1,1]> (b, u)
            d = Conv <pads=[1,1,1,1]> (c, u)
            y = Add(a, d)
        }""",
        w=(1, 64, 1, 1),
        v=(1, 64, 3, 3),
        u=(1, 1, 3, 3),
    )
    row_p, row_1 = 8 * 64 * 2, 8 * 2
    shared = (64 + 576 + 9) * 2 + 2 * 3 * row_1
    assert Lbdf(network, BIG).demand_bytes(network.all_nodes) == shared + 3 * row_p + 3 * row_1
    assert LazyLbdf(network, BIG).demand_bytes(network.all_nodes) == shared + 4 * row_p


@pytest.mark.parametrize(
    ("name", "buffer_kb", "eager_kb", "lazy_kb"),
    [
        ("resnet18", 128, 5973.75, 5973.75),
        ("mobilenet_v2", 128, 6445.125, 6445.125),
        ("squeezenet1_1", 128, 2394.734375, 2153.671875),
    ],
)
def test_only_the_fire_modules_change_the_anchors(
    name: str, buffer_kb: int, eager_kb: float, lazy_kb: float
) -> None:
    eager = optimum(Lbdf(sample(name), buffer_kb * 1024))
    lazy = optimum(LazyLbdf(sample(name), buffer_kb * 1024))
    assert (eager.plan.dram_bytes / 1024, lazy.plan.dram_bytes / 1024) == (eager_kb, lazy_kb)


def test_without_branches_both_agree() -> None:
    network = sample("mobilenet_v2")
    eager, lazy = Lbdf(network, BIG), LazyLbdf(network, BIG)
    compared = 0
    for start in range(0, 60, 3):
        mask = sum(1 << i for i in range(start, start + 6))
        report = eager.demand(FusionGroup(network, mask))
        if not report.total_bytes(TermKind.SHORTCUT_FIFO) and network.is_connected(mask):
            assert lazy.demand_bytes(mask) == report.demand_bytes
            compared += 1
    assert compared > 5
