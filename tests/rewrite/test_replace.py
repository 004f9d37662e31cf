"""G3: graph outputs keep their names, order and places, whatever replaces them."""

import numpy as np
import onnx_ir as ir
import pytest

from explorer.graph import load
from explorer.rewrite import Match, RuleSet, apply, find_candidates
from explorer.rewrite.replace import remove_unused, takeover_obstacle
from tests.models import case_path, case_runs
from tests.rewrite.harness import graph_of, ops, run
from tests.rewrite.planted import apply_planted, planted

X = np.array([[1, -2, 3]], "f4")


def of(op, rewriter):
    return planted(lambda n, c: Match((n,), tuple(n.outputs)) if n.op_type == op else None, rewriter)


def to_input(match, build):
    return [match.nodes[0].inputs[0]]


def interface(graph):
    return [[v.name for v in values] for values in (graph.model.graph.inputs, graph.model.graph.outputs)]


def check(graph, rule, expected_ops):
    """Apply, compare outputs and interface; the planted rules stand for "this node does nothing"."""
    result = apply_planted(graph, rule)
    assert interface(result) == interface(graph)
    assert ops(result) == expected_ops
    return result


def test_output_takes_the_name_of_the_replaced_value():
    graph = graph_of("(float[1,3] x) => (float[1,3] y) { h = Exp(x) y = Dropout(h) }")
    result = check(graph, of("Dropout", to_input), {"Exp": 1})
    assert result.nodes[0].outputs[0].name == "y"
    (got,) = run(result, [{"x": X}])
    np.testing.assert_allclose(got["y"], np.exp(X), rtol=1e-6)


def test_replacement_that_others_read_too():
    graph = graph_of(
        "(float[1,3] x) => (float[1,3] y, float[1,3] z) { h = Exp(x) y = Dropout(h) z = Neg(h) }"
    )
    result = check(graph, of("Dropout", to_input), {"Exp": 1, "Neg": 1})
    assert result.nodes[1].inputs[0].name == "y"


def test_input_that_becomes_an_output_needs_an_identity():
    graph = graph_of("(float[1,3] x) => (float[1,3] y) { y = Dropout(x) }")
    result = check(graph, of("Dropout", to_input), {"Identity": 1})
    assert result.nodes[0].outputs[0].name == "y"
    assert list(result.outputs[0].shape) == [1, 3]


def test_weight_that_becomes_an_output_needs_an_identity():
    graph = graph_of("(float[1,3] x) => (float[1,3] y, float[1,3] z) { y = Dropout(w) z = Add(x, w) }", w=X)
    result = check(graph, of("Dropout", to_input), {"Identity": 1, "Add": 1})
    assert "w" in result.model.graph.initializers


def test_two_outputs_that_become_one_value():
    graph = graph_of("(float[1,3] x) => (float[1,3] y, float[1,3] z) { y = Exp(x) z = Dropout(y) }")
    result = check(graph, of("Dropout", to_input), {"Exp": 1, "Identity": 1})
    (got,) = run(result, [{"x": X}])
    np.testing.assert_array_equal(got["y"], got["z"])


def test_two_replaced_outputs_with_one_new_value():
    graph = graph_of("(float[1,4] x) => (float[1,2] y, float[1,2] z) { y, z = Split<axis=1>(x) }")

    def both(match, build):
        ends = [build.ints(values) for values in ([0], [2], [1])]
        value = build.op("Slice", [match.nodes[0].inputs[0], *ends], like=match.outputs[0])
        return [value, value]

    result = check(graph, of("Split", both), {"Slice": 1, "Identity": 1})
    assert [v.name for v in result.outputs] == ["y", "z"]


def test_outputs_that_change_places_keep_their_names():
    graph = graph_of("(float[1,4] x) => (float[1,2] y, float[1,2] z) { y, z = Split<axis=1>(x) }")

    def swapped(match, build):
        a, b = build.ops("Split", match.nodes[0].inputs, {"axis": 1}, outputs=2)
        return [b, a]

    result = check(graph, of("Split", swapped), {"Split": 1})
    (got,) = run(result, [{"x": np.array([[1, 2, 3, 4]], "f4")}])
    assert got["y"].tolist() == [[3, 4]]
    assert got["z"].tolist() == [[1, 2]]


def test_output_declared_in_another_order_than_computed():
    graph = graph_of(
        "(float[1,3] x) => (float[1,3] z, float[1,3] y) { y = Dropout(h0) z = Neg(h0) }".replace("h0", "x")
    )
    check(graph, of("Dropout", to_input), {"Neg": 1, "Identity": 1})


def test_value_captured_by_bodies_is_replaced_there_too():
    graph = load(case_path("if_branches_capture_outer"))
    rules = RuleSet([of("Identity", to_input)])
    captured = [c for c in find_candidates(graph, rules).candidates if len(readers_in_bodies(graph, c)) == 2]
    assert len(captured) == 1
    result = apply(graph, captured[0], rules)
    assert readers_in_bodies(graph, captured[0])
    for feeds, expected in case_runs("if_branches_capture_outer"):
        (got,) = run(result, [feeds])
        for name, value in expected.items():
            np.testing.assert_allclose(got[name], value, rtol=1e-4)


