"""Commands on switches of the runtime: list them, measure them."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from explorer.commands import open_session
from explorer.errors import RuntimeFailure, WorkerError
from explorer.printing import candidate_row, delta_text, print_result, say, show_progress

if TYPE_CHECKING:
    from explorer.session import CandidateRow, Session


def candidates(arguments: Namespace) -> int:
    """``explorer candidates --switches``."""
    with open_session(arguments) as session:
        found = session.switches.find()
        if arguments.measure:
            _measure_all(session, [switch.id for switch in found])
        snapshot = session.snapshot()
        data = {
            "fingerprint": snapshot.fingerprint,
            "target": snapshot.target,
            "candidates": [_row(row) for row in snapshot.switches],
            "rejections": [],
        }
    lines = [f"{len(snapshot.switches)} switches for {snapshot.name} on {snapshot.target}"]
    lines += [
        f"{row.candidate.place}  [{row.numeric_class}]  {row.candidate.summary}  {delta_text(row.measured)}".rstrip()
        for row in snapshot.switches
    ]
    return print_result(arguments, data, lines)


def measure(arguments: Namespace) -> int:
    """``explorer measure --switch``."""
    arguments.model = arguments.a
    with open_session(arguments) as session:
        switch = session.switches.get(arguments.switch)
        mode = "screening" if arguments.screening else "validated"
        found = session.measure(switch.id, mode, show_progress, fresh=True)
    data = {**found.to_json(), "a": arguments.a, "b": arguments.a, "switch": switch.place}
    line = f"{arguments.a}, {switch.place}: {delta_text(found.delta)}"
    return print_result(arguments, data, [line, switch.summary, *found.notices])


def _measure_all(session: Session, identifiers: list[str]) -> None:
    for number, identifier in enumerate(identifiers, start=1):
        say(f"measuring {number} of {len(identifiers)}: {session.find(identifier).place}")
        try:
            session.measure(identifier, "screening", show_progress)
        except (RuntimeFailure, WorkerError) as failure:
            say(f"not measured: {failure}")


def _row(row: CandidateRow) -> dict[str, Any]:
    return {**candidate_row(row), "place": row.candidate.place, "title": row.title}
