"""Timing only what two versions of a graph do not share: cheaper than the whole, and larger in effect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from explorer.runtime.delta import Delta
from explorer.runtime.executor import CancelToken
from explorer.runtime.measurement import Measurement
from explorer.runtime.progress import OnProgress, ignore_progress
from explorer.runtime.protocol import Mode, Protocol
from explorer.runtime.region import boundary_feeds, changed_regions, cut_out, with_sizes
from explorer.runtime.target import Target

if TYPE_CHECKING:
    from explorer.graph import Feeds, Graph
    from explorer.runtime.measurer import Measurer

HOPS = 1


@dataclass(frozen=True)
class RegionTime:
    """The changed region of a rewrite, before and after.

    Attributes:
        before: ids of the region's nodes in the first graph.
        after: ids in the second.
        measurement: of the two regions against each other; its ratio is larger than that of the whole.
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    measurement: Measurement

    @property
    def delta(self) -> Delta:
        """Time of the region after, divided by that before."""
        return self.measurement.delta

    @property
    def nodes(self) -> tuple[int, int]:
        """Number of nodes before and after."""
        return len(self.before), len(self.after)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        lists = {"before": list(self.before), "after": list(self.after)}
        return {**lists, "measurement": self.measurement.to_json()}


def measure_region(
    before: Graph,
    after: Graph,
    feeds: Feeds,
    measurer: Measurer,
    target: str | Target,
    mode: str | Mode | Protocol = Mode.SCREENING,
    progress: OnProgress = ignore_progress,
    cancel: CancelToken | None = None,
    *,
    hops: int = HOPS,
    fresh: bool = False,
) -> RegionTime:
    """Time what two versions of a graph do not share, with its real shapes and a little context.

    Args:
        before: base of the ratio.
        after: the other version.
        feeds: inputs of the whole graph, for the sizes of dynamic dims.
        measurer: where.
        target: runtime and options.
        mode: protocol.
        progress: called while it runs.
        cancel: stops when set.
        hops: edges of context on each side, so that fusions across the border happen as in the whole.
        fresh: measure even if a result is in the cache.

    Raises:
        RuntimeFailure: a shape on the border is unknown, or the target cannot run the region.
        WorkerError: the worker crashed, hung or ran out of memory.
    """
    before, after = with_sizes(before, feeds), with_sizes(after, feeds)
    old, new = changed_regions(before, after, hops)
    parts = (cut_out(before, old, "region before"), cut_out(after, new, "region after"))
    inputs = boundary_feeds(parts)
    found = measurer.measure(*parts, inputs, target, mode, progress, cancel, fresh=fresh)
    return RegionTime(tuple(sorted(old)), tuple(sorted(new)), found)
