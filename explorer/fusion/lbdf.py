"""LBDF, line-buffer depth first: all weights of a group stay on chip, feature maps stream through it.

The demand follows DeFiNES (Mei et al., HPCA 2023) and Shi et al. (JETCAS 2021): weights, plus K rows of
every tensor that a window of K rows reads, plus the rows that wait at joins. Every operation runs as soon
as its rows have arrived. Its result then lags behind the group's input: a window of K rows adds K // 2
rows, a Pad its front rows, and a stride divides. At a join the early operands wait for the latest one.

The alternative, to hold operations back until the consumer wants the row, needs fewer rows in some
groups and more in others; ``README.md`` has the derivation.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from explorer.fusion.network import FusionNetwork, FusionNode, bits
from explorer.fusion.report import BufferTerm, TermKind
from explorer.fusion.scheme import GroupRules, MemoisedScheme, solo_mask
from explorer.fusion.streaming import Mode

_ROUNDING = 1e-9
_Entry = tuple[TermKind, int, int, int]  # kind, tensor, rows, node


class _Step(NamedTuple):
    """What the demand needs to know of one node."""

    weight_bytes: int
    streams: tuple[int, ...]
    windows: tuple[tuple[int, int], ...]
    lead_rows: int
    stride: float
    writes: tuple[int, ...]


class Lbdf(MemoisedScheme):
    """The line-buffer depth-first scheme for one network and one buffer size."""

    name = "lbdf"

    def __init__(self, network: FusionNetwork, capacity_bytes: int) -> None:
        size = network.element_bytes
        self._steps = tuple(_step(network, node) for node in network.nodes)
        self._row_bytes = tuple(t.row_elements * size for t in network.tensors)
        self._rows = tuple(t.rows for t in network.tensors)
        self._producer = tuple(-1 if t.producer is None else t.producer for t in network.tensors)
        self._windowed = _window_readers(self._steps, len(network.tensors))
        super().__init__(network, capacity_bytes)
        self._traffic()

    def _rules(self) -> GroupRules:
        barriers = []
        for node in self.network.nodes:
            whole = [r.tensor for r in node.reads if r.mode in {Mode.WHOLE, Mode.HELD}]
            producers = {self._producer[t] for t in whole} - {-1}
            barriers.append(sum(1 << p for p in producers))
        return GroupRules(solo_mask(self.network), tuple(barriers), 0)

    def _traffic(self) -> None:
        """Bytes per tensor when it crosses a group's border; free between removed operations and others."""
        kept = ~self.removed_mask
        size = self.network.element_bytes
        self._readers = tuple(sum(1 << c for c in t.consumers if kept >> c & 1) for t in self.network.tensors)
        self._tensor_bytes = tuple(t.elements * size for t in self.network.tensors)
        self._arrives_free = tuple(p >= 0 and not kept >> p & 1 for p in self._producer)
        self._streamed_bytes = tuple(n.streamed_elements * size for n in self.network.nodes)
        self._inputs = tuple(tuple(r.tensor for r in n.reads) for n in self.network.nodes)

    def _measured(self, mask: int) -> tuple[int, int]:
        return self.demand_bytes(mask), self.dram_bytes(mask)

    def dram_bytes(self, mask: int) -> int:
        """Distinct tensors that come in, tensors that others or the caller read, and weights once."""
        total = 0
        outside: set[int] = set()
        producer, tensors = self._producer, self.network.tensors
        rest = mask
        while rest:
            low = rest & -rest
            i = low.bit_length() - 1
            rest ^= low
            step = self._steps[i]
            total += step.weight_bytes + self._streamed_bytes[i]
            for t in self._inputs[i]:
                p = producer[t]
                if (p < 0 or not mask >> p & 1) and not self._arrives_free[t]:
                    outside.add(t)
            for t in step.writes:
                if self._readers[t] & ~mask or tensors[t].is_output:
                    total += self._tensor_bytes[t]
        return total + sum(self._tensor_bytes[t] for t in outside) - self.repeated_bytes(mask)

    def demand_bytes(self, mask: int, without: tuple[int, int] | None = None) -> int:
        """Weights, line buffers and shortcut FIFOs of any set of nodes, in bytes.

        ``without`` (source, target): that edge is cut, the target reads its operand from DRAM in step.
        """
        return self._scan(mask, without, None)

    def _scan(self, mask: int, without: tuple[int, int] | None, bill: list[_Entry] | None) -> int:
        """Walk the group once, in order; adds what it finds to ``bill`` if there is one."""
        total = -self.repeated_bytes(mask)
        lag: dict[int, float] = {}
        kept: dict[int, tuple[int, int]] = {}
        rest = mask
        while rest:
            low = rest & -rest
            i = low.bit_length() - 1
            rest ^= low
            step = self._steps[i]
            total += step.weight_bytes
            latest = 0.0
            for t in step.streams:
                if t in lag and lag[t] > latest and without != (self._producer[t], i):
                    latest = lag[t]
            if latest and len(step.streams) > 1:
                for t, rows in self._waiting(step, i, lag, latest, without):
                    total += rows * self._row_bytes[t]
                    if bill is not None:
                        bill.append((TermKind.SHORTCUT_FIFO, t, rows, i))
            for t, rows in step.windows:
                if rows > kept.get(t, (0, i))[0]:
                    kept[t] = (rows, i)
            out = (latest + step.lead_rows) / step.stride
            for t in step.writes:
                lag[t] = out
        for t, (rows, i) in kept.items():
            total += rows * self._row_bytes[t]
            if bill is not None:
                bill.append((TermKind.LINE_BUFFER, t, rows, i))
        return total

    def _waiting(
        self, step: _Step, node: int, lag: dict[int, float], latest: float, without: tuple[int, int] | None
    ) -> list[tuple[int, int]]:
        """Early operands of a join that the group itself makes, and how many rows wait."""
        return [
            (t, min(ceil(latest - lag[t] - _ROUNDING), self._rows[t]))
            for t in step.streams
            if t in lag and lag[t] < latest and without != (self._producer[t], node)
        ]

    def _terms(self, mask: int) -> list[BufferTerm]:
        bill: list[_Entry] = []
        self._scan(mask, None, bill)
        found = [self._row_term(*entry) for entry in bill]
        before = 0
        for i in bits(mask):
            fresh = self.weight_bytes(before | 1 << i) - self.weight_bytes(before)
            before |= 1 << i
            if fresh:
                found.append(BufferTerm(TermKind.WEIGHTS, fresh, self.network.nodes[i].id))
        return found

    def _row_term(self, kind: TermKind, tensor: int, rows: int, node: int) -> BufferTerm:
        producer = self._producer[tensor]
        return BufferTerm(
            kind=kind,
            bytes=rows * self._row_bytes[tensor],
            node=self.network.nodes[node].id,
            tensor=self.network.tensors[tensor].name,
            producer=None if producer < 0 else self.network.nodes[producer].id,
            rows=rows,
        )

    def follows(self, node: int) -> int | None:
        """The producer of an activation that adds no demand, if nothing else reads that producer's result.

        Take a plan that has them apart, and move the activation to its producer. No demand grows: it has
        no weights, keeps no rows, and whoever read it from its old group now reads it from DRAM. The
        traffic does not grow: the producer's result is not written and read any more, the activation's is,
        and both are of equal size. With one reader at most the old group does not fall apart.
        """
        tensors, item = self.network.tensors, self.network.nodes[node]
        if len(item.reads) != 1 or len(item.writes) != 1 or item.reads[0].mode is not Mode.STREAM:
            return None
        step = self._steps[node]
        has_cost = step.weight_bytes or self._streamed_bytes[node] or step.windows or step.lead_rows
        source, result = tensors[item.reads[0].tensor], tensors[item.writes[0]]
        if has_cost or step.stride != 1 or source.producer is None or source.is_output:
            return None
        is_private = source.consumers == (node,) and len(result.consumers) <= 1
        if not is_private or result.elements > source.elements:
            return None
        alone = self.removed_mask | self.rules.solo
        return None if (alone >> node | alone >> source.producer) & 1 else source.producer

    def added_bound(self, node: int, mask: int) -> int:
        """Weights, and the line buffer of each operand that no window in ``mask`` reads yet.

        Both only grow with the group; the rows that wait at joins do not, so they are left out.
        """
        step = self._steps[node]
        total = step.weight_bytes
        for readers, size in self._shared:
            if readers >> node & 1 and readers & mask:
                total -= size
        for t, rows in step.windows:
            if not self._windowed[t] & mask:
                total += rows * self._row_bytes[t]
        return total


def _step(network: FusionNetwork, node: FusionNode) -> _Step:
    rows = {r.tensor: network.tensors[r.tensor].rows for r in node.reads}
    windows = [(r.tensor, rows[r.tensor]) for r in node.reads if r.mode is Mode.HELD]
    if node.kernel_rows > 1:
        streams = [r.tensor for r in node.reads if r.mode is Mode.STREAM]
        windows += [(t, min(node.kernel_rows, rows[t])) for t in streams]
    return _Step(
        weight_bytes=node.weight_elements * network.element_bytes,
        streams=tuple(r.tensor for r in node.reads if r.mode is Mode.STREAM),
        windows=tuple(windows),
        lead_rows=node.kernel_rows // 2 + node.pad_rows,
        stride=node.stride_rows or 1.0,
        writes=node.writes,
    )


def _window_readers(steps: tuple[_Step, ...], tensors: int) -> tuple[int, ...]:
    """For each tensor, the nodes that keep rows of it, as bits."""
    found = [0] * tensors
    for node, step in enumerate(steps):
        for t, _ in step.windows:
            found[t] |= 1 << node
    return tuple(found)
