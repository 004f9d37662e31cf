"""New nodes and constants: fresh names, types, attributes, homes."""

import numpy as np
import onnx_ir as ir
import pytest

from explorer.rewrite.builder import MICROSOFT, Builder, attributes_of
from tests.rewrite.harness import graph_of

TEXT = """(bool c, float[2,3] x) => (float[2,3] y, float[2,3] z) {
    relu = LeakyRelu<alpha=0.5>(x)
    y = Add(relu, w)
    z = If(c) <
        then_branch = t () => (float[2,3] inner) { relu_1 = Neg(x) inner = Abs(relu_1) },
        else_branch = e () => (float[2,3] other) { other = Exp(x) }
    >
}"""


@pytest.fixture
def build():
    draft = graph_of(TEXT, w=np.ones((2, 3), "f4")).clone()
    return Builder(draft, draft.model.graph)


def test_fresh_names_avoid_values_weights_inputs_nodes_and_bodies(build):
    assert build.fresh("relu") == "relu_2"
    assert build.fresh("relu") == "relu_3"
    assert build.fresh("w") == "w_1"
    assert build.fresh("x") == "x_1"
    assert build.fresh("inner") == "inner_1"
    assert build.fresh("new") == "new"
    assert build.fresh("") == "value"


def test_fresh_names_avoid_inputs_of_bodies():
    draft = graph_of("""(int64 n, bool c, float[2] x) => (float[2] y) {
        y = Loop(n, c, x) <body = b (int64 i, bool ci, float[2] a) => (bool co, float[2] o) {
            co = Identity(ci)
            o = Neg(a)
        }>
    }""").clone()
    build = Builder(draft, draft.model.graph)
    assert [build.fresh(name) for name in ("a", "i", "ci", "o")] == ["a_1", "i_1", "ci_1", "o_1"]


def test_op_copies_type_and_shape_of_a_value(build):
    like = build.draft.model.graph.outputs[0]
    value = build.op("Relu", [like], like=like)
    assert value.dtype == ir.DataType.FLOAT
    assert list(value.shape) == [2, 3]
    assert value.shape is not like.shape
    assert build.nodes == [value.producer()]
    assert value.producer().graph is None


def test_op_takes_type_and_shape_by_themselves(build):
    source = build.draft.model.graph.inputs[1]
    value = build.op("Cast", [source], {"to": 11}, like=source, dtype=ir.DataType.DOUBLE, shape=["N", 3])
    assert value.dtype == ir.DataType.DOUBLE
    assert [str(d) for d in value.shape] == ["N", "3"]
    unknown = build.op("Relu", [source])
    assert unknown.type is None
    assert unknown.shape is None


def test_attributes_are_plain_values_arrays_or_left_out(build):
    source = build.draft.model.graph.inputs[1]
    value = build.op(
        "Thing", [source, None], {"a": (1, 2), "b": 0.5, "c": "text", "d": None, "e": np.ones(2, "f4")}
    )
    found = value.producer().attributes
    assert {name: attribute.type.name for name, attribute in found.items()} == {
        "a": "INTS",
        "b": "FLOAT",
        "c": "STRING",
        "e": "TENSOR",
    }
    assert value.producer().inputs == (source, None)


def test_several_outputs_have_names_of_their_own(build):
    outputs = build.ops("Split", [build.draft.model.graph.inputs[1]], {"axis": 1}, outputs=3)
    assert len({value.name for value in outputs}) == 3
    assert [value.index() for value in outputs] == [0, 1, 2]


def test_contrib_operators_import_their_domain_once(build):
    source = build.draft.model.graph.inputs[1]
    assert MICROSOFT not in build.draft.model.opset_imports
    build.op("QuickGelu", [source], domain=MICROSOFT)
    assert build.draft.model.opset_imports[MICROSOFT] == 1
    build.draft.model.opset_imports[MICROSOFT] = 7
    build.op("QuickGelu", [source], domain=MICROSOFT)
    assert build.draft.model.opset_imports[MICROSOFT] == 7


def test_constants_are_new_weights_of_the_home_graph(build):
    array = np.arange(6, dtype="f4").reshape(2, 3).T
    first, second = build.constant(array, "w"), build.constant(array, "w")
    assert [first.name, second.name] == ["w_1", "w_2"]
    assert build.home.initializers["w_1"] is first
    np.testing.assert_array_equal(first.const_value.numpy(), array)
    assert (first.dtype, list(first.shape)) == (ir.DataType.FLOAT, [3, 2])
    np.testing.assert_array_equal(build.home.initializers["w"].const_value.numpy(), np.ones((2, 3)))


@pytest.mark.parametrize("array", [np.float16(2), np.array(True), np.zeros((0, 2), "i8"), np.array(3, "i4")])
def test_constants_of_any_rank_and_type(build, array):
    value = build.constant(np.asarray(array))
    assert value.const_value.numpy().shape == np.shape(array)
    assert value.const_value.numpy().dtype == np.asarray(array).dtype


def test_integers_are_a_vector_of_int64(build):
    value = build.ints((3, -1), "shape")
    assert value.dtype == ir.DataType.INT64
    assert value.const_value.numpy().tolist() == [3, -1]
    assert build.ints([]).const_value.numpy().shape == (0,)


def test_constants_of_a_body_live_there():
    draft = graph_of(TEXT, w=np.ones((2, 3), "f4")).clone()
    holder = next(node for node in draft.nodes if node.op_type == "If")
    body = holder.attributes["then_branch"].as_graph()
    value = Builder(draft, body).constant(np.ones(2, "f4"), "k")
    assert value.name in body.initializers
    assert value.name not in draft.model.graph.initializers


def test_attributes_of_a_node_without_some_and_with_others(build):
    node = build.draft.nodes[0]
    assert attributes_of(node) == {"alpha": 0.5}
    assert attributes_of(node, "alpha", beta=1) == {"beta": 1}
    assert attributes_of(node, alpha=2.0) == {"alpha": 2.0}
