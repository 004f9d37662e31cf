"""What a search tells whoever watches it."""

from __future__ import annotations

from dataclasses import dataclass

from explorer.cost import Delta
from explorer.graph import Graph
from explorer.rewrite import Candidate, EquivalenceReport
from explorer.search.moves import Move


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


Event = Evaluating | Evaluated | Failed | Proposed | Taken | Finished
