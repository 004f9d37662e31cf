"""Applying candidates: identity, promises, names, weights, and what happens to broken rules."""

import os
import subprocess
import sys

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from explorer.errors import CandidateError, RewriteError
from explorer.graph import load, node_id
from explorer.rewrite import Match, Refusal, RuleSet, all_rules, apply, apply_many, find_candidates
from tests.models import CASES
from tests.rewrite.harness import apply_all, apply_checked, candidates, graph_of, ops, run
from tests.rewrite.planted import apply_planted, planted, reasons_of

RNG = np.random.default_rng(0)
TEXT = """(float[2,3] x, float[2,3] z) => (float[2,3] y) {
    a = Identity(x)
    b = Div(a, c)
    d = Identity(z)
    e = Div(d, c)
    y = Add(b, e)
}"""


def twice():
    return graph_of(TEXT, c=np.full(3, 4, "f4"))


def single(op, **given):
    """A matcher for one node of this operator."""
    return lambda node, context: Match((node,), tuple(node.outputs), given) if node.op_type == op else None


def test_applying_leaves_the_original_alone():
    graph = twice()
    names = [(n.op_type, [v.name for v in n.inputs], [v.name for v in n.outputs]) for n in graph.nodes]
    before = graph.fingerprint()
    (candidate, _) = candidates(graph, "eliminate-identity")
    result = apply(graph, candidate, all_rules())
    assert [
        (n.op_type, [v.name for v in n.inputs], [v.name for v in n.outputs]) for n in graph.nodes
    ] == names
    assert graph.fingerprint() == before != result.fingerprint()
    assert ops(result)["Identity"] == 1


def test_stale_candidate_is_refused():
    graph = twice()
    first, second = candidates(graph, "eliminate-identity")
    result = apply(graph, first, all_rules())
    with pytest.raises(
        CandidateError, match="belongs to another version of 'test'; list the candidates again"
    ):
        apply(result, second, all_rules())
    with pytest.raises(CandidateError, match="another version"):
        apply(result, first, all_rules())


def test_candidate_of_a_graph_with_equal_structure_is_accepted():
    """Fingerprints ignore names, so the same file opened twice is the same graph."""
    (candidate, _) = candidates(twice(), "eliminate-identity")
    assert ops(apply(twice(), candidate, all_rules()))["Identity"] == 1


def test_candidate_that_no_longer_matches_is_refused():
    graph = twice()
    (candidate, _) = candidates(graph, "eliminate-identity")
    with pytest.raises(CandidateError, match="no longer matches"):
        apply(graph, candidate, RuleSet([planted(lambda node, context: None, name="eliminate-identity")]))


def test_several_candidates_on_one_copy():
    graph = twice()
    found = [*candidates(graph, "eliminate-identity"), *candidates(graph, "div-to-mul")]
    result, applied = apply_many(graph, found, all_rules())
    assert applied == tuple(found)
    assert ops(result) == {"Mul": 2, "Add": 1}
    (got,), (expected,) = (run(g, [FEEDS]) for g in (result, graph))
    np.testing.assert_array_equal(got["y"], expected["y"])


FEEDS = {name: RNG.standard_normal((2, 3)).astype("f4") for name in ("x", "z")}


def test_candidates_whose_nodes_are_used_up_are_left_out():
    graph = graph_of(
        "(float[2,3] x) => (float[2,3] y) { a = Transpose(x) b = Transpose(a) c = Transpose(b) y = Transpose(c) }"
    )
    found = candidates(graph, "merge-transposes")
    assert len(found) == 3
    result, applied = apply_many(graph, found, all_rules())
    assert [c.nodes for c in applied] == [("n0", "n1"), ("n2", "n3")]
    assert ops(result) == {"Identity": 1}


def test_one_stale_candidate_among_many_is_refused():
    graph = twice()
    found = candidates(graph, "eliminate-identity")
    other = apply(graph, found[0], all_rules())
    with pytest.raises(CandidateError, match="another version"):
        apply_many(graph, [found[0], *candidates(other, "eliminate-identity")], all_rules())


def test_nothing_to_apply_gives_an_equal_graph():
    graph = twice()
    result, applied = apply_many(graph, [], all_rules())
    assert applied == ()
    assert result.fingerprint() == graph.fingerprint()


