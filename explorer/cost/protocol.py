"""The one question a search asks of a cost model."""

from __future__ import annotations

from typing import Protocol

from explorer.graph import Graph
from explorer.runtime import Delta


class CostModel(Protocol):
    """Compares two graphs that compute the same; measured, summed over operators, or learned."""

    @property
    def name(self) -> str:
        """Short name, as given on the command line."""

    @property
    def target(self) -> str:
        """Canonical spec of the target whose cost this is."""

    def compare(self, base: Graph, other: Graph, *, careful: bool = False) -> Delta:
        """Time of ``other`` divided by time of ``base``, with an interval and a verdict.

        Args:
            base: the graph to compare with.
            other: the graph in question.
            careful: spend more to be surer, because a first answer was promising but not conclusive.

        Raises:
            RuntimeFailure: the target cannot run one of them.
            WorkerError: measuring was lost; the comparison may be tried again.
            Cancelled: the user stopped it.
        """
