"""Everything the app can do, without a screen."""

from explorer.session.jobs import Job, JobState, Runner
from explorer.session.keeping import Kept, keep, recent
from explorer.session.optimise import Confirmed, OptimiseEvent
from explorer.session.session import Session
from explorer.session.snapshot import CandidateRow, CurvePoint, HistoryRow, Snapshot
from explorer.session.stepping import Stepper
from explorer.session.taking import ExportResult

__all__ = [
    "CandidateRow",
    "Confirmed",
    "CurvePoint",
    "ExportResult",
    "HistoryRow",
    "Job",
    "JobState",
    "Kept",
    "OptimiseEvent",
    "Runner",
    "Session",
    "Snapshot",
    "Stepper",
    "keep",
    "recent",
]
