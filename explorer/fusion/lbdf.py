"""LBDF, line-buffer depth first: all weights of a group stay on chip, feature maps stream through it.

The demand follows DeFiNES (Mei et al., HPCA 2023) and Shi et al. (JETCAS 2021): weights, plus K rows of
every tensor that a window of K rows reads, plus the rows that wait at joins. Every operation runs as soon
as its rows have arrived. Its result then lags behind the group's input: a window of K rows adds K // 2
rows, a Pad its front rows, and a stride divides. At a join the early operands wait for the latest one.

The alternative, to hold operations back until the consumer wants the row, needs fewer rows in some
groups and more in others; ``README.md`` has the derivation.
"""

from __future__ import annotations

from explorer.fusion.line_growth import LineGrowth
from explorer.fusion.line_tables import Crossing, LineTables
from explorer.fusion.network import FusionNetwork, bits
from explorer.fusion.report import BufferTerm, TermKind
from explorer.fusion.scheme import GroupRules, Growing, MemoisedScheme, solo_mask
from explorer.fusion.streaming import Mode

_Entry = tuple[TermKind, int, int, int]  # kind, tensor, rows, node


class Lbdf(MemoisedScheme):
    """The line-buffer depth-first scheme for one network and one buffer size."""

    name = "lbdf"

    def __init__(self, network: FusionNetwork, capacity_bytes: int) -> None:
        self._tables = LineTables.of(network)
        self._keepers = self._readers_that_keep(len(network.tensors))
        super().__init__(network, capacity_bytes)
        self._crossing = Crossing.of(network, self.removed_mask)

    def _readers_that_keep(self, tensors: int) -> tuple[int, ...]:
        """For each tensor, the nodes that keep rows of it, as bits."""
        found = [0] * tensors
        for node, step in enumerate(self._tables.steps):
            for t, _ in step.windows:
                found[t] |= 1 << node
        return tuple(found)

    def _rules(self) -> GroupRules:
        barriers = []
        for node in self.network.nodes:
            whole = [r.tensor for r in node.reads if r.mode in {Mode.WHOLE, Mode.HELD}]
            producers = {self._tables.producer[t] for t in whole} - {-1}
            barriers.append(sum(1 << p for p in producers))
        return GroupRules(solo_mask(self.network), tuple(barriers), 0)

    def _measured(self, mask: int) -> tuple[int, int]:
        return self.demand_bytes(mask), self.dram_bytes(mask)

    def growing(self) -> Growing:
        """An empty group to be grown, at a cost per node that does not depend on the group."""
        return LineGrowth(self._tables, self._crossing, self.repeated_bytes, self.capacity_bytes)

    def dram_bytes(self, mask: int) -> int:
        """Distinct tensors that come in, tensors that others or the caller read, and weights once."""
        total = -self.repeated_bytes(mask)
        outside: set[int] = set()
        steps, producer, sizes = self._tables.steps, self._tables.producer, self._tables.tensor_bytes
        readers, is_output, is_free = self._crossing.readers, self._crossing.is_output, self._crossing.is_free
        rest = mask
        while rest:
            low = rest & -rest
            rest ^= low
            step = steps[low.bit_length() - 1]
            total += step.weight_bytes + step.streamed_bytes
            for t in step.reads:
                p = producer[t]
                if (p < 0 or not mask >> p & 1) and not is_free[t]:
                    outside.add(t)
            for t in step.writes:
                if readers[t] & ~mask or is_output[t]:
                    total += sizes[t]
        return total + sum(sizes[t] for t in outside)

    def demand_bytes(self, mask: int, without: tuple[int, int] | None = None) -> int:
        """Weights, line buffers and shortcut FIFOs of any set of nodes, in bytes.

        ``without`` (source, target): that edge is cut, the target reads its operand from DRAM in step.
        """
        return self._scan(mask, without, None)

    def _scan(self, mask: int, without: tuple[int, int] | None, bill: list[_Entry] | None) -> int:
        """Walk the group once, in order; adds what it finds to ``bill`` if there is one."""
        tables, total = self._tables, -self.repeated_bytes(mask)
        lag: dict[int, float] = {}
        kept: dict[int, tuple[int, int]] = {}
        rest = mask
        while rest:
            low = rest & -rest
            i = low.bit_length() - 1
            rest ^= low
            step = tables.steps[i]
            total += step.weight_bytes
            latest = 0.0
            for t in step.streams:
                if t in lag and lag[t] > latest and without != (tables.producer[t], i):
                    latest = lag[t]
            if latest and len(step.streams) > 1:
                inside = [t for t in step.streams if t in lag and without != (tables.producer[t], i)]
                for t, rows in tables.waiting(inside, lag, latest):
                    total += rows * tables.row_bytes[t]
                    if bill is not None:
                        bill.append((TermKind.SHORTCUT_FIFO, t, rows, i))
            for t, rows in step.windows:
                if rows > kept.get(t, (0, i))[0]:
                    kept[t] = (rows, i)
            late = (latest + step.lead_rows) / step.stride
            for t in step.writes:
                lag[t] = late
        for t, (rows, i) in kept.items():
            total += rows * tables.row_bytes[t]
            if bill is not None:
                bill.append((TermKind.LINE_BUFFER, t, rows, i))
        return total

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
        producer = self._tables.producer[tensor]
        return BufferTerm(
            kind=kind,
            bytes=rows * self._tables.row_bytes[tensor],
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
        and that is no larger. With one reader at most the old group does not fall apart.
        """
        tensors, item = self.network.tensors, self.network.nodes[node]
        if len(item.reads) != 1 or len(item.writes) != 1 or item.reads[0].mode is not Mode.STREAM:
            return None
        step = self._tables.steps[node]
        has_cost = step.weight_bytes or step.streamed_bytes or step.windows or step.lead_rows
        source, result = tensors[item.reads[0].tensor], tensors[item.writes[0]]
        if has_cost or step.stride != 1 or source.producer is None or source.is_output:
            return None
        is_private = source.consumers == (node,) and len(result.consumers) <= 1
        if not is_private or result.elements > source.elements:
            return None
        alone = self.removed_mask | self.rules.solo
        return None if (alone >> node | alone >> source.producer) & 1 else source.producer

    def added_bound(self, node: int, mask: int) -> int:
        """Weights, and the line buffer of each operand that no node in ``mask`` keeps rows of yet.

        Both only grow with the group; the rows that wait at joins do not, so they are left out.
        """
        step = self._tables.steps[node]
        total = step.weight_bytes
        for readers, size in self._shared:
            if readers >> node & 1 and readers & mask:
                total -= size
        for t, rows in step.windows:
            if not self._keepers[t] & mask:
                total += rows * self._tables.row_bytes[t]
        return total
