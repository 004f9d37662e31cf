"""Model-local functions: inlined with attributes and nesting, refused when they explode or call themselves."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from explorer.errors import ModelError
from explorer.graph import functions as inlining
from explorer.graph import load
from tests import models

X = np.array([-2.0, -1.0, 1.0, 2.0], "f4")
node = helper.make_node


def function(
    name: str, nodes, inputs=("a",), outputs=("b",), opset: int = 17, **options
) -> onnx.FunctionProto:
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    return helper.make_function("local", name, list(inputs), list(outputs), list(nodes), imports, **options)


def call(name: str, *inputs: str, result: str = "y", **attributes) -> onnx.NodeProto:
    return node(name, list(inputs or ("x",)), [result], domain="local", **attributes)


def build(functions, nodes) -> onnx.ModelProto:
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy"]
    graph = helper.make_graph(list(nodes), "main", value[:1], value[1:])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, functions=list(functions), opset_imports=imports, ir_version=9)


def complaint(proto: onnx.ModelProto) -> str:
    with pytest.raises(ModelError) as caught:
        load(proto, name="f.onnx")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def opened(proto: onnx.ModelProto) -> tuple[list[str], np.ndarray]:
    graph = load(proto)
    assert not graph.model.functions
    (result,) = models.run(graph, {"x": X})
    return [n.op_type for n in graph.nodes], result


def test_a_function_becomes_plain_nodes() -> None:
    proto = build([function("Twice", [node("Add", ["a", "a"], ["b"])])], [call("Twice")])
    assert load(proto).notices == ("1 model-local function(s) were inlined.",)
    kinds, result = opened(proto)
    assert kinds == ["Add"]
    np.testing.assert_array_equal(result, 2 * X)


def test_attributes_reach_the_nodes_that_refer_to_them_also_in_bodies() -> None:
    leaky = node("LeakyRelu", ["a"], ["b"])
    reference = leaky.attribute.add(name="alpha", type=onnx.AttributeProto.FLOAT)
    reference.ref_attr_name = "slope"
    proto = build([function("Slope", [leaky], attributes=["slope"])], [call("Slope", slope=0.5)])
    np.testing.assert_array_equal(opened(proto)[1], np.where(X < 0, X / 2, X))

    body_value = helper.make_tensor_value_info("b2", TensorProto.FLOAT, None)
    inner = node("LeakyRelu", ["a"], ["b2"])
    inner.attribute.append(reference)
    branches = [
        helper.make_graph([inner], "t", [], [body_value]),
        helper.make_graph([node("Neg", ["a"], ["b2"])], "e", [], [body_value]),
    ]
    yes = node("Constant", [], ["yes"], value=models.tensor("", np.array(True)))
    choose = node("If", ["yes"], ["b"], then_branch=branches[0], else_branch=branches[1])
    proto = build([function("Maybe", [yes, choose], attributes=["slope"])], [call("Maybe", slope=0.25)])
    np.testing.assert_array_equal(opened(proto)[1], np.where(X < 0, X / 4, X))


def test_default_attributes_apply_where_the_call_gives_none() -> None:
    leaky = node("LeakyRelu", ["a"], ["b"])
    leaky.attribute.add(name="alpha", type=onnx.AttributeProto.FLOAT).ref_attr_name = "slope"
    slope = helper.make_attribute("slope", 0.5)
    proto = build([function("Slope", [leaky], attribute_protos=[slope])], [call("Slope")])
    np.testing.assert_array_equal(opened(proto)[1], np.where(X < 0, X / 2, X))


def test_functions_that_call_functions_and_repeated_calls() -> None:
    twice = function("Twice", [node("Add", ["a", "a"], ["b"])])
    four = function("Four", [call("Twice", "a", result="t"), call("Twice", "t", result="b")])
    proto = build([four, twice], [call("Four", result="h"), call("Four", "h")])
    assert load(proto).notices == ("2 model-local function(s) were inlined.",)
    kinds, result = opened(proto)
    assert kinds == ["Add"] * 4
    np.testing.assert_array_equal(result, 16 * X)


def test_calls_inside_bodies_are_inlined() -> None:
    value = helper.make_tensor_value_info("t", TensorProto.FLOAT, [4])
    yes = node("Constant", [], ["yes"], value=models.tensor("", np.array(True)))
    choose = node(
        "If",
        ["yes"],
        ["y"],
        then_branch=helper.make_graph([call("Twice", "x", result="t")], "t", [], [value]),
        else_branch=helper.make_graph([node("Neg", ["x"], ["t"])], "e", [], [value]),
    )
    proto = build([function("Twice", [node("Add", ["a", "a"], ["b"])])], [yes, choose])
    kinds, result = opened(proto)
    assert sorted(kinds) == ["Add", "Constant", "If", "Neg"]
    np.testing.assert_array_equal(result, 2 * X)


def test_unused_functions_disappear_without_a_word() -> None:
    proto = build([function("Twice", [node("Add", ["a", "a"], ["b"])])], [node("Relu", ["x"], ["y"])])
    graph = load(proto)
    assert graph.notices == ()
    assert not graph.model.functions


def test_a_function_of_another_opset_is_converted() -> None:
    proto = build([function("F", [node("Relu", ["a"], ["b"])], opset=13)], [call("F")])
    np.testing.assert_array_equal(opened(proto)[1], np.maximum(X, 0))


def test_an_optional_input_may_be_left_out() -> None:
    clip = node("Clip", ["a", "low"], ["b"])
    proto = build([function("F", [clip], inputs=["a", "low"])], [call("F")])
    np.testing.assert_array_equal(opened(proto)[1], X)


@pytest.mark.parametrize(
    "functions",
    [
        [function("F", [call("F", "a", result="b")])],
        [function("F", [call("G", "a", result="b")]), function("G", [call("F", "a", result="b")])],
    ],
    ids=["itself", "each other"],
)
def test_functions_that_call_themselves_are_refused(functions) -> None:
    message = complaint(build(functions, [call("F")]))
    assert message.startswith("'f.onnx': function '")
    assert message.endswith("' calls itself; export the model again.")


def test_functions_that_explode_are_refused_at_once() -> None:
    functions = [function("F0", [node("Relu", ["a"], ["b"])])]
    for level in range(1, 60):
        steps = [
            call(f"F{level - 1}", "a" if i == 0 else f"t{i}", result="b" if i == 9 else f"t{i + 1}")
            for i in range(10)
        ]
        functions.append(function(f"F{level}", steps))
    message = complaint(build(functions, [call("F59")]))
    assert message == (
        "'f.onnx' has more than 200,000 nodes once its functions are written out, too many to explore."
    )
    assert inlining.inline_functions(build(functions, [call("F2")]), "f")[1] == 3


def test_thousands_of_calls_are_quick_enough_to_test() -> None:
    steps = [
        call("Twice", "x" if i == 0 else f"t{i}", result="y" if i == 1999 else f"t{i + 1}")
        for i in range(2000)
    ]
    proto = build([function("Twice", [node("Add", ["a", "a"], ["b"])])], steps)
    graph = load(proto)
    assert len(graph.nodes) == 2000
    assert len({output.name for n in graph.nodes for output in n.outputs}) == 2000


def test_wrong_calls_are_refused() -> None:
    relu = function("F", [node("Relu", ["a"], ["b"])])
    assert "an unnamed local::F node has more inputs or outputs than the function it calls" in (
        complaint(build([relu], [call("F", "x", "x")]))
    )
    missing = function("F", [node("Add", ["a", "c"], ["b"])], inputs=["a", "c"])
    assert "lacks its input 'B'" in complaint(build([missing], [call("F")]))
    unmade = function("F", [node("Relu", ["a"], ["t"])])
    assert "which none of its nodes computes" in complaint(build([unmade], [call("F")]))


def test_a_function_cannot_smuggle_external_data() -> None:
    tensor = onnx.TensorProto(name="t", dims=[4], data_type=TensorProto.FLOAT)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")
    body = [node("Constant", [], ["c"], value=tensor), node("Add", ["a", "c"], ["b"])]
    assert "keeps tensor 't' in a file of its own" in complaint(build([function("F", body)], [call("F")]))


def test_overloads_are_told_apart() -> None:
    double = function("F", [node("Add", ["a", "a"], ["b"])], overload="double")
    negate = function("F", [node("Neg", ["a"], ["b"])], overload="negate")
    steps = [call("F", result="h"), call("F", "h")]
    steps[0].overload, steps[1].overload = "negate", "double"
    proto = build([double, negate], steps)
    proto.ir_version = 10
    kinds, result = opened(proto)
    assert kinds == ["Neg", "Add"]
    np.testing.assert_array_equal(result, -2 * X)


def test_names_inside_a_function_do_not_clash_with_those_outside() -> None:
    inner = function(
        "F", [node("Neg", ["x"], ["t"]), node("Add", ["t", "x"], ["y"])], inputs=["x"], outputs=["y"]
    )
    steps = [node("Abs", ["x"], ["t"]), call("F", "t", result="h"), node("Add", ["h", "t"], ["y"])]
    kinds, result = opened(build([inner], steps))
    assert kinds == ["Abs", "Neg", "Add", "Add"]
    np.testing.assert_array_equal(result, np.abs(X))
