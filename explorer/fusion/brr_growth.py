"""A BRR group that grows and shrinks, with a lower bound of what it will need whatever follows it.

Nodes come in ascending order, so which convolutions hold all their channels is settled as they come, for
either way to start. Rows only become more: each result has one, an operand as many as its window.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from explorer.fusion.network import FusionNetwork, bits
from explorer.fusion.scheme import GroupCost
from explorer.fusion.streaming import Mode


class RowBytes(NamedTuple):
    """Bytes of one row of a tensor: all channels, and only the unrolled ones."""

    full: int
    partial: int


class _Way(NamedTuple):
    """One way to start: whether the next convolution is full, and the bytes so far."""

    is_next_full: bool
    total: int


class _Earlier(NamedTuple):
    mask: int
    ways: tuple[_Way, _Way]
    rows: list[tuple[int, int]]


class BrrGrowth:
    """A growing group.

    Args:
        network: what is fused.
        row_bytes: of each tensor.
        cost: cost of a set of nodes.
    """

    def __init__(
        self, network: FusionNetwork, row_bytes: tuple[RowBytes, ...], cost: Callable[[int], GroupCost]
    ) -> None:
        self._network = network
        self._row_bytes = row_bytes
        self._cost = cost
        self._mask = 0
        self._ways = (_Way(True, 0), _Way(False, 0))
        self._is_full: tuple[dict[int, bool], dict[int, bool]] = ({}, {})
        self._rows: dict[int, int] = {}
        self._earlier: list[_Earlier] = []

    def cost(self) -> GroupCost:
        """What the scheme says of the group."""
        return self._cost(self._mask)

    def floor(self) -> int:
        """Bytes that the group and every group grown from it by later nodes need at least."""
        return min(way.total for way in self._ways)

    def add(self, mask: int) -> None:
        """Add nodes, all of them after those already there."""
        now = _Earlier(self._mask, self._ways, [])
        self._earlier.append(now)
        for i in bits(mask):
            self._add(i, now.rows)

    def undo(self) -> None:
        """Take back the latest ``add``."""
        self._mask, self._ways, rows = self._earlier.pop()
        for tensor, count in reversed(rows):
            self._rows[tensor] = count

    def _add(self, index: int, changed: list[tuple[int, int]]) -> None:
        node, tensors = self._network.nodes[index], self._network.tensors
        producers = [tensors[r.tensor].producer for r in node.reads]
        sources = [p for p in producers if p is not None and self._mask >> p & 1]
        more = []
        for item, producer in zip(node.reads, producers, strict=True):
            height = tensors[item.tensor].rows
            rows = height if item.mode in {Mode.WHOLE, Mode.HELD} else min(height, node.kernel_rows)
            had = self._rows.get(item.tensor, 1)
            if producer is not None and producer in sources and rows > had:
                changed.append((item.tensor, had))
                self._rows[item.tensor] = rows
                more.append((item.tensor, producer, rows - had))
        for t in node.writes:
            changed.append((t, 1))
            self._rows[t] = 1
        self._mask |= 1 << index
        first, second = (
            self._with(way, full, index, sources, more)
            for way, full in zip(self._ways, self._is_full, strict=True)
        )
        self._ways = (first, second)

    def _with(
        self,
        way: _Way,
        is_full: dict[int, bool],
        index: int,
        sources: list[int],
        more: list[tuple[int, int, int]],
    ) -> _Way:
        """One way to start after a node: its row, and further rows of what it reads."""
        node = self._network.nodes[index]
        if node.is_matrix:
            is_full[index] = way.is_next_full
        else:
            is_full[index] = is_full[sources[0]] if sources else True
        total = way.total + sum(self._row(t, is_full[index]) for t in node.writes)
        for tensor, producer, rows in more:
            total += rows * self._row(tensor, is_full[producer])
        return _Way(way.is_next_full != node.is_matrix, total)

    def _row(self, tensor: int, is_full: bool) -> int:
        return self._row_bytes[tensor].full if is_full else self._row_bytes[tensor].partial
