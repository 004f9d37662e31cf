"""Repairs on opening: order, impossible dims, weights listed among the inputs."""

from __future__ import annotations

import random

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from explorer.errors import ModelError
from explorer.graph import constant_tensor, describe, load, save
from tests import models

SORTED = "The node list was not in topological order; it was sorted on opening."


def test_an_unsorted_file_is_sorted_with_a_notice() -> None:
    case = "nodes_not_topologically_sorted"
    with pytest.raises(onnx.checker.ValidationError):
        onnx.checker.check_model(str(models.case_path(case)))
    graph = load(models.case_path(case))
    assert graph.notices == (SORTED,)
    assert graph.passes_checker
    feeds, expected = models.case_runs(case)[0]
    np.testing.assert_allclose(models.run(graph, feeds)[0], next(iter(expected.values())), atol=1e-4)


def test_sorting_keeps_the_order_where_it_can() -> None:
    proto = models.model("(float[4] x) => (float[4] z) { a = Relu(x) b = Abs(x) y = Add(a, b) z = Neg(y) }")
    assert load(proto).notices == ()
    proto.graph.node.insert(0, proto.graph.node.pop(2))
    graph = load(proto)
    assert graph.notices == (SORTED,)
    assert [node.op_type for node in graph.nodes] == ["Relu", "Abs", "Add", "Neg"]


def test_a_shuffled_chain_is_sorted() -> None:
    proto = models.chain(500)
    nodes = list(proto.graph.node)
    random.Random(5).shuffle(nodes)
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    assert [node.name for node in load(proto).nodes] == [f"Relu_{i}" for i in range(500)]


def branch(op: str, source: str, result: str) -> onnx.GraphProto:
    value = helper.make_tensor_value_info(result, TensorProto.FLOAT, [4])
    return helper.make_graph([helper.make_node(op, [source], [result])], "b", [], [value])


def conditional(source: str) -> onnx.NodeProto:
    branches = {"then_branch": branch("Relu", source, "t"), "else_branch": branch("Abs", "x", "e")}
    return helper.make_node("If", ["c"], ["y"], **branches)


def test_a_capture_of_a_later_value_counts_when_sorting() -> None:
    proto = models.model("(float[4] x, bool c) => (float[4] y) { y = Relu(x) }")
    proto.graph.node[0].CopyFrom(conditional("late"))
    proto.graph.node.append(helper.make_node("Neg", ["x"], ["late"]))
    graph = load(proto)
    assert graph.notices == (SORTED,)
    assert graph.nodes[0].op_type == "Neg"
    y = models.run(graph, {"x": np.array([-1, 2, -3, 4], "f4"), "c": np.array(True)})[0]
    np.testing.assert_array_equal(y, [1, 0, 3, 0])


@pytest.mark.parametrize(
    "nodes",
    [
        [helper.make_node("Add", ["x", "y"], ["y"], name="loop")],
        [helper.make_node("Add", ["x", "y"], ["a"]), helper.make_node("Relu", ["a"], ["y"])],
        [conditional("y")],
    ],
    ids=["itself", "two nodes", "through a body"],
)
def test_a_cycle_is_refused(nodes: list[onnx.NodeProto]) -> None:
    proto = models.model("(float[4] x, bool c) => (float[4] y) { y = Relu(x) }")
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    with pytest.raises(ModelError) as caught:
        load(proto, name="round.onnx")
    assert str(caught.value) == (
        "'round.onnx' has a cycle: some node depends on its own output; export the model again."
    )


def test_negative_dims_are_unknown() -> None:
    proto = models.model("(float[1,4] x) => (float[1,4] y) { h = Relu(x) y = Abs(h) }")
    for value in (proto.graph.input[0], proto.graph.output[0]):
        value.type.tensor_type.shape.dim[0].dim_value = -1
    graph = load(proto)
    assert graph.notices == ("Negative dimensions in the file were taken as unknown.",)
    summary = describe(graph)
    assert [tensor.shape_text for tensor in (*summary.inputs, *summary.outputs)] == ["?x4", "?x4"]
    assert summary.flops is None
    assert models.run(graph, {"x": np.ones((3, 4), "f4")})[0].shape == (3, 4)


