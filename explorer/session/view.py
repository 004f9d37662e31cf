"""Build snapshots: the session's state as values for a screen."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from explorer.graph import describe
from explorer.rewrite import all_rules
from explorer.runtime import Delta
from explorer.session.history import Entry
from explorer.session.snapshot import CandidateRow, CurvePoint, HistoryRow, Snapshot

if TYPE_CHECKING:
    from explorer.session.session import Session


def take_snapshot(session: Session, number: int) -> Snapshot:
    """A consistent view; call it under the session's lock."""
    found, total, history = session.enumeration(), session.total(), session.history
    return Snapshot(
        number=number,
        name=session.original.name,
        target=str(session.target),
        fingerprint=session.graph.fingerprint(),
        summary=describe(session.graph),
        rows=_rows(session),
        rejections=found.rejections,
        history=tuple(_history_row(e, i >= history.position) for i, e in enumerate(history.entries[1:])),
        position=history.position,
        curve=tuple(curve(history.past)),
        total=None if total is None else total.delta,
        is_opt_in=session.opt_in,
    )


def _rows(session: Session) -> tuple[CandidateRow, ...]:
    rows = []
    for candidate in session.candidates():
        rule = all_rules()[candidate.rule]
        known = session.measured(candidate.place)
        rows.append(
            CandidateRow(
                candidate=candidate,
                title=rule.title,
                family=rule.family,
                predicted=None,
                measured=None if known is None else known.delta,
                is_rejected=candidate.place in session.rejected,
            )
        )
    return tuple(rows)


def _history_row(entry: Entry, is_undone: bool) -> HistoryRow:
    return HistoryRow(
        label=entry.summary,
        places=tuple(step.place for step in entry.steps),
        measured=_delta(entry),
        check=entry.report.sentence() if entry.report is not None else "not checked",
        is_undone=is_undone,
    )


def _delta(entry: Entry) -> Delta | None:
    return next((step.measured for step in entry.steps if step.measured is not None), None)


def curve(entries: tuple[Entry, ...]) -> list[CurvePoint]:
    """Cumulative time relative to the original; unknown from the first unmeasured entry on."""
    points = [CurvePoint(0, "original", 1.0, 1.0, 1.0)]
    deltas: list[Delta] = []
    for step, entry in enumerate(entries, start=1):
        delta = _delta(entry)
        if delta is None or len(deltas) < step - 1:
            points.append(CurvePoint(step, entry.summary, None, None, None))
            continue
        deltas.append(delta)
        ratio, low, high = (prod(getattr(d, name) for d in deltas) for name in ("ratio", "low", "high"))
        points.append(CurvePoint(step, entry.summary, ratio, low, high))
    return points
