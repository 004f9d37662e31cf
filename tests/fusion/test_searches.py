"""Searches: seeds, budgets, continuing, stopping, repair; every plan they return is valid."""

from __future__ import annotations

from random import Random

import pytest

from explorer.errors import Cancelled, InputError
from explorer.fusion import SEARCHES, Brr, Lbdf, Plan, Repaired, Scheme, make_search, optimum
from explorer.fusion.space import PlanSpace
from tests.fusion.networks import BIG, network_of, random_network, sample

BUDGETED = ["rs", "ls", "nsga2"]


def squeezenet() -> Scheme:
    return Lbdf(sample("squeezenet1_1"), 128 * 1024)


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("kind", [Lbdf, Brr])
def test_every_search_ends_on_a_valid_plan_no_better_than_the_optimum(name: str, kind: type) -> None:
    scheme = kind(sample("squeezenet1_1"), 128 * 1024)
    search = make_search(name, scheme, seed=3)
    plan = search.run(60)
    assert Plan.of(scheme, plan.masks).dram_bytes == plan.dram_bytes == search.best_bytes
    assert plan.dram_bytes >= optimum(scheme).plan.dram_bytes
    assert search.plans == (60 if name in BUDGETED else 1)


@pytest.mark.parametrize("name", BUDGETED)
def test_a_seed_repeats_a_search_and_another_does_not(name: str) -> None:
    def course(seed: int) -> list[int]:
        search = make_search(name, squeezenet(), seed=seed)
        return [event.proposed_bytes for event in search.events(45)]

    assert course(1) == course(1)
    assert course(1) != course(2)


@pytest.mark.parametrize("name", BUDGETED)
def test_continuing_is_the_same_as_one_longer_search(name: str) -> None:
    whole = make_search(name, squeezenet(), seed=5)
    expected = [(e.plans, e.proposed_bytes, e.best_bytes, e.invalid_met) for e in whole.events(57)]
    halting = make_search(name, squeezenet(), seed=5)
    found = []
    for budget in (13, 14, 57):
        found += [(e.plans, e.proposed_bytes, e.best_bytes, e.invalid_met) for e in halting.events(budget)]
    assert found == expected
    assert halting.best == whole.best


@pytest.mark.parametrize("name", BUDGETED)
def test_a_stopped_search_keeps_what_it_found(name: str) -> None:
    search = make_search(name, squeezenet(), seed=1)
    asked = iter([False] * 20 + [True])
    with pytest.raises(Cancelled, match=f"The {name} search was stopped after 20 plans"):
        search.run(1000, cancel=lambda: next(asked))
    assert search.plans == 20
    assert search.best_plan().is_valid


@pytest.mark.parametrize("name", BUDGETED)
def test_the_best_never_gets_worse_and_is_the_least_proposed(name: str) -> None:
    events = list(make_search(name, squeezenet(), seed=2).events(80))
    best = [event.best_bytes for event in events]
    assert best == sorted(best, reverse=True)
    assert best[-1] == min(event.proposed_bytes for event in events)
    assert [event.plans for event in events] == list(range(1, 81))


@pytest.mark.parametrize("name", ["rs", "ls"])
def test_a_given_plan_is_the_first_one_proposed(name: str) -> None:
    scheme = squeezenet()
    plan = optimum(scheme).plan
    (event,) = make_search(name, scheme, start=plan).events(1)
    assert event.proposed_bytes == plan.dram_bytes


def test_an_unknown_search_and_an_empty_budget_are_refused() -> None:
    with pytest.raises(InputError, match="There is no search 'luck'; choose one of rs, ls, nsga2, greedy"):
        make_search("luck", squeezenet())
    with pytest.raises(InputError, match="A budget of 0 plans is not possible"):
        make_search("rs", squeezenet()).run(0)


class Singles:
    """A repair that claims success: every operation alone."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def split(self, scheme: Scheme, mask: int, rng: Random) -> Repaired:
        assert not scheme.cost(mask).fits
        self.seen.append(mask)
        singles = tuple(1 << i for i in range(mask.bit_length()) if mask >> i & 1)
        return Repaired(singles, is_rectified=True)


@pytest.mark.parametrize("name", BUDGETED)
def test_another_repair_is_asked_for_each_invalid_group(name: str) -> None:
    repair = Singles()
    search = make_search(name, squeezenet(), seed=1, repair=repair)
    assert search.run(40).is_valid
    assert search.invalid_met == search.rectified == len(repair.seen) > 0


def test_the_random_split_rectifies_nothing() -> None:
    search = make_search("rs", squeezenet(), seed=1)
    search.run(40)
    assert search.invalid_met > search.rectified == 0


def test_a_longer_local_search_beats_random_plans() -> None:
    """Over five seeds and equal budgets; by far, so no seed decides it."""
    local = [make_search("ls", squeezenet(), seed=s).run(600).dram_bytes for s in range(5)]
    random = [make_search("rs", squeezenet(), seed=s).run(600).dram_bytes for s in range(5)]
    assert sum(local) < sum(random)


def test_nothing_to_fuse_is_no_obstacle() -> None:
    network = network_of("(float[1,4] x) => (float[1,4] y) { y = Relu(x) }")
    for name in SEARCHES:
        assert make_search(name, Lbdf(network, BIG)).run(3).masks == (1,)


class TestSpace:
    @pytest.mark.parametrize("seed", range(40))
    def test_what_it_draws_edits_and_orders_are_plans(self, seed: int) -> None:
        scheme = Lbdf(random_network(seed, 14), 800)
        space, rng = PlanSpace(scheme), Random(seed)
        masks = space.random_plan(rng)
        for _ in range(30):
            valid_shape(scheme, masks)
            masks = space.edited(masks, rng)

    def test_an_encoding_comes_back_as_the_same_plan(self) -> None:
        space, rng = PlanSpace(squeezenet()), Random(1)
        for _ in range(20):
            masks = space.random_plan(rng)
            assert set(space.decoded(space.encoded(masks))) == set(masks)

    def test_groups_that_wait_for_each_other_are_cut_once(self) -> None:
        network = network_of(
            """(float[1,4,8,8] x) => (float[1,4,8,8] c, float[1,4,8,8] d) {
                a = Relu(x)
                b = Sigmoid(x)
                c = Add(a, b)
                d = Mul(a, b)
            }"""
        )
        masks = PlanSpace(Lbdf(network, BIG)).ordered([0b0101, 0b1010])
        assert sorted(masks) == [0b0001, 0b0100, 0b1010]

    def test_a_group_around_a_left_out_operation_is_cut(self) -> None:
        network = network_of(
            """(float[1,4,8,8] x) => (float[1,4,8,8] y) {
                a = Relu(x)
                b = Conv <pads=[1,1,1,1]> (a, w)
                y = Add(a, b)
            }""",
            w=(4, 4, 3, 3),
        )
        scheme = Lbdf(network, 200)
        assert scheme.removed_mask == 0b010
        assert PlanSpace(scheme).ordered([0b101]) == (0b001, 0b100)


def valid_shape(scheme: Scheme, masks: tuple[int, ...]) -> None:
    """Disjoint, covering, connected, and in an order that runs."""
    network, covered = scheme.network, 0
    for mask in masks:
        assert not covered & mask
        assert network.is_connected(mask)
        assert not network.between(mask) & ~scheme.removed_mask
        needed = 0
        for i in range(len(network.nodes)):
            needed |= network.ancestors[i] if mask >> i & 1 else 0
        assert not needed & ~(covered | mask | scheme.removed_mask)
        covered |= mask
    assert covered == network.all_nodes & ~scheme.removed_mask
