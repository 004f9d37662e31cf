"""TASO's cost model: the time of a graph is the sum of the times of its operators, each timed alone.

It knows nothing of fusion, caches and layouts across operators, which is where a runtime's optimiser
earns its time. So it is a world of its own to optimise in, and a first, cheap guess elsewhere.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property

from explorer.errors import RuntimeFailure
from explorer.graph import Feeds, Graph
from explorer.runtime import Delta, Measurer, Source, Target, Verdict
from explorer.runtime.executor import CancelToken
from explorer.runtime.operators import OperatorTime, OperatorTimes, count_keys, operator_keys
from explorer.runtime.progress import OnProgress, ignore_progress
from explorer.runtime.region import with_sizes

NAME = "operator-sum"
SENTENCE = "sum of isolated operator times"
MODEL_ERROR = 0.24
"""Sums of operator times and end-to-end times differ by 5 to 24 % in the literature (TASO's own models):
what an operator type gains or loses may be this much more or less inside the whole than alone."""

SMALLEST_CLAIM = 0.01
SMALLEST_LITERAL_CLAIM = 0.001
"""Of a sum taken for the truth, as TASO's search does; below it are errors of timing an operator."""

Sum = tuple[float, float, float]
"""Low end, estimate and high end of a sum of times in nanoseconds."""


@dataclass(frozen=True)
class OperatorSum:
    """Predicts a delta from operators timed alone on a target.

    Args:
        measurer: where to time operators that are not known yet.
        on: the target.
        feeds: inputs, for the sizes of dynamic dims.
        literal: take the sum for the truth, as TASO's search does: no interval, and every difference that is
            not rounding counts. Otherwise what an operator type gains or loses errs by ``MODEL_ERROR``.
        progress: called while operators are timed.
        cancel: stops when set.
        operators: times to share with other models of cost on the same target; its own by default.
    """

    measurer: Measurer
    on: Target
    feeds: Feeds
    literal: bool = False
    progress: OnProgress | None = None
    cancel: CancelToken | None = None
    operators: OperatorTimes | None = None
    _sized: dict[int, tuple[Graph, Graph]] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """As given on the command line."""
        return NAME

    @property
    def target(self) -> str:
        """Canonical spec of the target."""
        return str(self.on)

    @cached_property
    def times(self) -> OperatorTimes:
        """The operators timed so far."""
        return self.operators or OperatorTimes(self.measurer, self.on)

    def compare(self, base: Graph, other: Graph, *, careful: bool = False) -> Delta:  # noqa: ARG002 (there is nothing to be surer about)
        """Sum over the operators of ``other`` divided by that of ``base``; source PREDICTED.

        Raises:
            RuntimeFailure: an operator that only one of them has cannot be timed alone.
            Cancelled: ``cancel`` was set.
        """
        before, after = self._counts(base), self._counts(other)
        common = {key: min(count, after.get(key, 0)) for key, count in before.items()}
        removed = {k: n - common.get(k, 0) for k, n in before.items() if n > common.get(k, 0)}
        added = {k: n - common.get(k, 0) for k, n in after.items() if n > common.get(k, 0)}
        old, new = self._times(base, removed), self._times(other, added)
        _refuse_failures({**old, **new})
        kept = _sum(common, self._times(base, common))[1]
        lost, gained = _sum(removed, old), _sum(added, new)
        if self.literal:
            return self._literal_delta(kept, lost[1], gained[1])
        return self._delta(kept, lost, gained, MODEL_ERROR * _net_change(removed, old, added, new))

    def total_ns(self, graph: Graph) -> Sum:
        """Low end, estimate and high end of the sum; operators that cannot be timed alone count 0."""
        counts = self._counts(graph)
        return _sum(counts, self._times(graph, counts))

    def failures(self, graph: Graph) -> dict[str, str]:
        """Operators of a graph that cannot be timed alone, with the reason."""
        times = self._times(graph, self._counts(graph)).values()
        return {time.op_type: time.failure for time in times if time.failure}

    def _delta(self, kept: float, lost: Sum, gained: Sum, error: float) -> Delta:
        before, after = max(kept + lost[1], 1.0), max(kept + gained[1], 1.0)
        low = max(kept + gained[0] - error, 1.0) / max(kept + lost[2], 1.0)
        high = max(kept + gained[2] + error, 1.0) / max(kept + lost[0], 1.0)
        ratio = after / before
        low, high = min(low, ratio), max(high, ratio)
        verdict = Verdict.WITHIN_NOISE
        if abs(ratio - 1) > SMALLEST_CLAIM and not low <= 1 <= high:
            verdict = Verdict.FASTER if ratio < 1 else Verdict.SLOWER
        text = f"{SENTENCE}; what changes ± {100 * MODEL_ERROR:.0f} %"
        return Delta(ratio, low, high, verdict, Source.PREDICTED, self.target, text)

    def _literal_delta(self, kept: float, lost: float, gained: float) -> Delta:
        ratio = max(kept + gained, 1.0) / max(kept + lost, 1.0)
        verdict = Verdict.WITHIN_NOISE
        if abs(ratio - 1) > SMALLEST_LITERAL_CLAIM:
            verdict = Verdict.FASTER if ratio < 1 else Verdict.SLOWER
        return Delta(
            ratio, ratio, ratio, verdict, Source.PREDICTED, self.target, f"{SENTENCE}, taken for the truth"
        )

    def _counts(self, graph: Graph) -> dict[str, int]:
        return count_keys(operator_keys(self._with_sizes(graph)))

    def _times(self, graph: Graph, keys: dict[str, int]) -> dict[str, OperatorTime]:
        listener = self.progress or ignore_progress
        return self.times.of(self._with_sizes(graph), listener, self.cancel, only=keys)

    def _with_sizes(self, graph: Graph) -> Graph:
        if id(graph) not in self._sized:  # the graph is kept too, so that its id is not used again
            if len(self._sized) > 2:
                self._sized.clear()
            self._sized[id(graph)] = (graph, with_sizes(graph, self.feeds))
        return self._sized[id(graph)][1]


def _net_change(
    removed: dict[str, int],
    old: dict[str, OperatorTime],
    added: dict[str, int],
    new: dict[str, OperatorTime],
) -> float:
    """Nanoseconds that operator types gain or lose, summed without sign.

    A convolution replaced by one of nearly the same cost errs the same way before and after; one replaced
    by a matrix product does not.
    """
    change: dict[str, float] = defaultdict(float)
    for sign, counts, times in ((-1, removed, old), (1, added, new)):
        for key, count in counts.items():
            change[times[key].op_type] += sign * count * times[key].ns
    return sum(map(abs, change.values()))


def _sum(counts: dict[str, int], times: dict[str, OperatorTime]) -> Sum:
    parts = [(count, times[key]) for key, count in counts.items() if count]
    return (
        sum(count * time.low_ns for count, time in parts),
        sum(count * time.ns for count, time in parts),
        sum(count * time.high_ns for count, time in parts),
    )


def _refuse_failures(times: dict[str, OperatorTime]) -> None:
    for time in times.values():
        if time.failure:
            raise RuntimeFailure(f"{time.op_type} cannot be timed alone: {time.failure}")
