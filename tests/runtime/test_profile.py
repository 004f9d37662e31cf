from __future__ import annotations

import json

import numpy as np
import pytest

from explorer.errors import InputError, RuntimeFailure
from explorer.graph import load, make_feeds, node_id
from explorer.runtime import InlineExecutor, Measurer, Target
from explorer.runtime.attribution import attribute, group_bytes, group_flops
from explorer.runtime.cache import NoCache, ResultCache
from explorer.runtime.dummy import PLANTED
from explorer.runtime.executed import Executed
from explorer.runtime.marked import marked_model, marks_in
from explorer.runtime.profile import Profile, middle_mean, profile_from
from tests.models import model

TARGET = Target.parse("ort")
RESIDUAL = """(float[1,8,8,8] x) => (float[1,8,8,8] y) {
    c0 = Conv<pads=[1,1,1,1]>(x, w)
    r0 = Relu(c0)
    c1 = Conv<pads=[1,1,1,1]>(r0, w)
    s = Add(c1, x)
    y = Relu(s)
}"""
W = np.random.default_rng(3).standard_normal((8, 8, 3, 3)).astype("f4") / 8


@pytest.fixture
def residual():
    return load(model(RESIDUAL, w=W))


def executed(name, op_type, *mentions, ns=(1000, 1000)):
    return Executed(name, op_type, (name, *mentions), list(ns))


def owned(graph, *listed):
    return {name: share.owned for name, share in attribute(graph, listed, weights(listed)).items()}


def weights(listed):
    return {one.name: float(one.durations_ns[0]) for one in listed}


class TestMarks:
    def test_names_carry_ids_whatever_the_file_says(self):
        proto = model("(float[2] x) => (float[2] y) { a = Relu(x)\n y = Relu(a) }")
        for node in proto.graph.node:
            node.name = "same"
        copy = marked_model(load(proto))
        assert [node.name for node in copy.graph] == ["node~n0~", "node~n1~"]
        assert [v.name for v in copy.graph.inputs] == ["x"]
        assert copy.graph.outputs[0].name == "value~n1~0"

    def test_a_weight_with_such_a_name_does_not_mislead(self):
        net = load(model("(float[2] x) => (float[2] y) { y = Add(x, w) }", w=np.ones(2, "f4")))
        next(iter(net.initializers())).name = "value~n7~0"
        assert [v.name for v in marked_model(net).graph.initializers.values()] == ["value_n7_0"]

    def test_marks_are_read_in_order_and_once(self):
        assert marks_in(("fused node~n3~ and node~n1~", "value~n3~0_nchwc", "reorder")) == ("n3", "n1")


class TestAttribution:
    def test_one_operator_per_node(self, residual):
        listed = [executed(f"node~n{i}~", n.op_type) for i, n in enumerate(residual.nodes)]
        assert owned(residual, *listed) == {f"node~n{i}~": (f"n{i}",) for i in range(5)}

    def test_blocked_convolutions_take_sum_and_activation_that_follow(self, residual):
        found = owned(
            residual,
            executed("ReorderInput", "ReorderInput", "reorder"),
            executed("value~n0~0_nchwc", "Conv", "reorder_1"),
            executed("value~n2~0_nchwc", "Conv", "reorder_2"),
            executed("ReorderOutput", "ReorderOutput", "value~n4~0"),
        )
        assert found["value~n0~0_nchwc"] == ("n0", "n1")
        assert found["value~n2~0_nchwc"] == ("n2", "n3", "n4")
        assert found["ReorderOutput"] == found["ReorderInput"] == ()

    def test_a_pattern_goes_to_the_operator_that_gives_its_result(self):
        net = load(model("(float[4] x) => (float[4] y) { a = Exp(x)\n b = Sqrt(a)\n y = Neg(b) }"))
        assert owned(net, executed("Special", "Special", "value~n2~0")) == {"Special": ("n0", "n1", "n2")}

    def test_a_result_that_two_operators_need_was_computed_before_them(self):
        net = load(
            model(
                "(float[4] x) => (float[4] y, float[4] z) { a = Exp(x)\n b = Sqrt(a)\n y = Neg(b)\n z = Abs(b) }"
            )
        )
        listed = [executed("node~n0~", "Exp"), executed("node~n2~", "Neg"), executed("node~n3~", "Abs")]
        assert owned(net, *listed)["node~n0~"] == ("n0", "n1")

    def test_parts_of_an_expanded_function_stand_where_it_stood(self):
        net = load(model("(float[4] x) => (float[4] y) { a = Exp(x)\n h = HardSwish(a)\n y = Neg(h) }"))
        listed = [
            executed("node~n0~", "Exp"),
            executed("HardSigmoid_7", "HardSigmoid"),
            executed("Mul_8", "Mul"),
            executed("node~n2~", "Neg"),
        ]
        shares = attribute(net, listed, weights(listed))
        assert shares["HardSigmoid_7"].owned == ("n1",)
        assert shares["Mul_8"].served == ("n1",)
        profile = profile_from(net, [listed], TARGET, PLANTED)
        assert profile.by_node()["n1"].ns == 2000
        assert profile.by_node()["n2"].ns == 1000

    def test_reshapes_around_a_product_do_not_own_its_bias(self):
        net = load(
            model(
                "(float[1,2,4] x) => (float[1,2,4] y) { m = MatMul(x, w)\n s = Add(m, b)\n y = Relu(s) }",
                w=np.eye(4, dtype="f4"),
                b=np.ones(4, "f4"),
            )
        )
        found = owned(
            net,
            executed("gemm_input_reshape", "Reshape"),
            executed("node~n0~/MatMulAddFusion", "Gemm"),
            executed("gemm_output_reshape", "Reshape", "value~n1~0"),
            executed("node~n2~", "Relu"),
        )
        assert found["node~n0~/MatMulAddFusion"] == ("n0", "n1")
        assert found["gemm_output_reshape"] == ()


