"""A13: nodes, weights and optional outputs that nothing uses."""

import numpy as np
import pytest

from explorer.graph import load
from explorer.rewrite import all_rules, apply
from tests.models import case_path
from tests.rewrite.harness import apply_all, apply_only, candidates, graph_of, ops, reasons

NODES, WEIGHTS, OUTPUTS = "remove-dead-nodes", "remove-unused-weights", "remove-unused-outputs"


def test_dead_node_goes_with_all_that_only_it_needed():
    graph = graph_of(
        """(float[2,3] x) => (float[2,3] y) {
            y = Relu(x)
            a = Neg(x)
            b = Mul(a, w)
            c = Add(b, a)
            d = Exp(y)
            e = Add(c, d)
        }""",
        w=np.ones((4, 2, 3), "f4"),
    )
    result = apply_only(graph, NODES)
    assert ops(result) == {"Relu": 1}
    assert list(result.initializers()) == []


def test_dead_node_leaves_what_others_need():
    graph = graph_of("(float[3] x) => (float[3] y) { a = Neg(x) y = Relu(a) b = Exp(a) }")
    (candidate,) = candidates(graph, NODES)
    assert candidate.nodes == ("n2",)
    assert ops(apply_only(graph, NODES)) == {"Neg": 1, "Relu": 1}


def test_node_with_one_used_output_is_alive():
    graph = graph_of("(float[4] x) => (float[2] y) { a, b = Split<axis=0>(x) y = Relu(b) }")
    assert candidates(graph, NODES) == []


def test_values_captured_by_branches_are_alive():
    for name in ("if_branches_capture_outer", "loop_body_captures_and_passthrough"):
        graph = load(case_path(name))
        assert candidates(graph, NODES) == []
        assert candidates(graph, WEIGHTS) == []


def test_dead_node_inside_a_loop_body():
    graph = graph_of(
        """(int64 n, bool c, float[4] x) => (float[4] y) {
            y = Loop(n, c, x) <body = b (int64 i, bool ci, float[4] a) => (bool co, float[4] o) {
                co = Identity(ci)
                h = Exp(a)
                k = Mul(h, w)
                o = Neg(a)
            }>
        }""",
        w=np.ones(4, "f4"),
    )
    result = apply_only(graph, NODES)
    assert ops(result) == {"Loop": 1, "Identity": 1, "Neg": 1}
    assert list(result.initializers()) == []


def test_dead_if_goes_with_its_branches_and_what_they_captured():
    graph = graph_of(
        """(bool c, float[4] x) => (float[4] y) {
            y = Neg(x)
            h = Exp(x)
            z = If(c) <
                then_branch = t () => (float[4] a) { a = Mul(h, w) },
                else_branch = e () => (float[4] b) { b = Relu(x) }
            >
        }""",
        w=np.ones(4, "f4"),
    )
    result = apply_only(graph, NODES)
    assert ops(result) == {"Neg": 1}
    assert list(result.initializers()) == []
    assert candidates(result, NODES) == []


def test_random_node_is_kept():
    graph = graph_of("(float[4] x) => (float[4] y) { y = Neg(x) r = RandomNormalLike(x) }")
    assert candidates(graph, NODES) == []
    assert reasons(graph, NODES) == ["an unnamed RandomNormalLike is random"]


def test_custom_node_without_readers_is_removed():
    graph = graph_of("(float[4] x) => (float[4] y) { y = Neg(x) r = my.ops.Log(x) }", domains={"my.ops": 1})
    result = apply(graph, candidates(graph, NODES)[0], all_rules())
    assert ops(result) == {"Neg": 1}


def test_unused_weights_go_together():
    graph = graph_of(
        "(float[4] x) => (float[4] y) { y = Add(x, w) }",
        w=np.ones(4, "f4"),
        u=np.ones(7, "f4"),
        v=np.ones(3, "f8"),
    )
    (candidate,) = candidates(graph, WEIGHTS)
    assert candidate.nodes == ()
    assert candidate.bytes_delta == -(7 * 4 + 3 * 8)
    assert candidate.summary == "nothing reads 'u', 'v'"
    result = apply_only(graph, WEIGHTS)
    assert [value.name for value in result.initializers()] == ["w"]


def test_unused_default_of_an_input_stays():
    graph = graph_of("(float[4] x, float[4] w) => (float[4] y) { y = Neg(x) }", w=np.ones(4, "f4"))
    assert candidates(graph, WEIGHTS) == []


def test_weight_that_is_an_output_stays():
    graph = graph_of("(float[4] x) => (float[4] y, float[4] w) { y = Neg(x) }", w=np.ones(4, "f4"))
    assert candidates(graph, WEIGHTS) == []


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("h, m = Dropout(x)", {}),
        ("h, m = MaxPool<kernel_shape=[1,1]>(x)", {}),
        ("h, m, s = LayerNormalization(x, w)", {"w": np.ones(4, "f4")}),
    ],
)
def test_unused_optional_outputs_are_dropped(text, weights):
    graph = graph_of(f"(float[1,2,3,4] x) => (float[1,2,3,4] y) {{ {text} y = Relu(h) }}", **weights)
    result = apply_only(graph, OUTPUTS)
    assert len(result.nodes[0].outputs) == 1
    assert candidates(result, OUTPUTS) == []


def test_used_optional_outputs_stay():
    graph = graph_of(
        "(float[2,4] x) => (float[2,4] y, float[2,1] s) { y, m, s = LayerNormalization(x, w) }",
        w=np.ones(4, "f4"),
    )
    assert candidates(graph, OUTPUTS) == []


def test_middle_output_stays_where_a_later_one_is_used():
    graph = graph_of(
        "(float[2,4] x) => (float[2,4] y, float[2,1] z) { h, m, s = LayerNormalization(x, w) y = Relu(h) z = Neg(m) }",
        w=np.ones(4, "f4"),
    )
    result = apply_only(graph, OUTPUTS)
    assert len(result.nodes[0].outputs) == 2


def test_everything_dead_goes_after_a_few_steps():
    text = "y = Neg(x) " + " ".join(f"d{i} = Exp({'x' if not i else f'd{i - 1}'})" for i in range(30))
    graph = graph_of(f"(float[4] x) => (float[4] y) {{ {text} }}")
    assert ops(apply_all(graph, NODES)) == {"Neg": 1}
