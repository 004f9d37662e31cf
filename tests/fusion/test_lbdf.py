"""LBDF against numbers worked out by hand. All sizes are elements x 2 bytes unless a test says otherwise."""

from __future__ import annotations

from random import Random

import pytest

from explorer.fusion import FusionGroup, Lbdf, TermKind, fuse, optimum
from explorer.fusion.space import PlanSpace
from explorer.graph import load
from tests.fusion.networks import BIG, bill, everything, network_of, random_network, sample

TWO_CONVS = """(float[1,4,8,8] x) => (float[1,6,8,8] z) {
    y = Conv <pads=[1,1,1,1]> (x, w)
    z = Conv <pads=[1,1,1,1]> (y, v)
}"""


def two_convs(element_bytes: int = 2):
    return network_of(TWO_CONVS, element_bytes=element_bytes, w=(8, 4, 3, 3), v=(6, 8, 3, 3))


def test_two_3x3_convolutions_keep_their_weights_and_three_rows_each() -> None:
    assert bill(two_convs()) == {
        ("weights", "n0"): 8 * 4 * 9 * 2,
        ("weights", "n1"): 6 * 8 * 9 * 2,
        ("line_buffer", "x"): 3 * 8 * 4 * 2,
        ("line_buffer", "y"): 3 * 8 * 8 * 2,
    }


@pytest.mark.parametrize("element_bytes", [1, 2, 4])
def test_traffic_is_input_output_and_weights_once(element_bytes: int) -> None:
    network = two_convs(element_bytes)
    elements = 4 * 64 + 6 * 64 + 8 * 4 * 9 + 6 * 8 * 9
    assert Lbdf(network, BIG).dram(everything(network)) == elements * element_bytes


def test_alone_each_convolution_also_moves_the_tensor_between_them() -> None:
    network = two_convs()
    scheme = Lbdf(network, BIG)
    assert scheme.dram(FusionGroup.of(network, ["n0"])) == (4 * 64 + 8 * 64 + 288) * 2
    assert scheme.dram(FusionGroup.of(network, ["n1"])) == (8 * 64 + 6 * 64 + 432) * 2


def test_the_buffer_must_be_strictly_larger_than_the_demand() -> None:
    network = two_convs()
    demand = Lbdf(network, BIG).demand(everything(network)).demand_bytes
    assert demand == 576 + 864 + 192 + 384
    assert not Lbdf(network, demand).demand(everything(network)).fits
    assert Lbdf(network, demand + 1).demand(everything(network)).fits


@pytest.mark.parametrize(
    ("attributes", "kernel", "rows"),
    [
        ("pads=[2,2,2,2]", 5, 5),
        ("pads=[2,2,2,2], dilations=[2,2]", 3, 5),
        ("pads=[1,1,1,1], strides=[2,2]", 3, 3),
        ("pads=[7,7,7,7], dilations=[7,7]", 3, 8),  # 15 rows, but the tensor has only 8
        ("pads=[0,0,0,0]", 1, 0),
    ],
)
def test_a_window_keeps_its_effective_kernel(attributes: str, kernel: int, rows: int) -> None:
    network = network_of(
        f"(float[1,4,8,8] x) => (float[1,4,h,k] y) {{ y = Conv <{attributes}> (x, w) }}",
        w=(4, 4, kernel, kernel),
    )
    expected = {("weights", "n0"): 16 * kernel * kernel * 2}
    assert bill(network) == expected | ({("line_buffer", "x"): rows * 8 * 4 * 2} if rows else {})


def test_a_depthwise_convolution_has_one_filter_per_channel() -> None:
    network = network_of(
        "(float[1,4,8,8] x) => (float[1,4,8,8] y) { y = Conv <group=4, pads=[1,1,1,1]> (x, w) }",
        w=(4, 1, 3, 3),
    )
    assert bill(network) == {("weights", "n0"): 4 * 9 * 2, ("line_buffer", "x"): 3 * 8 * 4 * 2}


