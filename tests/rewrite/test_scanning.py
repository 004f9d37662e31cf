"""Incremental enumeration gives what a full scan gives, after any sequence of rewrites."""

from __future__ import annotations

import random

import pytest

from explorer.errors import RewriteError
from explorer.graph import load
from explorer.rewrite import all_rules, apply, find_candidates, rescan, scan
from tests.models import CASES

MODELS = ["squeezenet1_1", "mobilenet_v3_small", "shufflenet_v2_x1_0", "llama_small", "googlenet"]


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
        updated = rescan(known, graph, result, rules)
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


@pytest.mark.parametrize("name", MODELS)
def test_incremental_equals_full_on_samples(name):
    assert walk(load(name), steps=6, seed=len(name)) >= 4


@pytest.mark.parametrize("path", sorted(CASES.glob("*.onnx")), ids=lambda path: path.stem)
def test_incremental_equals_full_on_cases(path):
    walk(load(path), steps=4, seed=1)


def test_a_rule_is_asked_again_only_near_the_change(monkeypatch):
    import explorer.rewrite.scanning as module

    graph, rules = load("resnet18"), all_rules()
    known = scan(graph, rules)
    result = apply(graph, known.enumeration().candidates[0], rules)
    asked = []
    original = module._ask
    monkeypatch.setattr(
        module, "_ask", lambda rule, node, context: asked.append(1) or original(rule, node, context)
    )
    rescan(known, graph, result, rules)
    near = len(asked)
    asked.clear()
    scan(result, rules)
    assert near < len(asked) / 3
