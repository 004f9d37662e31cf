"""What a search tells whoever watches it."""

from __future__ import annotations

from dataclasses import dataclass

from explorer.cost import Delta
from explorer.graph import Graph
from explorer.rewrite import Candidate, EquivalenceReport
from explorer.search.moves import Move


@dataclass(frozen=True)
class Scouting:
    """A move is about to be predicted, in order to find what to measure; ``spent`` of ``budget`` predictions are made."""

    move: Move
    spent: int
    budget: int


@dataclass(frozen=True)
class Scouted:
    """The path that was found by predictions, and will be measured as one move.

    Attributes:
        move: the whole path as one move; None if there is none.
        moves: how many moves it has; 0 if nothing is predicted to gain.
        delta: what is predicted for the whole of it; None where there is no path, or no prediction for the whole.
        spent: predictions that were made.
    """

    move: Move | None
    moves: int
    delta: Delta | None
    spent: int

    @property
    def sentence(self) -> str:
        """What was found."""
        if not self.moves:
            return f"after {self.spent} predictions nothing is predicted to gain"
        noun = "1 move" if self.moves == 1 else f"{self.moves} moves"
        return f"{noun} found by {self.spent} predictions, to be measured together"


@dataclass(frozen=True)
class Evaluating:
    """A move is about to be evaluated; ``spent`` of ``budget`` evaluations are used."""

    move: Move
    spent: int
    budget: int


@dataclass(frozen=True)
class Evaluated:
    """A move was compared with the current graph."""

    move: Move
    delta: Delta
    spent: int
    budget: int


@dataclass(frozen=True)
class LeftOut:
    """A set of sites that gains was compared with the same set without some of them.

    Attributes:
        move: the set.
        without: the sites that were left out.
        delta: time without them relative to the time with them.
        is_better: whether they stay out: it is measurably faster without them.
        spent: comparisons made, of ``budget``.
        budget: comparisons that may be made.
    """

    move: Move
    without: tuple[str, ...]
    delta: Delta
    is_better: bool
    spent: int
    budget: int

    @property
    def label(self) -> str:
        """Such as "winograd-conv at 44 places, without 22 of them"."""
        return f"{self.move.label}, without {len(self.without)} of them"

    @property
    def fate(self) -> str:
        """What becomes of the sites that were left out."""
        return "they stay out" if self.is_better else "they stay in"


@dataclass(frozen=True)
class Failed:
    """A move could not be evaluated or is not equivalent; it is not tried again."""

    move: Move
    reason: str


@dataclass(frozen=True)
class Proposed:
    """The move that will be taken next, unless the answer says otherwise."""

    move: Move
    delta: Delta
    report: EquivalenceReport


@dataclass(frozen=True)
class Taken:
    """A move was applied: the new graph, and the candidates in the order of application."""

    move: Move
    candidates: tuple[Candidate, ...]
    graph: Graph
    delta: Delta
    report: EquivalenceReport


@dataclass(frozen=True)
class Finished:
    """The search ended, and why."""

    reason: str
    spent: int


Event = Scouting | Scouted | Evaluating | Evaluated | LeftOut | Failed | Proposed | Taken | Finished
