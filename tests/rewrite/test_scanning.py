"""Incremental enumeration gives what a full scan gives, after any sequence of rewrites."""

from __future__ import annotations

import random

import numpy as np
import pytest

from explorer.errors import RewriteError
from explorer.graph import load, node_id
from explorer.graph.samples import sample_names
from explorer.rewrite import all_rules, apply, find_candidates, rescan, scan
from tests.models import CASES
from tests.rewrite.harness import graph_of

STEPS = 6
LARGER_OF_A_KIND = {
    "vgg16",
    "resnet101",
    "resnet152",
    "resnext50_32x4d",
    "efficientnet_b3",
    "mobilenet_v3_large",
}
"""The same sites as in a smaller sample (for VGG-16, in SqueezeNet), and much longer to walk."""


def walk(graph, steps: int, seed: int) -> int:
    """Apply random candidates; compare the incremental scan with a full one each time."""
    chance, rules = random.Random(seed), all_rules()
    known, applied = scan(graph, rules), 0
    for _ in range(steps):
        found = known.enumeration().candidates
        if not found:
            break
        candidate = chance.choice(found)
        try:
            result = apply(graph, candidate, rules)
        except RewriteError:
            continue
        updated = rescan(known, result, rules)
        full = find_candidates(result, rules)
        assert_same(updated.enumeration(), full, candidate.place)
        graph, known, applied = result, updated, applied + 1
    return applied


def assert_same(incremental, full, after: str) -> None:
    """The same candidates and rejections, in the same order; the first difference is named."""
    for kind in ("candidates", "rejections"):
        got, wanted = getattr(incremental, kind), getattr(full, kind)
        stale, missing = set(got) - set(wanted), set(wanted) - set(got)
        assert not stale, f"stale after {after}: {next(iter(stale))}"
        assert not missing, f"missing after {after}: {next(iter(missing))}"
        assert got == wanted, f"another order of {kind} after {after}"


@pytest.mark.parametrize("name", sorted(set(sample_names()) - LARGER_OF_A_KIND))
def test_incremental_equals_full_on_samples(name):
    assert walk(load(name), steps=STEPS, seed=len(name)) >= STEPS // 2


@pytest.mark.parametrize("path", sorted(CASES.glob("*.onnx")), ids=lambda path: path.stem)
def test_incremental_equals_full_on_cases(path):
    walk(load(path), steps=4, seed=1)


def asked(monkeypatch, function):
    """(rule, anchor) of every question that a function asks."""
    import explorer.rewrite.scanning as module

    questions, original = [], module.answers

    def noting(rule, node, context):
        questions.append((rule.name, node_id(node)))
        return original(rule, node, context)

    with monkeypatch.context() as patch:
        patch.setattr(module, "answers", noting)
        function()
    return questions


@pytest.fixture(scope="module")
def bert():
    """A graph with many layers, and its scan."""
    graph = load("bert_base")
    return graph, scan(graph, all_rules())


@pytest.mark.parametrize("rule", ["fuse-add-chain", "fold-attention-scale", "fuse-multi-head-attention"])
def test_only_what_the_change_bears_on_is_asked_again(monkeypatch, bert, rule):
    """Also where a mask or a weight that all layers read connects them."""
    (graph, known), rules = bert, all_rules()
    found = [c for c in known.enumeration().candidates if c.rule == rule]
    result = apply(graph, found[len(found) // 2], rules)
    near = asked(monkeypatch, lambda: rescan(known, result, rules))
    everything = asked(monkeypatch, lambda: scan(result, rules))
    assert 0 < len(near) < len(everything) / 20
    assert set(near) <= set(everything)


def test_a_far_away_change_of_what_was_walked_over_counts():
    """Whether products can be stacked depends on a path between them, however long."""
    middle = "\n".join(f"t{i + 1} = Neg(t{i})" for i in range(40))
    text = f"""(float[2, 4] x, float[2, 4] y) => (float[2, 4] a, float[2, 4] b) {{
        a = MatMul(x, W)
        t0 = Mul(a, zero)
        {middle}
        s = Add(t40, y)
        b = MatMul(s, W)
    }}"""
    graph = graph_of(text, W=np.ones((4, 4), np.float32), zero=np.zeros((1,), np.float32))
    rules = all_rules().only(["stack-matmuls-of-same-weight"])
    known = scan(graph, rules)
    reason = "'s' depends on 'a'"
    assert [r.reason for r in known.enumeration().rejections] == [reason]
    cut = graph.clone()
    negation = next(node for node in cut.nodes if node.outputs[0].name == "t20")
    negation.replace_input_with(0, cut.inputs[1])
    updated = rescan(known, cut.renumbered(), rules).enumeration()
    assert_same(updated, find_candidates(cut, rules), "cutting the path")
    assert [c.rule for c in updated.candidates] == ["stack-matmuls-of-same-weight"]


def test_nodes_in_another_order_are_asked_again():
    """Which of two equal nodes repeats the other is a matter of their order."""
    graph = graph_of("(float[4] x) => (float[4] y) { a = Relu(x) b = Relu(x) y = Add(a, b) }")
    rules = all_rules().only(["eliminate-common-subexpression"])
    known = scan(graph, rules)
    turned = graph.clone()
    first = turned.nodes[0]
    turned.model.graph.remove(first)
    turned.model.graph.insert_before(turned.nodes[2], first)
    updated = rescan(known, turned.renumbered(), rules).enumeration()
    assert_same(updated, find_candidates(turned, rules), "turning round two nodes")
    assert [c.nodes for c in known.enumeration().candidates] == [("n1",)]
    assert [c.nodes for c in updated.candidates] == [("n0",)]
