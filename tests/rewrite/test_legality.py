"""The pre-conditions that hold for every rule: G1 interior values, G4 opset, G5 types, G7 cycles, G8 effects."""

import numpy as np
import onnx_ir as ir
import pytest

from explorer.graph import load
from explorer.rewrite import Match, RuleSet, find_candidates
from explorer.rewrite.context import Context, array, is_const, tensor, uniform
from explorer.rewrite.legality import describe_node, obstacle, training
from explorer.rewrite.rule import FLOAT32, FLOATS, Refusal
from tests.models import case_path
from tests.rewrite.harness import candidates, graph_of, reasons
from tests.rewrite.planted import planted, reasons_of


def pair(first, second):
    """A rule that replaces two nodes in a row."""

    def matcher(node, context):
        before = node.inputs[0].producer() if node.inputs and node.inputs[0] is not None else None
        if node.op_type != second or before is None or before.op_type != first:
            return None
        return Match((before, node), tuple(node.outputs))

    return planted(matcher)


def of(op, **attributes):
    return planted(lambda n, c: Match((n,), tuple(n.outputs)) if n.op_type == op else None, **attributes)


def count(graph, rule):
    return len(find_candidates(graph, RuleSet([rule])).candidates)


# G1


def test_interior_value_without_other_readers_is_fine():
    assert count(graph_of("(float[2] x) => (float[2] y) { h = Exp(x) y = Neg(h) }"), pair("Exp", "Neg")) == 1


def test_second_reader_of_an_interior_value():
    graph = graph_of("(float[2] x) => (float[2] y, float[2] z) { h = Exp(x) y = Neg(h) z = Abs(h) }")
    assert reasons_of(graph, pair("Exp", "Neg")) == [
        "'h', inside the pattern, is also read by an unnamed Abs"
    ]


def test_interior_value_that_is_an_output():
    graph = graph_of("(float[2] x) => (float[2] h, float[2] y) { h = Exp(x) y = Neg(h) }")
    assert reasons_of(graph, pair("Exp", "Neg")) == ["'h', inside the pattern, is a graph output"]


@pytest.mark.parametrize("depth", [1, 2])
def test_interior_value_captured_by_a_body(depth):
    inner = (
        "then_branch = t () => (float[2] a) { a = Abs(h) }, else_branch = e () => (float[2] b) { b = Abs(x) }"
    )
    if depth == 2:
        inner = (
            f"then_branch = t2 () => (float[2] p) {{ p = If(c) <{inner}> }}, "
            "else_branch = e2 () => (float[2] q) { q = Abs(x) }"
        )
    graph = graph_of(
        f"(bool c, float[2] x) => (float[2] y, float[2] z) {{ h = Exp(x) y = Neg(h) z = If(c) <{inner}> }}"
    )
    assert reasons_of(graph, pair("Exp", "Neg")) == [
        "'h', inside the pattern, is also read by an unnamed Abs"
    ]


def test_conv_that_feeds_its_activation_and_something_else():
    graph = load(case_path("fused_intermediate_second_consumer"))
    assert candidates(graph, "fuse-conv-activation") == []
    assert len(reasons(graph, "fuse-conv-activation")) == 1


def test_replaced_output_may_be_read_anywhere():
    graph = graph_of("(float[2] x) => (float[2] h, float[2] y) { h = Exp(x) y = Neg(h) }")
    assert count(graph, of("Exp")) == 1


# G2


def test_default_that_callers_may_override_is_no_constant():
    (default,) = load(case_path("initializer_is_overridable_input")).overridable
    assert default.const_value is not None
    assert not is_const(default)
    assert tensor(default) is None
    assert uniform(default) is None
    with pytest.raises(Refusal, match="is not a constant"):
        array(default)


# G4


