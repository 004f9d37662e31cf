"""What every rule test needs: run models with optimisation off, apply a rule, assert all its promises."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnx_ir as ir

from explorer.graph import Graph, diff, load
from explorer.rewrite import Candidate, all_rules, apply, check_equivalence, find_candidates
from explorer.runtime.jobs import run_model
from explorer.runtime.store import ModelStore
from explorer.runtime.target import Target
from tests.models import model

REFERENCE = Target.parse("ort:level=disable,threads=1")


def graph_of(
    text: str, *, opset: int = 17, domains: Mapping[str, int] | None = None, **weights: np.ndarray
) -> Graph:
    """A graph from ``(inputs) => (outputs) { nodes }``; ``weights`` become initializers of these names."""
    return load(model(text, opset=opset, domains=domains, **weights), name="test")


def run(graph: Graph, feeds: Sequence[dict[str, np.ndarray]]) -> list[dict[str, np.ndarray]]:
    """Outputs of a graph in ONNX Runtime without its optimiser, in this process."""
    with ModelStore() as store:
        return run_model(store.put(graph), feeds, REFERENCE)


def ops(graph: Graph) -> dict[str, int]:
    """Operator counts, Constant nodes left out."""
    return dict(Counter(node.op_type for node in graph.nodes if node.op_type != "Constant"))


def candidates(graph: Graph, rule: str) -> list[Candidate]:
    """All candidates of one rule."""
    return [c for c in find_candidates(graph, all_rules()).candidates if c.rule == rule]


def reasons(graph: Graph, rule: str) -> list[str]:
    """The reasons of all rejections of one rule."""
    return [r.reason for r in find_candidates(graph, all_rules()).rejections if r.rule == rule]


def apply_checked(graph: Graph, candidate: Candidate) -> Graph:
    """Apply a candidate and assert what every rewrite promises; returns the result."""
    before = graph.fingerprint()
    result = apply(graph, candidate, all_rules())
    assert graph.fingerprint() == before, "the original was changed"
    assert result.fingerprint() != before, "nothing happened"
    report = check_equivalence(graph, result, run, candidate.numeric_class)
    assert report.passed, report.sentence()
    assert report.reacts, "the outputs do not react: give the model random weights"
    change = diff(graph, result)
    assert change.added_bytes - change.freed_bytes == candidate.bytes_delta, "bytes_delta is not exact"
    onnx.checker.check_model(ir.serde.serialize_model(result.model), full_check=True)
    return result


def apply_only(graph: Graph, rule: str) -> Graph:
    """Apply the only candidate of a rule, checked."""
    found = candidates(graph, rule)
    assert len(found) == 1, f"{len(found)} candidates of {rule}; rejections: {reasons(graph, rule)}"
    return apply_checked(graph, found[0])


def apply_all(graph: Graph, rule: str, limit: int = 50) -> Graph:
    """Apply a rule, each time its first candidate, until nothing is offered."""
    for _ in range(limit):
        found = candidates(graph, rule)
        if not found:
            return graph
        graph = apply_checked(graph, found[0])
    raise AssertionError(f"{rule} still offers candidates after {limit} applications")


def assert_inverse_restores(graph: Graph, candidate: Candidate) -> None:
    """Applying the rule and then its inverse gives an isomorphic graph."""
    inverse = all_rules()[candidate.rule].inverse
    assert inverse is not None
    result = apply_checked(graph, candidate)
    back = [apply(result, c, all_rules()).fingerprint() for c in candidates(result, inverse)]
    assert graph.fingerprint() in back, "no application of the inverse restores the graph"
