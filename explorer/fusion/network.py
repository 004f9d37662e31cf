"""The fusion network: the directed acyclic graph of operations that fusion groups are cut from.

Nodes are numbered in topological order; a set of nodes is an ``int`` whose bit ``i`` stands for node
``i``. That makes unions, prefixes and reachability single machine operations, which the searches and the
exact optimum live on. Outside this package nodes are known by their explorer.graph ids ("n12").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from explorer.errors import InputError
from explorer.fusion.streaming import Mode, OpClass
from explorer.fusion.window import Window

KB = 1024
MB = 1000 * KB
"""The unit of the paper's tables."""


@dataclass(frozen=True)
class FusionTensor:
    """A feature map. Sizes are in elements; ``producer`` is None for an input of the network.

    Attributes:
        rows: length of the axis it streams along; 1 if it has none.
        row_elements: elements of one row of one sample of the batch.
    """

    name: str
    dims: tuple[int, ...]
    elements: int
    rows: int
    row_elements: int
    producer: int | None
    consumers: tuple[int, ...]
    is_output: bool


@dataclass(frozen=True)
class Read:
    """One operand: which tensor, and how it is read."""

    tensor: int
    mode: Mode


@dataclass(frozen=True)
class FusionNode:
    """One operation with the nodes merged into it.

    Attributes:
        index: its bit; nodes are in topological order.
        id: the id of the operation itself.
        covers: ids of all graph nodes it stands for, itself first.
        op_type: the operator, with its domain where that is not the standard one.
        weight_elements: weights and biases that stay on chip in LBDF (BatchNormalization folded).
        streamed_elements: constants that are read row by row, or in part (position tables, look-ups).
        constants: identity and size of each constant counted above, to count a shared one once.
        kernel_rows: rows of the operand that one row of the result sees.
        stride_rows: rows of the operand per row of the result; below 1 for upsampling.
        pad_rows: rows that a Pad puts in front.
        is_matrix: mixes channels by weights (convolution, matrix product).
        is_pool: a pooling operation, global ones included.
        channel_groups: groups of a grouped convolution; 1 for everything else.
    """

    index: int
    id: str
    covers: tuple[str, ...]
    op_type: str
    op_class: OpClass
    reads: tuple[Read, ...]
    writes: tuple[int, ...]
    weight_elements: int
    streamed_elements: int
    constants: tuple[tuple[str, int], ...]
    window: Window | None
    kernel_rows: int
    stride_rows: float
    pad_rows: int
    is_matrix: bool
    is_pool: bool
    channel_groups: int


@dataclass(frozen=True)
class FusionEdge:
    """A tensor that goes from one node to another."""

    source: int
    target: int
    tensor: int


