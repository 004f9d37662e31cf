"""What is left out of a set that gains: by planted savings per site, alone and inside a search."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest

from explorer.cost import Delta, Source, Verdict
from explorer.graph import Graph
from explorer.rewrite import default_rules
from explorer.search import Evaluated, Finished, LeftOut, Taken
from explorer.search.shedding import shed
from tests.rewrite.harness import graph_of
from tests.search.test_greedy import search

RULES = default_rules().only(["fold-batchnorm-into-conv"])
NOISE = 0.004


def shed_planted(
    savings: dict[str, float], limit: int = 100
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """What is kept, and what was left out for comparison; savings are logs of time ratios, most at stake first."""
    asked = []

    def leave_out(kept, part):
        assert set(part) < set(kept)
        asked.append(part)
        change = sum(savings[site] for site in part)
        verdict = (
            Verdict.FASTER if change < -NOISE else Verdict.SLOWER if change > NOISE else Verdict.WITHIN_NOISE
        )
        return Delta(exp(change), exp(change), exp(change), verdict, Source.MEASURED, "planted", "")
        yield

    steps = shed(tuple(savings), exp(-sum(savings.values())), lambda: len(asked) < limit, leave_out)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, asked


def sites(*savings: float) -> dict[str, float]:
    return {f"s{i}": value for i, value in enumerate(savings)}


def test_a_set_in_which_all_pay_costs_one_comparison():
    kept, asked = shed_planted(sites(*[0.01] * 8))
    assert kept == tuple(f"s{i}" for i in range(8))
    assert asked == [("s4", "s5", "s6", "s7")]


def test_the_half_that_costs_something_goes_and_the_rest_is_looked_at_again():
    kept, asked = shed_planted(sites(0.03, 0.03, 0.03, -0.02, -0.01, -0.01, -0.01, -0.01))
    assert kept == ("s0", "s1", "s2")
    assert asked[0] == ("s4", "s5", "s6", "s7")
    assert len(asked) <= 4


def test_the_half_with_most_at_stake_may_be_the_one_that_costs():
    kept, _ = shed_planted(sites(-0.01, -0.01, -0.01, -0.01, 0.03, 0.03, 0.03, 0.03))
    assert kept == ("s4", "s5", "s6", "s7")


def test_a_half_that_saves_too_little_is_divided():
    """To the quarter that costs something; a site that hides among those that pay their share stays."""
    kept, asked = shed_planted(sites(0.02, 0.02, 0.02, 0.02, 0.02, -0.01, 0.005, -0.014))
    assert asked[:2] == [("s4", "s5", "s6", "s7"), ("s6", "s7")]
    assert kept == ("s0", "s1", "s2", "s3", "s4", "s5")


def test_comparisons_end_with_the_budget_and_a_single_site_stays():
    _, asked = shed_planted(sites(0.1, *[-0.01] * 7), limit=2)
    assert len(asked) == 2
    assert shed_planted(sites(0.1)) == (("s0",), [])


def blocks(sizes: list[int]) -> Graph:
    """A convolution with a normalisation per size (of its kernel), one after the other."""
    rng, lines, weights = np.random.default_rng(0), [], {}
    for i, size in enumerate(sizes):
        weights[f"w{i}"] = rng.standard_normal((4, 4, size, size)).astype("f4")
        pads = f"pads=[{', '.join([str(size // 2)] * 4)}]"
        lines += [f"c{i} = Conv<{pads}>(x{i}, w{i})", f"x{i + 1} = BatchNormalization(c{i}, s, b, m, v)"]
    weights |= {n: rng.uniform(0.5, 1.5, 4).astype("f4") for n in ("s", "b", "m", "v")}
    text = "\n".join(lines)
    return graph_of(
        f"(float[1,4,8,8] x) => (float[1,4,8,8] y) {{ x0 = Relu(x)\n{text}\ny = Relu(x{len(sizes)}) }}",
        **weights,
    )


def normalised(graph: Graph) -> set[int]:
    """Which blocks still have their normalisation."""
    names = [n.outputs[0].name or "" for n in graph.nodes if n.op_type == "BatchNormalization"]
    return {int(name[1:]) - 1 for name in names}


def planted(savings_ns: list[float]):
    def run_ns(graph, _target):
        folded = set(range(len(savings_ns))) - normalised(graph)
        return 1e7 - sum(savings_ns[i] for i in folded)

    return run_ns


def test_a_search_takes_of_a_gaining_set_only_what_pays():
    """Small convolutions lose what large ones gain more of."""
    sizes = [1, 3, 1, 3, 1, 3, 1, 3]
    savings = [-1e5 if size == 1 else 3e5 for size in sizes]
    greedy = search(blocks(sizes), planted(savings), RULES)
    events = list(greedy.events())
    first = next(event for event in events if isinstance(event, Evaluated))
    assert len(first.move.places) == 8
    assert first.delta.verdict is Verdict.FASTER
    (left_out,) = [event for event in events if isinstance(event, LeftOut) and event.is_better]
    assert left_out.label == "fold-batchnorm-into-conv at 8 places, without 4 of them"
    assert left_out.delta.ratio == pytest.approx((1e7 - 1.2e6) / (1e7 - 0.8e6))
    (taken,) = [event for event in events if isinstance(event, Taken)]
    assert taken.delta.ratio == pytest.approx(1 - 0.12)
    assert normalised(greedy.position.graph) == {i for i, size in enumerate(sizes) if size == 1}
    assert isinstance(events[-1], Finished)


def test_where_all_sites_pay_one_comparison_more_is_made():
    greedy = search(blocks([1, 3, 1, 3]), planted([1e5] * 4), RULES)
    events = list(greedy.events())
    assert [event.is_better for event in events if isinstance(event, LeftOut)] == [False]
    assert greedy.spent == 2
    assert not normalised(greedy.position.graph)


def test_a_search_is_the_same_every_time():
    def told():
        greedy = search(blocks([1, 3, 1, 3, 3]), planted([-1e5, 3e5, -1e5, 3e5, 2e5]), RULES)
        return [(type(event), getattr(event, "move", None)) for event in greedy.events()]

    assert told() == told()


def test_a_small_budget_is_not_spent_on_leaving_out():
    greedy = search(blocks([1, 3]), planted([-1e5, 3e5]), RULES, budget=2)
    events = list(greedy.events())
    assert not [event for event in events if isinstance(event, LeftOut)]
    assert greedy.spent <= 2
