"""Fusion schemes: what a group costs, on chip and in DRAM, and which groups exist at all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from explorer.errors import InputError
from explorer.fusion.group import FusionGroup
from explorer.fusion.network import KB, FusionNetwork, bits
from explorer.fusion.report import BufferReport, BufferTerm
from explorer.fusion.streaming import OpClass

_MEMO_LIMIT = 500_000  # groups; about 150 MB


class GroupCost(NamedTuple):
    """Bytes on chip, bytes moved, and whether the group may run."""

    demand_bytes: int
    dram_bytes: int
    fits: bool


@dataclass(frozen=True)
class GroupRules:
    """Groups that a scheme forbids whatever their size. A single operation is always allowed.

    Attributes:
        solo: nodes that are always alone, as bits.
        barriers: for each node, the producers that may not be in its group, as bits.
        no_entry: nodes that may not be without a predecessor in their group, as bits.
    """

    solo: int
    barriers: tuple[int, ...]
    no_entry: int


@dataclass(frozen=True)
class Removed:
    """An operation that does not fit even alone: it is left out of the plan and of its total."""

    node: str
    nodes: tuple[str, ...]
    op_type: str
    weight_bytes: int
    demand_bytes: int
    reason: str


class Growing(Protocol):
    """A group that grows node by node in ascending order, and shrinks again; its cost is always at hand."""

    def add(self, mask: int) -> None:
        """Add nodes, all of them after those already there."""

    def undo(self) -> None:
        """Take back the latest ``add``."""

    def cost(self) -> GroupCost:
        """What ``Scheme.cost`` says of the group."""

    def floor(self) -> int:
        """Bytes that the group and every group grown from it by later nodes need at least."""


class Scheme(Protocol):
    """A way to run fusion groups, with one buffer size."""

    @property
    def name(self) -> str:
        """Such as "lbdf"."""

    @property
    def network(self) -> FusionNetwork:
        """What is fused."""

    @property
    def capacity_bytes(self) -> int:
        """The buffer size; a group's demand must be strictly smaller."""

    @property
    def rules(self) -> GroupRules:
        """Which groups are forbidden whatever their size."""

    @property
    def removed_mask(self) -> int:
        """Operations that do not fit even alone, as bits."""

    def demand(self, group: FusionGroup) -> BufferReport:
        """What the group needs on chip, line by line."""

    def dram(self, group: FusionGroup) -> int:
        """Bytes that move between DRAM and chip when the group runs."""

    def fusable(self, node: str) -> bool:
        """Whether the operation that covers this graph node fits by itself."""

    def removed(self) -> tuple[Removed, ...]:
        """The operations that are left out, each with the reason."""

    def cost(self, mask: int) -> GroupCost:
        """Demand and DRAM of a set of nodes given as bits; memoised."""

    def growing(self) -> Growing:
        """An empty group to be grown."""

    def demand_bytes(self, mask: int, without: tuple[int, int] | None = None) -> int:
        """Demand of any set of nodes; ``without`` cuts the edge between two of them."""

    def added_bound(self, node: int, mask: int) -> int:
        """Bytes by which a node adds to a lower bound of the demand of every group above ``mask``."""

    def follows(self, node: int) -> int | None:
        """A node that some optimal plan surely keeps this one with; None if there is no such node."""

    def refusal(self, mask: int) -> str | None:
        """Why the scheme forbids a group whatever its size; None if it does not."""


