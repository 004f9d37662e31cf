"""The exact optimum by dynamic programming over order ideals.

The groups of every valid plan can run one after the other, so each prefix is closed under predecessors:
an order ideal. The best plan for an ideal is the best over its last group, which makes the search exact
over all plans and not only over intervals of one order.

From each ideal all groups that may come next are enumerated once each, by adding nodes in ascending
order; an activation that surely stays with its producer is added with it. A branch ends when a lower
bound of the demand reaches the buffer (the bound only grows), when a rule of the scheme is broken for
good, or when its parts can no longer meet. Nodes that are always alone, left-out ones among them, run as
soon as they can: that loses no plan.

Memory: an ideal costs about 400 bytes, so the default limit of 250,000 ideals means 100 MB, and the memo
of group costs 150 MB more at most.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from explorer.fusion.network import bits
from explorer.fusion.scheme import Scheme

IDEAL_LIMIT = 250_000
_LOOK_EVERY = 32  # groups tried between looks at the clock; a group of BRR takes up to a millisecond
_REPORT_SECONDS = 0.05


@dataclass(frozen=True)
class IdealProgress:
    """How far the search is. ``masks`` is the optimal plan once ``is_done``.

    Attributes:
        ideals: ideals expanded so far.
        placed: operations in the ideals at hand, of ``operations``.
        is_exceeded: given up, because the ideal or the time limit was reached.
    """

    ideals: int
    placed: int
    operations: int
    seconds: float
    is_done: bool = False
    is_exceeded: bool = False
    masks: tuple[int, ...] = ()


def ideal_steps(
    scheme: Scheme, *, ideal_limit: int = IDEAL_LIMIT, time_limit_seconds: float | None = None
) -> Iterator[IdealProgress]:
    """Search for the optimum; the last item is done or exceeded. Stop iterating to cancel."""
    return _IdealSearch(scheme, ideal_limit, time_limit_seconds).steps()


@dataclass(slots=True)
class _State:
    """The best way to an ideal: its cost, the group that completed it, where that began, what is ready."""

    cost: int
    group: int
    before: int
    ready: int


_Parts = tuple[tuple[int, int], ...]  # connected parts of a group: nodes, and what they can reach


@dataclass(slots=True)
class _Growth:
    """A group under enumeration: nodes ready after it, nodes still to be tried, its parts."""

    group: int
    ready: int
    candidates: int
    parts: _Parts


class _IdealSearch:
    def __init__(self, scheme: Scheme, ideal_limit: int, time_limit_seconds: float | None) -> None:
        self.scheme = scheme
        self.network = scheme.network
        self.ideal_limit = ideal_limit
        self.deadline = None if time_limit_seconds is None else time.perf_counter() + time_limit_seconds
        rules = scheme.rules
        self.alone = scheme.removed_mask | rules.solo
        self.barriers = rules.barriers
        self.no_entry = rules.no_entry
        self.meets = self._reachable_by_fusion()
        self.units, self.unit_succs = self._units()
        self.layers: list[list[int]] = [[] for _ in range(len(self.network.nodes) + 1)]
        self.states: dict[int, _State] = {}
        self.work = 0
        self.reported = time.perf_counter()

    def _reachable_by_fusion(self) -> tuple[int, ...]:
        """For each node, itself and all nodes that one group could reach from it."""
        found = [1 << i for i in range(len(self.network.nodes))]
        for i in reversed(range(len(found))):
            if not self.alone >> i & 1:
                for j in bits(self.network.succs[i] & ~self.alone):
                    found[i] |= 0 if self.barriers[j] >> i & 1 else found[j]
        return tuple(found)

    def _units(self) -> tuple[list[int], list[int]]:
        """Each node with those that follow it, and what comes after them, as bits."""
        units = [1 << i for i in range(len(self.network.nodes))]
        after = list(self.network.succs)
        for i in reversed(range(len(units))):
            leader = self.scheme.follows(i)
            if leader is not None:
                units[leader] |= units[i]
                after[leader] = after[leader] & ~(1 << i) | after[i]
        return units, after

    def steps(self) -> Iterator[IdealProgress]:
        started = time.perf_counter()
        total = len(self.network.nodes)
        ready = sum(1 << i for i, preds in enumerate(self.network.preds) if not preds)
        self._reach(0, 0, 0, 0, ready)
        expanded = 0
        for placed, layer in enumerate(self.layers):
            for ideal in layer:
                for _ in self._expand(ideal):
                    now = time.perf_counter()
                    is_over = self._is_over(now)
                    yield IdealProgress(expanded, placed, total, now - started, is_exceeded=is_over)
                    if is_over:
                        return
                expanded += 1
            layer.clear()
        seconds = time.perf_counter() - started
        yield IdealProgress(expanded, total, total, seconds, is_done=True, masks=self._plan())

    def _is_due(self) -> bool:
        """Whether it is time for a report, so that whoever iterates can stop at once."""
        now = time.perf_counter()
        is_due = now - self.reported > _REPORT_SECONDS
        if is_due:
            self.reported = now
        return is_due

    def _is_over(self, now: float) -> bool:
        return len(self.states) > self.ideal_limit or (self.deadline is not None and now > self.deadline)

    def _reach(self, before: int, group: int, ideal: int, cost: int, ready: int) -> None:
        """Note a way to an ideal, after running what is ready and always alone."""
        while single := ready & self.alone:
            low = single & -single
            ideal |= low
            ready ^= low
            if not low & self.scheme.removed_mask:
                cost += self.scheme.cost(low).dram_bytes
            ready |= self._freed(low.bit_length() - 1, ideal)
        known = self.states.get(ideal)
        if known is None:
            self.states[ideal] = _State(cost, group, before, ready)
            self.layers[ideal.bit_count()].append(ideal)
        elif cost < known.cost:
            known.cost, known.group, known.before = cost, group, before

    def _expand(self, ideal: int) -> Iterator[None]:
        """Every group that may come next: nodes are added in ascending order, so each is met once.

        Yields now and then, and when the limit of ideals is passed.
        """
        state = self.states[ideal]
        blocked: int | None = None
        grown = self.scheme.growing()
        path = [_Growth(0, state.ready, state.ready & ~self.alone, ())]
        while path:
            self.work += 1
            if len(self.states) > self.ideal_limit or (self.work % _LOOK_EVERY == 0 and self._is_due()):
                yield
            last = path[-1]
            if not last.candidates:
                path.pop()
                if path:
                    grown.undo()
                continue
            low = last.candidates & -last.candidates
            last.candidates ^= low
            node = low.bit_length() - 1
            if last.group and self._breaks_rule(node, last.group):
                continue
            further = self._larger(last, node, ideal)
            if len(further.parts) > 1:
                blocked = self._blocked(ideal) if blocked is None else blocked
                others = [self.meets[i] for i in bits(last.candidates & ~blocked)]
                if not _can_meet([reach for _, reach in further.parts], others, ~blocked):
                    continue
            grown.add(further.group & ~last.group)
            if last.group and grown.floor() >= self.scheme.capacity_bytes:
                grown.undo()
                continue
            if len(further.parts) == 1:
                cost = grown.cost()
                if cost.fits:
                    above = ideal | further.group
                    self._reach(ideal, further.group, above, state.cost + cost.dram_bytes, further.ready)
            if not last.group and low & self.no_entry:
                further.candidates = 0
            path.append(further)

    def _larger(self, last: _Growth, node: int, ideal: int) -> _Growth:
        """The group with a node and its followers added."""
        group = last.group | self.units[node]
        fresh = self._freed(node, ideal | group)
        ready = last.ready & ~(1 << node) | fresh
        candidates = last.candidates | fresh & ~self.alone
        return _Growth(group, ready, candidates, self._joined(node, last.parts))

    def _breaks_rule(self, node: int, group: int) -> bool:
        """Whether the scheme forbids the node in every group above this one."""
        is_entry = not self.network.preds[node] & group
        return bool(self.barriers[node] & group or (is_entry and self.no_entry >> node & 1))

    def _joined(self, node: int, parts: _Parts) -> _Parts:
        """The connected parts of a group after adding a node; the part that holds it comes first."""
        whole, reach, needs = self.units[node], self.meets[node], self.network.preds[node]
        others = []
        for part, far in parts:
            if part & needs:
                whole, reach = whole | part, reach | far
            else:
                others.append((part, far))
        return ((whole, reach), *others)

    def _freed(self, node: int, above: int) -> int:
        """What comes after a node and its followers and whose predecessors are all in the set above."""
        fresh = 0
        for j in bits(self.unit_succs[node]):
            if not self.network.preds[j] & ~above:
                fresh |= 1 << j
        return fresh

    def _blocked(self, ideal: int) -> int:
        """Nodes that cannot be in the next group: something that runs alone must come before them."""
        found = 0
        for i in bits(self.alone & ~ideal):
            found |= self.network.descendants[i]
        return found

    def _plan(self) -> tuple[int, ...]:
        ideal = self.network.all_nodes
        groups = []
        while True:
            state = self.states[ideal]
            singles = (ideal & ~state.before & ~state.group) & ~self.scheme.removed_mask
            groups += [1 << i for i in sorted(bits(singles), reverse=True)]
            if not state.group:
                return tuple(reversed(groups))
            groups.append(state.group)
            ideal = state.before


def _can_meet(reaches: list[int], further: list[int], allowed: int) -> bool:
    """Whether parts that reach these nodes can become one, by themselves or by way of further nodes."""
    common, *apart = (reach & allowed for reach in reaches)
    helpers = [reach & allowed for reach in further]
    while apart:
        near = [reach for reach in apart if reach & common]
        apart = [reach for reach in apart if not reach & common]
        if not near:
            near = [reach for reach in helpers if reach & common]
            helpers = [reach for reach in helpers if not reach & common]
            if not near:
                return False
        for reach in near:
            common |= reach
    return True
