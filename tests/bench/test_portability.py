"""What the portability campaign compares, and that its page repeats what was found."""

from __future__ import annotations

import json

import pytest

from explorer.bench import portability_page
from explorer.bench.portability import COLUMNS, MEASURED_MODELS, SUMS, TVM_MODELS, plans, summarise
from explorer.cost import Delta, Source, Verdict
from explorer.graph import sample_names
from explorer.runtime import Mode, Target
from explorer.search import Step
from explorer.search.portability import Cell, Matrix, Optimised

ALL, DISABLE = (str(Target.parse(spec)) for spec in COLUMNS[:2])
SUM = f"operator-sum@{DISABLE}"


def delta(ratio: float, verdict: Verdict, source: Source = Source.MEASURED) -> Delta:
    return Delta(ratio, ratio - 0.01, ratio + 0.01, verdict, source, ALL, "planted")


def steps(rule: str, count: int, found: Delta) -> tuple[Step, ...]:
    predicted, measured = (found, None) if found.source is Source.PREDICTED else (None, found)
    return tuple(Step(f"{rule}:{n}", rule, (str(n),), predicted, measured, count) for n in range(count))


PROMISE = delta(0.75, Verdict.FASTER, Source.PREDICTED)
MATRICES = (
    Matrix(
        rows=(SUM,),
        columns=(ALL, DISABLE),
        models=("net",),
        optimised=(Optimised("net", SUM, steps("fold-a", 3, PROMISE), 60, "f"),),
        cells=(
            Cell("net", SUM, ALL, delta(1.094, Verdict.SLOWER)),
            Cell("net", SUM, DISABLE, delta(0.98, Verdict.FASTER)),
        ),
        settings={"budget": "60"},
    ),
    Matrix(
        rows=(ALL, DISABLE),
        columns=(ALL,),
        models=("net",),
        optimised=(
            Optimised("net", ALL, steps("fuse-b", 1, delta(0.9, Verdict.FASTER)), 8, "g"),
            Optimised("net", DISABLE, (), 0, "", "it went wrong"),
        ),
        cells=(
            Cell("net", ALL, ALL, delta(0.91, Verdict.FASTER)),
            Cell("net", DISABLE, ALL, None, "it went wrong"),
        ),
        settings={"budget": "8"},
    ),
)


def test_every_sample_is_compared_by_sums_and_the_small_ones_by_measuring_too():
    found = list(plans(tuple(sample_names())))
    by_sum = {plan.models[0] for plan in found if plan.sums and not plan.targets}
    assert by_sum == set(sample_names())
    assert {plan.models[0] for plan in found if len(plan.targets) == 3} == set(MEASURED_MODELS)
    tvm = [plan for plan in found if "tvm:threads=1" in plan.rows]
    assert {plan.models[0] for plan in tvm} == set(TVM_MODELS)
    assert all(plan.opt_in and plan.protocol.mode is Mode.VALIDATED for plan in found)
    assert len(SUMS) == 2


def test_the_page_says_what_was_claimed_and_what_came_of_it():
    result = json.loads(json.dumps(summarise(MATRICES)))
    assert result["optimised"][0]["claimed_ratio"] == pytest.approx(0.75)
    text = portability_page.page(result)
    assert (
        "**Of 3 results 1 are slower than the unoptimised model and 2 faster.** 1 more could not be" in text
    )
    assert f"| net | `{SUM}` | -25.0 % | `{ALL}` | +9.4 % (+8.4 to +10.4), slower | fold-a × 3 |" in text
    assert "| measured on the same target | 1 | 1 | 0 | 0 | 0 |" in text
    assert "| sum of operator times on another target | 1 | 0 | 1 | 0 | 0 |" in text
    assert f"| `{DISABLE}` | - | could not be timed | - | it went wrong |" in text
    assert f"| `{ALL}` | 2 | 1 | 1 | 0 | 0 |" in text


def test_where_nothing_is_slower_the_page_says_so():
    kept = summarise(MATRICES[1:])
    assert "## Slower than doing nothing\n\nNone.\n" in portability_page.page(json.loads(json.dumps(kept)))
