"""What a group needs on chip, as a bill: one line per tensor or weight."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum


class TermKind(Enum):
    """What a line of the bill pays for."""

    WEIGHTS = "weights"
    LINE_BUFFER = "line_buffer"
    SHORTCUT_FIFO = "shortcut_fifo"


@dataclass(frozen=True)
class BufferTerm:
    """One line of the bill.

    Attributes:
        kind: weights, rows kept for a window, or rows that wait at a join.
        bytes: its size.
        node: id of the operation that needs it.
        tensor: name of the feature map; None for weights.
        producer: id of the operation that makes the feature map; None for weights and network inputs.
        rows: rows of the feature map that are kept; 0 for weights.
    """

    kind: TermKind
    bytes: int
    node: str
    tensor: str | None = None
    producer: str | None = None
    rows: int = 0


@dataclass(frozen=True)
class BufferReport:
    """Demand of a group against the buffer, in bytes. "Does not fit" is a result, not an error.

    Attributes:
        scheme: which scheme computed it.
        nodes: ids of the graph nodes in the group.
        demand_bytes: the sum of the terms.
        capacity_bytes: the buffer; the demand must be strictly smaller.
        terms: the bill, largest line first.
        refusal: why the scheme forbids the group whatever its size, or None.
    """

    scheme: str
    nodes: tuple[str, ...]
    demand_bytes: int
    capacity_bytes: int
    terms: tuple[BufferTerm, ...]
    refusal: str | None = None

    @property
    def fits(self) -> bool:
        """Whether the group may run."""
        return self.refusal is None and self.demand_bytes < self.capacity_bytes

    def total_bytes(self, kind: TermKind) -> int:
        """The sum of the lines of one kind."""
        return sum(term.bytes for term in self.terms if term.kind is kind)

    def to_json(self) -> dict[str, object]:
        """As plain values."""
        terms = [asdict(term) | {"kind": term.kind.value} for term in self.terms]
        return asdict(self) | {"fits": self.fits, "nodes": list(self.nodes), "terms": terms}
