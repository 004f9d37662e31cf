"""Moves of a search: candidates of one rule, taken together or one by one.

Single rewrites often change the time by less than can be measured (twenty BatchNormalization folds gain 4 to
9 % together and 0.3 % each). So a search first tries all sites of a rule at once and divides the set only if
that does not pay (group testing).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from explorer.graph import Graph
from explorer.rewrite import Candidate, RuleSet, apply_many, find_candidates

_MOST_NAMED = 4  # moves of a chain that a label lists


@dataclass(frozen=True)
class Move:
    """Sites of one rule to be rewritten together, by place; perhaps after another move.

    Attributes:
        rule: the rule's name.
        places: where.
        after: a move to make first: one that gains nothing itself but opens these sites (folding a
            normalisation, then fusing the activation behind it).
    """

    rule: str
    places: tuple[str, ...]
    after: Move | None = None

    @property
    def label(self) -> str:
        """Such as "fold-batchnorm-into-conv at 20 places, then fuse-conv-activation at 17 places"."""
        chain = self.chain
        if len(chain) > _MOST_NAMED:
            places = sum(len(move.places) for move in chain[:-1])
            return f"{len(chain) - 1} moves at {places} places, then {_own_label(self)}"
        return ", then ".join(_own_label(move) for move in chain)

    @property
    def chain(self) -> tuple[Move, ...]:
        """The moves before it and itself, in order."""
        return (self,) if self.after is None else (*self.after.chain, self)

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules it uses, in order."""
        return tuple(move.rule for move in self.chain)

    def halves(self) -> tuple[Move, ...]:
        """The two halves of the set, in graph order; () for a single site."""
        middle = len(self.places) // 2
        if not middle:
            return ()
        return (
            Move(self.rule, self.places[:middle], self.after),
            Move(self.rule, self.places[middle:], self.after),
        )


@dataclass(frozen=True)
class AppliedMove:
    """The graph after a move, and the candidates that were applied, in order."""

    move: Move
    graph: Graph
    candidates: tuple[Candidate, ...]

    def then(self, other: AppliedMove) -> AppliedMove:
        """This move and one made on its graph, as one chain."""
        move = replace(other.move, after=self.move)
        return AppliedMove(move, other.graph, (*self.candidates, *other.candidates))


def _own_label(move: Move) -> str:
    count = len(move.places)
    return f"{move.rule} at {count} places" if count > 1 else move.places[0]


def group_moves(candidates: Iterable[Candidate], after: Move | None = None) -> list[Move]:
    """One move per rule (and variant): its sites that do not overlap, in graph order."""
    groups: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        groups[candidate.rule, candidate.variant].append(candidate)
    return [
        Move(rule, tuple(c.place for c in _disjoint(members)), after) for (rule, _), members in groups.items()
    ]


def apply_move(graph: Graph, move: Move, rules: RuleSet) -> AppliedMove | None:
    """Apply the sites of a move; those that no longer exist or that another one used up are left out.

    Returns:
        None if no site is left.

    Raises:
        RewriteError: the rewritten graph broke a promise.
    """
    first: tuple[Candidate, ...] = ()
    if move.after is not None:
        before = apply_move(graph, move.after, rules)
        if before is None:
            return None
        graph, first = before.graph, before.candidates
    offered = {c.place: c for c in find_candidates(graph, rules.only([move.rule])).candidates}
    wanted = [offered[place] for place in move.places if place in offered]
    result, applied = apply_many(graph, wanted, rules)
    return AppliedMove(move, result, (*first, *applied)) if applied else None


def _disjoint(candidates: Iterable[Candidate]) -> list[Candidate]:
    used: set[str] = set()
    chosen = []
    for candidate in candidates:
        if used.isdisjoint(candidate.nodes):
            used.update(candidate.nodes)
            chosen.append(candidate)
    return chosen
