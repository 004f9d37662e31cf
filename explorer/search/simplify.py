"""Accept everything that makes a graph smaller, without measuring: what optimisers by rule do.

A baseline to compare measured searches with. It knows nothing of the target, so its result can be slower.
"""

from __future__ import annotations

from explorer.errors import RewriteError
from explorer.graph import Graph
from explorer.rewrite import RuleSet, find_candidates
from explorer.search.moves import AppliedMove, apply_move, group_moves
from explorer.search.prior import rough_ns

_MOST_ROUNDS = 40


def simplify(graph: Graph, rules: RuleSet, *, most_rounds: int = _MOST_ROUNDS) -> Graph:
    """Apply, round by round, the move that shrinks the rough cost most, until none shrinks it.

    Args:
        graph: where to start.
        rules: what may be used; the result's numeric class is that of the loosest rule among them.
        most_rounds: a limit on rounds; each round applies all disjoint sites of one rule.
    """
    for _ in range(most_rounds):
        best = _best(graph, rules)
        if best is None:
            return graph
        graph = best.graph
    return graph


def _best(graph: Graph, rules: RuleSet) -> AppliedMove | None:
    now_ns, best, best_ns = rough_ns(graph), None, rough_ns(graph)
    for move in group_moves(find_candidates(graph, rules).candidates):
        try:
            applied = apply_move(graph, move, rules)
        except RewriteError:
            continue
        after_ns = rough_ns(applied.graph) if applied is not None else now_ns
        if after_ns < best_ns:
            best, best_ns = applied, after_ns
    return best