def test_pooling_is_a_window_without_weights() -> None:
    network = network_of(
        "(float[1,4,8,8] x) => (float[1,4,4,4] y) { y = MaxPool <kernel_shape=[2,2], strides=[2,2]> (x) }"
    )
    assert bill(network) == {("line_buffer", "x"): 2 * 8 * 4 * 2}


def test_the_residual_shortcut_waits_one_row_per_convolution_around_it() -> None:
    network = network_of(
        """(float[1,4,8,8] x) => (float[1,4,8,8] y) {
            p = Relu(x)
            a = Conv <pads=[1,1,1,1]> (p, w)
            b = Conv <pads=[1,1,1,1]> (a, v)
            y = Add(p, b)
        }""",
        w=(4, 4, 3, 3),
        v=(4, 4, 3, 3),
    )
    row = 8 * 4 * 2
    assert bill(network) == {
        ("weights", "n1"): 288,
        ("weights", "n2"): 288,
        ("line_buffer", "p"): 3 * row,
        ("line_buffer", "a"): 3 * row,
        ("shortcut_fifo", "p"): 2 * row,
    }


def test_a_shortcut_from_outside_arrives_in_step() -> None:
    network = network_of(
        """(float[1,4,8,8] x) => (float[1,4,8,8] y) {
            a = Conv <pads=[1,1,1,1]> (x, w)
            y = Add(x, a)
        }""",
        w=(4, 4, 3, 3),
    )
    assert bill(network) == {("weights", "n0"): 288, ("line_buffer", "x"): 3 * 64}
    assert Lbdf(network, BIG).dram(everything(network)) == (256 + 256 + 144) * 2


def test_the_shallow_side_of_a_concat_waits() -> None:
    network = network_of(
        """(float[1,4,8,8] x) => (float[1,8,8,8] y) {
            p = Relu(x)
            a = Conv (p, w)
            b = Conv <pads=[1,1,1,1]> (p, v)
            c = Conv <pads=[1,1,1,1]> (b, u)
            y = Concat <axis=1> (a, c)
        }""",
        w=(6, 4, 1, 1),
        v=(2, 4, 3, 3),
        u=(2, 2, 3, 3),
    )
    found = bill(network)
    assert found["shortcut_fifo", "a"] == 2 * 8 * 6 * 2
    assert [key for key in found if key[0] == "shortcut_fifo"] == [("shortcut_fifo", "a")]


def test_a_stride_divides_the_rows_that_wait_and_half_a_row_takes_a_whole_one() -> None:
    network = network_of(
        """(float[1,4,8,8] x) => (float[1,4,4,4] y) {
            p = Relu(x)
            a = Conv <pads=[1,1,1,1], strides=[2,2]> (p, w)
            b = Conv <strides=[2,2]> (p, v)
            y = Add(a, b)
        }""",
        w=(4, 4, 3, 3),
        v=(4, 4, 1, 1),
    )
    found = bill(network)
    assert found["line_buffer", "p"] == 3 * 8 * 4 * 2
    assert found["shortcut_fifo", "b"] == 1 * 4 * 4 * 2


def test_nested_shortcuts_wait_each_for_their_own_join() -> None:
    network = network_of(
        """(float[1,4,8,8] x) => (float[1,4,8,8] y) {
            p = Relu(x)
            q = Conv <pads=[1,1,1,1]> (p, w)
            r = Add(p, q)
            s = Conv <pads=[1,1,1,1]> (r, v)
            y = Add(p, s)
        }""",
        w=(4, 4, 3, 3),
        v=(4, 4, 3, 3),
    )
    fifos = Lbdf(network, BIG).demand(everything(network))
    waits = {t.node: t.rows for t in fifos.terms if t.kind is TermKind.SHORTCUT_FIFO}
    assert waits == {"n2": 1, "n4": 2}
    assert bill(network)["shortcut_fifo", "p"] == 3 * 64


SQUEEZE = """(float[1,4,8,8] x) => (float[1,4,8,8] y) {
    p = Relu(x)
    m = GlobalAveragePool(p)
    e = Conv(m, w)
    s = Sigmoid(e)
    y = Mul(p, s)
}"""


