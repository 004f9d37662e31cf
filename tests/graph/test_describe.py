"""The summary of a graph: tensors, nodes, edges, bodies, texts."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from explorer.graph import GraphSummary, NodeInfo, TensorInfo, describe, load
from explorer.graph.describe import scope_of
from tests import models


def summary(text: str, **weights: np.ndarray) -> GraphSummary:
    return describe(load(models.model(text, **weights), name="m"))


def case(name: str) -> GraphSummary:
    return describe(load(models.case_path(name)))


def test_a_small_model_in_full() -> None:
    found = summary(
        "(float[1,2] x) => (float[1,3] y) { h = MatMul(x, w) y = LeakyRelu<alpha=0.5>(h) }",
        w=np.ones((2, 3), "f4"),
    )
    x = TensorInfo("x", "float", (1, 2), 8, is_constant=False)
    w = TensorInfo("w", "float", (2, 3), 24, is_constant=True)
    h, y = (TensorInfo(name, "float", (1, 3), 12, is_constant=False) for name in "hy")
    product = NodeInfo(
        id="n0", name="", op_type="MatMul", domain="", scope=(), parent=None, inputs=(x, w), outputs=(h,),
        attributes=(), flops=12, bytes=44, parameters=6, is_constant=False,
    )  # fmt: skip
    assert found.nodes[0] == product
    assert found.nodes[1].attributes == (("alpha", "0.5"),)
    assert (found.inputs, found.outputs, found.name, found.opset) == ((x,), (y,), "m", (("", 17),))
    assert (found.parameters, found.flops, found.known_flops, found.notices) == (6, 15, 15, ())
    assert [(e.source, e.target, e.tensor, e.shape_text, e.bytes) for e in found.edges] == [
        (None, "n0", "x", "1x2", 8),
        ("n0", "n1", "h", "1x3", 12),
        ("n1", None, "y", "1x3", 12),
    ]
    assert found.ops() == {"MatMul": 1, "LeakyRelu": 1}


def test_odd_names_have_all_their_edges() -> None:
    found = case("odd_names")
    assert len(found.nodes) == 5
    ids = {node.id for node in found.nodes} | {None}
    assert {edge.source for edge in found.edges} | {edge.target for edge in found.edges} <= ids
    proto = onnx.load(models.case_path("odd_names"))
    assert sorted(node.name for node in found.nodes) == sorted(node.name for node in proto.graph.node)
    weights = {tensor.name for tensor in proto.graph.initializer}
    reads = [name for node in proto.graph.node for name in node.input if name not in weights]
    returned = [value.name for value in proto.graph.output]
    assert len(reads) + len(returned) == 7
    assert sorted(edge.tensor for edge in found.edges) == sorted(reads + returned)


def test_constants_are_operands_not_edges() -> None:
    found = summary(
        "(float[2] x) => (float[2] y) { k = Constant<value_floats=[1.5,2.5]>() h = Add(x, k) y = Mul(h, w) }",
        w=np.ones(2, "f4"),
    )
    assert [edge.tensor for edge in found.edges] == ["x", "h", "y"]
    assert [node.is_constant for node in found.nodes] == [True, False, False]
    assert [tensor.is_constant for tensor in found.nodes[1].inputs] == [False, True]
    assert found.nodes[1].inputs[1].shape == (2,)


def test_optional_operands_and_unused_outputs() -> None:
    proto = models.model("(float[4] x) => (float[2] y) { y = Clip(x, , top) }", top=np.float32(1))
    proto.graph.node[0].CopyFrom(helper.make_node("TopK", ["x", "k"], ["y", ""]))
    proto.graph.initializer[0].CopyFrom(models.tensor("k", np.array([2])))
    node = describe(load(proto)).nodes[0]
    assert [tensor.name for tensor in node.outputs] == ["y"]
    clip = summary("(float[4] x) => (float[4] y) { y = Clip(x, , top) }", top=np.float32(1)).nodes[0]
    assert [None if tensor is None else tensor.name for tensor in clip.inputs] == ["x", None, "top"]


def test_bodies_know_their_holder_and_captures_are_edges() -> None:
    found = case("if_branches_capture_outer")
    holder = next(node for node in found.nodes if node.op_type == "If")
    inside = [node for node in found.nodes if node.parent == holder.id]
    assert len(inside) == 2
    assert [node.parent for node in found.nodes if node not in inside] == [None, None]
    outer = next(node for node in found.nodes if node.op_type == "Identity")
    assert {edge.target for edge in found.edges if edge.source == outer.id} == {node.id for node in inside}
    assert dict(holder.attributes) == {"then_branch": "body of 1 nodes", "else_branch": "body of 1 nodes"}


def test_a_body_s_inputs_come_from_the_node_that_holds_it() -> None:
    found = case("loop_body_captures_and_passthrough")
    loop = next(node for node in found.nodes if node.op_type == "Loop")
    inside = {node.id for node in found.nodes if node.parent == loop.id}
    assert inside
    fed = {edge.target for edge in found.edges if edge.source == loop.id}
    assert fed & inside


@pytest.mark.parametrize(
    ("shape", "text"),
    [(None, "unknown"), ((), "scalar"), ((1, 64, 56), "1x64x56"), ((None, "N", 3), "?xNx3"), ((2, 0), "2x0")],
)
def test_shape_texts(shape: tuple[int | str | None, ...] | None, text: str) -> None:
    assert TensorInfo("t", "float", shape, None, is_constant=False).shape_text == text


def test_sequences_and_optional_values_are_no_tensors() -> None:
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, [4])
    sequence = helper.make_sequence_type_proto(tensor)
    proto = models.model("(float[4] s) => (float[4] y) { y = SequenceAt(s, i) }", i=np.array(0))
    proto.graph.input[0].CopyFrom(helper.make_value_info("s", sequence))
    proto.graph.input.append(helper.make_value_info("o", helper.make_optional_type_proto(sequence)))
    found = describe(load(proto)).inputs
    assert [(t.dtype, t.shape_text, t.bytes) for t in found] == [
        ("sequence(float)", "unknown", None),
        ("optional(sequence(float))", "unknown", None),
    ]


def test_attribute_texts_are_short() -> None:
    proto = models.model(
        "(float[4] x) => (float[4] y) { h = vendor.Op(x) y = Relu(h) }", domains={"vendor": 1}
    )
    attributes = {
        "few": [1, 2, 3],
        "many": list(range(1000)),
        "text": "t" * 5000,
        "small": models.tensor("", np.array([[1, 2]])),
        "large": models.tensor("", np.zeros((100, 100), "f4")),
        "words": models.tensor("", np.array(["w" * 5000])),
        "one": models.tensor("", np.float32(2)),
    }
    proto.graph.node[0].CopyFrom(helper.make_node("Op", ["x"], ["h"], domain="vendor", **attributes))
    texts = dict(describe(load(proto)).nodes[0].attributes)
    assert texts["few"] == "(1, 2, 3)"
    assert texts["many"].startswith("1000 values: [0, 1, 2, ")
    assert texts["many"].endswith("22, 23, ...]")
    assert texts["text"] == "t" * 197 + "..."
    assert texts["small"] == "int64 1x2 [[1, 2]]"
    assert texts["large"] == "float 100x100"
    assert texts["one"] == "float scalar 2.0"
    assert len(texts["words"]) < 250


def test_scopes_come_from_names() -> None:
    assert scope_of("/layer1/layer1.0/conv1/Conv") == ("layer1", "layer1.0", "conv1")
    assert scope_of("Conv_3") == scope_of("") == ()
    found = describe(load("resnet18"))
    scopes = {node.scope[0] for node in found.nodes if node.scope}
    assert {"layer1", "layer2", "layer3", "layer4"} <= scopes


def test_operators_carry_their_domain() -> None:
    found = case("unknown_custom_op")
    assert found.ops()["vendor.ops::FancyGate"] == 1
    assert next(node.operator for node in found.nodes if node.domain == "") in found.ops()


def test_overridable_weights_are_marked_constant_and_drawn_without_an_edge() -> None:
    found = case("initializer_is_overridable_input")
    assert [tensor.name for tensor in found.inputs if tensor.is_constant] == ["W"]
    assert all(edge.tensor != "W" for edge in found.edges)


def test_the_whole_is_the_sum_of_its_nodes() -> None:
    found = describe(load("squeezenet1_1"))
    assert found.flops == found.known_flops == sum(node.flops for node in found.nodes)
    assert found.parameters == 1_235_496
    assert sum(found.ops().values()) == len(found.nodes) == 65
    assert list(found.ops().values()) == sorted(found.ops().values(), reverse=True)
    edges = {(edge.source, edge.target) for edge in found.edges}
    order = {node.id: i for i, node in enumerate(found.nodes)}
    assert all(order[a] < order[b] for a, b in edges if a is not None and b is not None)


def test_describing_changes_nothing() -> None:
    graph = load(models.case_path("loop_body_captures_and_passthrough"))
    before = graph.fingerprint()
    assert describe(graph) == describe(graph)
    assert load(models.case_path("loop_body_captures_and_passthrough")).fingerprint() == before
