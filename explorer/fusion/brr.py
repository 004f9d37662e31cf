"""BRR, buffer requirement reduction (Optimus: Cai, Wang, Zhang; LCTES 2021, TECS 2022).

Weights need not stay on chip: they are read once per tile, a tile being as many rows as the free space
allows. Convolutions in order alternate between holding all channels of their result and only as many as
the array of processing elements unrolls; everything else inherits. Both ways to start are tried.
"""

from __future__ import annotations

from math import ceil, lcm
from typing import NamedTuple

from explorer.errors import InputError
from explorer.fusion.brr_growth import BrrGrowth, RowBytes
from explorer.fusion.network import FusionNetwork, FusionNode, bits
from explorer.fusion.report import BufferTerm, TermKind
from explorer.fusion.scheme import GroupRules, Growing, MemoisedScheme, solo_mask
from explorer.fusion.streaming import Mode

UNROLLED_CHANNELS = 32


class _Held(NamedTuple):
    """A tensor that a group keeps: by which node, rows at least, rows per further step, bytes per row."""

    tensor: int
    node: int
    rows: int
    step: int
    row_bytes: int


class _Pace(NamedTuple):
    """Rows of one node's result: at least, and per step; a sink is read by nothing in the group."""

    node: int
    rows: int
    step: int
    is_sink: bool