def test_names_do_not_clash_when_a_rule_fires_again():
    graph = apply_all(twice(), "div-to-mul")
    names = [v.name for v in graph.initializers()]
    assert len(names) == len(set(names)) == 2
    outputs = [v.name for node in graph.nodes for v in node.outputs]
    assert len(outputs) == len(set(outputs))
    nodes = [node.name for node in graph.nodes if node.name]
    assert len(nodes) == len(set(nodes))


def test_weights_are_shared_and_never_edited():
    weight = RNG.standard_normal((64, 64)).astype("f4")
    graph = graph_of("(float[2,64] x) => (float[2,64] y) { h = Identity(x) y = MatMul(h, w) }", w=weight)
    result = apply(graph, candidates(graph, "eliminate-identity")[0], all_rules())
    (old,), (new,) = graph.initializers(), result.initializers()
    assert old.const_value is new.const_value
    np.testing.assert_array_equal(old.const_value.numpy(), weight)


def test_ids_survive_and_new_nodes_get_new_ones():
    graph = twice()
    (candidate, _) = candidates(graph, "div-to-mul")
    result = apply(graph, candidate, all_rules())
    before, after = {node_id(n) for n in graph.nodes}, {node_id(n) for n in result.nodes}
    assert before - after == set(candidate.nodes)
    (added,) = after - before
    assert result.node(added).op_type == "Mul"
    assert int(added[1:]) > max(int(i[1:]) for i in before)


SCRIPT = """
from explorer.graph import load, node_id
from explorer.rewrite import all_rules, find_candidates
for source in {sources!r}:
    found = find_candidates(load(source), all_rules())
    for c in found.candidates:
        print(c.id, c.bytes_delta, c.summary)
    for r in found.rejections:
        print(r)
"""


def test_candidates_are_the_same_in_every_process():
    names = ["conv_shared_weight_two_bn", "if_branches_capture_outer", "twin_subgraphs_both_outputs"]
    script = SCRIPT.format(sources=[str(CASES / f"{name}.onnx") for name in names])
    outputs = []
    for seed in ("0", "12345"):
        command, environment = [sys.executable, "-c", script], {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]
    assert "fold-batchnorm-into-conv:" in outputs[0]


def test_candidates_come_in_graph_order_each_once():
    graph = load("squeezenet1_1")
    found = find_candidates(graph, all_rules()).candidates
    identifiers = [c.id for c in found]
    assert len(identifiers) == len(set(identifiers)) > 20
    anchors = [int(c.anchor[1:]) for c in found]
    assert anchors == sorted(anchors)


def test_rejections_name_rule_nodes_and_reason_once():
    rule = planted(lambda node, context: Refusal("it is Tuesday", (node,)), anchors=("Div",))
    found = find_candidates(twice(), RuleSet([rule]))
    assert [(r.rule, r.nodes, r.reason) for r in found.rejections] == [
        ("planted", ("n1",), "it is Tuesday"),
        ("planted", ("n3",), "it is Tuesday"),
    ]


def test_raised_refusal_ends_a_rule_at_its_node_only():
    def matcher(node, context):
        if node.op_type == "Div":
            raise Refusal("no")
        return Match((node,), tuple(node.outputs)) if node.op_type == "Add" else None

    found = find_candidates(twice(), RuleSet([planted(matcher)]))
    assert [r.nodes for r in found.rejections] == [("n1",), ("n3",)]
    assert [c.nodes for c in found.candidates] == [("n4",)]


def test_rule_without_nodes_only_drops_weights():
    graph = graph_of("(float[2] x) => (float[2] y) { y = Neg(x) }", w=np.ones(9, "f4"))
    (candidate,) = candidates(graph, "remove-unused-weights")
    assert candidate.nodes == ()
    assert candidate.bytes_delta == -36
    assert list(apply_checked(graph, candidate).initializers()) == []


def test_bytes_of_shared_constants_are_not_freed():
    graph = twice()
    first, second = candidates(graph, "div-to-mul")
    assert (first.bytes_delta, second.bytes_delta) == (12, 12)
    result = apply_checked(graph, first)
    assert candidates(result, "div-to-mul")[0].bytes_delta == 0


# Broken rules: the given graph stays as it was, and the error says which rule.