@dataclass(frozen=True, eq=False)
class FusionNetwork:
    """A graph ready for fusion. Two networks are the same if their ``digest`` is.

    Attributes:
        name: the model's name.
        nodes: in topological order.
        tensors: every feature map, network inputs included.
        element_bytes: bytes per element: 1, 2 or 4.
        unplaced: ids of nodes no operation covers (constants that are outputs, unread constants).
    """

    name: str
    nodes: tuple[FusionNode, ...]
    tensors: tuple[FusionTensor, ...]
    element_bytes: int
    unplaced: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Name and sizes."""
        return (
            f"FusionNetwork({self.name!r}, {len(self.nodes)} nodes, {self.element_bytes} bytes per element)"
        )

    @cached_property
    def edges(self) -> tuple[FusionEdge, ...]:
        """All edges, by target."""
        return tuple(
            FusionEdge(producer, node.index, read.tensor)
            for node in self.nodes
            for read in node.reads
            if (producer := self.tensors[read.tensor].producer) is not None
        )

    @cached_property
    def preds(self) -> tuple[int, ...]:
        """Direct predecessors of each node, as bits."""
        found = [0] * len(self.nodes)
        for edge in self.edges:
            found[edge.target] |= 1 << edge.source
        return tuple(found)

    @cached_property
    def succs(self) -> tuple[int, ...]:
        """Direct successors of each node, as bits."""
        found = [0] * len(self.nodes)
        for edge in self.edges:
            found[edge.source] |= 1 << edge.target
        return tuple(found)

    @cached_property
    def adjacent(self) -> tuple[int, ...]:
        """Direct neighbours of each node, as bits."""
        return tuple(p | s for p, s in zip(self.preds, self.succs, strict=True))

    @cached_property
    def ancestors(self) -> tuple[int, ...]:
        """All nodes from which a path leads to each node, as bits (without itself)."""
        found: list[int] = []
        for preds in self.preds:
            reach = preds
            for i in bits(preds):
                reach |= found[i]
            found.append(reach)
        return tuple(found)

    @cached_property
    def descendants(self) -> tuple[int, ...]:
        """All nodes that each node leads to, as bits (without itself)."""
        found = [0] * len(self.nodes)
        for i in reversed(range(len(self.nodes))):
            for j in bits(self.succs[i]):
                found[i] |= 1 << j | found[j]
        return tuple(found)

    @cached_property
    def all_nodes(self) -> int:
        """Every node, as bits."""
        return (1 << len(self.nodes)) - 1

    @cached_property
    def shared_constants(self) -> tuple[tuple[int, int], ...]:
        """Constants that several nodes read: their readers as bits, and their size in elements."""
        readers: dict[str, int] = {}
        sizes: dict[str, int] = {}
        for node in self.nodes:
            for key, size in node.constants:
                readers[key] = readers.get(key, 0) | 1 << node.index
                sizes[key] = size
        return tuple((mask, sizes[key]) for key, mask in readers.items() if mask.bit_count() > 1)

    @cached_property
    def _index_by_id(self) -> dict[str, int]:
        return {identifier: node.index for node in self.nodes for identifier in node.covers}

    @cached_property
    def digest(self) -> str:
        """Hash (hex) of everything that decides a cost; two networks with equal digests are the same."""
        return sha256(repr((self.nodes, self.tensors, self.element_bytes)).encode()).hexdigest()[:16]

    def index_of(self, identifier: str) -> int:
        """The number of the operation that covers a graph node.

        Raises:
            InputError: the graph has no such node, or no operation covers it.
        """
        try:
            return self._index_by_id[identifier]
        except KeyError:
            reason = "is a constant" if identifier in self.unplaced else "does not exist"
            raise InputError(
                f"Node '{identifier}' of '{self.name}' {reason} and cannot be in a fusion group; "
                "choose among the operations of the fusion network."
            ) from None

    def mask(self, identifiers: Iterable[str]) -> int:
        """The operations that cover the given graph nodes, as bits; raises InputError as ``index_of``."""
        found = 0
        for identifier in identifiers:
            found |= 1 << self.index_of(identifier)
        return found

    def ids(self, mask: int) -> tuple[str, ...]:
        """Ids of all graph nodes that a set of operations covers, in topological order."""
        return tuple(identifier for i in bits(mask) for identifier in self.nodes[i].covers)

    def components(self, mask: int) -> tuple[int, ...]:
        """The weakly connected parts of a set of nodes, by first node."""
        found = []
        while mask:
            part = self.component(mask, mask & -mask)
            found.append(part)
            mask ^= part
        return tuple(found)

    def component(self, mask: int, seed: int) -> int:
        """The weakly connected part of ``mask`` that holds the nodes of ``seed``."""
        part = fresh = seed
        while fresh:
            reach = 0
            for i in bits(fresh):
                reach |= self.adjacent[i]
            fresh = reach & mask & ~part
            part |= fresh
        return part

    def is_connected(self, mask: int) -> bool:
        """Whether a set of nodes is weakly connected (an empty one is not)."""
        return mask != 0 and self.component(mask, mask & -mask) == mask

    def between(self, mask: int) -> int:
        """Nodes outside the set that lie on a path from it back into it; none if it is convex."""
        below = above = 0
        for i in bits(mask):
            below |= self.descendants[i]
            above |= self.ancestors[i]
        return below & above & ~mask


def bits(mask: int) -> Iterator[int]:
    """Numbers of the set bits, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