class Brr(MemoisedScheme):
    """The buffer requirement reduction for one network and one buffer size.

    Args:
        network: what is fused.
        capacity_bytes: the buffer.
        unrolled_channels: channels that the processing elements work on at once.

    Raises:
        InputError: the network holds squeeze-and-excite blocks, for which BRR is not defined.
    """

    name = "brr"

    def __init__(
        self, network: FusionNetwork, capacity_bytes: int, unrolled_channels: int = UNROLLED_CHANNELS
    ) -> None:
        gate = squeeze_and_excite(network)
        if gate is not None:
            raise InputError(
                f"'{network.name}' has squeeze-and-excite blocks (node '{gate.id}' scales a feature map by "
                "its own average), for which BRR is not defined; use the lbdf scheme."
            )
        size = network.element_bytes
        self._rows = tuple(_row(t.row_elements, t.dims, unrolled_channels, size) for t in network.tensors)
        self._tensor_bytes = tuple(t.elements * size for t in network.tensors)
        self._links = tuple(_links(network, node) for node in network.nodes)
        self._producer = tuple(-1 if t.producer is None else t.producer for t in network.tensors)
        self._sources = tuple(
            tuple(p for r in node.reads if (p := self._producer[r.tensor]) >= 0) for node in network.nodes
        )
        self._heights = tuple(
            max((network.tensors[t].rows for t in node.writes), default=1) for node in network.nodes
        )
        self._is_matrix = tuple(node.is_matrix for node in network.nodes)
        super().__init__(network, capacity_bytes)
        kept = ~self.removed_mask
        self._readers = tuple(sum(1 << c for c in t.consumers if kept >> c & 1) for t in network.tensors)

    def _rules(self) -> GroupRules:
        no_entry = sum(1 << n.index for n in self.network.nodes if not n.is_matrix)
        return GroupRules(solo_mask(self.network), (0,) * len(self.network.nodes), no_entry)

    def growing(self) -> Growing:
        """An empty group to be grown."""
        return BrrGrowth(self.network, self._rows, self.cost)

    def demand_bytes(self, mask: int, without: tuple[int, int] | None = None) -> int:
        """The smallest footprint of any set of nodes: rows of each result, and of a held input, in bytes."""
        return _footprint(self._best_start(mask, self._paced(mask, without)))

    def _terms(self, mask: int) -> list[BufferTerm]:
        return [self._term(held) for held in self._best_start(mask, self._paced(mask, None))]

    def _term(self, held: _Held) -> BufferTerm:
        tensor, nodes = self.network.tensors[held.tensor], self.network.nodes
        return BufferTerm(
            kind=TermKind.LINE_BUFFER,
            bytes=held.rows * held.row_bytes,
            node=nodes[held.node].id,
            tensor=tensor.name,
            producer=None if tensor.producer is None else nodes[tensor.producer].id,
            rows=held.rows,
        )

    def _measured(self, mask: int) -> tuple[int, int]:
        paces = self._paced(mask, None)
        held = self._best_start(mask, paces)
        footprint, growth = _footprint(held), _growth(held)
        weights = self.weight_bytes(mask)
        fixed = self._crossing(mask)
        free = self.capacity_bytes - footprint
        if free <= 0 or self.capacity_bytes >= weights + footprint or not growth:
            return footprint, fixed + weights
        steps = free // growth + 1
        ends = (p for p in paces if p.is_sink)
        tiles = max(ceil(self._heights[p.node] / (steps * p.step)) for p in ends)
        return footprint, fixed + weights * max(1, tiles)

    def _crossing(self, mask: int) -> int:
        """Bytes of distinct tensors that come in, of those that others or the caller read, and of tables."""
        outside: set[int] = set()
        total = 0
        for i in bits(mask):
            node = self.network.nodes[i]
            total += node.streamed_elements * self.network.element_bytes
            for item in node.reads:
                p = self._producer[item.tensor]
                if p < 0 or not (mask | self.removed_mask) >> p & 1:
                    outside.add(item.tensor)
            for t in node.writes:
                if self._readers[t] & ~mask or self.network.tensors[t].is_output:
                    total += self._tensor_bytes[t]
        return total + sum(self._tensor_bytes[t] for t in outside)

    def _paced(self, mask: int, without: tuple[int, int] | None) -> list[_Pace]:
        """Rows of each node's result, first node first: at least, and per step.

        A step is so long that all paths ask the input for equally many rows.
        """
        order = list(bits(mask))
        inside: dict[int, list[tuple[int, float, int]]] = {}
        path: dict[int, float] = {}
        for i in order:
            own = path.setdefault(i, 1.0)
            inside[i] = [link for link in self._links[i] if mask >> link[0] & 1]
            if without is not None and without[0] == i:
                inside[i] = [link for link in inside[i] if link[0] != without[1]]
            for c, stride, _ in inside[i]:
                path[c] = max(path.get(c, 0.0), own * stride)
        common = lcm(*(max(1, round(path[i])) for i in order if not inside[i]))
        step: dict[int, int] = {}
        least: dict[int, int] = {}
        for i in reversed(order):
            if inside[i]:
                step[i] = max(1, *(ceil(stride * step[c]) for c, stride, _ in inside[i]))
                wanted = max(_input_rows(least[c], stride, kernel) for c, stride, kernel in inside[i])
            else:
                wanted = step[i] = max(1, round(common / max(1.0, path[i])))
            least[i] = min(self._heights[i], wanted)
        return [_Pace(i, least[i], step[i], not inside[i]) for i in order]

    def _best_start(self, mask: int, paces: list[_Pace]) -> list[_Held]:
        """The way to start that grows less relative to the free space; the smaller one if neither fits."""
        return min((self._holding(mask, paces, full) for full in (True, False)), key=self._pressure)

    def _pressure(self, held: list[_Held]) -> tuple[bool, float]:
        footprint = _footprint(held)
        free = self.capacity_bytes - footprint
        return (True, footprint) if free <= 0 else (False, _growth(held) / free)

    def _holding(self, mask: int, paces: list[_Pace], starts_full: bool) -> list[_Held]:
        """What is kept if the first convolution holds all channels of its result, or only some.

        One that holds only some needs all channels of its operand; inside the group that is the turn of the
        convolution before it, an operand from outside is kept here.
        """
        found: list[_Held] = []
        is_full: dict[int, bool] = {}
        turn = starts_full
        for i, rows, step, _ in paces:
            sources = [p for p in self._sources[i] if mask >> p & 1]
            if self._is_matrix[i]:
                is_full[i], turn = turn, not turn
            else:
                is_full[i] = is_full[sources[0]] if sources else True
            for t in self.network.nodes[i].writes:
                row = self._rows[t]
                found.append(_Held(t, i, rows, step, row.full if is_full[i] else row.partial))
            if not sources and not is_full[i]:
                found += self._held_inputs(i, rows, step)
        return found

    def _held_inputs(self, node: int, rows: int, step: int) -> list[_Held]:
        """The operands of a first convolution, for as many rows of its result."""
        item = self.network.nodes[node]
        needed = _input_rows(rows, item.stride_rows, item.kernel_rows)
        return [
            _Held(
                tensor=r.tensor,
                node=node,
                rows=min(self.network.tensors[r.tensor].rows, needed),
                step=ceil(item.stride_rows * step),
                row_bytes=self._rows[r.tensor].full,
            )
            for r in item.reads
        ]

    def added_bound(self, node: int, mask: int) -> int:
        """Rows of the unrolled channels: one of each result, a kernel's of an operand read only here.

        Every way to hold results has that much, and a larger group never keeps fewer rows.
        """
        total = sum(self._rows[t].partial for t in self.network.nodes[node].writes)
        for p in self._sources[node]:
            links = {c: kernel for c, _, kernel in self._links[p]}
            if mask >> p & 1 and not any(mask >> c & 1 for c in links):
                rows = min(self._heights[p], links[node]) - 1
                total += rows * sum(self._rows[t].partial for t in self.network.nodes[p].writes)
        return total


