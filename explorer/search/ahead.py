"""Looking ahead: a path found by predictions, which cost little, to be measured as one move.

Gains that only show together (four fusions of an attention block, each within noise) are not found by measuring one
move after the other. A predicted cost finds the path; whether it is worth taking is measured, like everything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from explorer.cost import CostModel
from explorer.errors import RewriteError
from explorer.graph import Graph
from explorer.rewrite import RuleSet
from explorer.search.moves import AppliedMove, Move, apply_move

SCOUT_BUDGET = 60


@dataclass(frozen=True)
class Scout:
    """What to look ahead with.

    Attributes:
        cost: predicts; its answers decide nothing but what is measured first.
        budget: how many predictions may be made.
    """

    cost: CostModel
    budget: int = SCOUT_BUDGET


@dataclass(frozen=True)
class Part:
    """One move of a path, and the ratio of times that was predicted for it."""

    move: Move
    ratio: float


@dataclass(frozen=True)
class Path:
    """Parts that were applied one after the other, as one move."""

    parts: tuple[Part, ...]
    applied: AppliedMove

    @property
    def ratio(self) -> float:
        """Time after / time before, as predicted for its parts."""
        return prod(part.ratio for part in self.parts)


def join(graph: Graph, parts: Sequence[Part], rules: RuleSet) -> Path | None:
    """The path of those parts that apply to a graph one after the other; None if none does."""
    done: AppliedMove | None = None
    used = []
    for part in parts:
        further = _continue(graph, done, part.move, rules)
        if further is not done:
            done = further
            used.append(part)
    return None if done is None else Path(tuple(used), done)


def _continue(graph: Graph, done: AppliedMove | None, move: Move, rules: RuleSet) -> AppliedMove | None:
    """``done`` and what of a move's chain still applies after it."""
    for one in move.chain:
        current = graph if done is None else done.graph
        try:
            own = apply_move(current, replace(one, after=None), rules)
        except RewriteError:
            continue
        if own is not None:
            places = tuple(candidate.place for candidate in own.candidates)
            own = replace(own, move=replace(own.move, places=places))
            done = own if done is None else done.then(own)
    return done
