"""Accept everything that makes a graph smaller, without measuring: what optimisers by rule do.

A baseline to compare measured searches with, and, with the rules that fold and eliminate only, where those
begin. It knows nothing of the target, so its result can be slower.
"""

from __future__ import annotations

from explorer.errors import RewriteError
from explorer.graph import Graph
from explorer.rewrite import RuleSet, find_candidates
from explorer.search.moves import AppliedMove, Move, apply_move, group_moves
from explorer.search.prior import rough_ns

FOLDING_FAMILIES = ("A", "B")
"""Elimination, folding and sharing; affine folding: what leaves less to do whatever the runtime is."""

_MOST_ROUNDS = 40


def simplify(
    graph: Graph,
    rules: RuleSet,
    banned: frozenset[str] = frozenset(),
    *,
    most_rounds: int = _MOST_ROUNDS,
) -> AppliedMove | None:
    """Apply, round by round, every move that shrinks the rough cost, until none does.

    Args:
        graph: where to start.
        rules: what may be used; the result's numeric class is that of the loosest rule among them.
        banned: places to leave alone.
        most_rounds: a limit on rounds; each round applies the disjoint sites of one rule after the other.

    Returns:
        One chain of moves; None if nothing shrinks.
    """
    done: AppliedMove | None = None
    for _ in range(most_rounds):
        before = done
        current = done.graph if done is not None else graph
        found = find_candidates(current, rules).candidates
        for move in group_moves(c for c in found if c.place not in banned):
            done = _shrink(graph, move, rules, done)
        if done is before:
            break
    return done


def _shrink(graph: Graph, move: Move, rules: RuleSet, done: AppliedMove | None) -> AppliedMove | None:
    """``done`` and one more move, if that shrinks the graph and still applies."""
    current = done.graph if done is not None else graph
    try:
        applied = apply_move(current, move, rules)
    except RewriteError:
        return done
    if applied is None or rough_ns(applied.graph) >= rough_ns(current):
        return done
    return applied if done is None else done.then(applied)