def test_squeeze_and_excite_cannot_be_one_group_because_the_average_needs_the_whole_map() -> None:
    network = network_of(SQUEEZE, w=(4, 4, 1, 1))
    report = Lbdf(network, BIG).demand(everything(network))
    assert not report.fits
    assert report.refusal == (
        "n1 (GlobalAveragePool) needs its operand whole, so the operation that makes it must be in another group."
    )


def test_the_gate_and_the_product_can_follow_the_average_in_its_group() -> None:
    network = network_of(SQUEEZE, w=(4, 4, 1, 1))
    group = FusionGroup.of(network, ["n1", "n2", "n3", "n4"])
    scheme = Lbdf(network, BIG)
    assert scheme.demand(group).fits
    assert bill(network, "n1", "n2", "n3", "n4") == {("weights", "n2"): 16 * 2}
    assert scheme.dram(group) == (256 + 256 + 16) * 2


def test_a_pad_adds_its_rows_to_the_lag() -> None:
    network = network_of(
        """(float[1,4,8,8] x) => (float[1,4,8,8] y)
        <int64[8] pads = {0,0,1,1,0,0,1,1}> {
            p = Relu(x)
            q = Pad(p, pads)
            a = Conv(q, w)
            y = Add(p, a)
        }""",
        w=(4, 4, 3, 3),
    )
    assert bill(network) == {
        ("weights", "n2"): 288,
        ("line_buffer", "q"): 3 * 10 * 4 * 2,
        ("shortcut_fifo", "p"): 2 * 64,
    }


def test_a_tensor_with_two_windows_is_kept_once_for_the_taller() -> None:
    network = network_of(
        """(float[1,4,8,8] x) => (float[1,4,8,8] a, float[1,4,8,8] b) {
            p = Relu(x)
            a = Conv <pads=[1,1,1,1]> (p, w)
            b = Conv <pads=[2,2,2,2]> (p, v)
        }""",
        w=(4, 4, 3, 3),
        v=(4, 4, 5, 5),
    )
    assert bill(network)["line_buffer", "p"] == 5 * 64
    scheme = Lbdf(network, BIG)
    assert scheme.dram(everything(network)) == (256 * 3 + 144 + 400) * 2
    assert scheme.dram(FusionGroup.of(network, ["n0"])) == (256 + 256) * 2  # written once for two readers


def test_an_intermediate_with_a_second_reader_outside_is_written() -> None:
    network = network_of(
        """(float[1,3,6,6] x) => (float[1,3,6,6] y) {
            pre = Conv <pads=[1,1,1,1]> (x, w)
            act = Relu(pre)
            y = Add(pre, act)
        }""",
        w=(3, 3, 3, 3),
    )
    group = FusionGroup.of(network, ["n0", "n1"])
    assert Lbdf(network, BIG).dram(group) == (108 + 108 + 108 + 81) * 2


def test_a_graph_output_is_written_even_if_the_group_reads_it() -> None:
    network = network_of(
        """(float[1,4,8,8] x) => (float[1,4,8,8] p, float[1,4,8,8] y) {
            p = Relu(x)
            y = Sigmoid(p)
        }"""
    )
    assert Lbdf(network, BIG).dram(everything(network)) == (256 + 256 + 256) * 2


def test_a_weight_that_two_operations_share_counts_once() -> None:
    network = network_of(
        """(float[1,4,8,8] x) => (float[1,4,8,8] y) {
            a = Conv <pads=[1,1,1,1]> (x, w)
            y = Conv <pads=[1,1,1,1]> (a, w)
        }""",
        w=(4, 4, 3, 3),
    )
    assert bill(network) == {
        ("weights", "n0"): 288,
        ("line_buffer", "x"): 3 * 64,
        ("line_buffer", "a"): 3 * 64,
    }
    assert Lbdf(network, BIG).dram(everything(network)) == (256 + 256 + 144) * 2


