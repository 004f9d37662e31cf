"""The order of the candidates: what is known first, then a rough count, then the graph."""

from __future__ import annotations

from dataclasses import replace
from threading import Event

import pytest

from explorer.runtime import Delta, Source, Verdict
from explorer.session.ranking import Ranking, ordered
from explorer.session.snapshot import CandidateRow
from tests.session.planted import FOLD, folds, planted_session

TARGET = "ort:level=all,threads=1"


@pytest.fixture
def session():
    with planted_session() as opened:
        yield opened


def delta(ratio: float, verdict: Verdict, source: Source = Source.MEASURED) -> Delta:
    return Delta(ratio, ratio * 0.99, ratio * 1.01, verdict, source, TARGET, "planted")


def test_known_gains_come_first_then_what_is_open_then_no_difference_then_losses(session):
    base = next(row for row in session.snapshot().rows if row.candidate.rule == FOLD)

    def row(name: str, **known: object) -> CandidateRow:
        candidate = replace(base.candidate, rule=name)
        return replace(base, candidate=candidate, **known)

    rows = [
        row("rejected", measured=delta(0.5, Verdict.FASTER), is_rejected=True),
        row("slower", measured=delta(1.3, Verdict.SLOWER)),
        row("absorbed", is_absorbed=True),
        row("noise", measured=delta(0.995, Verdict.WITHIN_NOISE)),
        row("open, promises little"),
        row("open, promises more"),
        row("predicted, unsure", predicted=delta(0.9, Verdict.WITHIN_NOISE, Source.PREDICTED)),
        row("predicted to gain", predicted=delta(0.8, Verdict.FASTER, Source.PREDICTED)),
        row("gains most", measured=delta(0.7, Verdict.FASTER)),
        row("measured beats predicted", measured=delta(1.2, Verdict.SLOWER),
            predicted=delta(0.1, Verdict.FASTER, Source.PREDICTED)),
    ]  # fmt: skip
    ratios = {row.candidate.place: 0.99 for row in rows if "little" in row.candidate.rule}
    ratios |= {row.candidate.place: 0.95 for row in rows if "more" in row.candidate.rule}
    assert [row.candidate.rule for row in ordered(rows, ratios)] == [
        "gains most",
        "predicted to gain",
        "predicted, unsure",
        "open, promises more",
        "open, promises little",
        "noise",
        "absorbed",
        "measured beats predicted",
        "slower",
        "rejected",
    ]


def test_before_anything_is_known_a_rough_count_orders_and_what_adds_work_comes_last(session):
    in_graph_order = [candidate.place for candidate in session.candidates()]
    assert [row.candidate.place for row in session.snapshot().rows] == in_graph_order
    session.prepare()
    rules = [row.candidate.rule for row in session.snapshot().rows]
    assert rules.index(FOLD) < rules.index("split-conv-channels")
    ratios = session.known.ranking.ratios(session.graph, session.candidates())
    by_rule = {c.rule: ratios[c.place] for c in session.candidates()}
    assert by_rule[FOLD] < 1 < by_rule["split-conv-channels"]
    assert len(rules) == len(in_graph_order)


def test_one_site_per_rule_speaks_for_the_others(session):
    ranking, (first, second) = Ranking(), folds(session)
    ranking.learn(session.graph, [first], session.rules)
    one, other = ranking.ratios(session.graph, [first, second]).values()
    assert 0 < one < 1
    assert 0 < other < 1


def test_learning_stops_when_asked(session):
    ranking, token = Ranking(), Event()
    token.set()
    ranking.learn(session.graph, session.candidates(), session.rules, token)
    assert set(ranking.ratios(session.graph, session.candidates()).values()) == {1.0}