@pytest.mark.parametrize(("opset", "legal"), [(12, False), (13, True), (17, True)])
def test_opset_floor(opset, legal):
    graph = graph_of("(float[2] x) => (float[2] y) { y = Neg(x) }", opset=opset)
    rule = of("Neg", min_opset=13)
    if legal:
        assert count(graph, rule) == 1
    else:
        assert reasons_of(graph, rule) == ["the result needs opset 13, the model imports 12"]


# G5


@pytest.mark.parametrize(
    ("dtype", "legal"), [("float", True), ("double", True), ("float16", True), ("int32", False)]
)
def test_element_types(dtype, legal):
    graph = graph_of(f"({dtype}[2] x) => ({dtype}[2] y) {{ y = Neg(x) }}")
    rule = of("Neg", dtypes=FLOATS)
    if legal:
        assert count(graph, rule) == 1
    else:
        reason = "'y' has element type int32; the rule handles bfloat16, double, float, float16"
        assert reasons_of(graph, rule) == [reason]


def test_unknown_element_type():
    graph = graph_of(
        "(float[2] x) => (float[2] y) { h = my.ops.F(x) k = Neg(h) y = my.ops.G(k) }", domains={"my.ops": 1}
    )
    assert reasons_of(graph, of("Neg", dtypes=FLOAT32)) == [
        "'k' has element type unknown; the rule handles float"
    ]
    assert count(graph, of("Neg", dtypes=None)) == 1


# G6: what is not known is not assumed (see the rules), and empty tensors are left alone.


def test_empty_results_are_left_alone():
    graph = graph_of("(float[2,0] x) => (float[2,0] y) { y = Neg(x) }")
    assert reasons_of(graph, of("Neg")) == ["'y' is empty (shape [2, 0])"]


def test_a_dim_of_zero_is_empty_whatever_the_dynamic_dims_are():
    graph = graph_of("(float[N,0] x) => (float[N,0] y) { y = Neg(x) }")
    assert reasons_of(graph, of("Neg")) == ["'y' is empty (shape ['N', 0])"]


# G7


def siblings_rule(op="Neg"):
    """A rule that replaces all nodes of an operator together."""

    def matcher(node, context):
        nodes = tuple(n for n in context.graph.nodes if n.op_type == op)
        return Match(nodes, tuple(n.outputs[0] for n in nodes)) if node is nodes[0] else None

    return planted(matcher, anchors=(op,))


def test_independent_nodes_can_be_replaced_together():
    graph = graph_of(
        "(float[2] x) => (float[2] y, float[2] z) { h = Neg(x) y = Exp(h) k = Neg(x) z = Exp(k) }"
    )
    assert count(graph, siblings_rule()) == 1


def test_path_through_an_outside_node_is_a_cycle():
    graph = graph_of("(float[2] x) => (float[2] y) { h = Neg(x) k = Exp(h) y = Neg(k) }")
    reason = "an unnamed Exp depends on one of the nodes and another one on it: a cycle"
    assert reasons_of(graph, siblings_rule()) == [reason]


def test_path_through_a_body_is_a_cycle():
    graph = graph_of("""(bool c, float[2] x) => (float[2] y) {
        h = Neg(x)
        k = If(c) <
            then_branch = t () => (float[2] a) { a = Exp(h) },
            else_branch = e () => (float[2] b) { b = Abs(x) }
        >
        y = Neg(k)
    }""")
    reason = "an unnamed If depends on one of the nodes and another one on it: a cycle"
    assert reasons_of(graph, siblings_rule()) == [reason]


def test_long_detour_is_found_and_dead_ends_are_not():
    chain = " ".join(f"d{i} = Exp({'h' if i == 0 else f'd{i - 1}'})" for i in range(40))
    graph = graph_of(f"(float[2] x) => (float[2] y, float[2] d39) {{ h = Neg(x) {chain} y = Neg(x) }}")
    assert count(graph, siblings_rule()) == 1
    graph = graph_of(f"(float[2] x) => (float[2] y) {{ h = Neg(x) {chain} y = Neg(d39) }}")
    assert len(reasons_of(graph, siblings_rule())) == 1


