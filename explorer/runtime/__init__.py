"""Running and measuring graphs: targets, the measuring protocol, worker processes, cached results."""

from __future__ import annotations

from explorer.runtime.delta import Delta, Source, Verdict
from explorer.runtime.executor import CancelToken, InlineExecutor, WorkerExecutor
from explorer.runtime.measurement import Latency, Measurement
from explorer.runtime.measurer import Measurer
from explorer.runtime.profile import Profile
from explorer.runtime.progress import OnProgress, Progress
from explorer.runtime.protocol import Mode, Protocol
from explorer.runtime.runtime_view import RuntimeView
from explorer.runtime.target import Target

__all__ = [
    "CancelToken",
    "Delta",
    "InlineExecutor",
    "Latency",
    "Measurement",
    "Measurer",
    "Mode",
    "OnProgress",
    "Profile",
    "Progress",
    "Protocol",
    "RuntimeView",
    "Source",
    "Target",
    "Verdict",
    "WorkerExecutor",
]