class MemoisedScheme(ABC):
    """What all schemes share: memo, rules, removed operations, reports.

    Args:
        network: what is fused.
        capacity_bytes: the buffer; at least one byte.

    Raises:
        InputError: the capacity is not positive.
    """

    name: str

    def __init__(self, network: FusionNetwork, capacity_bytes: int) -> None:
        if capacity_bytes < 1:
            raise InputError(f"A buffer of {capacity_bytes} bytes holds nothing; give at least one kilobyte.")
        self.network = network
        self.capacity_bytes = capacity_bytes
        self._memo: dict[int, GroupCost] = {}
        self.rules = self._rules()
        barred = sum(1 << i for i, mask in enumerate(self.rules.barriers) if mask)
        self._guarded = barred | self.rules.no_entry
        self._weight_bytes = tuple(n.weight_elements * network.element_bytes for n in network.nodes)
        self._shared = tuple((m, size * network.element_bytes) for m, size in network.shared_constants)
        self.removed_mask = self._removed_mask()

    @abstractmethod
    def _rules(self) -> GroupRules: ...

    @abstractmethod
    def _measured(self, mask: int) -> tuple[int, int]:
        """Demand and DRAM of a group that breaks no rule."""

    @abstractmethod
    def _terms(self, mask: int) -> list[BufferTerm]: ...

    @abstractmethod
    def demand_bytes(self, mask: int, without: tuple[int, int] | None = None) -> int:
        """Demand of any set of nodes; ``without`` cuts the edge between two of them."""

    @abstractmethod
    def added_bound(self, node: int, mask: int) -> int:
        """Bytes by which a node adds to a lower bound of the demand of every group above ``mask``."""

    @abstractmethod
    def growing(self) -> Growing:
        """An empty group to be grown."""

    def follows(self, node: int) -> int | None:  # noqa: ARG002 (schemes that know such pairs use it)
        """A node that some optimal plan surely keeps this one with; None if there is no such node."""
        return None

    def cost(self, mask: int) -> GroupCost:
        """Demand and DRAM of a set of nodes given as bits; memoised."""
        found = self._memo.get(mask)
        if found is None:
            demand, dram = self._measured(mask)
            fits = demand < self.capacity_bytes and not self.is_forbidden(mask)
            found = GroupCost(demand, dram, fits)
            if len(self._memo) >= _MEMO_LIMIT:
                self._memo.clear()
            self._memo[mask] = found
        return found

    def demand(self, group: FusionGroup) -> BufferReport:
        """What the group needs on chip, line by line, largest first."""
        terms = tuple(sorted(self._terms(group.mask), key=lambda term: -term.bytes))
        return BufferReport(
            scheme=self.name,
            nodes=group.nodes,
            demand_bytes=self.cost(group.mask).demand_bytes,
            capacity_bytes=self.capacity_bytes,
            terms=terms,
            refusal=self.refusal(group.mask),
        )

    def dram(self, group: FusionGroup) -> int:
        """Bytes that move between DRAM and chip when the group runs."""
        return self.cost(group.mask).dram_bytes

    def fusable(self, node: str) -> bool:
        """Whether the operation that covers this graph node fits by itself."""
        return not self.removed_mask >> self.network.index_of(node) & 1

    def removed(self) -> tuple[Removed, ...]:
        """The operations that are left out, each with the reason."""
        return tuple(self._removal(i) for i in bits(self.removed_mask))

    def weight_bytes(self, mask: int) -> int:
        """Weights and biases of a set of nodes, one that several nodes read counted once."""
        return sum(self._weight_bytes[i] for i in bits(mask)) - self.repeated_bytes(mask)

    def repeated_bytes(self, mask: int) -> int:
        """Bytes of constants that several nodes of the set read, beyond the first reader."""
        total = 0
        for readers, size in self._shared:
            count = (readers & mask).bit_count()
            total += size * (count - 1) if count > 1 else 0
        return total

    def is_forbidden(self, mask: int) -> bool:
        """Whether a rule forbids the group whatever its size."""
        return self._offender(mask) is not None

    def refusal(self, mask: int) -> str | None:
        """Why the scheme forbids a group whatever its size; None if it does not."""
        found = self._offender(mask)
        if found is None:
            return None
        node = self.network.nodes[found]
        what = f"{node.id} ({node.op_type})"
        if self.rules.solo >> found & 1:
            return f"{what} always runs alone: how it reads its operands is not known."
        if self.rules.barriers[found] & mask:
            return f"{what} needs its operand whole, so the operation that makes it must be in another group."
        return f"A group of the {self.name.upper()} scheme cannot begin with {what}."

    def _offender(self, mask: int) -> int | None:
        if mask & (mask - 1) == 0:
            return None
        rules, preds = self.rules, self.network.preds
        alone = mask & rules.solo
        if alone:
            return alone.bit_length() - 1
        rest = mask & self._guarded
        while rest:
            low = rest & -rest
            node = low.bit_length() - 1
            if rules.barriers[node] & mask or (low & rules.no_entry and not preds[node] & mask):
                return node
            rest ^= low
        return None

    def _removed_mask(self) -> int:
        singles = (1 << node.index for node in self.network.nodes)
        return sum(mask for mask in singles if self.demand_bytes(mask) >= self.capacity_bytes)

    def _removal(self, index: int) -> Removed:
        node = self.network.nodes[index]
        weights, demand = self._weight_bytes[index], self.demand_bytes(1 << index)
        capacity = f"the buffer of {self.capacity_bytes / KB:g} KB"
        if weights >= self.capacity_bytes:
            reason = f"its weights alone ({weights / KB:.1f} KB) fill {capacity}"
        else:
            reason = f"with the rows it must keep it needs {demand / KB:.1f} KB, which fill {capacity}"
        return Removed(node.id, node.covers, node.op_type, weights, demand, reason)


def solo_mask(network: FusionNetwork) -> int:
    """Operations that always run alone, as bits."""
    return sum(1 << node.index for node in network.nodes if node.op_class is OpClass.SOLO)
