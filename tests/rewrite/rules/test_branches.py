"""A17: an If with a constant condition."""

import numpy as np
import onnx
import pytest

from explorer.graph import load
from tests.rewrite.harness import apply_all, apply_only, candidates, graph_of, ops, reasons

RULE = "inline-constant-if"
TEXT = """(float[2,3] x, bool c) => (float[2,3] y) {
    h = Exp(x)
    y = If(CONDITION) <
        then_branch = t () => (float[2,3] a) { k = Mul(h, u) a = Relu(k) },
        else_branch = e () => (float[2,3] b) { k = Add(h, v) l = Sub(k, u) b = Neg(l) }
    >
}"""
U, V = np.full((2, 3), 2, "f4"), np.full((5, 2, 3), 3, "f4")[0]


def with_condition(value):
    return graph_of(TEXT.replace("CONDITION", "flag"), u=U, v=V, flag=np.array(value))


@pytest.mark.parametrize(
    ("value", "left", "weights"),
    [
        (True, {"Exp": 1, "Mul": 1, "Relu": 1}, ["u"]),
        (False, {"Exp": 1, "Add": 1, "Sub": 1, "Neg": 1}, ["u", "v"]),
    ],
)
def test_taken_branch_stays_and_the_other_goes_with_its_weights(value, left, weights):
    result = apply_only(with_condition(value), RULE)
    assert ops(result) == left
    assert sorted(v.name for v in result.initializers()) == weights
    assert [v.name for v in result.outputs] == ["y"]


def test_condition_from_a_constant_node():
    graph = load(
        onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
        main (float[2] x) => (float[2] y) {
            flag = Constant<value = bool {1}>()
            y = If(flag) <
                then_branch = t () => (float[2] a) { a = Relu(x) },
                else_branch = e () => (float[2] b) { b = Neg(x) }
            >
        }"""),
        name="test",
    )
    assert ops(apply_only(graph, RULE)) == {"Relu": 1}


def test_condition_that_can_change_is_refused():
    graph = graph_of(TEXT.replace("CONDITION", "c"), u=U, v=V)
    assert reasons(graph, RULE) == ["condition 'c' is a graph input, not a constant"]
    overridable = graph_of(TEXT.replace("CONDITION", "c"), u=U, v=V, c=np.array(True))
    reason = "condition 'c' is a graph input with a default that callers may override, not a constant"
    assert reasons(overridable, RULE) == [reason]


def test_same_names_in_two_ifs_do_not_clash():
    branch = "then_branch = t () => (float[2] a) { k = Exp(h) a = Relu(k) }"
    other = "else_branch = e () => (float[2] b) { k = Abs(h) b = Neg(k) }"
    graph = graph_of(
        f"""(float[2] x) => (float[2] y, float[2] z) {{
            h = Sin(x)
            y = If(flag) <{branch}, {other}>
            z = If(no) <{branch}, {other}>
        }}""",
        flag=np.array(True),
        no=np.array(False),
    )
    result = apply_all(graph, RULE)
    assert ops(result) == {"Sin": 1, "Exp": 1, "Relu": 1, "Abs": 1, "Neg": 1}


def test_name_of_another_body_does_not_clash():
    """The inlined value gets a fresh name, for a value of an outer graph may not be hidden by one in a body."""
    graph = graph_of(
        """(float[2] x, bool c) => (float[2] y, float[2] z) {
            y = If(flag) <then_branch = t () => (float[2] a) { k = Exp(x) a = Relu(k) }, else_branch = e () => (float[2] b) { b = Neg(x) }>
            z = If(c) <then_branch = t2 () => (float[2] a) { k = Sin(x) a = Abs(k) }, else_branch = e2 () => (float[2] b) { b = Neg(x) }>
        }""",
        flag=np.array(True),
    )
    result = apply_only(graph, RULE)
    names = [v.name for node in result.nodes for v in node.outputs]
    assert len(names) - len(set(names)) == 0


def test_weights_that_live_in_the_branch_move_along():
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
    main (float[2] x) => (float[2] y) <bool flag = {1}> {
        y = If(flag) <
            then_branch = t () => (float[2] a) <float[2] w = {5, 7}> { a = Add(x, w) },
            else_branch = e () => (float[2] b) <float[3] z = {1, 2, 3}> { s = Add(z, z) b = Neg(x) }
        >
    }""")
    result = apply_only(load(model, name="test"), RULE)
    (weight,) = result.model.graph.initializers.values()
    np.testing.assert_array_equal(weight.const_value.numpy(), [5, 7])


def test_nested_ifs_are_inlined_one_after_the_other():
    graph = graph_of(
        """(float[2] x) => (float[2] y) {
            y = If(flag) <
                then_branch = t () => (float[2] a) {
                    k = Exp(x)
                    a = If(no) <
                        then_branch = tt () => (float[2] p) { p = Relu(k) },
                        else_branch = te () => (float[2] q) { q = Neg(k) }
                    >
                },
                else_branch = e () => (float[2] b) { b = Abs(x) }
            >
        }""",
        flag=np.array(True),
        no=np.array(False),
    )
    assert len(candidates(graph, RULE)) == 2
    assert ops(apply_all(graph, RULE)) == {"Exp": 1, "Neg": 1}


def test_two_results_from_one_value_keep_both_names():
    graph = graph_of(
        """(float[2] x) => (float[2] y, float[2] z) {
            y, z = If(flag) <
                then_branch = t () => (float[2] a, float[2] b) { a = Exp(x) b = Identity(a) },
                else_branch = e () => (float[2] p, float[2] q) { p = Neg(x) q = Abs(x) }
            >
        }""",
        flag=np.array(True),
    )
    result = apply_only(graph, RULE)
    assert [v.name for v in result.outputs] == ["y", "z"]


def test_if_inside_a_loop_body():
    graph = graph_of(
        """(int64 n, bool c, float[2] x) => (float[2] y) {
            y = Loop(n, c, x) <body = b (int64 i, bool ci, float[2] v) => (bool co, float[2] o) {
                co = Identity(ci)
                o = If(flag) <
                    then_branch = t () => (float[2] p) { p = Sin(v) },
                    else_branch = e () => (float[2] q) { q = Neg(v) }
                >
            }>
        }""",
        flag=np.array(True),
    )
    assert ops(apply_only(graph, RULE)) == {"Loop": 1, "Identity": 1, "Sin": 1}
