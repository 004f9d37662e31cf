"""The bound for networks with too many ideals, on networks small enough to know the optimum."""

from __future__ import annotations

import threading

import pytest

from explorer.errors import Cancelled
from explorer.fusion import Brr, Lbdf, Plan, Scheme, optimum, relaxation
from explorer.fusion.relaxation import bounds, least_bytes
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
    found = [b for b in bounds(scheme, start, time_limit_seconds=3.0) if b is not None]
    assert found[-1].bound_bytes > weights
    assert [b.rounds for b in found] == list(range(1, len(found) + 1))
    assert found[-1].bound_bytes <= optimum(scheme).plan.dram_bytes


def test_what_every_plan_moves_is_weights_inputs_and_outputs() -> None:
    scheme = Lbdf(sample("resnet18"), 1 << 40)
    parameters, image, classes = 11_684_712, 3 * 224 * 224, 1000  # BatchNormalization folded
    assert least_bytes(scheme) == 2 * (parameters + image + classes)
    assert least_bytes(scheme) <= optimum(scheme).plan.dram_bytes


@pytest.mark.parametrize("seed", range(20))
def test_what_every_plan_moves_is_never_above_the_optimum(seed: int) -> None:
    scheme = (Brr if seed % 2 else Lbdf)(random_network(seed, 8), (500, 1200, 2500)[seed % 3])
    assert 0 < least_bytes(scheme) <= optimum(scheme).plan.dram_bytes


def test_a_running_solver_stops_with_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    from ortools.sat.python import cp_model

    stopped, stop = [], cp_model.CpSolver.stop_search
    monkeypatch.setattr(relaxation, "_ROUND_SECONDS", 300.0)
    monkeypatch.setattr(
        cp_model.CpSolver, "stop_search", lambda solver: (stopped.append(solver), stop(solver))
    )

    def is_solving() -> bool:
        return any(thread.name.startswith("cp-sat") for thread in threading.enumerate())

    scheme = Brr(sample("inception_v3"), 128 * 1024)
    with pytest.raises(Cancelled):
        optimum(scheme, ideal_limit=0, time_limit_seconds=6.0, cancel=is_solving)
    assert stopped
    assert not is_solving()


def test_something_is_reported_while_the_solver_runs() -> None:
    scheme = Lbdf(sample("googlenet"), 256 * 1024)
    found = list(bounds(scheme, Plan.layer_by_layer(scheme).masks, time_limit_seconds=2.0))
    assert None in found
    assert isinstance(found[-1], relaxation.Bound)
