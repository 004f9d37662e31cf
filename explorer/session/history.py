"""Accepted rewrites, with undo and redo; immutable, so that a reader never sees half a change."""

from __future__ import annotations

from dataclasses import dataclass, replace

from explorer.graph import Graph
from explorer.rewrite import EquivalenceReport, NumericClass
from explorer.runtime import Target
from explorer.search import FREEZE, Step


@dataclass(frozen=True)
class Switched:
    """A change of target that was accepted like a rewrite."""

    before: Target
    after: Target


@dataclass(frozen=True)
class Entry:
    """The graph after one acceptance: a rewrite, several that were measured together, or a switch.

    Attributes:
        graph: the graph as it is then.
        steps: what was applied.
        summary: what people read.
        report: the numerical check that was made here; None for the original and in a reopened session.
        numeric_class: the weakest of the steps.
        switched: targets before and after, for a switch.
        checked_earlier: what the check said when it was accepted, in a reopened session; else empty.
    """

    graph: Graph
    steps: tuple[Step, ...] = ()
    summary: str = ""
    report: EquivalenceReport | None = None
    numeric_class: NumericClass = NumericClass.EXACT
    switched: Switched | None = None
    checked_earlier: str = ""

    @property
    def check(self) -> str:
        """What the numerical check said, in words."""
        if self.report is not None:
            return self.report.sentence()
        return f"{self.checked_earlier}, when it was accepted" if self.checked_earlier else "not checked"


@dataclass(frozen=True)
class History:
    """All entries, the first being the original, and where we are."""

    entries: tuple[Entry, ...]
    position: int = 0

    @classmethod
    def of(cls, graph: Graph) -> History:
        """A history that starts with this graph."""
        return cls((Entry(graph),))

    @property
    def original(self) -> Graph:
        """The graph as it was opened."""
        return self.entries[0].graph

    @property
    def current(self) -> Graph:
        """The graph as it is."""
        return self.entries[self.position].graph

    @property
    def past(self) -> tuple[Entry, ...]:
        """Accepted entries up to here, oldest first."""
        return self.entries[1 : self.position + 1]

    @property
    def future(self) -> tuple[Entry, ...]:
        """Undone entries, the next to redo first."""
        return self.entries[self.position + 1 :]

    def steps(self) -> tuple[Step, ...]:
        """Accepted steps up to here."""
        return tuple(step for entry in self.past for step in entry.steps)

    @property
    def is_frozen(self) -> bool:
        """Whether weights that were graph inputs have become constants on the way here."""
        return any(step.place == FREEZE for step in self.steps())

    def start_target(self, now: Target) -> Target:
        """The target that the accepted switches which led to ``now`` began with; ``now`` if none did."""
        return self.target_after(-self.position, now)

    def target_after(self, by: int, now: Target) -> Target:
        """The target after undoing (-) or redoing (+) entries; one that was chosen by hand since then stays."""
        low, high = sorted((self.position, self.moved(by).position))
        switches = [entry.switched for entry in self.entries[low + 1 : high + 1] if entry.switched]
        way = [(s.before, s.after) for s in switches]
        for start, end in way if by > 0 else [(after, before) for before, after in reversed(way)]:
            now = end if now == start else now
        return now

    def push(self, entry: Entry) -> History:
        """Accept an entry; what was undone before is forgotten."""
        return History((*self.entries[: self.position + 1], entry), self.position + 1)

    def moved(self, by: int) -> History:
        """Undo (-1) or redo (+1); stays at the ends."""
        return replace(self, position=min(max(self.position + by, 0), len(self.entries) - 1))
