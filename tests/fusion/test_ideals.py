"""The exact optimum against trying all plans, and its limits."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest

from explorer.errors import Cancelled
from explorer.fusion import Brr, Lbdf, Plan, Scheme, ideals, optimum, optimum_steps
from explorer.fusion.ideals import ideal_steps
from explorer.fusion.optimum import gap_ratio
from tests.fusion.brute import best_by_trying_all
from tests.fusion.networks import BIG, network_of, random_network, sample


def scheme_of(seed: int) -> Scheme:
    """A random network of four to seven nodes with a buffer that some of its groups fit."""
    network = random_network(seed, 4 + seed % 4)
    capacity = (400, 900, 1600, 3000)[seed // 4 % 4]
    return (Brr if seed % 5 == 0 else Lbdf)(network, capacity)


@pytest.mark.parametrize("block", range(8))
def test_no_plan_of_a_small_network_is_better(block: int) -> None:
    fused = 0
    for seed in range(block * 30, block * 30 + 30):
        scheme = scheme_of(seed)
        found = optimum(scheme)
        assert found.is_proved
        assert found.plan.dram_bytes == best_by_trying_all(scheme), seed
        checked = Plan.of(scheme, found.plan.masks)
        assert checked.dram_bytes == found.bound_bytes
        fused += any(mask & (mask - 1) for mask in found.plan.masks)
    assert fused > 5


def test_three_entries_that_only_the_third_connects_are_one_group() -> None:
    """0 and 1 share no reader; 2 meets 1 at 3 and 0 at 5 (found by trying 1,500 random networks)."""
    scheme = scheme_of(1435)
    assert best_by_trying_all(scheme) == optimum(scheme).plan.dram_bytes
    assert optimum(scheme).plan.masks == (0b1111111,)


def test_intervals_of_one_order_are_not_enough() -> None:
    """The shortcut's convolution lies between the two halves of the group in every order it is given in."""
    network = network_of(
        """(float[1,8,8,8] x) => (float[1,8,8,8] z, float[1,8,8,8] s) {
            p = Relu(x)
            s = Conv <pads=[1,1,1,1]> (p, v)
            z = Sigmoid(p)
        }""",
        v=(8, 8, 3, 3),
    )
    scheme = Lbdf(network, 8 * 8 * 9 * 2 + 3 * 8 * 8 * 2)
    assert scheme.removed_mask == 0b10
    assert optimum(scheme).plan.masks == (0b101,)


def test_a_network_without_operations_has_an_empty_plan() -> None:
    network = network_of("(float[1,4] x) => (float[1,4] y) { y = Identity(x) }")
    found = optimum(Lbdf(network, BIG))
    assert (found.plan.masks, found.plan.dram_bytes, found.is_proved, found.gap_ratio) == ((), 0, True, 0.0)


def test_one_that_fits_whole_is_one_group() -> None:
    found = optimum(Lbdf(sample("squeezenet1_1"), BIG))
    sizes = sorted(len(group) for group in found.plan.groups)
    assert sizes == [1, 63]  # the average needs the map before it whole


def test_the_limit_of_ideals_is_kept() -> None:
    steps = list(ideal_steps(Lbdf(sample("resnet18"), 128 * 1024), ideal_limit=10))
    assert steps[-1].is_exceeded
    assert not steps[-1].is_done
    assert steps[-1].ideals <= 11


def test_the_time_limit_is_kept_even_inside_one_ideal() -> None:
    """Twenty branches side by side, which all fit: more than a million groups follow the first ideal."""
    branches = "".join(f"b{i} = Sigmoid(p) c{i} = Conv(b{i}, w) " for i in range(20))
    names = ", ".join(f"c{i}" for i in range(20))
    network = network_of(
        f"(float[1,4,8,8] x) => (float[1,80,8,8] y) {{ p = Relu(x) {branches} y = Concat <axis=1> ({names}) }}",
        w=(4, 4, 1, 1),
    )
    steps = list(ideal_steps(Lbdf(network, BIG), time_limit_seconds=0.2))
    assert steps[-1].is_exceeded
    assert steps[-1].ideals == 0
    found = optimum(Lbdf(network, BIG), time_limit_seconds=3.0)
    assert found.bound_bytes <= found.plan.dram_bytes == (256 + 80 * 64 + 16) * 2


def test_large_groups_of_brr_do_not_keep_anybody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """One ideal of ResNet-50 has hundreds of groups, each up to a millisecond's work: it can be left in between."""
    monkeypatch.setattr(ideals, "_REPORT_SECONDS", -1.0)  # every look reports, however fast the machine
    steps = list(islice(ideal_steps(Brr(sample("resnet50"), 2048 * 1024)), 60))
    assert not any(step.is_done for step in steps)
    assert max(Counter(step.ideals for step in steps).values()) > 5


def test_a_gap_above_a_bound_of_nothing_is_unknown() -> None:
    assert gap_ratio(10, 0) is None
    assert gap_ratio(0, 0) == 0.0
    assert gap_ratio(15, 10) == 0.5


def test_progress_reaches_the_end() -> None:
    steps = list(optimum_steps(Lbdf(sample("inception_v3"), 256 * 1024)))
    shares = [step.share for step in steps]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(shares) > 2
    assert [step.optimum is not None for step in steps] == [False] * (len(steps) - 1) + [True]


def test_it_can_be_stopped() -> None:
    with pytest.raises(Cancelled):
        optimum(Lbdf(sample("inception_v3"), 256 * 1024), cancel=lambda: True)


@pytest.mark.parametrize("buffer_kb", [128, 256, 512, 1024, 2048])
def test_the_largest_convolutional_sample_stays_far_below_the_limit(buffer_kb: int) -> None:
    found = optimum(Lbdf(sample("inception_v3"), buffer_kb * 1024))
    assert found.is_proved
    assert found.ideals < 2000
