"""Take a session's result away: as a checked ONNX file, or as a replayable record."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from explorer.errors import VerificationError
from explorer.graph import save
from explorer.rewrite import EquivalenceReport
from explorer.runtime import CancelToken, Delta
from explorer.search import Trajectory

if TYPE_CHECKING:
    from explorer.session.session import Session


@dataclass(frozen=True)
class ExportResult:
    """A written model, how it was checked, and how its time compares if that was measured."""

    path: Path
    report: EquivalenceReport
    total: Delta | None


def export(session: Session, path: str | Path, cancel: CancelToken | None) -> ExportResult:
    """Check the current graph against the original, then write it; see ``Session.export``."""
    report = session.check(cancel=cancel)
    if not report.passed:
        raise VerificationError(f"'{session.graph.name}' was not exported: {report.sentence()}.")
    total = session.total()
    return ExportResult(save(session.graph, path), report, None if total is None else total.delta)


def trajectory(session: Session, settings: dict[str, str]) -> Trajectory:
    """The accepted rewrites as a replayable record."""
    return Trajectory(
        model=session.origin or session.original.name,
        fill_weights=session.fill_weights,
        start=session.original.fingerprint(),
        end=session.graph.fingerprint(),
        steps=session.steps,
        settings={"target": str(session.target), **settings},
    )
