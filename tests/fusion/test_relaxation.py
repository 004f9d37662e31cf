"""The bound for networks with too many ideals, on networks small enough to know the optimum."""

from __future__ import annotations

import pytest

from explorer.fusion import Brr, Lbdf, Plan, Scheme, optimum
from explorer.fusion.relaxation import bounds
from tests.fusion.networks import random_network, sample


def bounded(scheme: Scheme, seconds: float):
    return optimum(scheme, ideal_limit=0, time_limit_seconds=seconds)


@pytest.mark.parametrize("seed", range(12))
def test_the_bound_is_never_above_the_optimum_nor_the_plan_below_it(seed: int) -> None:
    scheme = (Brr if seed % 4 == 0 else Lbdf)(random_network(seed, 12), (500, 1200, 2500)[seed % 3])
    exact = optimum(scheme)
    assert exact.is_proved
    found = bounded(scheme, 4.0)
    assert found.method == "cp-sat"
    assert found.bound_bytes <= exact.plan.dram_bytes <= found.plan.dram_bytes
    if found.is_proved:
        assert found.plan.dram_bytes == exact.plan.dram_bytes
    assert Plan.of(scheme, found.plan.masks).is_valid


def test_it_can_prove_an_optimum_too() -> None:
    found = bounded(Lbdf(sample("resnet18"), 128 * 1024), 30.0)
    assert (found.is_proved, found.method, found.gap_ratio) == (True, "cp-sat", 0.0)
    assert found.plan.dram_bytes == 5973.75 * 1024


def test_bounds_are_above_the_weights_and_each_round_is_reported() -> None:
    scheme = Lbdf(sample("googlenet"), 256 * 1024)
    weights = scheme.weight_bytes(scheme.network.all_nodes & ~scheme.removed_mask)
    start = Plan.layer_by_layer(scheme).masks
    found = list(bounds(scheme, start, time_limit_seconds=3.0))
    assert found[-1].bound_bytes > weights
    assert [b.rounds for b in found] == list(range(1, len(found) + 1))
    assert found[-1].bound_bytes <= optimum(scheme).plan.dram_bytes