def squeeze_and_excite(network: FusionNetwork) -> FusionNode | None:
    """The first product of a feature map with a gate computed from its own average; None without one."""
    averages = sum(1 << n.index for n in network.nodes if n.is_pool and n.op_type.startswith("Global"))
    averages |= sum(1 << n.index for n in network.nodes if n.op_type == "ReduceMean")
    for node in network.nodes:
        if node.op_type != "Mul" or len(node.reads) != 2:
            continue
        gates = [r.tensor for r in node.reads if r.mode is Mode.BROADCAST]
        maps = [r.tensor for r in node.reads if r.mode is not Mode.BROADCAST]
        for gate in gates:
            producer = network.tensors[gate].producer
            if maps and producer is not None and (network.ancestors[producer] | 1 << producer) & averages:
                return node
    return None


def _row(elements: int, dims: tuple[int, ...], unrolled: int, element_bytes: int) -> RowBytes:
    """Channels are axis 1 of an image and the features of everything else."""
    channels = dims[1] if len(dims) > 3 else elements
    width = elements // channels if channels else 0
    return RowBytes(elements * element_bytes, width * min(unrolled, channels) * element_bytes)


def _links(network: FusionNetwork, node: FusionNode) -> tuple[tuple[int, float, int], ...]:
    """The readers of a node's results with stride and kernel; one that needs all rows has both that long."""
    found = []
    for t in node.writes:
        tensor = network.tensors[t]
        for c in tensor.consumers:
            reader = network.nodes[c]
            modes = {r.mode for r in reader.reads if r.tensor == t}
            if modes & {Mode.WHOLE, Mode.HELD}:
                found.append((c, float(tensor.rows), tensor.rows))
            elif Mode.BROADCAST in modes:
                found.append((c, 1.0, 1))
            else:
                found.append((c, reader.stride_rows, reader.kernel_rows))
    return tuple(found)


def _input_rows(rows: int, stride: float, kernel: int) -> int:
    return ceil((rows - 1) * stride) + kernel


def _footprint(held: list[_Held]) -> int:
    return sum(item.rows * item.row_bytes for item in held)


def _growth(held: list[_Held]) -> int:
    return sum(item.step * item.row_bytes for item in held)