def test_refusal_while_rewriting_is_an_error_in_words():
    def rewriter(match, build):
        raise Refusal("the moon is full")

    with pytest.raises(RewriteError, match="Rule 'planted' cannot be applied here: the moon is full"):
        apply_planted(
            graph_of("(float[2] x) => (float[2] y) { y = Neg(x) }"), planted(single("Neg"), rewriter)
        )


def test_node_the_checker_refuses_is_not_applied():
    graph = graph_of("(float[2] x) => (float[2] y) { y = Neg(x) }")
    rule = planted(single("Neg"), lambda m, b: [b.op("NoSuchOperator", m.nodes[0].inputs, like=m.outputs[0])])
    with pytest.raises(
        RewriteError, match="Rule 'planted' was not applied: the ONNX checker says: No Op registered"
    ):
        apply_planted(graph, rule)
    assert ops(graph) == {"Neg": 1}


def test_model_the_checker_refused_before_can_still_be_rewritten():
    graph = graph_of("(float[2] x) => (float[2] y) { h = NoSuchOperator(x) k = Identity(h) y = Neg(k) }")
    assert ops(apply(graph, candidates(graph, "eliminate-identity")[0], all_rules())) == {
        "NoSuchOperator": 1,
        "Neg": 1,
    }


def test_result_of_another_rank_or_type_is_not_applied():
    graph = graph_of("(float[2,3] x) => (float[2,3] y) { y = Neg(x) }")

    def cast(match, build):
        return [build.op("Cast", match.nodes[0].inputs, {"to": 11}, dtype=ir.DataType.DOUBLE, shape=[2, 3])]

    with pytest.raises(RewriteError, match="would change the model's inputs or outputs"):
        apply_planted(graph, planted(single("Neg"), cast))


def test_value_that_is_still_read_is_not_removed():
    graph = graph_of("(float[2] x) => (float[2] y) { h = Abs(x) y = Neg(h) }")
    rule = planted(
        lambda node, context: (
            Match(tuple(context.graph.nodes), (node.outputs[0],)) if node.op_type == "Neg" else None
        ),
        lambda match, build: [build.op("Relu", [match.nodes[0].outputs[0]], like=match.outputs[0])],
    )
    with pytest.raises(RewriteError, match="Rule 'planted' would leave the graph broken here"):
        apply_planted(graph, rule)


def test_cycle_is_not_applied():
    """The rule hides its dependency: the new node reads something that depends on the one it replaces."""
    graph = graph_of("(float[2] x) => (float[2] y) { h = Abs(x) k = Neg(h) y = Add(h, k) }")
    rule = planted(
        single("Abs"),
        lambda match, build: [build.op("Relu", [build.draft.node("n1").outputs[0]], like=match.outputs[0])],
    )
    with pytest.raises(RewriteError, match="Rule 'planted' would leave the graph broken here"):
        apply_planted(graph, rule)


def test_nodes_of_two_graphs_are_refused():
    graph = graph_of("""(bool c, float[2] x) => (float[2] y) {
        h = Exp(x)
        y = If(c) <
            then_branch = t () => (float[2] a) { a = Neg(h) },
            else_branch = e () => (float[2] b) { b = Abs(x) }
        >
    }""")
    rule = planted(
        lambda node, context: Match((context.graph.nodes[0], node), tuple(node.outputs)), anchors=("Neg",)
    )
    assert reasons_of(graph, rule) == [
        "an unnamed Neg is inside the body of a control-flow node, or the others are"
    ]


def test_shape_that_becomes_known_is_no_change_of_the_interface():
    graph = graph_of(
        "(float[9] x) => (float[] y) { k = my.ops.Size(x) y = Reshape(x, k) }", domains={"my.ops": 1}
    )
    assert graph.outputs[0].shape is None

    def constant(match, build):
        return [build.ints([3, 3], "known")]

    rule = planted(lambda n, c: Match((n,), tuple(n.outputs)) if n.domain == "my.ops" else None, constant)
    result = apply_planted(graph, rule)
    assert list(result.outputs[0].shape) == [3, 3]


def test_result_passes_the_checker_with_shapes():
    graph = load(CASES / "nodes_not_topologically_sorted.onnx")
    for candidate in find_candidates(graph, all_rules()).candidates:
        result = apply_checked(graph, candidate)
        onnx.checker.check_model(ir.serde.serialize_model(result.model), full_check=True)
