from __future__ import annotations

import numpy as np
import onnx
import pytest

from explorer.graph import freeze_weights, load, names_text, save
from explorer.graph.freeze import OVERRIDABLE_NOTICE
from tests.models import model, run

X = np.linspace(-1, 1, 2 * 8 * 8, dtype=np.float32).reshape(1, 2, 8, 8)


def conv_with_listed_weight(ir_version: int = 8) -> onnx.ModelProto:
    """A Conv whose kernel is an input with a default, and whose bias is a plain initializer."""
    rng = np.random.default_rng(5)
    return model(
        "(float[1,2,8,8] x, float[3,2,3,3] w) => (float[1,3,6,6] y) { c = Conv(x, w, b) y = Relu(c) }",
        ir_version=ir_version,
        w=rng.standard_normal((3, 2, 3, 3)).astype("f4"),
        b=rng.standard_normal(3).astype("f4"),
    )


def names(values):
    return [value.name for value in values]


@pytest.mark.parametrize("ir_version", [4, 8, 10])
def test_listed_weights_become_constants_and_leave_the_interface(ir_version):
    graph = load(conv_with_listed_weight(ir_version))
    assert (names(graph.inputs), names(graph.overridable)) == (["x"], ["w"])
    frozen = freeze_weights(graph)
    assert names(frozen.model.graph.inputs) == ["x"]
    assert names(frozen.overridable) == []
    assert frozen.passes_checker
    np.testing.assert_array_equal(run(frozen, {"x": X})[0], run(graph, {"x": X})[0])


def test_the_graph_it_came_from_is_untouched():
    graph = load(conv_with_listed_weight())
    before = graph.fingerprint()
    frozen = freeze_weights(graph)
    assert frozen.fingerprint() != before
    assert graph.renumbered().fingerprint() == before
    assert names(graph.overridable) == ["w"]


def test_node_ids_and_weights_stay():
    graph = load(conv_with_listed_weight())
    frozen = freeze_weights(graph)
    assert [n.op_type for n in frozen.nodes] == ["Conv", "Relu"]
    assert frozen.node("n0").op_type == "Conv"
    tensors = [{v.name: v.const_value for v in g.initializers()} for g in (graph, frozen)]
    assert tensors[0]["w"] is tensors[1]["w"]


def test_the_notice_says_what_callers_lose():
    graph = load(conv_with_listed_weight())
    assert OVERRIDABLE_NOTICE in graph.notices
    notices = freeze_weights(graph).notices
    assert OVERRIDABLE_NOTICE not in notices
    assert notices[-1] == "1 weight is a constant now: callers can no longer override 'w'."
    assert names_text(list("abcde")) == "'a', 'b', 'c' and 2 more"


def test_a_frozen_model_is_saved_without_the_inputs(tmp_path):
    path = save(freeze_weights(load(conv_with_listed_weight())), tmp_path / "frozen.onnx")
    proto = onnx.load(path)
    onnx.checker.check_model(proto)
    assert [i.name for i in proto.graph.input] == ["x"]
    assert {i.name for i in proto.graph.initializer} == {"w", "b"}
    assert load(path).fingerprint() == freeze_weights(load(conv_with_listed_weight())).fingerprint()


def test_a_model_without_listed_weights_stays_what_it_is():
    graph = load(model("(float[2] x) => (float[2] y) { y = Add(x, w) }", w=np.ones(2, "f4")))
    frozen = freeze_weights(graph)
    assert frozen.fingerprint() == graph.fingerprint()
    assert frozen.notices == graph.notices


def test_weights_of_ir_3_are_constants_already():
    graph = load(conv_with_listed_weight(ir_version=3))
    assert names(graph.overridable) == []
    assert freeze_weights(graph).fingerprint() == graph.fingerprint()
