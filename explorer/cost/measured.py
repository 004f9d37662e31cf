"""The cost model that does not guess: both graphs are timed against each other on the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from explorer.graph import Feeds, Graph
from explorer.runtime import Delta, Measurement, Measurer, Mode, Target

if TYPE_CHECKING:
    from explorer.runtime.executor import CancelToken
    from explorer.runtime.progress import OnProgress


@dataclass(frozen=True)
class MeasuredCost:
    """Times graphs with a measurer.

    Args:
        measurer: where to measure.
        on: the target.
        feeds: inputs for all graphs.
        mode: screening by default; a search confirms its result with the validated protocol.
        progress: called while measuring, from another thread.
        cancel: stops measuring when set.
    """

    measurer: Measurer
    on: Target
    feeds: Feeds
    mode: Mode = Mode.SCREENING
    progress: OnProgress | None = None
    cancel: CancelToken | None = None

    @property
    def name(self) -> str:
        """As given on the command line."""
        return "measured"

    @property
    def target(self) -> str:
        """Canonical spec of the target."""
        return str(self.on)

    def compare(self, base: Graph, other: Graph, *, careful: bool = False) -> Delta:
        """Measured delta; IDENTICAL without timing where the runtime makes one graph of both."""
        return self.measure(base, other, Mode.VALIDATED if careful else self.mode).delta

    def measure(self, base: Graph, other: Graph, mode: Mode) -> Measurement:
        """The whole measurement, in a chosen mode."""
        from explorer.runtime.progress import ignore_progress

        listener = self.progress or ignore_progress
        return self.measurer.measure(base, other, self.feeds, self.on, mode, listener, self.cancel)
