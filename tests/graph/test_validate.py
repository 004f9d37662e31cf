"""Files that run nowhere, or that would exhaust memory or stack, are refused with their fault named."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from explorer.errors import ModelError
from explorer.graph import describe, load
from explorer.graph import validate as limits
from tests import models

X = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])
C = helper.make_tensor_value_info("c", TensorProto.BOOL, [])


def floats(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [4])


def build(nodes, inputs=(X,), outputs=("y",), initializers=()) -> onnx.ModelProto:
    results = [floats(name) if isinstance(name, str) else name for name in outputs]
    graph = helper.make_graph(list(nodes), "main", list(inputs), results, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def branch(op: str, source: str, result: str, name: str = "b") -> onnx.GraphProto:
    return helper.make_graph([helper.make_node(op, [source], [result])], name, [], [floats(result)])


def conditional(then: onnx.GraphProto, otherwise: onnx.GraphProto, result: str = "y") -> onnx.NodeProto:
    return helper.make_node("If", ["c"], [result], then_branch=then, else_branch=otherwise)


def complaint(proto: onnx.ModelProto | bytes) -> str:
    with pytest.raises(ModelError) as caught:
        load(proto, name="f.onnx")
    message = str(caught.value)
    assert message.startswith("'f.onnx'")
    assert message.endswith(".")
    assert "\n" not in message
    return message


node = helper.make_node


@pytest.mark.parametrize(
    ("proto", "fault"),
    [
        (
            build([node("Add", ["x", "nowhere"], ["y"], name="a")]),
            "node 'a' (Add) reads 'nowhere', which nothing computes",
        ),
        (
            build([node("Relu", ["x"], ["y"])], outputs=["z"]),
            "the graph returns 'z', which none of its nodes computes",
        ),
        (
            build([node("Relu", ["x"], ["y"])], outputs=[""]),
            "the graph returns '', which none of its nodes computes",
        ),
        (
            build([node("Relu", ["x"], ["y"]), node("Abs", ["x"], ["y"])]),
            "an unnamed Abs node computes 'y', which exists already",
        ),
        (
            build([node("Relu", ["x"], ["x"])], outputs=["x"]),
            "an unnamed Relu node computes 'x', which exists already",
        ),
        (build([node("Relu", ["x"], ["y"])], inputs=[X, X]), "two inputs are called 'x'"),
        (
            build(
                [node("Relu", ["x"], ["w"]), node("Add", ["x", "w"], ["y"])],
                initializers=[models.tensor("w", np.zeros(4, "f4"))],
            ),
            "an unnamed Relu node computes 'w', which exists already",
        ),
        (build([node("Relu", [], ["y"])]), "an unnamed Relu node has 0 inputs, its operator takes 1"),
        (
            build([node("Relu", ["x"], []), node("Relu", ["x"], ["y"])]),
            "an unnamed Relu node has 0 outputs, its operator takes 1",
        ),
        (build([node("Add", ["x", ""], ["y"])]), "an unnamed Add node lacks its input 'B'"),
        (build([node("Conv", ["x"], ["y"])]), "an unnamed Conv node has 1 inputs, its operator takes 2 to 3"),
        (build([node("Concat", ["x"], ["y"])]), "an unnamed Concat node lacks its attribute 'axis'"),
        (
            build([node("Concat", [], ["y"], axis=0)]),
            "an unnamed Concat node has 0 inputs, its operator takes 1 or more",
        ),
        (
            build([node("Softmax", ["x"], ["y"], axis="last")]),
            "attribute 'axis' of an unnamed Softmax node has the wrong type",
        ),
    ],
    ids=lambda value: value[:60] if isinstance(value, str) else "",
)
def test_broken_structures(proto: onnx.ModelProto, fault: str) -> None:
    assert complaint(proto) == f"'f.onnx' is not a valid model: {fault}; export it again."


def test_a_body_must_compute_what_it_returns() -> None:
    empty = helper.make_graph([], "pass", [], [floats("x")])
    proto = build([conditional(empty, branch("Abs", "x", "e"))], inputs=[X, C])
    assert (
        "body 'pass' returns 'x', which none of its nodes computes (a value from outside needs an Identity node)"
        in (complaint(proto))
    )


def test_what_a_body_computes_is_not_seen_outside() -> None:
    proto = build(
        [
            conditional(branch("Relu", "x", "inner"), branch("Abs", "x", "e"), "h"),
            node("Add", ["h", "inner"], ["y"]),
        ],
        inputs=[X, C],
    )
    assert "an unnamed Add node reads 'inner', which nothing computes" in complaint(proto)


def test_branches_may_use_the_same_names_and_capture_from_far_outside() -> None:
    inner = helper.make_graph(
        [conditional(branch("Relu", "x", "t"), branch("Neg", "w", "t"), "o")], "inner", [], [floats("o")]
    )
    proto = build(
        [conditional(inner, branch("Abs", "x", "o"))],
        inputs=[X, C],
        initializers=[models.tensor("w", np.ones(4, "f4"))],
    )
    graph = load(proto)
    assert sorted(n.op_type for n in graph.nodes) == ["Abs", "If", "If", "Neg", "Relu"]
    outputs = models.run(graph, {"x": np.array([-1, 2, -3, 4], "f4"), "c": np.array(False)})
    np.testing.assert_array_equal(outputs[0], [1, 2, 3, 4])


def test_the_operator_set_must_be_named() -> None:
    proto = build([node("Relu", ["x"], ["y"])])
    del proto.opset_import[:]
    assert "no version of the standard operator set is named" in complaint(proto)
    proto.opset_import.add().version = -5
    assert "names an operator set below 1" in complaint(proto)


def test_unknown_operators_and_future_opsets_are_left_alone() -> None:
    proto = build(
        [node("Brew", [], ["h"], domain="tea.shop", strength="x"), node("Warp", ["h", "x", ""], ["y"])]
    )
    assert [n.op_type for n in load(proto).nodes] == ["Brew", "Warp"]
    proto = build([node("Relu", ["x"], ["y"])])
    proto.opset_import[0].version = 999
    assert describe(load(proto)).nodes[0].flops == 4


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_both_names_of_the_standard_domain_are_checked(domain: str) -> None:
    proto = build([node("Relu", [], ["y"], domain=domain)])
    assert "has 0 inputs" in complaint(proto)


def test_sparse_weights_are_refused() -> None:
    sparse = helper.make_sparse_tensor(
        models.tensor("v", np.ones(1, "f4")), models.tensor("i", np.array([3])), [4]
    )
    proto = build([node("Add", ["x", "w"], ["y"])])
    proto.graph.sparse_initializer.append(sparse)
    assert complaint(proto) == "'f.onnx' holds sparse weights, which are not supported; save them as dense."
    proto = build([node("Constant", [], ["w"], sparse_value=sparse), node("Add", ["x", "w"], ["y"])])
    assert "attribute 'sparse_value' of an unnamed Constant node is sparse" in complaint(proto)


def test_maps_are_refused_with_the_way_out() -> None:
    kind = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    output = helper.make_value_info("probabilities", helper.make_sequence_type_proto(kind))
    zipped = node("ZipMap", ["x"], ["probabilities"], domain="ai.onnx.ml", classlabels_int64s=[0, 1])
    message = complaint(build([zipped], outputs=[output]))
    assert "'probabilities' is a map or opaque value" in message
    assert "zipmap=False" in message


def test_an_attribute_without_a_type_is_refused() -> None:
    proto = build([node("Relu", ["x"], ["y"])])
    proto.graph.node[0].attribute.add(name="z", i=4)
    assert "attribute 'z' of an unnamed Relu node has no type" in complaint(proto)


def nested(depth: int) -> onnx.ModelProto:
    body = branch("Identity", "x", "o")
    for _ in range(depth):
        body = helper.make_graph(
            [conditional(body, branch("Identity", "x", "e"), "o")], "b", [], [floats("o")]
        )
    return build(body.node, inputs=[X, C], outputs=["o"])


def test_deep_nesting_opens_up_to_the_limit() -> None:
    graph = load(nested(limits.MAX_DEPTH).SerializeToString())
    assert len(graph.nodes) == 2 * limits.MAX_DEPTH + 1
    assert graph.clone().fingerprint() == graph.fingerprint()
    assert complaint(nested(limits.MAX_DEPTH + 1)) == "'f.onnx' nests If, Loop or Scan more than 30 deep."


def test_a_file_nested_thousands_deep_is_not_an_onnx_model() -> None:
    def field(number: int, content: bytes) -> bytes:
        return varint(number << 3 | 2) + varint(len(content)) + content

    def varint(value: int) -> bytes:
        return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)

    body = field(2, b"b")
    for _ in range(3000):
        attribute = field(1, b"then_branch") + field(6, body) + varint(20 << 3) + b"\x05"
        body = field(1, field(4, b"If") + field(5, attribute)) + field(2, b"b")
    assert "is not an ONNX model" in complaint(b"\x08\x08" + field(7, body))


def test_more_nodes_or_operands_than_anybody_explores_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_NODES", 100)
    assert len(load(models.chain(100)).nodes) == 100
    assert complaint(models.chain(101)) == "'f.onnx' has more than 100 nodes, too many to explore."
    monkeypatch.setattr(limits, "MAX_ITEMS", 150)
    assert complaint(models.chain(100)) == "'f.onnx' has more than 150 operands, too many to explore."


@pytest.mark.parametrize(
    ("proto", "nodes", "outputs"),
    [
        (build([], outputs=["x"]), 0, ["x"]),
        (build([], inputs=[], outputs=[]), 0, []),
        (build([], inputs=[], outputs=["w"], initializers=[models.tensor("w", np.ones(4, "f4"))]), 0, ["w"]),
        (build([node("Relu", ["x"], ["y"])], outputs=["y", "y"]), 1, ["y", "y"]),
        (build([node("Relu", ["x"], ["y"])], outputs=[]), 1, []),
    ],
    ids=["output is an input", "nothing at all", "output is a weight", "same output twice", "no output"],
)
def test_degenerate_graphs_open(proto: onnx.ModelProto, nodes: int, outputs: list[str]) -> None:
    graph = load(proto)
    summary = describe(graph)
    assert len(summary.nodes) == nodes
    assert [tensor.name for tensor in summary.outputs] == outputs
    assert graph.clone().fingerprint() == graph.fingerprint()


def test_malformed_constants_are_ordinary_nodes() -> None:
    for attributes in ({}, {"value_float": 1.0, "value_int": 3}, {"foo": 2.0}):
        proto = build([node("Constant", [], ["k"], **attributes), node("Add", ["x", "k"], ["y"])])
        graph = load(proto)
        assert len(describe(graph).nodes) == 2
        assert graph.clone().fingerprint() == graph.fingerprint()


def test_enormous_names_open_and_stay_out_of_messages() -> None:
    name = "n" * 3_000_000
    proto = build([node("Relu", ["x"], [name], name=name)], outputs=[name])
    assert describe(load(proto)).nodes[0].name == name
    proto = build([node("Relu", [name], ["y"], name=name)])
    assert len(complaint(proto)) < 600


@pytest.mark.parametrize(
    "kind", [onnx.TypeProto(), helper.make_tensor_type_proto(TensorProto.UNDEFINED, [4])]
)
def test_an_input_without_a_type_is_refused(kind: onnx.TypeProto) -> None:
    proto = build([node("Relu", ["x"], ["y"])], inputs=[helper.make_value_info("x", kind)])
    assert complaint(proto) == "'f.onnx': input 'x' has no type; export the model again."


@pytest.mark.parametrize("field", ["producer_name", "domain", "doc_string"])
def test_text_that_is_not_utf8_is_refused_wherever_it_stands(field: str) -> None:
    proto = build([node("Relu", ["x"], ["y"])])
    setattr(proto, field, "QQQQ")
    assert "is not UTF-8 text" in complaint(proto.SerializeToString().replace(b"QQQQ", b"\xff\xfe\xfd\xfc"))


def test_an_operator_set_with_an_unreadable_domain_is_refused() -> None:
    proto = build([node("Relu", ["x"], ["y"])])
    proto.opset_import.add(domain="QQQQ", version=1)
    assert "is not UTF-8 text" in complaint(proto.SerializeToString().replace(b"QQQQ", b"\xff\xfe\xfd\xfc"))
