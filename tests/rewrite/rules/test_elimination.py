"""A1 Identity, A2 Dropout, A9 Pad."""

import numpy as np
import pytest

from explorer.graph import load
from tests.models import case_path
from tests.rewrite.harness import apply_all, apply_only, candidates, graph_of, ops, reasons

IDENTITY, DROPOUT, PAD = "eliminate-identity", "eliminate-dropout", "eliminate-pad"


def test_identity_disappears():
    graph = graph_of("(float[2,3] x) => (float[2,3] y) { h = Identity(x) y = Relu(h) }")
    assert ops(apply_only(graph, IDENTITY)) == {"Relu": 1}


def test_identity_that_computes_an_output_gives_its_name_to_the_node_before():
    graph = graph_of("(float[2,3] x) => (float[2,3] y) { h = Relu(x) y = Identity(h) }")
    result = apply_only(graph, IDENTITY)
    assert ops(result) == {"Relu": 1}
    assert [value.name for value in result.outputs] == ["y"]


def test_identity_between_an_input_and_an_output_stays():
    graph = graph_of("(float[2,3] x) => (float[2,3] y, float[2,3] z) { y = Identity(x) z = Relu(x) }")
    assert reasons(graph, IDENTITY) == ["output 'y' would be the graph input 'x' itself"]


def test_identity_of_a_weight_that_is_an_output_stays():
    graph = graph_of(
        "(float[2] x) => (float[2] y, float[2] z) { y = Identity(w) z = Add(x, w) }", w=np.ones(2, "f4")
    )
    assert reasons(graph, IDENTITY) == ["output 'y' would be the weight 'w' itself"]


def test_identity_between_two_outputs_stays():
    graph = graph_of("(float[2] x) => (float[2] y, float[2] z) { y = Relu(x) z = Identity(y) }")
    assert reasons(graph, IDENTITY) == ["outputs 'z' and 'y' would be the same tensor"]


def test_identity_captured_by_both_branches_of_an_if():
    graph = load(case_path("if_branches_capture_outer"))
    before = ops(graph)
    result = apply_all(graph, IDENTITY)
    assert ops(result).get("Identity", 0) < before["Identity"]


def test_loop_body_keeps_the_number_and_order_of_its_outputs():
    graph = load(case_path("loop_body_captures_and_passthrough"))
    result = apply_all(graph, IDENTITY)
    bodies = [
        next(n for n in g.nodes if n.op_type == "Loop").attributes["body"].as_graph() for g in (graph, result)
    ]
    assert len(bodies[0].outputs) == len(bodies[1].outputs)
    assert [v.dtype for v in bodies[0].outputs] == [v.dtype for v in bodies[1].outputs]


def test_identity_of_strings():
    graph = graph_of("(string[9] x) => (string[9] y) { h = Identity(x) y = Identity(h) }")
    assert ops(apply_all(graph, IDENTITY)) == {"Identity": 1}


@pytest.mark.parametrize("opset", [10, 12, 17])
def test_dropout_disappears(opset):
    graph = graph_of("(float[2,3] x) => (float[2,3] y) { h = Dropout(x) y = Relu(h) }", opset=opset)
    assert ops(apply_only(graph, DROPOUT)) == {"Relu": 1}


def test_dropout_with_constant_ratio_and_mode_frees_both():
    graph = graph_of(
        "(float[2,3] x) => (float[2,3] y) { h = Dropout(x, ratio, mode) y = Relu(h) }",
        ratio=np.array(0.5, "f4"),
        mode=np.array(False),
    )
    result = apply_only(graph, DROPOUT)
    assert list(result.initializers()) == []


def test_dropout_in_training_mode_is_refused():
    graph = graph_of(
        "(float[2,3] x) => (float[2,3] y) { h = Dropout(x, ratio, mode) y = Relu(h) }",
        ratio=np.array(0.5, "f4"),
        mode=np.array(True),
    )
    assert candidates(graph, DROPOUT) == []
    assert reasons(graph, DROPOUT) == ["an unnamed Dropout is in training mode"]


def test_dropout_whose_mode_is_an_input_is_refused():
    graph = graph_of(
        "(float[2,3] x, bool t) => (float[2,3] y) { h = Dropout(x, ratio, t) y = Relu(h) }",
        ratio=np.array(0.5, "f4"),
    )
    reason = "whether an unnamed Dropout is in training mode is decided at run time by 't'"
    assert reasons(graph, DROPOUT) == [reason]


def test_old_dropout_without_is_test_is_refused():
    graph = graph_of("(float[2,3] x) => (float[2,3] y) { h = Dropout(x) y = Relu(h) }", opset=6)
    assert reasons(graph, DROPOUT) == ["an unnamed Dropout is in training mode"]
    tested = graph_of("(float[2,3] x) => (float[2,3] y) { h = Dropout<is_test=1>(x) y = Relu(h) }", opset=6)
    assert len(candidates(tested, DROPOUT)) == 1


def test_dropout_whose_mask_is_used_is_refused():
    graph = graph_of(
        "(float[2,3] x) => (float[2,3] y, bool[2,3] z) { h, m = Dropout(x) y = Relu(h) z = Not(m) }"
    )
    assert reasons(graph, DROPOUT) == ["'m', inside the pattern, is also read by an unnamed Not"]


def test_pad_of_nothing_disappears():
    graph = graph_of(
        "(float[N,3] x) => (float[N,3] y) { h = Pad(x, pads) y = Relu(h) }", pads=np.zeros(4, "i8")
    )
    assert ops(apply_only(graph, PAD)) == {"Relu": 1}


def test_pad_of_nothing_before_opset_11():
    graph = graph_of("(float[2,3] x) => (float[2,3] y) { h = Pad<pads=[0,0,0,0]>(x) y = Relu(h) }", opset=10)
    assert ops(apply_only(graph, PAD)) == {"Relu": 1}


def test_pad_of_something_stays():
    graph = graph_of(
        "(float[2,3] x) => (float[3,3] y) { h = Pad(x, pads) y = Relu(h) }", pads=np.array([0, 0, 1, 0])
    )
    assert candidates(graph, PAD) == []
    variable = graph_of("(float[2,3] x, int64[4] pads) => (float[?,?] y) { y = Pad(x, pads) }")
    assert candidates(variable, PAD) == []
