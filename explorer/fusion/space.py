"""The plans of one scheme as a space to search: draw, encode, put in order, edit.

A plan is a tuple of groups as bits. An encoding is one bit per *fusable edge* (1: both ends in one group),
edges that a rule of the scheme forbids to fuse left out. Groups that wait for each other are cut where
the order demands it: what can run of the first of them runs, the rest becomes a group of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from itertools import compress
from random import Random

from explorer.fusion.cuts import pieces, random_cut
from explorer.fusion.network import bits
from explorer.fusion.scheme import Scheme

_MEMO_LIMIT = 500_000
Masks = tuple[int, ...]


class PlanSpace:
    """All plans of a scheme."""

    def __init__(self, scheme: Scheme) -> None:
        self.scheme = scheme
        self.network = scheme.network
        self.kept = self.network.all_nodes & ~scheme.removed_mask
        rules = scheme.rules
        open_nodes = self.kept & ~rules.solo
        self.edges = tuple(
            (i, j)
            for j in bits(open_nodes)
            for i in bits(self.network.preds[j] & open_nodes & ~rules.barriers[j])
        )
        self._direct = tuple(preds & self.kept for preds in self.network.preds)
        self._around = self._needs_around()
        self._needs: dict[int, int] = {}

    def _needs_around(self) -> tuple[int, ...]:
        """For each node, the kept nodes it needs by way of left-out ones: never in its group."""
        through: list[int] = []
        for i, preds in enumerate(self.network.preds):
            found = 0
            for p in bits(preds & ~self.kept):
                found |= through[p]
            through.append(found if self.kept >> i & 1 else found | self._direct[i])
        return tuple(through)

    def total_bytes(self, masks: Masks) -> int:
        """DRAM traffic of a plan."""
        cost = self.scheme.cost
        return sum(cost(mask).dram_bytes for mask in masks)

    def alone(self) -> Masks:
        """Every operation in a group of its own."""
        return tuple(1 << i for i in bits(self.kept))

    def random_plan(self, rng: Random) -> Masks:
        """A plan with each edge fused with the same probability, itself drawn evenly from 0 to 1."""
        share = rng.random()
        draw = rng.random
        return self.decoded([draw() < share for _ in self.edges])

    def decoded(self, fused: Sequence[bool]) -> Masks:
        """The plan of an encoding, in an order in which it runs."""
        linked = [0] * len(self.network.nodes)
        for i, j in compress(self.edges, fused):
            linked[i] |= 1 << j
            linked[j] |= 1 << i
        groups = []
        rest = self.kept
        while rest:
            group = fresh = rest & -rest
            while fresh:
                low = fresh & -fresh
                reached = linked[low.bit_length() - 1] & ~group
                group |= reached
                fresh = (fresh ^ low) | reached
            groups.append(group)
            rest &= ~group
        return self.ordered(groups)

    def encoded(self, masks: Masks) -> list[bool]:
        """The encoding of a plan."""
        owner = {}
        for mask in masks:
            for i in bits(mask):
                owner[i] = mask
        return [owner[i] == owner[j] for i, j in self.edges]

    def ordered(self, masks: Iterable[int]) -> Masks:
        """Connected groups in an order in which they run, cut where they wait for each other.

        A group waits for the first node it needs; if all that are left wait, the first of them is cut.
        """
        stack = sorted(masks, key=_first, reverse=True)
        found: list[int] = []
        waiters: dict[int, list[int]] = {}
        waiting: set[int] = set()
        by_first: list[tuple[int, int]] = []
        done = awaited = 0
        while stack:
            mask = stack.pop()
            missing = self.needs(mask) & ~done
            if missing:
                low = missing & -missing
                waiting.add(mask)
                heappush(by_first, (mask & -mask, mask))
                waiters.setdefault(low, []).append(mask)
                awaited |= low
            else:
                found.append(mask)
                done |= mask
                for i in bits(mask & awaited):
                    freed = [m for m in waiters.pop(1 << i) if m in waiting]
                    waiting.difference_update(freed)
                    stack += freed
                awaited &= ~mask
            if not stack and waiting:
                first = heappop(by_first)[1]
                while first not in waiting:
                    first = heappop(by_first)[1]
                waiting.remove(first)
                ready = self._ready_part(first, done)
                stack += reversed(pieces(self.network, (ready, first & ~ready)))
        return tuple(found)

    def needs(self, mask: int) -> int:
        """Kept nodes that must have run before a group; itself, if it cannot run as a whole."""
        found = self._needs.get(mask)
        if found is None:
            direct = around = 0
            rest = mask
            while rest:
                low = rest & -rest
                rest ^= low
                i = low.bit_length() - 1
                direct |= self._direct[i]
                around |= self._around[i]
            found = direct & ~mask | around
            if len(self._needs) >= _MEMO_LIMIT:
                self._needs.clear()
            self._needs[mask] = found
        return found

    def _ready_part(self, mask: int, done: int) -> int:
        """The nodes of a group that can run before anything else does."""
        ready = 0
        for i in bits(mask):
            if not (self._direct[i] & ~(done | ready) or self._around[i] & ~done):
                ready |= 1 << i
        return ready

    def edited(self, masks: Masks, rng: Random) -> Masks:
        """A plan after one random edit: merge two groups, move an operation, or split a group."""
        groups = list(masks)
        kind = rng.randrange(3)
        splittable = [mask for mask in groups if mask & (mask - 1)] if kind == 2 else []
        if splittable:
            return self.ordered(self._split(groups, rng.choice(splittable), rng))
        if not self.edges:
            return masks
        i, j = rng.choice(self.edges)
        first = next(mask for mask in groups if mask >> i & 1)
        if first >> j & 1:
            return self.ordered(self._split(groups, first, rng))
        second = next(mask for mask in groups if mask >> j & 1)
        groups = [mask for mask in groups if mask not in (first, second)]
        if kind == 0:
            return self.ordered([*groups, first | second])
        moved = 1 << (i if rng.random() < 0.5 else j)
        giver, taker = (first, second) if moved & first else (second, first)
        return self.ordered([*groups, taker | moved, *self.network.components(giver & ~moved)])

    def _split(self, groups: list[int], mask: int, rng: Random) -> list[int]:
        return [*(m for m in groups if m != mask), *random_cut(self.network, mask, rng)]


def _first(mask: int) -> int:
    return mask & -mask
