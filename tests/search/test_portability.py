from __future__ import annotations

import json
from dataclasses import replace

import pytest

from explorer.cost import Delta, Source, Verdict
from explorer.errors import InputError, RuntimeFailure
from explorer.graph import load
from explorer.search.portability import Cell, Found, Matrix, Optimised, travel
from explorer.search.trajectory import Step
from tests.models import model

FAST, SLOW = "ort:level=all,threads=1", "ort:level=disable,threads=1"
BEFORE = load(model("(float[4] x) => (float[4] y) { y = Exp(x) }"))
AFTER = {
    FAST: load(model("(float[4] x) => (float[4] y) { y = Sqrt(x) }")),
    SLOW: load(model("(float[4] x) => (float[4] y) { y = Abs(x) }")),
}


class Cost:
    """A row that only has a name."""

    def __init__(self, target):
        self.name, self.target = "measured", target

    def compare(self, base, other, *, careful=False):
        raise AssertionError("the search is planted")


def delta(ratio, target):
    verdict = Verdict.FASTER if ratio < 0.95 else Verdict.SLOWER if ratio > 1.05 else Verdict.WITHIN_NOISE
    return Delta(ratio, ratio * 0.99, ratio * 1.01, verdict, Source.MEASURED, target, "planted")


def search(graph, cost):
    assert graph is BEFORE
    return Found(AFTER[cost.target], (), 7)


def measure(before, after, column):
    assert before is BEFORE
    row = next(target for target, graph in AFTER.items() if graph is after)
    return delta({(FAST, FAST): 0.8, (FAST, SLOW): 1.3, (SLOW, SLOW): 0.9}.get((row, column), 1.0), column)


def matrix(search=search, measure=measure, rows=(FAST, SLOW)):
    events = list(travel("net", BEFORE, {row: Cost(row) for row in rows}, [FAST, SLOW], search, measure))
    optimised = tuple(e for e in events if isinstance(e, Optimised))
    cells = tuple(e for e in events if isinstance(e, Cell))
    assert events == [*optimised, *cells]
    return Matrix(rows, (FAST, SLOW), ("net",), optimised, cells, {"budget": "7"})


def test_every_result_is_measured_on_every_column():
    found = matrix()
    assert found.cell("net", FAST, FAST).delta.ratio == 0.8
    assert found.cell("net", FAST, SLOW).delta.ratio == 1.3
    assert found.cell("net", SLOW, FAST).delta.verdict is Verdict.WITHIN_NOISE
    assert [one.spent for one in found.optimised] == [7, 7]
    assert found.optimised[0].fingerprint == AFTER[FAST].fingerprint()


def test_cases_that_got_slower_than_doing_nothing_are_listed():
    found = matrix()
    assert [(c.row, c.column) for c in found.slower()] == [(FAST, SLOW)]
    assert found.counts() == {"FASTER": 2, "SLOWER": 1, "WITHIN_NOISE": 1, "IDENTICAL": 0, "FAILED": 0}
    assert (
        found.sentence()
        == "2 of 4 cells are measurably faster than the unoptimised model, 1 slower, 1 neither."
    )


def test_what_a_row_claims_is_the_product_over_its_moves_not_over_their_rewrites():
    half, tenth = delta(0.5, FAST), delta(0.9, FAST)
    steps = (
        Step("a:1", "a", ("1",), measured=half, batch=2),
        Step("a:2", "a", ("2",), measured=half, batch=2),
        Step("b:3", "b", ("3",), predicted=tenth),
        Step("c:4", "c", ("4",)),
    )
    one = Optimised("net", FAST, steps, 3, "f")
    assert one.claimed_ratio == pytest.approx(0.45)
    found = replace(matrix(), optimised=(one, Optimised("net", SLOW, (), 0, "", "it went wrong")))
    assert found.claim("net", FAST) == one.claimed_ratio
    assert found.claim("net", SLOW) is None
    assert found.claim("other", FAST) is None


def test_the_json_has_the_keys_that_others_build_on_and_reads_back():
    data = json.loads(json.dumps(matrix().to_json()))
    assert data["rows"] == data["columns"] == [FAST, SLOW]
    assert set(data["cells"][1]) >= {"row", "column", "delta"}
    assert set(data["cells"][1]["delta"]) >= {"ratio", "low", "high", "verdict", "target", "source"}
    assert [(c["row"], c["column"]) for c in data["slower"]] == [(FAST, SLOW)]
    assert Matrix.from_json(data) == matrix()
    data["cells"][0]["row"] = 3
    with pytest.raises(InputError, match="'row'"):
        Matrix.from_json(data)


def test_a_search_that_fails_costs_its_row_only():
    def failing(graph, cost):
        if cost.target == SLOW:
            raise RuntimeFailure("'net' cannot be loaded.")
        return search(graph, cost)

    found = matrix(search=failing)
    assert found.optimised[1].failure == found.cell("net", SLOW, FAST).failure == "'net' cannot be loaded."
    assert found.cell("net", FAST, SLOW).delta.ratio == 1.3
    assert "2 could not be timed" in found.sentence()


def test_a_measurement_that_fails_costs_its_cell_only():
    def failing(before, after, column):
        if column == SLOW:
            raise RuntimeFailure("no such operator.")
        return measure(before, after, column)

    found = matrix(measure=failing)
    assert found.counts()["FAILED"] == 2
    assert found.cell("net", SLOW, SLOW).failure == "no such operator."
    assert found.cell("net", SLOW, FAST).delta is not None
