"""Where a search stands: a graph, the moves that lead on from it, and the graphs it came by.

Knows nothing of costs: any strategy can walk on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from explorer.errors import RewriteError
from explorer.graph import Graph
from explorer.rewrite import Candidate, RuleSet, Scan, rescan, scan
from explorer.search.ahead import Part, Path, join
from explorer.search.moves import AppliedMove, Move, apply_move, group_moves


class Position:
    """A graph under rewriting.

    Args:
        graph: where to start.
        rules: the rules to use.
        banned: places to leave alone.
    """

    def __init__(self, graph: Graph, rules: RuleSet, banned: frozenset[str] = frozenset()) -> None:
        self.graph, self.rules, self.banned = graph, rules, banned
        self._visited = {graph.fingerprint()}
        self._applied: dict[Move, AppliedMove] = {}
        self._scanned: tuple[Graph, Scan] | None = None

    def moves(self) -> list[Move]:
        """All sites of each rule together."""
        return group_moves(self._allowed(self._scan().enumeration().candidates))

    def offers(self, move: Move) -> bool:
        """Whether one of the places where a move begins is there."""
        offered = {c.place for c in self._allowed(self._scan().enumeration().candidates)}
        return not offered.isdisjoint(move.chain[0].places)

    def opened_by(self, applied: AppliedMove) -> list[Move]:
        """What becomes possible only after a move, as chains that begin with it."""
        now = self._scan()
        known = {c.place for c in now.enumeration().candidates}
        after = rescan(now, applied.graph, self.rules).enumeration()
        found = (c for c in after.candidates if c.place not in known)
        return group_moves(self._allowed(found), after=applied.move)

    def apply(self, move: Move) -> AppliedMove | None:
        """The graph after a move, or None if it breaks a promise, changes nothing, or was seen before."""
        if move not in self._applied:
            applied = self._apply_chain(move)
            if applied is None or self._was_seen(applied):
                return None
            self._applied[move] = applied
        return self._applied[move]

    def note(self, applied: AppliedMove) -> None:
        """Keep the graph after a move that was made elsewhere."""
        self._applied[applied.move] = applied

    def join(self, parts: Sequence[Part]) -> Path | None:
        """What of a path still applies, as one move; None if that is nothing, or leads to a graph already seen."""
        path = join(self.graph, parts, self.rules)
        if path is None or self._was_seen(path.applied):
            return None
        self.note(path.applied)
        return path

    def go(self, applied: AppliedMove) -> None:
        """Make a move."""
        self.graph = applied.graph
        self._visited.add(applied.graph.fingerprint())
        self._applied.clear()

    def _was_seen(self, applied: AppliedMove) -> bool:
        return applied.graph.fingerprint() in self._visited

    def _allowed(self, candidates: Iterable[Candidate]) -> Iterable[Candidate]:
        return (c for c in candidates if c.place not in self.banned)

    def _apply_chain(self, move: Move) -> AppliedMove | None:
        """The last move of a chain on what the moves before it gave, which is kept."""
        before = None if move.after is None else self.apply(move.after)
        if move.after is not None and before is None:
            return None
        start = self.graph if before is None else before.graph
        try:
            own = apply_move(start, replace(move, after=None), self.rules)
        except RewriteError:
            return None
        return own if own is None or before is None else before.then(own)

    def _scan(self) -> Scan:
        """Where rules apply to the current graph; after the first time only asked near what changed."""
        if self._scanned is None:
            self._scanned = (self.graph, scan(self.graph, self.rules))
        elif self._scanned[0] is not self.graph:
            known = self._scanned[1]
            self._scanned = (self.graph, rescan(known, self.graph, self.rules))
        return self._scanned[1]
