"""Raw timings: what every number of a measurement is computed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from explorer.errors import InputError
from explorer.records import Record

BASE, OTHER, CONTROL = "a", "b", "control"


@dataclass(frozen=True)
class Series:
    """The samples of one session in one round.

    Args:
        samples_ns: duration of each sample.
        runs: back-to-back runs in each sample.
    """

    samples_ns: tuple[int, ...]
    runs: int

    def __post_init__(self) -> None:
        if self.runs < 1 or not self.samples_ns or min(self.samples_ns) <= 0:
            raise InputError("A series needs at least one run per sample and positive durations.")

    @property
    def per_run_ns(self) -> tuple[float, ...]:
        """Duration of one run, per sample."""
        return tuple(sample / self.runs for sample in self.samples_ns)

    @property
    def median_ns(self) -> float:
        """Median duration of one run."""
        return median(self.per_run_ns)


Round = Mapping[str, Series]
"""Session name (a, b, control) -> its samples in one round; position i of each was taken together."""


def runs_of(rounds: Sequence[Round], name: str) -> float:
    """Median duration of one run of a session over all rounds, in nanoseconds."""
    return median(r[name].median_ns for r in rounds)


def sample_counts(rounds: Sequence[Round]) -> tuple[int, int]:
    """Fewest and most samples that a session had in a round."""
    counts = [len(series.samples_ns) for r in rounds for series in r.values()]
    return min(counts), max(counts)


def rounds_to_json(rounds: Sequence[Round]) -> list[dict[str, Any]]:
    """Plain values: one object per round, per session ``samples_ns`` and ``runs``."""
    return [
        {name: {"samples_ns": list(s.samples_ns), "runs": s.runs} for name, s in r.items()} for r in rounds
    ]


def rounds_from_json(items: Sequence[object], names: tuple[str, ...]) -> tuple[Round, ...]:
    """Read what ``rounds_to_json`` wrote; every round must have exactly the sessions ``names``."""
    return tuple(_round_from_json(item, names) for item in items)


def _round_from_json(item: object, names: tuple[str, ...]) -> Round:
    record = Record(item, "round of samples")
    series = {}
    for name in names:
        one = Record(record.optional(name), f"series '{name}'")
        series[name] = Series(one.integers("samples_ns"), one.integer("runs", minimum=1))
    if len({len(s.samples_ns) for s in series.values()}) != 1:
        raise InputError("The sessions of a round must have the same number of samples.")
    return series
