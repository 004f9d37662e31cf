"""Groups and plans: what is refused and in which words, totals, order, JSON."""

from __future__ import annotations

import pytest

from explorer.errors import InputError
from explorer.fusion import FusionGroup, Lbdf, Plan
from explorer.fusion.group import escape_path
from tests.fusion.networks import BIG, network_of, sample

DIAMOND = """(float[1,4,8,8] x) => (float[1,4,8,8] e) {
    a = Relu(x)
    b = Conv (a, w)
    c = Sigmoid(b)
    d = Add(a, c)
    e = Relu(d)
}"""
LADDER = """(float[1,4,8,8] x) => (float[1,4,8,8] c, float[1,4,8,8] d) {
    a = Relu(x)
    b = Sigmoid(x)
    c = Add(a, b)
    d = Mul(a, b)
}"""


def diamond():
    return network_of(DIAMOND, w=(4, 4, 1, 1))


class TestGroups:
    def test_a_path_that_leaves_and_comes_back_is_shown(self) -> None:
        network = diamond()
        with pytest.raises(InputError) as error:
            FusionGroup.of(network, ["n0", "n3"])
        assert str(error.value) == (
            "The group is not convex: the path n0 -> n1 -> n2 -> n3 leaves it and comes back; "
            "add n1 (Conv), n2 (Sigmoid), or leave out one end."
        )
        assert escape_path(network, network.mask(["n0", "n1", "n2"])) == ()

    def test_nodes_without_an_edge_between_them_are_refused(self) -> None:
        with pytest.raises(InputError) as error:
            FusionGroup.of(diamond(), ["n1", "n4"])
        assert str(error.value) == (
            "The nodes do not hang together: no edge connects n1 (Conv) with n4 (Relu); choose neighbours."
        )

    def test_an_empty_choice_is_refused(self) -> None:
        with pytest.raises(InputError, match="at least one operation"):
            FusionGroup.of(diamond(), [])

    def test_a_merged_node_stands_for_its_operation(self) -> None:
        network = sample("resnet18")
        group = FusionGroup.of(network, ["n1", "n2"])  # the BatchNormalization and the Relu behind it
        assert group.nodes == ("n0", "n1", "n2")
        assert group.operations == ("n0", "n2")
        assert len(group) == 2
        assert "n1" in group
        assert "n5" not in group


class TestPlans:
    def test_what_is_not_named_runs_alone_and_everything_is_in_order(self) -> None:
        plan = Plan.of(Lbdf(diamond(), BIG), [["n3", "n4"], ["n0"]])
        assert [g.operations for g in plan.groups] == [("n0",), ("n1",), ("n2",), ("n3", "n4")]
        tensor, weights = 256 * 2, 16 * 2
        assert plan.dram_bytes == tensor * (2 + 2 + 2 + 3) + weights
        assert plan.largest_demand_bytes == weights
        assert plan.is_valid
        found = plan.group_of("n4")
        assert found is not None
        assert found.operations == ("n3", "n4")

    def test_layer_by_layer_is_every_operation_alone(self) -> None:
        scheme = Lbdf(diamond(), BIG)
        assert Plan.layer_by_layer(scheme).dram_bytes == Plan.of(scheme, []).dram_bytes

    def test_groups_that_wait_for_each_other_are_shown(self) -> None:
        network = network_of(
            """(float[1,4,8,8] x) => (float[1,4,8,8] c, float[1,4,8,8] e) {
                a = Relu(x)
                b = Sigmoid(x)
                c = Add(a, b)
                d = Add(b, a)
                e = Add(b, d)
                f = Relu(c)
            }"""
        )
        # {a, c} reads b; {b, d} reads a: each needs the other first.
        with pytest.raises(InputError, match=r"The groups wait for each other: n\d -> n\d -> n\d"):
            Plan.of(Lbdf(network, BIG), [["n0", "n2"], ["n1", "n3"]])

    def test_an_operation_in_two_groups_is_refused(self) -> None:
        with pytest.raises(InputError, match="Node 'n3' is in two groups"):
            Plan.of(Lbdf(diamond(), BIG), [["n2", "n3"], ["n3", "n4"]])

    def test_a_group_that_does_not_fit_is_refused(self) -> None:
        scheme = Lbdf(sample("resnet18"), 128 * 1024)
        with pytest.raises(
            InputError, match=r"begins with 'n0' needs [\d.]+ KB of a buffer of 128 KB; split it"
        ):
            Plan.of(scheme, [[f"n{i}" for i in range(8)]])

    def test_an_operation_that_never_fits_is_refused(self) -> None:
        scheme = Lbdf(sample("resnet18"), 128 * 1024)
        with pytest.raises(InputError, match="Node 'n18' does not fit the buffer even alone"):
            Plan.of(scheme, [["n18"]])
