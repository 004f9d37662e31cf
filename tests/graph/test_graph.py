"""Graph: stable ids, bodies, clones that share weights, constants."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from explorer.errors import CandidateError
from explorer.graph import (
    Graph,
    bodies_of,
    constant_tensor,
    holder_of,
    is_constant_node,
    load,
    node_id,
)
from tests import models


def case(name: str) -> Graph:
    return load(models.case_path(name))


def test_ids_do_not_come_from_names() -> None:
    graph = case("odd_names")
    names = [node.name for node in graph.nodes]
    assert len(names) == 5
    assert names.count("") == 2
    assert [node_id(node) for node in graph.nodes] == ["n0", "n1", "n2", "n3", "n4"]
    assert all(graph.node(f"n{i}") is node for i, node in enumerate(graph.nodes))


def test_duplicate_node_names_are_no_obstacle() -> None:
    proto = models.chain(4)
    for node in proto.graph.node:
        node.name = "same"
    graph = load(proto)
    assert len({node_id(node) for node in graph.nodes}) == 4


def test_an_unknown_id_is_refused() -> None:
    graph = load(models.chain(2))
    with pytest.raises(CandidateError, match=r"^'model' has no node with id 'n99'; list the ids"):
        graph.node("n99")
    assert graph.find_node("n99") is None
    assert graph.find_node("n1") is graph.nodes[1]


def test_a_clone_has_nodes_of_its_own_and_shares_ids_and_weights() -> None:
    graph = load("squeezenet1_1")
    clone = graph.clone()
    assert [node_id(n) for n in clone.nodes] == [node_id(n) for n in graph.nodes]
    assert not set(clone.nodes) & set(graph.nodes)
    pairs = list(zip(graph.initializers(), clone.initializers(), strict=True))
    assert len(pairs) == 52
    assert all(a is not b and a.const_value is b.const_value for a, b in pairs)
    assert (clone.name, clone.source, clone.notices) == (graph.name, graph.source, graph.notices)
    assert (clone.next_id, clone.passes_checker) == (graph.next_id, graph.passes_checker)


def test_changing_a_clone_leaves_the_original_alone() -> None:
    graph = load(models.model("(float[4] x) => (float[4] y) { h = Relu(x) y = Abs(h) }"))
    before = graph.fingerprint()
    clone = graph.clone()
    clone.nodes[0].op_type = "Neg"
    clone.nodes[1].replace_input_with(0, clone.inputs[0])
    clone.outputs[0].shape = ir.Shape([9])
    assert clone.fingerprint() != before
    assert graph.nodes[0].op_type == "Relu"
    assert Graph(graph.model, name="again").fingerprint() == before
    assert graph.outputs[0].shape == [4]


def test_new_nodes_get_new_ids_also_in_later_versions() -> None:
    first = load(models.chain(3))
    second = first.clone()
    new = ir.node("Neg", inputs=[second.inputs[0]])
    second.model.graph.insert_before(second.nodes[0], new)
    assert second.renumbered() is second
    assert [node_id(n) for n in second.nodes] == ["n3", "n0", "n1", "n2"]
    assert second.node("n3") is new
    third = second.clone()
    third.model.graph.remove(third.node("n3"))
    another = ir.node("Abs", inputs=[third.inputs[0]])
    third.model.graph.insert_before(third.nodes[1], another)
    third.renumbered()
    assert node_id(another) == "n4"  # n3 is not given twice
    assert first.next_id == 3


def test_nodes_of_bodies_follow_their_holder() -> None:
    graph = case("loop_body_captures_and_passthrough")
    kinds = [(node.op_type, holder_of(node) is not None) for node in graph.nodes]
    loop = next(node for node in graph.nodes if node.op_type == "Loop")
    inside = [node for node in graph.nodes if holder_of(node) is loop]
    assert kinds.index(("Loop", False)) + 1 == graph.nodes.index(inside[0])
    assert (
        len(inside) == sum(body.num_nodes() for a in loop.attributes.values() for body in bodies_of(a)) == 4
    )


def test_captures_are_uses() -> None:
    graph = case("if_branches_capture_outer")
    identity = next(node for node in graph.nodes if node.op_type == "Identity")
    readers = {use.node for use in identity.outputs[0].uses()}
    assert readers
    assert all(holder_of(reader).op_type == "If" for reader in readers)
    captured = [v for v in graph.model.graph.initializers.values() if v.uses()]
    assert captured
    clone = graph.clone()
    again = next(node for node in clone.nodes if node.op_type == "Identity")
    assert all(holder_of(use.node) in clone.nodes for use in again.outputs[0].uses())


def test_bodies_of_nested_control_flow() -> None:
    value = helper.make_tensor_value_info("o", 1, [4])
    leaf = helper.make_graph([helper.make_node("Relu", ["x"], ["o"], name="leaf")], "leaf", [], [value])
    other = helper.make_graph([helper.make_node("Abs", ["x"], ["o"])], "other", [], [value])
    inner = helper.make_node("If", ["c"], ["o"], name="inner", then_branch=leaf, else_branch=other)
    middle = helper.make_graph([inner], "middle", [], [value])
    proto = models.model("(float[4] x, bool c) => (float[4] y) { y = Relu(x) }")
    outer = helper.make_node("If", ["c"], ["y"], name="outer", then_branch=middle, else_branch=other)
    proto.graph.node[0].CopyFrom(outer)
    graph = load(proto)
    leaf_node = next(node for node in graph.nodes if node.name == "leaf")
    assert holder_of(leaf_node).name == "inner"
    assert holder_of(holder_of(leaf_node)).name == "outer"
    assert holder_of(holder_of(holder_of(leaf_node))) is None
    clone = graph.clone()
    assert holder_of(next(node for node in clone.nodes if node.name == "inner")) is clone.nodes[0]


CONSTANTS = {
    "value_float": (0.5, np.float32(0.5)),
    "value_floats": ([0.5, 1.5], np.array([0.5, 1.5], "f4")),
    "value_int": (3, np.int64(3)),
    "value_ints": ([3, 4, 5], np.array([3, 4, 5])),
    "value_string": ("a", np.array(b"a")),
    "value_strings": (["a", "bc"], np.array([b"a", b"bc"])),
    "value": (models.tensor("", np.array([[7.0]], "f4")), np.array([[7.0]], "f4")),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constant_nodes_of_every_form(name: str) -> None:
    given, wanted = CONSTANTS[name]
    proto = models.model("(float[4] x) => (float[4] y) { k = Relu(x) y = Abs(x) }")
    proto.graph.node[0].CopyFrom(helper.make_node("Constant", [], ["k"], **{name: given}))
    graph = load(proto)
    node = graph.nodes[0]
    tensor = constant_tensor(node.outputs[0])
    assert is_constant_node(node)
    assert not is_constant_node(graph.nodes[1])
    assert tensor.numpy().tolist() == wanted.tolist()
    assert tensor.numpy().shape == wanted.shape
    assert constant_tensor(node.outputs[0]) is tensor  # not built again at every question
    assert constant_tensor(graph.clone().nodes[0].outputs[0]) is tensor


def test_what_is_no_constant() -> None:
    graph = load(
        models.model(
            "(float[4] x, float[4] w = {1,2,3,4}) => (float[4] y) { h = Add(x, w) y = Add(h, k) }",
            k=np.ones(4, "f4"),
        )
    )
    add, second = graph.nodes
    assert [constant_tensor(value) is None for value in add.inputs] == [True, True]
    assert constant_tensor(second.inputs[0]) is None
    assert constant_tensor(second.inputs[1]).numpy().tolist() == [1, 1, 1, 1]
    assert constant_tensor(None) is None


def test_inputs_outputs_and_opsets() -> None:
    graph = load(
        models.model(
            "(float[4] x, float[4] w = {1,2,3,4}, int64 n) => (float[4] y, float[4] h) { h = Mul(x, w) y = Relu(h) }",
            domains={"com.microsoft": 1},
        )
    )
    assert [v.name for v in graph.inputs] == ["x", "n"]
    assert [v.name for v in graph.overridable] == ["w"]
    assert [v.name for v in graph.outputs] == ["y", "h"]
    assert (graph.opset(), graph.opset("com.microsoft"), graph.opset("none.such")) == (17, 1, None)


def test_the_other_name_of_the_standard_operator_set() -> None:
    proto = models.chain(1)
    proto.opset_import[0].domain = "ai.onnx"
    assert load(proto).opset() == 17
    assert load(proto).fingerprint() == load(models.chain(1)).fingerprint()


def test_repr_shows_what_is_known() -> None:
    graph = load(models.chain(2), name="two")
    assert repr(graph) == "Graph('two', 2 nodes)"
    graph.fingerprint()
    assert repr(graph) == f"Graph('two', 2 nodes, {graph.fingerprint()[:8]})"
