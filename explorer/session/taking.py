"""Take a session's result away: as a checked ONNX file, or as a replayable record."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from explorer.errors import VerificationError
from explorer.graph import save
from explorer.rewrite import EquivalenceReport
from explorer.runtime import CancelToken, Delta, Target
from explorer.runtime.backend import backend_for
from explorer.search import Trajectory

if TYPE_CHECKING:
    from explorer.session.session import Session


@dataclass(frozen=True)
class ExportResult:
    """A written model, how it was checked, and how its time compares if that was measured.

    Attributes:
        path: where it is.
        report: the numerical check.
        total: its time against the original, if that was measured.
        target: what it is meant for.
        settings: what the accepted switches ask of whoever loads it, by the runtime's own names; a model file
            cannot hold them.
    """

    path: Path
    report: EquivalenceReport
    total: Delta | None
    target: Target
    settings: dict[str, str]

    def sentence(self) -> str:
        """The check, and what the model is meant for, in words."""
        text = f"{self.report.sentence()}; meant for {self.target.label}"
        if not self.settings:
            return text
        asked = ", ".join(f"{name}={value or 'none'}" for name, value in self.settings.items())
        return f"{text}. The switches are not in the file: load it with {asked}"


def export(session: Session, path: str | Path, cancel: CancelToken | None) -> ExportResult:
    """Check the current graph against the original, then write it; see ``Session.export``."""
    report = session.check(cancel=cancel)
    if not report.passed:
        raise VerificationError(f"'{session.graph.name}' was not exported: {report.sentence()}.")
    total, target = session.total(), session.target
    return ExportResult(
        path=save(session.graph, path),
        report=report,
        total=None if total is None else total.delta,
        target=target,
        settings=_changed_settings(session.history.start_target(target), target),
    )


def _changed_settings(before: Target, after: Target) -> dict[str, str]:
    if before == after:
        return {}
    old, new = (backend_for(target.runtime).settings(target) for target in (before, after))
    return {name: value for name, value in new.items() if old.get(name) != value}


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