class TestWhatDoesNotFitAlone:
    def test_it_is_left_out_and_tensors_shared_only_with_it_are_free(self) -> None:
        network = network_of(
            """(float[1,4,8,8] x) => (float[1,4,8,8] y) {
                a = Relu(x)
                b = Conv <pads=[1,1,1,1]> (a, w)
                y = Sigmoid(b)
            }""",
            w=(4, 4, 3, 3),
        )
        scheme = Lbdf(network, 288)
        (removed,) = scheme.removed()
        assert (removed.node, removed.weight_bytes) == ("n1", 288)
        assert removed.reason == "its weights alone (0.3 KB) fill the buffer of 0.28125 KB"
        assert not scheme.fusable("n1")
        assert scheme.fusable("n0")
        assert scheme.dram(FusionGroup.of(network, ["n0"])) == 256 * 2
        assert scheme.dram(FusionGroup.of(network, ["n2"])) == 256 * 2

    def test_rows_can_be_the_reason_too(self) -> None:
        scheme = Lbdf(two_convs(), 576 + 192)
        reasons = {r.node: r.reason for r in scheme.removed()}
        assert reasons["n0"] == "with the rows it must keep it needs 0.8 KB, which fill the buffer of 0.75 KB"


ANCHORS = [
    ("resnet18", 128, 5973.75, 14),
    ("resnet50", 128, 21_963.5, 42),
    ("mobilenet_v2", 128, 6_445.125, 9),
    ("squeezenet1_1", 128, 2_394.734375, 5),
    ("resnet152", 256, 52_509.25, 129),
    ("efficientnet_b3", 256, 59_978.59375, 19),
]


@pytest.mark.parametrize(("name", "buffer_kb", "expected_kb", "removed"), ANCHORS)
def test_the_optimum_of_the_papers_networks(
    name: str, buffer_kb: int, expected_kb: float, removed: int
) -> None:
    scheme = Lbdf(sample(name), buffer_kb * 1024)
    found = optimum(scheme)
    assert found.is_proved
    assert (found.plan.dram_bytes / 1024, len(scheme.removed())) == (expected_kb, removed)


def test_fuse_finds_the_anchor_from_the_graph() -> None:
    result = fuse(load("resnet18"), scheme="lbdf", buffer_kb=128, search="exact")
    assert result.plan.dram_bytes == 5973.75 * 1024


@pytest.mark.parametrize("name", ["googlenet", "efficientnet_b0", "gpt2", "shufflenet_v2_x1_0"])
def test_the_bill_always_adds_up_and_the_bound_never_exceeds_it(name: str) -> None:
    scheme = Lbdf(sample(name), 256 * 1024)
    space, rng = PlanSpace(scheme), Random(7)
    for _ in range(5):
        for mask in space.random_plan(rng):
            report = scheme.demand(FusionGroup.of(scheme.network, mask))
            assert sum(term.bytes for term in report.terms) == report.demand_bytes
            floor = seen = 0
            for i in (i for i in range(len(scheme.network.nodes)) if mask >> i & 1):
                floor += scheme.added_bound(i, seen)
                seen |= 1 << i
            assert floor <= report.demand_bytes


@pytest.mark.parametrize("seed", range(25))
def test_a_group_that_grows_and_shrinks_costs_what_the_whole_set_costs(seed: int) -> None:
    scheme, rng = Lbdf(random_network(seed, 20), 900), Random(seed)
    grown, path = scheme.growing(), [0]
    for _ in range(60):
        free = [i for i in range(path[-1].bit_length(), 20) if not scheme.removed_mask >> i & 1]
        if free and (len(path) == 1 or rng.random() < 0.6):
            added = sum(1 << i for i in rng.sample(free, min(len(free), rng.choice([1, 1, 2]))))
            grown.add(added)
            path.append(path[-1] | added)
        elif len(path) > 1:
            grown.undo()
            path.pop()
        cost = grown.cost()
        assert (cost.demand_bytes, cost.dram_bytes) == (
            scheme.demand_bytes(path[-1]),
            scheme.dram_bytes(path[-1]),
        )
