"""Greedy search: take the move that gains most, until none gains; of a set of sites only those that pay.

A scout may look ahead by predictions: what it finds is compared first, as one move.

The search is a generator of events. It shows its next choice (``Proposed``) before it takes it; answer with
``send(Answer.SKIP)`` to override, or just go on to accept.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import InitVar, dataclass, field, replace
from enum import Enum
from functools import partial
from typing import TypeVar

from explorer.cost import CostModel, Delta, Verdict
from explorer.errors import RuntimeFailure, WorkerError
from explorer.graph import Graph
from explorer.rewrite import EquivalenceReport, NumericClass, RuleSet, loosest
from explorer.search.ahead import Part, Path, Scout
from explorer.search.events import (
    Evaluated,
    Evaluating,
    Event,
    Failed,
    Finished,
    LeftOut,
    Proposed,
    Scouted,
    Scouting,
    Taken,
)
from explorer.search.moves import AppliedMove, Move
from explorer.search.position import Position
from explorer.search.prior import rough_node_ns, rough_ns
from explorer.search.shedding import shed
from explorer.search.simplify import FOLDING_FAMILIES, simplify

PROMISING_RATIO = 0.985
"""Below this, an inconclusive comparison is worth repeating with care."""

_LEAST_PER_ROUND = 4
_LONGEST_CHAIN = 4
_SHEDDING_SHARE = 3
"""One part in so many of what is left of the budget may go into taking a gaining set apart."""

T = TypeVar("T")
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
        scout: predicts a path before anything is compared; None for no looking ahead.
    """

    graph: InitVar[Graph]
    rules: RuleSet
    cost: CostModel
    check: Check
    budget: int = 30
    banned: frozenset[str] = frozenset()
    scout: Scout | None = None
    spent: int = field(default=0, init=False)
    position: Position = field(init=False)
    _settled: set[Move] = field(default_factory=set, init=False)
    _pending: list[Move] = field(default_factory=list, init=False)
    _measured: dict[Move, float] = field(default_factory=dict, init=False)
    _guessed: dict[Move, float] = field(default_factory=dict, init=False)
    _folded: Move | None = field(default=None, init=False)
    _ahead: tuple[Part, ...] = field(default=(), init=False)
    _paths: dict[Move, Path] = field(default_factory=dict, init=False)

    def __post_init__(self, graph: Graph) -> None:
        self.position = Position(graph, self.rules, self.banned)

    def events(self) -> Generator[Event, Answer | None, None]:
        """Run until no move gains, the budget is spent, or the consumer closes the generator."""
        self._fold()
        yield from self._look_ahead()
        while True:
            best = yield from self._best_move()
            if best is None:
                yield Finished(self._why_finished(), self.spent)
                return
            yield from self._propose((yield from self._without_dead_weight(best)))

    def _fold(self) -> None:
        """Try first what folds and eliminates, all at once: it opens the rest, whatever it gains itself."""
        folding = self.rules.of_families(FOLDING_FAMILIES)
        folded = simplify(self.position.graph, folding, self.banned)
        if folded is not None:
            self._folded = folded.move
            self.position.note(folded)
            self._guessed[folded.move] = 0.0
            self._pending.append(folded.move)

    def _look_ahead(self) -> Generator[Event, None, None]:
        """Walk by predictions, and offer the whole way as one move."""
        if self.scout is None:
            return
        cost, parts = self.scout.cost, list[Part]()
        inner = Greedy(self.position.graph, self.rules, cost, self.check, self.scout.budget, self.banned)
        for event in inner.events():
            if isinstance(event, Evaluating):
                yield Scouting(event.move, event.spent, event.budget)
            elif isinstance(event, Taken):
                parts.append(Part(event.move, event.delta.ratio))
        self._ahead = tuple(parts)
        predicted = _predicted(cost, self.position.graph, inner.position.graph)
        offered = self._offer(self._ahead, first=True)
        yield Scouted(offered[0] if offered else None, len(parts), predicted, inner.spent)

    def _offer(self, parts: Sequence[Part], *, first: bool = False) -> list[Move]:
        """What of a path still applies as an open move; [] if that is nothing new."""
        path = self.position.join(parts)
        if path is None or path.applied.move in self._settled:
            return []
        move = path.applied.move
        self._guessed[move] = 0.0 if first else path.ratio
        if len(path.parts) > 1:
            self._paths[move] = path
        if len(path.parts) > 1 or first:
            self._pending.append(move)
        return [move]

    def _length(self, move: Move) -> int:
        """Moves in a chain; all the folding at its beginning counts as one."""
        folded = () if self._folded is None else self._folded.chain
        starts_folded = folded and move.chain[: len(folded)] == folded
        return len(move.chain) - (len(folded) - 1 if starts_folded else 0)

    def _propose(self, tried: _Tried) -> Generator[Event, Answer | None, None]:
        move, graph = tried.applied.move, tried.applied.graph
        report = self.check(graph, loosest(self.rules[rule].numeric_class for rule in move.rules))
        if not report.passed:
            self._settled.add(move)
            yield Failed(move, report.sentence())
            return
        answer = yield Proposed(move, tried.delta, report)
        if answer is Answer.SKIP:
            self._settled.add(move)
            return
        self.position.go(tried.applied)
        self._guessed.clear()
        self._pending = [m for m in self._pending if m not in self._paths]
        self._paths.clear()
        self._offer(self._ahead, first=True)
        yield Taken(move, tried.applied.candidates, graph, tried.delta, report)

    def _best_move(self) -> Generator[Event, Answer | None, _Tried | None]:
        """Evaluate open moves, most promising first, until the best one found beats what the rest promises.

        One round spends at most half of what is left of the budget, so that a gain is taken before it is gone.
        """
        queue, gaining = self._open_moves(), list[_Tried]()
        limit = self.spent + max(_LEAST_PER_ROUND, (self.budget - self.spent) // 2)
        while queue and self.spent < min(self.budget, limit if gaining else self.budget):
            queue.sort(key=self._promise)
            best = min((tried.delta.ratio for tried in gaining), default=1.0)
            if gaining and self._promise(queue[0]) >= best:
                break
            tried = yield from self._evaluate(queue.pop(0))
            if tried is None:
                continue
            move = tried.applied.move
            self._measured[move] = tried.delta.ratio
            if tried.delta.verdict is Verdict.FASTER:
                gaining.append(tried)
            else:
                self._settled.add(move)
                further = [*self._opened_by(tried), *self._divide(move, tried.delta)]
                queue += [one for one in further if one not in queue]
        return min(gaining, key=lambda tried: tried.delta.ratio, default=None)

    def _without_dead_weight(self, tried: _Tried) -> Generator[Event, Answer | None, _Tried]:
        """The same set without what costs more than it gains, if something is found: sites, or moves of a path."""
        move = tried.applied.move
        path = self._paths.get(move)
        if path is not None and len(path.parts) > 1:
            parts = tuple(sorted(path.parts, key=lambda part: part.ratio))
            return (yield from self._shed(tried, parts, self._part_of(path)))
        return (yield from self._shed(tried, self._by_stake(tried.applied), partial(_only, move)))

    def _shed(
        self, tried: _Tried, units: tuple[T, ...], only: Callable[[tuple[T, ...]], Move | None]
    ) -> Generator[Event, Answer | None, _Tried]:
        limit = self.spent + (self.budget - self.spent) // _SHEDDING_SHARE
        leave_out = partial(self._leave_out, only)
        kept = yield from shed(units, tried.delta.ratio, lambda: self.spent < limit, leave_out)
        smaller = None if len(kept) == len(units) else only(kept)
        if smaller is None:
            return tried
        better = yield from self._evaluate(smaller)
        return better if better is not None and better.delta.verdict is Verdict.FASTER else tried

    def _part_of(self, path: Path) -> Callable[[tuple[Part, ...]], Move | None]:
        """Some parts of a path, in its order, as a move; None if they do not apply alone."""

        def only(kept: tuple[Part, ...]) -> Move | None:
            moves = self._offer([part for part in path.parts if part in kept])
            return moves[0] if moves else None

        return only

    def _by_stake(self, applied: AppliedMove) -> tuple[str, ...]:
        """The sites of a move, those whose nodes take longest (by a rough guess) first."""
        move = applied.move
        before = None if move.after is None else self.position.apply(move.after)
        node_ns = rough_node_ns(self.position.graph if before is None else before.graph)
        stake = {c.place: sum(node_ns.get(node, 0.0) for node in c.nodes) for c in applied.candidates}
        return tuple(sorted((p for p in move.places if p in stake), key=lambda place: -stake[place]))

    def _leave_out(
        self, only: Callable[[tuple[T, ...]], Move | None], kept: tuple[T, ...], part: tuple[T, ...]
    ) -> Generator[Event, None, Delta | None]:
        """Compare some of the sites of a move, or of the parts of a path, with fewer of them."""
        whole, smaller = only(kept), only(tuple(unit for unit in kept if unit not in part))
        if whole is None or smaller is None:
            return None
        yield Evaluating(smaller, self.spent, self.budget)
        base, other = self.position.apply(whole), self.position.apply(smaller)
        if base is None or other is None:
            return None
        try:
            delta = self._compare(base.graph, other.graph)
        except (RuntimeFailure, WorkerError) as failure:
            self.spent += 1
            yield Failed(smaller, str(failure))
            return None
        without = _missing(base, other)
        yield LeftOut(whole, without, delta, delta.verdict is Verdict.FASTER, self.spent, self.budget)
        return delta

    def _promise(self, move: Move) -> float:
        """The ratio a move reached before, or else a rough guess."""
        return self._measured.get(move, self._guessed.get(move, 1.0))

    def _open_moves(self) -> list[Move]:
        """All sites of each rule together, and the parts of sets that did not pay as a whole."""
        self._pending = [move for move in self._pending if self.position.offers(move)]
        fresh = [move for move in self.position.moves() if move not in self._settled]
        self._guess(fresh)
        return list(dict.fromkeys([*fresh, *(m for m in self._pending if m not in self._settled)]))

    def _guess(self, moves: list[Move]) -> None:
        now_ns = rough_ns(self.position.graph)
        for move in moves:
            applied = self.position.apply(move)
            if applied is not None:
                self._guessed.setdefault(move, rough_ns(applied.graph) / now_ns)

    def _opened_by(self, tried: _Tried) -> list[Move]:
        """What becomes possible after a move that simplifies the graph without gaining by itself.

        A chain goes on as long as the runtime does the same anyway, which costs no comparison to find out; after a
        difference within noise, one more move is tried.
        """
        move = tried.applied.move
        verdict, length = tried.delta.verdict, self._length(move)
        is_neutral = verdict is Verdict.IDENTICAL or (verdict is Verdict.WITHIN_NOISE and length == 1)
        if not is_neutral or self._guessed.get(move, 1.0) >= 1.0 or length >= _LONGEST_CHAIN:
            return []
        moves = self.position.opened_by(tried.applied)
        self._guess(moves)
        return moves

    def _divide(self, move: Move, delta: Delta) -> list[Move]:
        """Halves of a move that did not pay as a whole; none if the runtime does it already.

        A set within noise is divided once, in case gains and losses cancel; a slower one until it is clear where.
        """
        path = self._paths.get(move)
        is_part = move in self._pending and (path is None or len(path.parts) < len(self._ahead))
        if delta.verdict is Verdict.IDENTICAL or (is_part and delta.verdict is Verdict.WITHIN_NOISE):
            return []
        if path is not None and len(path.parts) > 1:
            middle = (len(path.parts) + 1) // 2
            return [*self._offer(path.parts[:middle]), *self._offer(path.parts[middle:])]
        parts = [part for part in move.halves() if part not in self._settled]
        self._guessed.update({part: 1.0 + abs(delta.ratio - 1.0) / 2 for part in parts})
        self._pending += parts
        return parts

    def _evaluate(self, move: Move) -> Generator[Event, Answer | None, _Tried | None]:
        yield Evaluating(move, self.spent, self.budget)
        applied = self.position.apply(move)
        if applied is None:
            self._settled.add(move)
            yield Failed(move, "it no longer applies, or leads back to a graph already seen")
            return None
        try:
            delta = self._compare(self.position.graph, applied.graph)
        except (RuntimeFailure, WorkerError) as failure:
            self._settled.add(move)
            self.spent += 1
            yield Failed(move, str(failure))
            return None
        yield Evaluated(move, delta, self.spent, self.budget)
        return _Tried(applied, delta)

    def _compare(self, base: Graph, other: Graph) -> Delta:
        """Compare two graphs; once more, with care, if the answer is promising but not sure."""
        delta = self.cost.compare(base, other)
        if delta.verdict is Verdict.IDENTICAL:
            return delta
        self.spent += 1
        unsure = delta.verdict is Verdict.WITHIN_NOISE and delta.ratio < PROMISING_RATIO
        if unsure and self.spent < self.budget:
            self.spent += 1
            return self.cost.compare(base, other, careful=True)
        return delta

    def _why_finished(self) -> str:
        if self.spent >= self.budget:
            return f"the budget of {self.budget} comparisons is spent"
        return "no remaining rewrite is measurably faster"


def _predicted(cost: CostModel, base: Graph, other: Graph) -> Delta | None:
    """What is predicted for a whole path; None where there is none, or nothing can be said."""
    if other is base:
        return None
    try:
        return cost.compare(base, other)
    except RuntimeFailure:
        return None


def _missing(base: AppliedMove, other: AppliedMove) -> tuple[str, ...]:
    """Places that one move rewrites and another does not."""
    there = {candidate.place for candidate in other.candidates}
    return tuple(candidate.place for candidate in base.candidates if candidate.place not in there)


def _only(move: Move, places: tuple[str, ...]) -> Move:
    """A move at some of its places, in graph order."""
    return replace(move, places=tuple(place for place in move.places if place in places))
