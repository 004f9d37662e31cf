from __future__ import annotations

import dataclasses

import pytest

from explorer.rewrite import Rejection, all_rules
from explorer.runtime import Delta, Source, Verdict
from explorer.session import CandidateRow, Session
from explorer.ui.table import CandidateTable, NearMissTable
from explorer.ui.table.wire import candidate_wire, delta_wire
from tests.session.planted import planted_session

TARGET = "ort:level=all,threads=1"


@pytest.fixture
def session():
    with planted_session() as opened:
        yield opened


def delta(low: float, ratio: float, high: float, verdict: Verdict, protocol: str = "validated: 10") -> Delta:
    return Delta(ratio, low, high, verdict, Source.MEASURED, TARGET, protocol)


@pytest.mark.parametrize(
    ("given", "sign", "text", "interval"),
    [
        (delta(0.91, 0.93, 0.95, Verdict.FASTER), "▼", "−7.0 %", "−9.0 … −5.0 %"),
        (delta(1.02, 1.05, 1.1, Verdict.SLOWER), "▲", "+5.0 %", "+2.0 … +10.0 %"),
        (delta(0.98, 1.001, 1.02, Verdict.WITHIN_NOISE), "≈", "+0.1 %", "−2.0 … +2.0 %"),
        (delta(0.9999, 0.9999, 1.02, Verdict.WITHIN_NOISE), "≈", "0.0 %", "0.0 … +2.0 %"),
        (Delta.identical(TARGET, "validated"), "=", "0 %", "the runtime executes the same graph"),
    ],
)
def test_a_delta_says_change_interval_verdict_and_origin(given: Delta, sign: str, text: str, interval: str):
    wire = delta_wire(given)
    assert (wire["sign"], wire["text"], wire["interval"]) == (sign, text, interval)
    assert wire["verdict_text"] == given.verdict.text
    assert wire["origin"].startswith("measured, validated")
    assert wire["origin"].endswith(f", on {TARGET}")


def test_a_screening_measurement_is_marked_as_such():
    screened = delta(0.91, 0.93, 0.95, Verdict.FASTER, "screening: 3 rounds of 9 samples")
    assert delta_wire(screened)["mark"] == "screening"
    assert delta_wire(delta(0.91, 0.93, 0.95, Verdict.FASTER))["mark"] == ""
    assert delta_wire(Delta.identical(TARGET, "screening: 3 rounds"))["mark"] == ""


def test_a_prediction_says_what_it_is():
    how = "sum of isolated operator times; what changes ± 24 %"
    predicted = Delta(0.9, 0.8, 0.95, Verdict.FASTER, Source.PREDICTED, TARGET, how)
    assert delta_wire(predicted)["mark"] == "operator sum"
    assert delta_wire(predicted)["origin"] == f"predicted, {how}, on {TARGET}"


def test_what_was_not_measured_has_no_delta():
    assert delta_wire(None) is None


def test_a_candidate_row_carries_place_class_and_weights(session: Session):
    row = next(row for row in session.snapshot().rows if row.candidate.rule == "fold-batchnorm-into-conv")
    wire = candidate_wire(row)
    assert (wire["nodes"], wire["kind"], wire["rejected"]) == (["n0", "n1"], "R", False)
    assert wire["bytes"] == row.candidate.bytes_delta
    assert wire["bytes_text"] == f"+{row.candidate.bytes_delta} B"
    assert wire["title"] == all_rules()["fold-batchnorm-into-conv"].title


def test_the_selection_stays_where_its_row_stays(session: Session):
    table, rows = CandidateTable(), session.snapshot().rows
    table.show(rows)
    table.selected = rows[1].id
    table.show(rows[1:])
    assert table.selected == rows[1].id
    table.show(rows[:1])
    assert table.selected == ""


def test_equal_rows_are_not_sent_again(session: Session):
    table, sent = CandidateTable(), []
    table.show(session.snapshot().rows)
    table.observe(lambda change: sent.append(change["name"]), ["rows"])
    table.show(session.snapshot().rows)
    assert sent == []
    row: CandidateRow = session.snapshot().rows[0]
    table.show([dataclasses.replace(row, is_rejected=True)])
    assert sent == ["rows"]


def test_states_before_while_and_after_looking(session: Session):
    table = CandidateTable()
    assert table.state == "closed"
    table.show((), ready=False)
    assert table.state == "loading"
    table.show(session.snapshot().rows)
    assert table.state == "ready"


def test_commands_of_keys_reach_the_listeners():
    table, heard = CandidateTable(), []
    table.on_command(heard.append)
    table._handle_custom_msg({"command": "accept"}, [])
    assert heard == ["accept"]


def test_near_misses_have_reasons_and_ids_of_their_own():
    table = NearMissTable()
    miss = Rejection("fold-batchnorm-into-conv", ("n1", "n2"), "the reason <b>")
    table.show([miss, miss], {"fold-batchnorm-into-conv": "Fold"})
    first, second = table.rows
    assert (first["title"], first["summary"], first["nodes"]) == ("Fold", "the reason <b>", ["n1", "n2"])
    assert first["id"] != second["id"]


def test_rows_at_the_selected_nodes_are_counted(session: Session):
    table = CandidateTable()
    table.show(session.snapshot().rows)
    table.focus = ["n1"]
    here = [row for row in session.snapshot().rows if "n1" in row.candidate.nodes]
    assert table.at_focus() == len(here) > 0
    table.focus = []
    assert table.at_focus() == 0
