"""BRR against numbers worked out by hand; 2 bytes per element, 32 unrolled channels unless said."""

from __future__ import annotations

from random import Random

import pytest

from explorer.errors import InputError
from explorer.fusion import Brr, FusionGroup, make_scheme, optimum
from tests.fusion.networks import BIG, everything, network_of, random_network, sample

TWO_CONVS = """(float[1,64,8,8] x) => (float[1,128,8,8] z) {
    y = Conv <pads=[1,1,1,1]> (x, w)
    z = Conv <pads=[1,1,1,1]> (y, v)
}"""
FULL_Y, PART_Y = 8 * 96 * 2, 8 * 32 * 2
FULL_Z, PART_Z = 8 * 128 * 2, 8 * 32 * 2
ROW_X = 8 * 64 * 2


def two_convs():
    return network_of(TWO_CONVS, w=(96, 64, 3, 3), v=(128, 96, 3, 3))


def test_starting_full_holds_three_full_rows_and_one_partial_one() -> None:
    report = Brr(two_convs(), BIG).demand(everything(two_convs()))
    # full y, partial z: 3 rows and 1; partial y, full z and the held input x: 3 rows, 1 and 5.
    starts = {3 * FULL_Y + PART_Z, 3 * PART_Y + FULL_Z + 5 * ROW_X}
    assert starts == {5120, 8704}
    assert report.demand_bytes == 3 * FULL_Y + PART_Z
    assert {(t.tensor, t.rows) for t in report.terms} == {("y", 3), ("z", 1)}


def test_the_start_that_grows_less_for_its_free_space_is_kept() -> None:
    """Few channels in, many out of the first: holding some of its channels and the input is cheaper."""
    network = network_of(TWO_CONVS.replace("1,64,8", "1,4,8"), w=(512, 4, 3, 3), v=(128, 512, 3, 3))
    report = Brr(network, BIG).demand(everything(network))
    full_first = 3 * 8 * 512 * 2 + PART_Z
    partial_first = 3 * PART_Y + FULL_Z + 5 * 8 * 4 * 2
    assert report.demand_bytes == partial_first < full_first


def test_weights_that_stay_are_read_once() -> None:
    network = two_convs()
    weights = (96 * 64 * 9 + 128 * 96 * 9) * 2
    crossing = (64 * 64 + 128 * 64) * 2
    scheme = Brr(network, weights + 5120)
    assert scheme.dram(everything(network)) == crossing + weights


def test_weights_that_do_not_stay_are_read_once_per_tile() -> None:
    network = two_convs()
    weights = (96 * 64 * 9 + 128 * 96 * 9) * 2
    crossing = (64 * 64 + 128 * 64) * 2
    growth = FULL_Y + PART_Z
    for further, tiles in [(0, 8), (1, 4), (2, 3), (3, 2), (6, 2), (7, 1)]:
        capacity = 5120 + further * growth + 1
        scheme = Brr(network, capacity)
        assert scheme.dram(everything(network)) == crossing + weights * tiles, further


def test_a_stride_asks_for_two_rows_per_step() -> None:
    network = network_of(
        """(float[1,64,8,8] x) => (float[1,64,4,4] z) {
            y = Conv (x, w)
            z = Conv <strides=[2,2], pads=[1,1,1,1]> (y, v)
        }""",
        w=(64, 64, 1, 1),
        v=(64, 64, 3, 3),
    )
    report = Brr(network, BIG).demand(everything(network))
    # y full: 3 rows of 8 x 64; z partial: 1 row of 4 x 32. Partial y would also hold 3 rows of x.
    assert report.demand_bytes == 3 * 8 * 64 * 2 + 4 * 32 * 2


def test_two_results_of_unequal_stride_advance_together() -> None:
    network = network_of(
        """(float[1,32,8,8] x) => (float[1,32,8,8] a, float[1,32,4,4] b) {
            p = Conv (x, w)
            a = Conv (p, w)
            b = Conv <strides=[2,2]> (p, w)
        }""",
        w=(32, 32, 1, 1),
    )
    rows = {t.tensor: t.rows for t in Brr(network, BIG).demand(everything(network)).terms}
    assert rows["a"] == 2
    assert rows["b"] == 1
    assert rows["p"] == 2