def old_format(ir_version: int) -> onnx.ModelProto:
    text = "(float[1,2] x, float[2,2] w) => (float[1,2] y) { y = MatMul(x, w) }"
    array = np.array([[1, 2], [3, 4]], "f4")
    return models.model(text, opset=8 if ir_version == 3 else 17, ir_version=ir_version, w=array)


def test_weights_that_ir_3_lists_as_inputs_are_constants(tmp_path) -> None:
    graph = load(old_format(3))
    assert [v.name for v in graph.inputs] == [v.name for v in graph.model.graph.inputs] == ["x"]
    assert graph.overridable == ()
    assert constant_tensor(graph.nodes[0].inputs[1]).numpy().tolist() == [[1, 2], [3, 4]]
    (notice,) = graph.notices
    assert notice.startswith("The file is of an old format that lists weights among the inputs")
    saved = onnx.load(save(graph, tmp_path / "m.onnx"))
    onnx.checker.check_model(saved)
    assert saved.ir_version == 4
    np.testing.assert_array_equal(models.run(saved, {"x": np.array([[1, 10]], "f4")})[0], [[31, 42]])


def test_onnxruntime_does_not_let_ir_3_weights_be_overridden() -> None:
    import onnxruntime as ort

    session = ort.InferenceSession(old_format(3).SerializeToString(), providers=["CPUExecutionProvider"])
    assert [value.name for value in session.get_inputs()] == ["x"]
    assert session.get_overridable_initializers() == []


def test_from_ir_4_on_they_are_defaults_that_callers_may_override() -> None:
    graph = load(old_format(8))
    assert [v.name for v in graph.inputs] == ["x"]
    assert [v.name for v in graph.overridable] == ["w"]
    assert constant_tensor(graph.nodes[0].inputs[1]) is None
    assert "callers may override them" in graph.notices[0]
    for feeds, expected in models.case_runs("initializer_is_overridable_input"):
        found = models.run(load(models.case_path("initializer_is_overridable_input")), feeds)
        np.testing.assert_allclose(found[0], next(iter(expected.values())), atol=1e-4)


def test_nodes_with_one_name_are_told_apart() -> None:
    """ONNX Runtime refuses such a file as a whole."""
    proto = models.model("(float[4] x) => (float[4] y) { a = Relu(x) b = Abs(a) c = Neg(b) y = Exp(c) }")
    for node, name in zip(proto.graph.node, ["n", "n_2", "n", "n"], strict=True):
        node.name = name
    graph = load(proto)
    assert [node.name for node in graph.nodes] == ["n", "n_2", "n_3", "n_4"]
    assert graph.notices == ("Nodes with the name of another node were renamed: 'n'.",)
    (y,) = models.run(graph, {"x": np.ones(4, "f4")})
    np.testing.assert_allclose(y, np.exp(-np.ones(4, "f4")), rtol=1e-6)


def test_nodes_without_names_stay_without() -> None:
    graph = load(models.chain(3))
    assert graph.notices == ()
    proto = models.model("(float[4] x) => (float[4] y) { a = Relu(x) y = Abs(a) }")
    assert not any(node.name for node in load(proto).nodes)


def test_the_data_of_a_weight_count_where_it_is_declared_with_another_shape() -> None:
    proto = models.model("(float[5,3] x) => (float[1,3] y, int64 i) { y = Gather(x, i) }", i=np.array([2]))
    graph = load(proto)
    (notice,) = graph.notices
    assert notice == "The data of these weights have another shape than declared, and count: 'i'."
    assert describe(graph).outputs[1].shape == (1,)
    assert (
        load(models.model("(float[5,3] x) => (float[1,3] y) { y = Gather(x, i) }", i=np.array([2]))).notices
        == ()
    )
