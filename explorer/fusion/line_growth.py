"""A line-buffer group that grows and shrinks, its demand and traffic kept up to date.

The same sums as ``Lbdf`` takes over a whole set, but the time of a step does not depend on the group.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from explorer.fusion.line_tables import Crossing, LineTables, Step
from explorer.fusion.network import bits
from explorer.fusion.scheme import GroupCost


class _Earlier(NamedTuple):
    """The group before an ``add``: sums, and what to put back."""

    mask: int
    demand_bytes: int
    dram_bytes: int
    waiting_bytes: int
    kept: list[tuple[int, int]]
    outside: list[int]


class LineGrowth:
    """A growing group.

    Args:
        tables: the network.
        crossing: what tensors cost at the border.
        repeated_bytes: bytes of shared constants that a set reads beyond the first time.
        capacity_bytes: the buffer.
    """

    def __init__(
        self,
        tables: LineTables,
        crossing: Crossing,
        repeated_bytes: Callable[[int], int],
        capacity_bytes: int,
    ) -> None:
        self._tables = tables
        self._crossing = crossing
        self._repeated = repeated_bytes
        self._capacity = capacity_bytes
        self._mask = self._demand = self._dram = self._waiting = 0
        self._lag: dict[int, float] = {}  # a node taken back leaves its entry; it is rewritten on return
        self._kept: dict[int, int] = {}
        self._outside: set[int] = set()
        self._earlier: list[_Earlier] = []

    def cost(self) -> GroupCost:
        """Demand and traffic, in bytes."""
        return GroupCost(self._demand, self._dram, self._demand < self._capacity)

    def floor(self) -> int:
        """Weights and line buffers only grow with the group; the rows that wait at joins may not."""
        return self._demand - self._waiting

    def add(self, mask: int) -> None:
        """Add nodes, all of them after those already there."""
        now = _Earlier(self._mask, self._demand, self._dram, self._waiting, [], [])
        self._earlier.append(now)
        for i in bits(mask):
            step = self._tables.steps[i]
            weights = step.weight_bytes - self._repeated(self._mask | 1 << i) + self._repeated(self._mask)
            waiting = self._wait(step)
            self._waiting += waiting
            self._demand += weights + waiting + self._keep(step, now.kept)
            self._mask |= 1 << i
            self._dram += weights + step.streamed_bytes + self._move(step, now.outside)

    def undo(self) -> None:
        """Take back the latest ``add``."""
        self._mask, self._demand, self._dram, self._waiting, kept, outside = self._earlier.pop()
        self._outside.difference_update(outside)
        for tensor, rows in reversed(kept):
            self._kept[tensor] = rows

    def _is_inside(self, tensor: int) -> bool:
        producer = self._tables.producer[tensor]
        return producer >= 0 and bool(self._mask >> producer & 1)

    def _wait(self, step: Step) -> int:
        """Note how late the results are; bytes of operands that wait for the latest."""
        inside = [t for t in step.streams if self._is_inside(t)]
        latest = max((self._lag[t] for t in inside), default=0.0)
        late = (latest + step.lead_rows) / step.stride
        for t in step.writes:
            self._lag[t] = late
        if not latest or len(step.streams) < 2:
            return 0
        waiting = self._tables.waiting(inside, self._lag, latest)
        return sum(rows * self._tables.row_bytes[t] for t, rows in waiting)

    def _keep(self, step: Step, changed: list[tuple[int, int]]) -> int:
        """Bytes of rows kept for a window beyond those that are kept already."""
        total = 0
        for t, rows in step.windows:
            had = self._kept.get(t, 0)
            if rows > had:
                changed.append((t, had))
                self._kept[t] = rows
                total += (rows - had) * self._tables.row_bytes[t]
        return total

    def _move(self, step: Step, changed: list[int]) -> int:
        """Bytes that cross the border more than before: operands come in, results go out or no longer do."""
        total, size, crossing = 0, self._tables.tensor_bytes, self._crossing
        for t in step.reads:
            if self._is_inside(t):
                if not crossing.readers[t] & ~self._mask and not crossing.is_output[t]:
                    total -= size[t]
            elif not crossing.is_free[t] and t not in self._outside:
                changed.append(t)
                self._outside.add(t)
                total += size[t]
        for t in step.writes:
            if crossing.readers[t] or crossing.is_output[t]:
                total += size[t]
        return total
