"""What the line-buffer scheme needs to know of a network, looked up by number."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from explorer.fusion.network import FusionNetwork, FusionNode
from explorer.fusion.streaming import Mode

_ROUNDING = 1e-9


class Step(NamedTuple):
    """One node: weights, operands that stream, rows it keeps of each, how it delays, results."""

    weight_bytes: int
    streamed_bytes: int
    reads: tuple[int, ...]
    streams: tuple[int, ...]
    windows: tuple[tuple[int, int], ...]
    lead_rows: int
    stride: float
    writes: tuple[int, ...]


@dataclass(frozen=True)
class LineTables:
    """Nodes, and for each tensor: bytes of a row, rows, bytes, producer (-1: none)."""

    steps: tuple[Step, ...]
    row_bytes: tuple[int, ...]
    rows: tuple[int, ...]
    tensor_bytes: tuple[int, ...]
    producer: tuple[int, ...]

    @classmethod
    def of(cls, network: FusionNetwork) -> LineTables:
        """The tables of a network."""
        size, tensors = network.element_bytes, network.tensors
        return cls(
            steps=tuple(_step(network, node) for node in network.nodes),
            row_bytes=tuple(t.row_elements * size for t in tensors),
            rows=tuple(t.rows for t in tensors),
            tensor_bytes=tuple(t.elements * size for t in tensors),
            producer=tuple(-1 if t.producer is None else t.producer for t in tensors),
        )

    def waiting(self, inside: list[int], lag: dict[int, float], latest: float) -> list[tuple[int, int]]:
        """Operands of a join that come before the latest one, and how many of their rows wait."""
        return [(t, min(ceil(latest - lag[t] - _ROUNDING), self.rows[t])) for t in inside if lag[t] < latest]


@dataclass(frozen=True)
class Crossing:
    """What a tensor costs at a group's border, for each tensor. Left-out operations exchange for free.

    Attributes:
        readers: the nodes that read it and are not left out, as bits.
        is_output: the caller reads it.
        is_free: it comes from a left-out operation.
    """

    readers: tuple[int, ...]
    is_output: tuple[bool, ...]
    is_free: tuple[bool, ...]

    @classmethod
    def of(cls, network: FusionNetwork, removed_mask: int) -> Crossing:
        """The tables of a network some of whose operations are left out."""
        kept, tensors = ~removed_mask, network.tensors
        return cls(
            readers=tuple(sum(1 << c for c in t.consumers if kept >> c & 1) for t in tensors),
            is_output=tuple(t.is_output for t in tensors),
            is_free=tuple(t.producer is not None and not kept >> t.producer & 1 for t in tensors),
        )


def _step(network: FusionNetwork, node: FusionNode) -> Step:
    rows = {r.tensor: network.tensors[r.tensor].rows for r in node.reads}
    windows = [(r.tensor, rows[r.tensor]) for r in node.reads if r.mode is Mode.HELD]
    if node.kernel_rows > 1:
        streams = [r.tensor for r in node.reads if r.mode is Mode.STREAM]
        windows += [(t, min(node.kernel_rows, rows[t])) for t in streams]
    return Step(
        weight_bytes=node.weight_elements * network.element_bytes,
        streamed_bytes=node.streamed_elements * network.element_bytes,
        reads=tuple(r.tensor for r in node.reads),
        streams=tuple(r.tensor for r in node.reads if r.mode is Mode.STREAM),
        windows=tuple(windows),
        lead_rows=node.kernel_rows // 2 + node.pad_rows,
        stride=node.stride_rows or 1.0,
        writes=node.writes,
    )
