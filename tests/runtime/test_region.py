from __future__ import annotations

import numpy as np
import pytest

from explorer.errors import RuntimeFailure
from explorer.graph import load, make_feeds, node_id
from explorer.rewrite import apply, default_rules, find_candidates
from explorer.runtime.region import boundary_feeds, changed_regions, cut_out, neighbourhood, with_sizes
from tests.models import model, run

NET = """(float[1,3,8,8] x) => (float[1,4,8,8] y, float[1,4,8,8] side) {
    c = Conv<pads=[1,1,1,1]>(x, w)
    side = Relu(c)
    half = Constant<value = float {0.5}>()
    m = Mul(side, half)
    y = Add(m, c)
}"""
W = np.random.default_rng(5).standard_normal((4, 3, 3, 3)).astype("f4")


@pytest.fixture
def net():
    return load(model(NET, w=W))


def ids(graph, *ops):
    return [node_id(n) for n in graph.nodes if n.op_type in ops]


def test_a_part_computes_what_it_computes_in_the_whole(net):
    x = make_feeds(net)
    y, side = run(net, x)
    part = cut_out(net, ids(net, "Mul", "Add"), "part")
    (c,) = run(cut_out(net, ids(net, "Conv"), "conv"), x)
    assert sorted(v.name for v in part.inputs) == ["c", "side"]
    np.testing.assert_allclose(run(part, {"c": c, "side": side})[0], y, rtol=1e-6)


def test_weights_stay_weights_and_are_shared(net):
    part = cut_out(net, ids(net, "Conv"), "conv")
    (weight,) = part.initializers()
    assert weight.const_value is next(iter(net.initializers())).const_value
    assert [v.name for v in part.inputs] == ["x"]


def test_what_others_read_and_what_the_graph_returns_are_outputs(net):
    part = cut_out(net, ids(net, "Conv", "Relu"), "part")
    assert [v.name for v in part.outputs] == ["c", "side"]
    assert [node_id(n) for n in part.nodes] == ids(net, "Conv", "Relu")


def test_the_whole_graph_is_untouched(net):
    before = net.fingerprint()
    cut_out(net, ids(net, "Relu"), "part")
    assert load(model(NET, w=W)).fingerprint() == before
    assert len(net.nodes) == 5


def test_defaults_that_callers_may_replace_keep_their_value():
    proto = model(NET.replace("float[1,3,8,8] x", "float[1,3,8,8] x, float[4,3,3,3] w"), w=W)
    part = cut_out(load(proto), ["n0"], "conv")
    assert [v.name for v in part.inputs] == ["x"]
    assert [v.name for v in part.overridable] == ["w"]


def test_a_node_of_a_body_stands_for_its_holder():
    proto = model(
        """(float[2] x, bool c) => (float[2] y) {
            d = Neg(x)
            y = If(c) <then_branch = t () => (float[2] a) { a = Add(x, d) },
                       else_branch = e () => (float[2] b) { b = Abs(d) }>
        }"""
    )
    net = load(proto)
    inner = next(node_id(n) for n in net.nodes if n.op_type == "Abs")
    part = cut_out(net, [inner], "part")
    assert sorted(v.name for v in part.inputs) == ["c", "d", "x"]
    x = np.array([1, -2], "f4")
    (y,) = run(part, {"c": np.array(False), "d": -x, "x": x})
    np.testing.assert_array_equal(y, [1, 2])


def test_unknown_shapes_are_refused_with_the_name_of_the_value():
    net = load(
        model("(float[1,4] x, int64[n] s) => (float y) { r = Reshape(x, s) \n y = ReduceSum<keepdims=0>(r) }")
    )
    with pytest.raises(RuntimeFailure, match="'r'"):
        cut_out(net, ids(net, "ReduceSum"), "part")


def test_dynamic_sizes_take_those_of_the_inputs():
    net = load(model("(float[n,3,h,h] x) => (float[n,3,k,k] y) { a = Relu(x)\n y = Sigmoid(a) }"))
    sized = with_sizes(net, {"x": np.zeros((2, 3, 5, 5), "f4")})
    assert sized.nodes[0].outputs[0].shape.numpy() == (2, 3, 5, 5)
    static = load(model(NET, w=W))
    assert with_sizes(static, {}) is static


def test_the_changed_region_holds_both_sides_and_their_surroundings():
    net = load(
        model(
            """(float[1,3,8,8] x) => (float[1,4,8,8] y) {
            a = Relu(x)
            c = Conv<pads=[1,1,1,1]>(a, w)
            b = BatchNormalization(c, s, o, m, v)
            y = Sigmoid(b)
        }""",
            w=W,
            s=np.full(4, 2, "f4"),
            o=np.ones(4, "f4"),
            m=np.zeros(4, "f4"),
            v=np.ones(4, "f4"),
        )
    )
    rules = default_rules()
    found = next(c for c in find_candidates(net, rules).candidates if set(c.nodes) == {"n1", "n2"})
    after = apply(net, found, rules)
    old, new = changed_regions(net, after, hops=0)
    assert old >= {"n1", "n2"} - {node_id(n) for n in after.nodes}
    old, new = changed_regions(net, after, hops=1)
    assert {"n0", "n1", "n2", "n3"} == old
    assert {"n0", "n3"} < new
    parts = [cut_out(net, old, "before"), cut_out(after, new, "after")]
    feeds = boundary_feeds(parts)
    np.testing.assert_allclose(run(parts[0], feeds)[0], run(parts[1], feeds)[0], rtol=1e-4, atol=1e-5)


def test_neighbours_are_found_in_both_directions(net):
    relu = ids(net, "Relu")
    assert neighbourhood(net, relu, 1) == set(ids(net, "Conv", "Relu", "Mul"))
    assert neighbourhood(net, relu, 0) == set(relu)
