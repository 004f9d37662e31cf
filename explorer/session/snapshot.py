"""All that a screen needs to know of a session, frozen and numbered."""

from __future__ import annotations

from dataclasses import dataclass

from explorer.graph import GraphSummary
from explorer.rewrite import Candidate, NumericClass, Rejection
from explorer.runtime import Delta, Protocol, RuntimeView, Source
from explorer.runtime.profile import Profile
from explorer.runtime.roofs import Roofs
from explorer.search.portability import Matrix


@dataclass(frozen=True)
class CandidateRow:
    """One line of the candidate table.

    Attributes:
        candidate: what would be done, and where.
        title: the rule in words.
        family: of the rule.
        predicted: what a cost model expects, if it was asked.
        measured: what was measured, if it was.
        is_rejected: whether the user left this place alone.
        is_absorbed: whether the target's own optimiser does it already; None if that was not asked.
        unpredicted: why it could not be predicted; "" if that is not so.
    """

    candidate: Candidate
    title: str
    family: str
    predicted: Delta | None
    measured: Delta | None
    is_rejected: bool
    is_absorbed: bool | None = None
    unpredicted: str = ""

    @property
    def id(self) -> str:
        """The candidate's id."""
        return self.candidate.id

    @property
    def numeric_class(self) -> NumericClass:
        """What the rewrite does to the numbers."""
        return self.candidate.numeric_class


@dataclass(frozen=True)
class HistoryRow:
    """One acceptance: rules and places, the delta (measured, or else predicted), the numerical check."""

    label: str
    places: tuple[str, ...]
    delta: Delta | None
    check: str
    is_undone: bool


@dataclass(frozen=True)
class CurvePoint:
    """Time relative to the original after ``step`` acceptances; None where nothing is known.

    The ratio is the product of the steps' ratios, low and high those of their intervals: a conservative
    band, not a measurement of the whole. It is predicted from the first step on that was not measured.
    """

    step: int
    label: str
    ratio: float | None
    low: float | None
    high: float | None
    source: Source = Source.MEASURED


@dataclass(frozen=True)
class Snapshot:
    """A consistent view of a session.

    Attributes:
        number: grows with every change of state; results that belong to an older one are stale.
        name: the model's name.
        target: canonical target spec.
        protocol: how candidates and totals are timed.
        fingerprint: of the current graph; "" if it is not ready.
        summary: the current graph.
        is_ready: whether the current graph's candidates are known; if not, rows and rejections are empty.
        rows: its candidates, in the order of ``explorer.session.ranking.ordered``.
        rejections: near misses, with reasons.
        switches: settings of the runtime and freezing, as far as they are known.
        are_switches_complete: whether the runtime was asked which of its optimisers act on the graph.
        history: accepted and undone rewrites, in order.
        position: how many of them are in effect.
        curve: time over steps.
        profile: which node costs what on the target, if that was measured for the current graph.
        roofs: what the target reaches at best, if that was measured.
        view: the current graph as the runtime executes it, if it was asked.
        matrix: the portability matrix of this session, if there is one.
        total: measured delta of the current graph against the original, if it was measured.
        is_opt_in: whether rules of class D and A are offered.
    """

    number: int
    name: str
    target: str
    protocol: Protocol
    fingerprint: str
    summary: GraphSummary
    is_ready: bool
    rows: tuple[CandidateRow, ...]
    rejections: tuple[Rejection, ...]
    switches: tuple[CandidateRow, ...]
    are_switches_complete: bool
    history: tuple[HistoryRow, ...]
    position: int
    curve: tuple[CurvePoint, ...]
    total: Delta | None
    profile: Profile | None
    roofs: Roofs | None
    view: RuntimeView | None
    matrix: Matrix | None
    is_opt_in: bool

    @property
    def can_undo(self) -> bool:
        """Whether there is something to undo."""
        return self.position > 0

    @property
    def can_redo(self) -> bool:
        """Whether there is something to redo."""
        return self.position < len(self.history)
