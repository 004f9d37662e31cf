"""Greedy search: take the move that gains most, until none gains.

The search is a generator of events. It shows its next choice (``Proposed``) before it takes it; answer with
``send(Answer.SKIP)`` to override, or just go on to accept.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from enum import Enum

from explorer.cost import CostModel, Delta, Verdict
from explorer.errors import RewriteError, RuntimeFailure, WorkerError
from explorer.graph import Graph
from explorer.rewrite import EquivalenceReport, NumericClass, RuleSet, find_candidates
from explorer.search.events import Evaluated, Evaluating, Event, Failed, Finished, Proposed, Taken
from explorer.search.moves import AppliedMove, Move, apply_move, group_moves

PROMISING_RATIO = 0.985
"""Below this, an inconclusive comparison is worth repeating with care."""

Check = Callable[[Graph, NumericClass], EquivalenceReport]


class Answer(Enum):
    """What to do with a proposed move."""

    TAKE = "take"
    SKIP = "skip"


@dataclass
class _Tried:
    """A move evaluated on the current graph."""

    applied: AppliedMove
    delta: Delta


@dataclass
class Greedy:
    """Greedy search with group testing.

    Args:
        graph: where to start.
        rules: the rules to use.
        cost: compares the current graph with one move further.
        check: compares a graph numerically with the original; a move that fails is refused.
        budget: how many comparisons may be made; those that the cost model answers with IDENTICAL are free.
        banned: places the user rejected; they are left out.
    """

    graph: Graph
    rules: RuleSet
    cost: CostModel
    check: Check
    budget: int = 30
    banned: frozenset[str] = frozenset()
    spent: int = field(default=0, init=False)
    _visited: set[str] = field(default_factory=set, init=False)
    _settled: set[Move] = field(default_factory=set, init=False)
    _pending: list[Move] = field(default_factory=list, init=False)
    _promise: dict[Move, float] = field(default_factory=dict, init=False)

    def events(self) -> Generator[Event, Answer | None, None]:
        """Run until no move gains, the budget is spent, or the consumer closes the generator."""
        self._visited.add(self.graph.fingerprint())
        while True:
            best = yield from self._best_move()
            if best is None:
                yield Finished(self._why_finished(), self.spent)
                return
            yield from self._propose(best)

    def _propose(self, tried: _Tried) -> Generator[Event, Answer | None, None]:
        move, graph = tried.applied.move, tried.applied.graph
        report = self.check(graph, self.rules[move.rule].numeric_class)
        if not report.passed:
            self._settled.add(move)
            yield Failed(move, report.sentence())
            return
        answer = yield Proposed(move, tried.delta, report)
        if answer is Answer.SKIP:
            self._settled.add(move)
            return
        self.graph = graph
        self._visited.add(graph.fingerprint())
        yield Taken(move, tried.applied.candidates, graph, tried.delta, report)

    def _best_move(self) -> Generator[Event, Answer | None, _Tried | None]:
        """Evaluate open moves, most promising first; stop early at one that gained as promised."""
        queue = self._open_moves()
        gaining: list[_Tried] = []
        while queue and self.spent < self.budget:
            queue.sort(key=lambda move: self._promise.get(move, 1.0))
            move = queue.pop(0)
            promised = move in self._promise and self._promise[move] < 1.0
            tried = yield from self._evaluate(move)
            if tried is None:
                continue
            self._promise[move] = tried.delta.ratio
            if tried.delta.verdict is Verdict.FASTER:
                gaining.append(tried)
                if promised:
                    break
            else:
                self._settled.add(move)
                queue += self._divide(move, tried.delta)
        return min(gaining, key=lambda tried: tried.delta.ratio, default=None)

    def _open_moves(self) -> list[Move]:
        """All sites of each rule together, and the parts of sets that did not pay as a whole."""
        found = [c for c in find_candidates(self.graph, self.rules).candidates if c.place not in self.banned]
        offered = {c.place for c in found}
        self._pending = [m for m in self._pending if not offered.isdisjoint(m.places)]
        moves = dict.fromkeys([*group_moves(found), *self._pending])
        return [move for move in moves if move not in self._settled]

    def _divide(self, move: Move, delta: Delta) -> list[Move]:
        """Halves of a move that did not pay as a whole; none if the runtime does it already."""
        if delta.verdict is Verdict.IDENTICAL:
            return []
        parts = [part for part in move.halves() if part not in self._settled]
        for part in parts:
            self._promise.setdefault(part, 1.0 + abs(delta.ratio - 1.0) / 2)
        self._pending += parts
        return parts

    def _evaluate(self, move: Move) -> Generator[Event, Answer | None, _Tried | None]:
        yield Evaluating(move, self.spent, self.budget)
        try:
            applied = apply_move(self.graph, move, self.rules)
            if applied is None or applied.graph.fingerprint() in self._visited:
                self._settled.add(move)
                yield Failed(move, "it no longer applies, or leads back to a graph already seen")
                return None
            delta = self._compare(applied.graph)
        except (RewriteError, RuntimeFailure, WorkerError) as failure:
            self._settled.add(move)
            self.spent += 1
            yield Failed(move, str(failure))
            return None
        yield Evaluated(move, delta, self.spent, self.budget)
        return _Tried(applied, delta)

    def _compare(self, graph: Graph) -> Delta:
        """Compare with the current graph; once more, with care, if the answer is promising but not sure."""
        delta = self.cost.compare(self.graph, graph)
        if delta.verdict is Verdict.IDENTICAL:
            return delta
        self.spent += 1
        unsure = delta.verdict is Verdict.WITHIN_NOISE and delta.ratio < PROMISING_RATIO
        if unsure and self.spent < self.budget:
            self.spent += 1
            return self.cost.compare(self.graph, graph, careful=True)
        return delta

    def _why_finished(self) -> str:
        if self.spent >= self.budget:
            return f"the budget of {self.budget} comparisons is spent"
        return "no remaining rewrite is measurably faster"