def test_rule_that_adds_no_dependencies_may_have_a_detour():
    graph = graph_of("(float[2] x) => (float[2] y) { h = Neg(x) k = Exp(h) y = Neg(k) }")
    rule = siblings_rule()
    type(rule).adds_dependencies = False
    assert count(graph, rule) == 1


# G8


@pytest.mark.parametrize("node", ["RandomNormalLike(x)", "RandomUniformLike(x)", "Bernoulli(x)"])
def test_random_nodes(node):
    graph = graph_of(f"(float[2] x) => (float[2] y) {{ h = {node} y = Exp(h) }}")
    op = node.split("(")[0]
    assert reasons_of(graph, of(op)) == [f"an unnamed {op} is random"]


BN = "(float[2,3] x) => (float[2,3] y) { NODE }"
STATISTICS = {name: np.ones(3, "f4") for name in "sbmv"}


@pytest.mark.parametrize(
    ("opset", "node", "is_training"),
    [
        (17, "y = BatchNormalization(x, s, b, m, v)", False),
        (17, "y, rm, rv = BatchNormalization<training_mode=1>(x, s, b, m, v)", True),
        (9, "y = BatchNormalization(x, s, b, m, v)", False),
        (6, "y = BatchNormalization(x, s, b, m, v)", True),
        (6, "y = BatchNormalization<is_test=1>(x, s, b, m, v)", False),
    ],
)
def test_batchnorm_in_training_mode(opset, node, is_training):
    graph = graph_of(BN.replace("NODE", node), opset=opset, **STATISTICS)
    found = training(graph.nodes[0], opset)
    assert found == ("an unnamed BatchNormalization is in training mode" if is_training else None)


def test_batchnorm_of_opset_9_with_a_used_statistic():
    text = "(float[2,3] x) => (float[2,3] y, float[3] z) { y, rm, rv, sm, sv = BatchNormalization(x, s, b, m, v) z = Neg(rm) }"
    graph = graph_of(text, opset=9, **STATISTICS)
    reason = "'rm', inside the pattern, is also read by an unnamed Neg"
    rule = planted(lambda n, c: Match((n,), n.outputs[:1]), anchors=("BatchNormalization",))
    assert reasons_of(graph, rule) == [reason]
    assert training(graph.nodes[0], 9) == "an unnamed BatchNormalization is in training mode"


@pytest.mark.parametrize("op", ["QuantizeLinear", "DequantizeLinear"])
def test_quantised_pairs(op):
    graph = graph_of(
        "(float[2] x) => (float[2] y) { q = QuantizeLinear(x, s) y = DequantizeLinear(q, s) }",
        s=np.float32(0.1),
    )
    assert reasons_of(graph, of(op)) == [f"an unnamed {op} belongs to a quantise/dequantise pair"]
    assert count(graph, of(op, splits_quantisation=True)) == 1


# and the rest


def test_first_violation_is_the_reason():
    graph = graph_of("(float[2] x) => (float[2] y, float[2] h) { h = RandomNormalLike(x) y = Exp(h) }")
    rule = pair("RandomNormalLike", "Exp")
    assert reasons_of(graph, rule) == ["'h', inside the pattern, is a graph output"]


def test_legal_match_has_no_obstacle():
    graph = graph_of("(float[2] x) => (float[2] y) { y = Neg(x) }")
    (node,) = graph.nodes
    assert obstacle(of("Neg"), Match((node,), tuple(node.outputs)), Context(graph)) is None


def test_nodes_are_described_by_operator_and_name():
    node = ir.node("Gelu", inputs=[], domain="com.microsoft", name="g1")
    assert describe_node(node) == "com.microsoft::Gelu 'g1'"
    assert describe_node(ir.node("Relu", inputs=[])) == "an unnamed Relu"