def readers_in_bodies(graph, candidate):
    (value,) = graph.node(candidate.anchor).outputs
    return [reader for reader, _ in value.uses() if reader.graph is not graph.model.graph]


LOOP = """(int64 n, bool c, float[1,3] x) => (float[1,3] y, float[?,1,3] s) {
    y, s = Loop(n, c, x) <body = b (int64 i, bool ci, float[1,3] a) => (bool co, float[1,3] o, float[1,3] t) {
        co = Identity(ci)
        k = Exp(a)
        BODY
    }>
}"""


def body_of(graph):
    return next(n for n in graph.nodes if n.op_type == "Loop").attributes["body"].as_graph()


def loop(body):
    return graph_of(LOOP.replace("BODY", body))


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("o = Dropout(k) t = Neg(k)", {"Loop": 1, "Identity": 1, "Exp": 1, "Neg": 1}),
        ("o = Neg(k) t = Dropout(k)", {"Loop": 1, "Identity": 1, "Exp": 1, "Neg": 1}),
        ("o = Dropout(a) t = Neg(k)", {"Loop": 1, "Identity": 2, "Exp": 1, "Neg": 1}),
        ("o = Exp(k) t = Dropout(o)", {"Loop": 1, "Identity": 2, "Exp": 2}),
    ],
    ids=["carried", "scanned", "input passed through", "one value twice"],
)
def test_outputs_of_a_loop_body_keep_their_places(body, left):
    graph = loop(body)
    result = check(graph, of("Dropout", to_input), left)
    before, after = body_of(graph), body_of(result)
    assert len(before.outputs) == len(after.outputs) == 3
    assert [v.dtype for v in after.outputs] == [v.dtype for v in before.outputs]
    for count in (0, 1, 3):
        feeds = {"n": np.array(count), "c": np.array(True), "x": X / 10}
        (got,), (expected,) = (run(g, [feeds]) for g in (result, graph))
        for name in ("y", "s"):
            np.testing.assert_array_equal(got[name], expected[name])


def test_output_of_a_body_that_would_be_computed_outside():
    graph = graph_of("""(bool c, float[1,3] x) => (float[1,3] y) {
        h = Exp(x)
        y = If(c) <
            then_branch = t () => (float[1,3] a) { a = Dropout(h) },
            else_branch = e () => (float[1,3] b) { b = Neg(h) }
        >
    }""")
    result = check(graph, of("Dropout", to_input), {"Exp": 1, "If": 1, "Identity": 1, "Neg": 1})
    for flag in (True, False):
        (got,), (expected,) = (run(g, [{"c": np.array(flag), "x": X}]) for g in (result, graph))
        np.testing.assert_array_equal(got["y"], expected["y"])


def test_obstacles_in_words():
    graph = graph_of(
        "(float[1,3] x) => (float[1,3] y, float[1,3] z) { h = Exp(x) y = Neg(h) z = Add(h, w) }", w=X
    )
    values = {v.name: v for n in graph.nodes for v in (*n.inputs, *n.outputs)}
    y, cases = values["y"], {"x": "the graph input 'x' itself", "w": "the weight 'w' itself"}
    for name, words in cases.items():
        assert takeover_obstacle(y, values[name]) == f"output 'y' would be {words}"
    assert takeover_obstacle(y, values["z"]) == "outputs 'y' and 'z' would be the same tensor"
    assert takeover_obstacle(y, values["h"]) is None
    assert takeover_obstacle(values["h"], values["x"]) is None


def test_types_and_shapes_pass_to_the_new_value():
    graph = graph_of("(float[N,3] x) => (float[N,3] y) { h = Exp(x) y = Neg(h) }")
    rule = of("Exp", lambda match, build: [build.op("Relu", match.nodes[0].inputs)])
    result = apply_planted(graph, rule)
    value = next(n for n in result.nodes if n.op_type == "Relu").outputs[0]
    assert value.dtype == ir.DataType.FLOAT
    assert str(value.shape) == str(graph.nodes[0].outputs[0].shape)


def test_constants_without_readers_are_dropped_and_others_kept():
    graph = graph_of(
        "(float[3] x) => (float[3] y, float[3] u) { k = Constant<value=float[3] {1,2,3}>() h = Add(x, k) y = Mul(h, v) z = Neg(w) q = Add(z, h) p = Neg(q) }",
        u=np.ones(3, "f4"),
        v=np.ones(3, "f4"),
        w=np.ones(3, "f4"),
    )
    draft = graph.clone()
    values = {v.name: v for n in draft.nodes for v in (*n.inputs, *n.outputs)}
    values |= {v.name: v for v in draft.initializers()}
    remove_unused([values["u"], values["v"], values["x"], values["k"]])
    assert set(draft.model.graph.initializers) == {"u", "v", "w"}
    add = values["h"].producer()
    add.replace_input_with(1, values["v"])
    remove_unused([values["k"], values["k"]])
    assert all(n.op_type != "Constant" for n in draft.model.graph)