class TestRates:
    def test_flops_and_bytes_of_a_group_count_its_border_once(self, residual):
        image, weight = 8 * 8 * 8 * 4, 8 * 8 * 9 * 4
        assert group_bytes(residual, ["n2", "n3", "n4"]) == 3 * image + weight
        assert group_flops(residual, ["n2", "n3", "n4"]) == 2 * 8 * 8 * 8 * 8 * 9 + 2 * 512

    def test_rates_follow_from_time(self, residual):
        rounds = [[executed("value~n2~0_nchwc", "Conv", ns=[100_000, 100_000])]]
        kernel = profile_from(residual, rounds, TARGET, PLANTED).kernels[0]
        assert kernel.gflops_per_s == pytest.approx(kernel.flops / 1e5)
        assert kernel.flops_per_byte == pytest.approx(kernel.flops / kernel.bytes)


class TestProfile:
    def test_times_are_medians_of_rounds_with_their_range(self, residual):
        rounds = [[executed("node~n0~", "Conv", ns=[ns] * 4)] for ns in (3000, 1000, 2000)]
        profile = profile_from(residual, rounds, TARGET, PLANTED)
        assert (profile.kernels[0].low_ns, profile.kernels[0].ns, profile.kernels[0].high_ns) == (
            1000,
            2000,
            3000,
        )
        assert "3 fresh sessions of 4 runs" in profile.protocol

    def test_outliers_do_not_count_and_microseconds_are_split(self):
        assert middle_mean([1000, 1000, 2000, 2000, 1000, 2000, 90_000, 0]) == 1500
        assert middle_mean([5]) == 5

    def test_the_json_reads_back(self, residual):
        profile = profile_from(residual, [[executed("node~n0~", "Conv")]], TARGET, PLANTED)
        data = json.loads(json.dumps(profile.to_json()))
        assert Profile.from_json(data) == profile
        assert data["source"] == "MEASURED"
        del data["kernels"][0]["ns"]
        with pytest.raises(InputError, match="'ns'"):
            Profile.from_json(data)

    def test_bodies_are_part_of_what_holds_them(self):
        net = load(
            model(
                """(float[2] x, bool c) => (float[2] y) {
                y = If(c) <then_branch = t () => (float[2] a) { a = Neg(x) },
                           else_branch = e () => (float[2] b) { b = Abs(x) }>
            }"""
            )
        )
        inner = next(node_id(n) for n in net.nodes if n.op_type == "Neg")
        listed = [executed("node~n0~", "If", ns=[5000]), executed(f"node~{inner}~", "Neg", ns=[4000])]
        profile = profile_from(net, [listed], TARGET, PLANTED)
        assert profile.total_ns == 5000
        assert [kernel.in_body for kernel in profile.kernels] == [False, True]

    @pytest.mark.parametrize("level", ["disable", "basic", "extended", "all"])
    def test_every_node_of_a_network_is_accounted_for_at_every_level(self, residual, level):
        with Measurer(executor=InlineExecutor(), cache=NoCache()) as measurer:
            profile = measurer.profile(
                residual, make_feeds(residual), f"ort:level={level}", rounds=2, budget_s=0.01
            )
        assert set(profile.by_node()) == {"n0", "n1", "n2", "n3", "n4"}
        owned_twice = [node for kernel in profile.kernels for node in kernel.nodes]
        assert len(owned_twice) == len(set(owned_twice))
        assert sum(kernel.share for kernel in profile.kernels) == pytest.approx(1)
        assert profile.top(1)[0].ns == max(kernel.ns for kernel in profile.kernels)

    def test_a_second_request_comes_from_the_cache(self, residual, tmp_path):
        with Measurer(executor=InlineExecutor(), cache=ResultCache(tmp_path)) as measurer:
            settings = {"rounds": 2, "budget_s": 0.01}
            first = measurer.profile(residual, make_feeds(residual), "ort", **settings)
            again = measurer.profile(residual, make_feeds(residual), "ort", **settings)
            assert again.measured_at == first.measured_at
            assert again == first


@pytest.mark.parametrize("ask", ["profile", "runtime_view"])
def test_failures_name_the_nodes_as_the_model_does(ask):
    graph = load(
        model("(float[2,3] x) => (float[2,9] product) { product = MatMul(x, w) }", w=np.ones((7, 9), "f4"))
    )
    graph.nodes[0].name = "head"
    with (
        Measurer(executor=InlineExecutor(), cache=NoCache()) as measurer,
        pytest.raises(RuntimeFailure) as failure,
    ):
        measurer.profile(graph, make_feeds(graph), TARGET) if ask == "profile" else measurer.runtime_view(
            graph, TARGET
        )
    assert "(head)" in str(failure.value)
    assert "~" not in str(failure.value)
