"""Everything the app can do, without a screen."""

from explorer.session.jobs import Job, JobState
from explorer.session.optimise import Confirmed, OptimiseEvent
from explorer.session.session import ExportResult, Session
from explorer.session.snapshot import CandidateRow, CurvePoint, HistoryRow, Snapshot
from explorer.session.stepping import Stepper

__all__ = [
    "CandidateRow",
    "Confirmed",
    "CurvePoint",
    "ExportResult",
    "HistoryRow",
    "Job",
    "JobState",
    "OptimiseEvent",
    "Session",
    "Snapshot",
    "Stepper",
]
