"""Shape inference and the checker work without the weights, without external data, and without hanging."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from explorer.graph import Graph, describe, load, save
from explorer.graph.shapes import check, infer_and_check, infer_shapes, light_proto
from tests import models


def shapes(graph: Graph) -> dict[str, str]:
    return {t.name: t.shape_text for node in describe(graph).nodes for t in node.outputs}


def test_shapes_and_types_are_filled_in() -> None:
    text = "(float[1,3,8,8] x) => (float[n,m] y) { c = Conv(x, w) p = GlobalAveragePool(c) y = Flatten(p) }"
    graph = load(models.model(text, w=np.zeros((5, 3, 3, 3), "f4")))
    assert shapes(graph) == {"c": "1x5x6x6", "p": "1x5x1x1", "y": "1x5"}
    assert {t.dtype for node in describe(graph).nodes for t in node.outputs} == {"float"}
    assert graph.notices == ()


def test_symbols_are_carried_through() -> None:
    text = "(float[batch,3,h,w] x) => (float[a,b,c,d] y) { r = Relu(x) y = Transpose<perm=[0,2,3,1]>(r) }"
    graph = load(models.model(text))
    assert shapes(graph)["r"] == "batchx3xhxw"


def test_a_shape_that_contradicts_is_a_notice() -> None:
    graph = load(models.model("(float[3,4] x) => (float[5,6] y) { y = Relu(x) }"))
    assert graph.notices[0].startswith("Some shapes are unknown: strict shape inference failed (")


def test_unknown_operators_leave_shapes_unknown_and_say_so() -> None:
    graph = load(models.case_path("unknown_custom_op"))
    assert graph.notices == (
        "1 tensor has no known shape, beginning after node 'fancy' (vendor.ops::FancyGate).",
    )
    text = "(float[4] x) => (float[4] y) { a, b = vendor.Split(x) c = Relu(a) y = Relu(x) }"
    graph = load(models.model(text, domains={"vendor": 1}))
    assert graph.notices == ("3 tensors have no known shape, beginning after an unnamed vendor::Split node.",)
    assert shapes(graph) == {"a": "unknown", "b": "unknown", "c": "unknown", "y": "4"}


def test_bodies_get_their_own_shapes_even_if_names_repeat() -> None:
    def branch(op: str, dims: list[int] | None, **attributes: object) -> onnx.GraphProto:
        nodes = [
            helper.make_node(op, ["x"], ["inner"], **attributes),
            helper.make_node("Neg", ["inner"], ["o"]),
        ]
        return helper.make_graph(nodes, op, [], [helper.make_tensor_value_info("o", TensorProto.FLOAT, dims)])

    proto = models.model("(float[4,6] x, bool c) => (float[a,b] y) { y = Relu(x) }")
    proto.graph.node[0].CopyFrom(
        helper.make_node(
            "If",
            ["c"],
            ["y"],
            then_branch=branch("Relu", None),
            else_branch=branch("ReduceSum", None, keepdims=1),
        )
    )
    nodes = describe(load(proto)).nodes
    assert [(n.op_type, n.outputs[0].shape_text) for n in nodes if n.parent] == [
        ("ReduceSum", "1x1"),
        ("Neg", "1x1"),
        ("Relu", "4x6"),
        ("Neg", "4x6"),
    ]


def test_large_weights_are_left_out_of_the_light_model() -> None:
    large, small = np.zeros((600, 600), "f4"), np.array([600, 1])
    proto = models.model(
        "(float[1,600] x) => (float[n,m] y) { h = MatMul(x, w) y = Reshape(h, s) }", w=large, s=small
    )
    graph = load(proto)
    light = light_proto(graph.model)
    assert light.ByteSize() < 1000
    assert [v.name for v in light.graph.input] == ["x", "w"]
    assert [t.name for t in light.graph.initializer] == ["s"]
    assert shapes(graph)["y"] == "600x1"
    assert "w" in graph.model.graph.initializers  # the model itself is untouched
    assert check(graph.model) is None


def test_large_weights_of_bodies_are_left_out_too() -> None:
    weight = models.tensor("w", np.zeros((600, 600), "f4"))
    value = helper.make_tensor_value_info("o", TensorProto.FLOAT, [1, 600])
    then = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["o"])], "t", [], [value], [weight])
    other = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["o"])], "e", [], [value], [weight])
    proto = models.model("(float[1,600] x, bool c) => (float[1,600] y) { y = Relu(x) }")
    proto.graph.node[0].CopyFrom(helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other))
    graph = load(proto)
    light = light_proto(graph.model)
    assert light.ByteSize() < 2000
    assert len(light.graph.input) == 4
    assert len({v.name for v in light.graph.input}) == 4
    assert check(graph.model) is None
    assert [len(body.initializers) for body in graph.model.graphs()] == [0, 1, 1]


def test_external_data_is_never_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proto = models.model(
        "(float[1,600] x) => (float[n,m] y) { h = MatMul(x, w) y = Reshape(h, s) }",
        w=np.zeros((600, 600), "f4"),
        s=np.array([600, 1]),
    )
    path = save(load(proto), tmp_path / "m.onnx", embed_limit_bytes=0)
    model = onnx.load(path, load_external_data=False)
    onnx.external_data_helper.convert_model_to_external_data(model, location="all.bin", size_threshold=0)
    onnx.save(
        onnx.load(path), tmp_path / "n.onnx", save_as_external_data=True, location="n.bin", size_threshold=0
    )
    monkeypatch.chdir("/")
    graph = load(tmp_path / "n.onnx")
    assert all(isinstance(v.const_value, ir.ExternalTensor) for v in graph.initializers())
    assert shapes(graph)["y"] == "600x1"
    assert graph.passes_checker
    assert check(graph.model) is None


def test_the_checker_answers_in_one_line() -> None:
    graph = load(models.model("(float[4] x) => (float[4] y) { y = Relu(x) }")).clone()
    assert check(graph.model) is None
    graph.nodes[0].attributes["what"] = ir.AttrInt64("what", 1)
    assert check(graph.model) == "Unrecognized attribute: what for operator Relu"
    assert infer_and_check(graph.model)[1] == "Unrecognized attribute: what for operator Relu"


def test_inference_can_be_repeated_after_a_change() -> None:
    graph = load(models.model("(float[2,3] x) => (float[n,m] y) { h = Relu(x) y = Abs(h) }")).clone()
    graph.nodes[0].op_type = "Transpose"
    graph.nodes[0].outputs[0].shape = None
    graph.outputs[0].shape = None
    assert infer_shapes(graph.model) is None
    assert shapes(graph.renumbered()) == {"h": "3x2", "y": "3x2"}


def test_shapes_that_double_do_not_fill_the_memory() -> None:
    steps = " ".join(f"s{i + 1} = Concat<axis=0>(s{i}, s{i})" for i in range(36))
    graph = load(models.model(f"(float[4] x) => (int64[n] s36) {{ s0 = Shape(x) {steps} }}"))
    assert shapes(graph)["s36"] == str(2**36)


def test_an_enormous_tensor_is_only_a_shape() -> None:
    graph = load(
        models.model(
            "(float[1] x) => (float[n] y) { c = ConstantOfShape(s) y = Add(c, x) }", s=np.array([2**50])
        )
    )
    assert shapes(graph) == {"c": str(2**50), "y": str(2**50)}
    assert describe(graph).nodes[0].bytes == 8 + 4 * 2**50


def test_a_reshape_to_a_million_dims_is_survived() -> None:
    graph = load(
        models.model("(float[1] x) => (float[n] y) { y = Reshape(x, s) }", s=np.ones(1_000_000, "i8"))
    )
    assert len(graph.nodes) == 1


def test_long_chains_do_not_reach_the_recursion_limit() -> None:
    graph = load(models.chain(5_000))
    assert shapes(graph)["v5000"] == "1x8"
    assert graph.clone().fingerprint() == graph.fingerprint()
