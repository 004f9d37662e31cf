"""Accepted rewrites, with undo and redo; immutable, so that a reader never sees half a change."""

from __future__ import annotations

from dataclasses import dataclass, replace

from explorer.graph import Graph
from explorer.rewrite import EquivalenceReport, NumericClass
from explorer.search import Step


@dataclass(frozen=True)
class Entry:
    """The graph after one acceptance: a single rewrite, or several that were measured together."""

    graph: Graph
    steps: tuple[Step, ...] = ()
    summary: str = ""
    report: EquivalenceReport | None = None
    numeric_class: NumericClass = NumericClass.EXACT


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

    def push(self, entry: Entry) -> History:
        """Accept an entry; what was undone before is forgotten."""
        return History((*self.entries[: self.position + 1], entry), self.position + 1)

    def moved(self, by: int) -> History:
        """Undo (-1) or redo (+1); stays at the ends."""
        return replace(self, position=min(max(self.position + by, 0), len(self.entries) - 1))
