"""Build snapshots: the session's state as values for a screen."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from explorer.graph import Graph, GraphSummary, describe
from explorer.rewrite import Candidate, all_rules
from explorer.runtime import Delta, Source
from explorer.session.history import Entry
from explorer.session.ranking import ordered
from explorer.session.snapshot import CandidateRow, CurvePoint, HistoryRow, Snapshot
from explorer.session.switches import FAMILY, Switch

if TYPE_CHECKING:
    from explorer.session.session import Session

_summaries: WeakKeyDictionary[Graph, GraphSummary] = WeakKeyDictionary()


def take_snapshot(session: Session, number: int) -> Snapshot:
    """A consistent view of what is known; call it under the session's lock."""
    found, history = session.known_enumeration(), session.history
    total = session.total() if found is not None else None
    known, key = session.known, (found.fingerprint if found else "", str(session.target))
    return Snapshot(
        number=number,
        name=session.original.name,
        target=str(session.target),
        protocol=session.protocol,
        fingerprint=found.fingerprint if found else "",
        summary=summary_of(session.graph),
        is_ready=found is not None,
        rows=_rows(session, found.candidates) if found else (),
        rejections=found.rejections if found else (),
        switches=tuple(_switch_row(session, one) for one in session.switches.known()) if found else (),
        are_switches_complete=found is not None and session.switches.is_complete,
        history=tuple(_history_row(e, i >= history.position) for i, e in enumerate(history.entries[1:])),
        position=history.position,
        curve=tuple(curve(history.past)),
        total=None if total is None else total.delta,
        profile=known.profiles.get(key),
        roofs=known.roofs.get(str(session.target)),
        view=known.views.get(key),
        matrix=known.matrix,
        is_opt_in=session.opt_in,
    )


def summary_of(graph: Graph) -> GraphSummary:
    """The description of a graph, made once."""
    if graph not in _summaries:
        _summaries[graph] = describe(graph)
    return _summaries[graph]


def _rows(session: Session, candidates: tuple[Candidate, ...]) -> tuple[CandidateRow, ...]:
    ratios = session.known.ranking.ratios(session.graph, candidates)
    return ordered([_row(session, candidate) for candidate in candidates], ratios)


def _row(session: Session, candidate: Candidate) -> CandidateRow:
    rule, known = all_rules()[candidate.rule], session.measured(candidate.place)
    return CandidateRow(
        candidate=candidate,
        title=rule.title,
        family=rule.family,
        predicted=session.predicted(candidate.place),
        measured=None if known is None else known.delta,
        is_rejected=candidate.place in session.rejected,
        is_absorbed=session.absorbed(candidate.place),
        unpredicted=session.unpredicted(candidate.place),
    )


def _switch_row(session: Session, switch: Switch) -> CandidateRow:
    known = session.measured(switch.place)
    return CandidateRow(
        candidate=switch,
        title=switch.title,
        family=FAMILY,
        predicted=None,
        measured=None if known is None else known.delta,
        is_rejected=switch.place in session.rejected,
    )


def _history_row(entry: Entry, is_undone: bool) -> HistoryRow:
    return HistoryRow(
        label=entry.summary,
        places=tuple(step.place for step in entry.steps),
        delta=_delta(entry),
        check=entry.check,
        is_undone=is_undone,
    )


def _delta(entry: Entry) -> Delta | None:
    deltas = (step.measured or step.predicted for step in entry.steps)
    return next((delta for delta in deltas if delta is not None), None)


def curve(entries: tuple[Entry, ...]) -> list[CurvePoint]:
    """Cumulative time relative to the original; unknown from the first entry on that has no delta."""
    points = [CurvePoint(0, "original", 1.0, 1.0, 1.0)]
    deltas: list[Delta] = []
    for step, entry in enumerate(entries, start=1):
        delta = _delta(entry)
        if delta is None or len(deltas) < step - 1:
            points.append(CurvePoint(step, entry.summary, None, None, None))
            continue
        deltas.append(delta)
        ratio, low, high = (prod(getattr(d, name) for d in deltas) for name in ("ratio", "low", "high"))
        is_predicted = any(d.source is Source.PREDICTED for d in deltas)
        source = Source.PREDICTED if is_predicted else Source.MEASURED
        points.append(CurvePoint(step, entry.summary, ratio, low, high, source))
    return points
