"""Greedy search on planted times: what it takes, what it refuses, how it can be overridden."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.cost import MeasuredCost
from explorer.graph import Graph, make_feeds
from explorer.rewrite import all_rules, check_equivalence, default_rules
from explorer.runtime import Target
from explorer.runtime.dummy import PlantedMeasurer
from explorer.search import Answer, Evaluated, Failed, Finished, Greedy, Proposed, Taken
from tests.rewrite.harness import graph_of, ops, run

RNG = np.random.default_rng(0)
TARGET = Target.parse("ort:level=disable,threads=1")


def two_blocks() -> Graph:
    """Conv, BatchNormalization, Relu, twice."""
    weights = {f"w{i}": RNG.standard_normal((4, 4, 3, 3)).astype("f4") for i in (1, 2)}
    statistics = {n: RNG.uniform(0.5, 1.5, 4).astype("f4") for n in ("s", "b", "m", "v")}
    return graph_of(
        """(float[1,4,8,8] x) => (float[1,4,4,4] y) {
            c1 = Conv(x, w1)
            n1 = BatchNormalization(c1, s, b, m, v)
            r1 = Relu(n1)
            c2 = Conv(r1, w2)
            n2 = BatchNormalization(c2, s, b, m, v)
            y = Relu(n2)
        }""",
        **weights,
        **statistics,
    )


def nodes_ns(graph: Graph, _target: Target, weights: dict[str, float] | None = None) -> float:
    """A planted runtime: a time per operator."""
    table = {"Conv": 10.0, "FusedConv": 10.0, "BatchNormalization": 1.0, "Relu": 1.0, **(weights or {})}
    return 1e6 * sum(table.get(op, 5.0) * count for op, count in ops(graph).items())


def search(graph: Graph, run_ns=nodes_ns, rules=None, **settings) -> Greedy:
    """A greedy search with planted times and real numerical checks."""
    measurer = PlantedMeasurer(run_ns)
    cost = MeasuredCost(measurer, TARGET, make_feeds(graph))
    check = lambda g, kind: check_equivalence(graph, g, run, kind)  # noqa: E731 (short)
    return Greedy(graph, rules or default_rules(), cost, check, **settings)


def test_takes_what_gains_until_nothing_does():
    greedy = search(two_blocks())
    events = list(greedy.events())
    taken = [event.move.rule for event in events if isinstance(event, Taken)]
    assert ops(greedy.position.graph) == {"FusedConv": 2}
    assert set(taken) == {"fold-batchnorm-into-conv", "fuse-conv-activation"}
    assert isinstance(events[-1], Finished)
    assert events[-1].reason == "no remaining rewrite is measurably faster"


def test_sites_of_a_rule_are_measured_together():
    events = list(search(two_blocks(), rules=default_rules().only(["fold-batchnorm-into-conv"])).events())
    (taken,) = [event for event in events if isinstance(event, Taken)]
    assert len(taken.candidates) == 2
    assert taken.delta.ratio == pytest.approx(22 / 24)


def test_nothing_is_taken_where_nothing_gains():
    greedy = search(two_blocks(), run_ns=lambda _graph, _target: 1e6)
    events = list(greedy.events())
    assert not any(isinstance(event, Taken) for event in events)
    assert ops(greedy.position.graph) == {"Conv": 2, "BatchNormalization": 2, "Relu": 2}


def test_a_slower_set_is_divided_until_the_gain_is_found():
    """Folding the first normalisation pays, folding the second costs more than that."""

    def run_ns(graph, _target):
        names = {node.outputs[0].name for node in graph.nodes if node.op_type == "BatchNormalization"}
        return 1e7 - (1e6 if "n1" not in names else 0) + (3e6 if "n2" not in names else 0)

    greedy = search(two_blocks(), run_ns=run_ns, rules=default_rules().only(["fold-batchnorm-into-conv"]))
    taken = [event for event in greedy.events() if isinstance(event, Taken)]
    assert [event.move.places for event in taken] == [("fold-batchnorm-into-conv:n0+n1",)]


def test_a_neutral_rewrite_is_taken_only_together_with_one_it_opens():
    def run_ns(graph, target):
        return nodes_ns(graph, target, {"BatchNormalization": 0.0, "Relu": 0.0, "FusedConv": 8.0})

    rules = default_rules().only(["fold-batchnorm-into-conv", "fuse-conv-activation"])
    greedy = search(two_blocks(), run_ns=run_ns, rules=rules)
    taken = [event for event in greedy.events() if isinstance(event, Taken)]
    assert [event.move.rules for event in taken] == [("fold-batchnorm-into-conv", "fuse-conv-activation")]
    assert len(taken[0].candidates) == 4


def folded_products() -> Graph:
    """A division by what only constant folding, four nodes deep, shows to be constant."""
    return graph_of(
        """(float[1,4] x) => (float[1,4] y) {
            a = Add(one, one)
            b = Mul(a, half)
            c = Add(b, b)
            d = Mul(c, half)
            y = Div(x, d)
        }""",
        one=np.ones(1, dtype="f4"),
        half=np.full(1, 0.75, dtype="f4"),
    )


def test_folding_comes_first_and_counts_as_one_move():
    events = list(search(folded_products(), run_ns=lambda graph, _: 1e6 * max(len(graph.nodes), 1)).events())
    first = next(event for event in events if isinstance(event, Evaluated))
    assert len(first.move.chain) > 1
    (taken,) = [event for event in events if isinstance(event, Taken)]
    assert taken.move == first.move
    assert len(taken.candidates) == sum(len(move.places) for move in first.move.chain)


def test_what_neutral_folding_opens_is_found_however_long_the_chain():
    def run_ns(graph: Graph, _target: Target) -> float:
        return 2e6 if "Div" in ops(graph) else 1e6

    events = list(search(folded_products(), run_ns=run_ns).events())
    (taken,) = [event for event in events if isinstance(event, Taken)]
    assert taken.delta.ratio == pytest.approx(0.5)
    assert taken.move.rule == "div-to-mul"


def test_the_budget_is_kept():
    greedy = search(two_blocks(), run_ns=lambda _graph, _target: 1e6, budget=3)
    events = list(greedy.events())
    assert greedy.spent == 3
    assert events[-1] == Finished("the budget of 3 comparisons is spent", 3)


def test_the_next_choice_is_shown_before_it_is_taken_and_can_be_skipped():
    greedy = search(two_blocks(), rules=default_rules().only(["fold-batchnorm-into-conv"]))
    events = greedy.events()
    event = next(events)
    while not isinstance(event, Proposed):
        event = next(events)
    assert ops(greedy.position.graph)["BatchNormalization"] == 2
    rest = [events.send(Answer.SKIP), *events]
    assert not any(isinstance(event, Taken) and len(event.candidates) == 2 for event in rest)


def test_banned_places_are_left_alone():
    banned = frozenset({"fold-batchnorm-into-conv:n0+n1"})
    greedy = search(two_blocks(), rules=default_rules().only(["fold-batchnorm-into-conv"]), banned=banned)
    list(greedy.events())
    assert ops(greedy.position.graph)["BatchNormalization"] == 1


def test_a_move_that_fails_the_check_is_not_taken():
    graph = two_blocks()
    greedy = search(graph)
    wrong = check_equivalence(graph, search_wrong(graph), run)
    assert not wrong.passed
    greedy.check = lambda _graph, _kind: wrong
    events = list(greedy.events())
    assert not any(isinstance(event, Taken) for event in events)
    assert any(isinstance(event, Failed) and "differs by" in event.reason for event in events)


def search_wrong(graph: Graph) -> Graph:
    """The graph with one weight scaled: runs, but computes something else."""
    import onnx_ir as ir

    clone = graph.clone()
    weight = clone.model.graph.initializers["w1"]
    weight.const_value = ir.tensor(weight.const_value.numpy() * 1.5, name="w1")
    return clone


def test_inverse_pairs_do_not_loop():
    greedy = search(two_blocks(), rules=all_rules(), budget=60)
    events = list(greedy.events())
    assert isinstance(events[-1], Finished)
    seen = [event.graph.fingerprint() for event in events if isinstance(event, Taken)]
    assert len(seen) == len(set(seen))
    assert all(isinstance(event, Evaluated) is False or event.spent <= 60 for event in events)
