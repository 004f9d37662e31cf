"""The trap models: each makes some tool wrong somewhere; none of them may make us wrong.

For every case and every rule offered on it: apply it alone, then again until nothing is offered. The interface
stays, the checker passes (unless it failed before), the result runs, and all feeds give the expected outputs.
"""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest

from explorer.errors import RuntimeFailure
from explorer.graph import Graph, load, save
from explorer.rewrite import all_rules, apply, find_candidates
from explorer.search import Finished, Greedy
from tests.models import CASES
from tests.rewrite.harness import run

TABLE = {case["name"]: case for case in json.loads((CASES / "cases.json").read_text())}
RUNNABLE = [name for name, case in TABLE.items() if case["kind"] != "clear_error"]
LIMIT = 30

# Which rules the catalogue's wording means, where a case says "must not fire".
FORBIDDEN = {
    "fused_intermediate_second_consumer": ("fuse-conv-activation", "also read by"),
    "matmul_add_bias_rank5": ("matmul-add-to-gemm", "does not broadcast one way"),
    "initializer_is_overridable_input": (None, ""),
    "conv_add_broadcasts_on_width": (None, ""),
    "pad_before_conv_same_upper": (None, ""),
    "pad_before_pools": (None, ""),
    "mul_one_add_zero_broadcasts": (None, ""),
    "layernorm_lookalike_keepdims0": (None, ""),
}


def feeds_of(name: str) -> list[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]]:
    """(inputs, expected outputs) of every feed of a case."""
    pairs = []
    for path in sorted(CASES.glob(f"{name}.npz")) + sorted(CASES.glob(f"{name}.*.npz")):
        data = np.load(path)
        sides = [
            {
                key.split("|", 1)[1]: value.astype(object) if value.dtype.kind == "U" else value
                for key, value in data.items()
                if key.startswith(side)
            }
            for side in ("in|", "out|")
        ]
        pairs.append((sides[0], sides[1]))
    assert pairs, f"case {name} has no feeds"
    return pairs


def assert_expected(name: str, graph: Graph) -> None:
    """The graph gives the expected outputs on every feed of the case."""
    case, pairs = TABLE[name], feeds_of(name)
    for (_, expected), outputs in zip(pairs, run(graph, [feeds for feeds, _ in pairs]), strict=True):
        assert list(outputs) == [v.name for v in graph.outputs]
        for tensor, wanted in expected.items():
            got = outputs[tensor]
            assert np.asarray(got).shape == wanted.shape, tensor
            if wanted.dtype == object or case["compare"] == "exact":
                np.testing.assert_array_equal(np.asarray(got), wanted, err_msg=tensor)
            else:
                np.testing.assert_allclose(
                    got, wanted, atol=case["atol"], rtol=case["rtol"], equal_nan=True, err_msg=tensor
                )


def interface(graph: Graph) -> list[tuple[str | None, object, int | None]]:
    """Names, types and ranks of inputs and outputs, in order."""
    values = [*graph.model.graph.inputs, *graph.model.graph.outputs]
    return [(v.name, v.type, None if v.shape is None else len(v.shape)) for v in values]


@pytest.mark.parametrize("name", RUNNABLE)
def test_a_case_opens_and_gives_the_expected_outputs(name):
    assert_expected(name, load(CASES / f"{name}.onnx"))


@pytest.mark.parametrize("name", list(TABLE))
def test_every_rule_on_a_case_keeps_its_outputs(name, tmp_path):
    original = load(CASES / f"{name}.onnx")
    rules = all_rules()
    for rule in {c.rule: None for c in find_candidates(original, rules).candidates}:
        graph = original
        for _ in range(LIMIT):
            found = find_candidates(graph, rules.only([rule])).candidates
            if not found:
                break
            graph = apply(graph, found[0], rules)
            assert interface(graph) == interface(original), rule
            if TABLE[name]["kind"] != "clear_error":
                onnx.checker.check_model(save(graph, tmp_path / "result.onnx"))
                assert_expected(name, graph)
        else:
            pytest.fail(f"{rule} is offered without end")


@pytest.mark.parametrize("name", [n for n, (rule, _) in FORBIDDEN.items() if rule])
def test_the_forbidden_rule_is_refused_with_its_reason(name):
    rule, words = FORBIDDEN[name]
    found = find_candidates(load(CASES / f"{name}.onnx"), all_rules().only([rule]))
    assert found.candidates == ()
    assert any(words in rejection.reason for rejection in found.rejections), found.rejections


def test_every_case_that_must_not_fire_is_covered():
    assert {n for n, case in TABLE.items() if case["kind"] == "must_not_fire"} <= set(FORBIDDEN)


def test_an_unknown_operator_is_drawn_but_not_run():
    graph = load(CASES / "unknown_custom_op.onnx")
    (unknown,) = (node for node in graph.nodes if node.op_type == "FancyGate")
    assert unknown.outputs[0].shape is None
    with pytest.raises(RuntimeFailure, match=r"vendor\.ops::FancyGate"):
        run(graph, [{}])


def test_rules_that_undo_each_other_do_not_loop_a_search():
    from explorer.cost import MeasuredCost
    from explorer.rewrite import check_equivalence
    from explorer.runtime import Target
    from explorer.runtime.dummy import PlantedMeasurer

    graph = load(CASES / "split_and_merge_undo_each_other.onnx")
    feeds = feeds_of("split_and_merge_undo_each_other")[0][0]
    always_faster = {"n": 0}

    def run_ns(_graph, _target):
        always_faster["n"] += 1
        return 1e6 * 0.9 ** always_faster["n"]

    with PlantedMeasurer(run_ns) as measurer:
        cost = MeasuredCost(measurer, Target.parse("ort:level=disable"), feeds)
        search = Greedy(
            graph, all_rules(), cost, lambda g, kind: check_equivalence(graph, g, run, kind), budget=100
        )
        events = list(search.events())
    assert isinstance(events[-1], Finished)
    assert search.spent <= 100
