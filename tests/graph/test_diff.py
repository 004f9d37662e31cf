"""What differs between two versions of one model."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from explorer.graph import Graph, GraphDiff, changed_contents, contents, diff, load
from tests import models

TEXT = """(float[1,2] x) => (float[1,2] y, float[1,2] z) {
    h = MatMul(x, w) a = LeakyRelu<alpha=0.5>(h) y = Add(a, k) z = Neg(h)
}"""
WEIGHTS = {"w": np.ones((2, 2), "f4"), "k": np.arange(2, dtype="f4")}


@pytest.fixture
def graph() -> Graph:
    return load(models.model(TEXT, **WEIGHTS))


def test_a_clone_does_not_differ(graph: Graph) -> None:
    found = diff(graph, graph.clone())
    assert found == GraphDiff((), (), (), 0, 0)
    assert found.is_empty


def test_two_openings_of_one_file_do_not_differ() -> None:
    for case in models.cases():
        path = models.case_path(case["name"])
        assert diff(load(path), load(path)).is_empty


def test_an_attribute_and_an_operator(graph: Graph) -> None:
    other = graph.clone()
    other.nodes[1].attributes["alpha"] = ir.AttrFloat32("alpha", 0.25)
    other.nodes[3].op_type = "Abs"
    found = diff(graph, other.renumbered())
    assert (found.added, found.removed, found.changed) == ((), (), ("n1", "n3"))
    assert not found.is_empty


def test_a_node_more_and_a_node_less(graph: Graph) -> None:
    other = graph.clone()
    relu = ir.node("Relu", inputs=[other.nodes[0].outputs[0]])
    other.model.graph.insert_before(other.nodes[1], relu)
    other.nodes[1].replace_input_with(0, relu.outputs[0])
    found = diff(graph, other.renumbered())
    assert (found.added, found.removed, found.changed) == (("n4",), (), ("n1",))
    back = diff(other, graph)
    assert (back.added, back.removed, back.changed) == ((), ("n4",), ("n1",))
    assert changed_contents(contents(graph), contents(other)) == (("n4",), (), ("n1",))


def test_swapped_operands_are_a_change(graph: Graph) -> None:
    other = graph.clone()
    add = other.nodes[2]
    first, second = add.inputs
    add.replace_input_with(0, second)
    add.replace_input_with(1, first)
    assert diff(graph, other).changed == ("n2",)


def test_names_are_no_change(graph: Graph) -> None:
    other = graph.clone()
    for node in other.nodes:
        node.name = f"other {node.op_type}"
    other.nodes[0].outputs[0].name = "hidden"
    assert diff(graph, other).is_empty


def test_weights_come_and_go_by_content(graph: Graph) -> None:
    other = graph.clone()
    values = other.model.graph.initializers
    values["w"].const_value = ir.Tensor(np.zeros((2, 2), "f4"))
    found = diff(graph, other)
    assert (found.changed, found.added_bytes, found.freed_bytes) == (("n0",), 16, 16)
    values["w"].const_value = ir.Tensor(np.ones((2, 2), "f4"))
    assert diff(graph, other).is_empty


def test_a_constant_node_counts_by_its_content() -> None:
    text = "(float[2] x) => (float[2] y) {{ k = Constant<value_floats=[{}]>() y = Add(x, k) }}"
    one, two = (load(models.model(text.format(values))) for values in ("1.0, 2.0", "1.0, 3.0"))
    found = diff(one, two)
    assert (found.changed, found.added_bytes, found.freed_bytes) == (("n0", "n1"), 8, 8)


def test_outputs_that_are_computed_elsewhere_are_named(graph: Graph) -> None:
    swapped = load(
        models.model(TEXT.replace("float[1,2] y, float[1,2] z)", "float[1,2] z, float[1,2] y)"), **WEIGHTS)
    )
    found = diff(graph, swapped)
    assert found.outputs == ("z", "y")
    assert (found.added, found.removed, found.changed) == ((), (), ())
    assert not found.is_empty
    fewer = load(models.model(TEXT.replace(", float[1,2] z)", ")"), **WEIGHTS))
    assert diff(graph, fewer).outputs == ("z",)
    assert diff(fewer, graph).outputs == ("z",)


def test_a_rewired_body_is_a_change_of_its_holder() -> None:
    graph = load(models.case_path("loop_body_captures_and_passthrough"))
    other = graph.clone()
    loop = next(node for node in other.nodes if node.op_type == "Loop")
    body = loop.attributes["body"].as_graph()
    same_type = [i for i, v in enumerate(body.outputs) if v.dtype == ir.DataType.FLOAT]
    producers = [v for node in body for v in node.outputs if v.dtype == ir.DataType.FLOAT]
    different = next(v for v in producers if v is not body.outputs[same_type[0]])
    body.outputs[same_type[0]] = different
    ids = {node.op_type: f"n{i}" for i, node in enumerate(graph.nodes)}
    assert diff(graph, other).changed == (ids["Loop"],)


def test_a_change_inside_a_body_is_a_change_of_that_node() -> None:
    graph = load(models.case_path("if_branches_capture_outer"))
    other = graph.clone()
    inner = next(i for i, node in enumerate(graph.nodes) if node.graph is not graph.model.graph)
    other.nodes[inner].op_type = "Sub" if graph.nodes[inner].op_type != "Sub" else "Add"
    assert diff(graph, other).changed == (f"n{inner}",)