def test_activations_inherit_and_pools_keep_a_window() -> None:
    network = network_of(
        """(float[1,64,8,8] x) => (float[1,64,4,4] z) {
            y = Conv (x, w)
            r = Relu(y)
            z = MaxPool <kernel_shape=[2,2], strides=[2,2]> (r)
        }""",
        w=(64, 64, 1, 1),
    )
    report = Brr(network, 4096).demand(everything(network))
    # Partial: 2 rows each of y and r, 1 of z, all 32 channels wide, and 2 rows of x with all 64.
    partial = (2 * 8 * 32 + 2 * 8 * 32 + 4 * 32) * 2 + 2 * 8 * 64 * 2
    # Full: the same with 64 channels, nothing of x.
    full = (2 * 8 * 64 + 2 * 8 * 64 + 4 * 64) * 2
    assert (partial, full) == (4352, 4608)
    assert report.demand_bytes == partial
    assert not report.fits


def test_a_group_cannot_begin_with_an_activation_and_one_alone_costs_its_operand_and_result() -> None:
    network = network_of(
        """(float[1,4,8,8] x) => (float[1,4,8,8] z) {
            y = Relu(x)
            z = Conv (y, w)
        }""",
        w=(4, 4, 1, 1),
    )
    scheme = Brr(network, BIG)
    report = scheme.demand(everything(network))
    assert (report.fits, report.refusal) == (False, "A group of the BRR scheme cannot begin with n0 (Relu).")
    assert scheme.demand(FusionGroup.of(network, ["n0"])).fits
    assert scheme.dram(FusionGroup.of(network, ["n0"])) == 2 * 256 * 2


@pytest.mark.parametrize(
    "name", ["mobilenet_v3_small", "mobilenet_v3_large", "efficientnet_b0", "deeplabv3_mobilenet_v3_large"]
)
def test_squeeze_and_excite_networks_are_refused_in_words(name: str) -> None:
    with pytest.raises(InputError, match=f"'{name}' has squeeze-and-excite blocks .* use the lbdf scheme"):
        make_scheme("brr", sample(name), 256)


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2", "vgg16", "densenet121", "shufflenet_v2_x1_0"])
def test_other_networks_are_not_refused(name: str) -> None:
    scheme = make_scheme("brr", sample(name), 256)
    assert scheme.removed() == ()


def test_a_product_with_a_gate_that_is_no_average_is_not_squeeze_and_excite() -> None:
    network = network_of(
        """(float[1,4,8,8] x, float[1,4,1,1] g) => (float[1,4,8,8] y) {
            s = Sigmoid(g)
            y = Mul(x, s)
        }"""
    )
    assert make_scheme("brr", network, 1).name == "brr"


def test_the_optimum_of_the_small_paper_networks_is_proved() -> None:
    found = optimum(make_scheme("brr", sample("squeezenet1_1"), 128))
    assert found.is_proved
    assert found.plan.dram_bytes == 6_573_008
    assert all(found.plan.scheme.cost(mask).fits for mask in found.plan.masks)


@pytest.mark.parametrize("seed", range(25))
def test_the_floor_of_a_growing_group_is_below_all_groups_grown_from_it(seed: int) -> None:
    scheme, rng = Brr(random_network(seed, 18), 900), Random(seed)
    grown, floors, mask = scheme.growing(), [], 0
    for node in range(18):
        if rng.random() < 0.7:
            mask |= 1 << node
            grown.add(1 << node)
            floors.append(grown.floor())
            assert max(floors) == floors[-1] <= scheme.demand_bytes(mask)
            assert grown.cost().demand_bytes == scheme.demand_bytes(mask)
        if floors and rng.random() < 0.2:
            before = grown.floor()
            grown.add(1 << 17)
            grown.undo()
            assert grown.floor() == before
