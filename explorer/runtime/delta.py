"""``Delta``: how the time of one graph compares with that of another, and how far to trust it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from explorer.errors import InputError
from explorer.records import Record


class Verdict(StrEnum):
    """What may be claimed about a pair of graphs."""

    FASTER = "FASTER"
    SLOWER = "SLOWER"
    WITHIN_NOISE = "WITHIN_NOISE"
    IDENTICAL = "IDENTICAL"

    @property
    def text(self) -> str:
        """The verdict as words for people."""
        return self.value.lower().replace("_", " ")


class Source(StrEnum):
    """Where a number comes from."""

    MEASURED = "MEASURED"
    PREDICTED = "PREDICTED"


@dataclass(frozen=True)
class Delta:
    """Time of graph b divided by time of graph a, with an interval.

    Args:
        ratio: time of b / time of a; below 1 means b is faster.
        low: lower end of the interval.
        high: upper end of the interval.
        verdict: what may be claimed; FASTER needs ``high < 1``, SLOWER needs ``low > 1``, IDENTICAL
            means that the runtime executes the same graph, so that all three numbers are exactly 1.
        source: measured or predicted.
        target: canonical target spec; "B against A" if a and b ran on two targets.
        protocol: how it was measured, or which cost model predicted it.

    Raises:
        InputError: the numbers contradict each other or the verdict.
    """

    ratio: float
    low: float
    high: float
    verdict: Verdict
    source: Source
    target: str
    protocol: str

    def __post_init__(self) -> None:
        numbers = (self.low, self.ratio, self.high)
        if not all(math.isfinite(n) and n > 0 for n in numbers):
            raise InputError(f"A delta needs positive, finite numbers, not {numbers}.")
        if not self.low <= self.ratio <= self.high:
            raise InputError(f"A delta's ratio {self.ratio} must lie within its interval {numbers}.")
        if not self._supports_verdict():
            raise InputError(f"A delta of {numbers} cannot be called {self.verdict}.")

    def _supports_verdict(self) -> bool:
        match self.verdict:
            case Verdict.FASTER:
                return self.high < 1
            case Verdict.SLOWER:
                return self.low > 1
            case Verdict.IDENTICAL:
                return self.low == self.ratio == self.high == 1
            case Verdict.WITHIN_NOISE:
                return True

    @classmethod
    def identical(cls, target: str, protocol: str) -> Delta:
        """The delta of two graphs that the runtime turns into the same one: exactly 0."""
        return cls(1.0, 1.0, 1.0, Verdict.IDENTICAL, Source.MEASURED, target, protocol)

    @property
    def percent(self) -> float:
        """Change of time in percent; negative means faster."""
        return 100 * (self.ratio - 1)

    def to_json(self) -> dict[str, Any]:
        """Plain values, keys as in the command line's output."""
        return {
            "ratio": self.ratio,
            "low": self.low,
            "high": self.high,
            "verdict": self.verdict.value,
            "target": self.target,
            "source": self.source.value,
            "protocol": self.protocol,
        }

    @classmethod
    def from_json(cls, data: object) -> Delta:
        """Read what ``to_json`` wrote; raises InputError naming the key at fault."""
        record = Record(data, "delta")
        return cls(
            ratio=record.number("ratio"),
            low=record.number("low"),
            high=record.number("high"),
            verdict=record.member("verdict", Verdict),
            source=record.member("source", Source),
            target=record.text("target"),
            protocol=record.text("protocol"),
        )
