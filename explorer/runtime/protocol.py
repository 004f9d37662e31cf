"""How a pair of models is timed: the numbers that define a measurement.

The validated protocol exists because simpler ones lie on shared machines: two sessions timed one after
the other differ by 4 % on a quiet machine though the model is the same, and an offset can stick to a
session. So every round opens fresh sessions of A, B and a control A', interleaves them, and the spread
over rounds is the interval.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from math import comb
from typing import Any

from explorer.errors import InputError
from explorer.records import Record

_VALIDATED_ROUNDS = 10
ADAPTIVE = "adaptive"
THREADS_FLOOR_RATIO = 0.05
"""Smallest difference claimed with several threads on shared cores, where single pairs differ by 24 %."""

_SECOND_NS = 1_000_000_000


class Mode(StrEnum):
    """How far a verdict may be trusted."""

    VALIDATED = "validated"
    SCREENING = "screening"


@dataclass(frozen=True)
class Protocol:
    """The numbers of a measurement.

    Args:
        mode: validated or screening; a validated one has at least 10 rounds and drops the extreme ones.
        rounds: rounds of fresh sessions.
        min_rounds: rounds that are made even if the budget is spent; all of ``rounds`` if 0.
        max_rounds: rounds are added up to this number, while the budget lasts, if the interval is not
            narrow enough; none beyond ``rounds`` if 0.
        enough_ratio: half width of the interval at which no round is added.
        samples: samples of each model per round if the time budget allows.
        min_samples: never fewer than this, whatever the budget.
        sample_ns: a sample is as many back-to-back runs as fill this time.
        warmup_ns: each fresh session runs at least this long (and at least twice) before sampling.
        trim: rounds left out at each end of the interval.
        floor_ratio: relative differences up to this are never claimed.
        budget_ns: wall time that one measurement should take; samples per round shrink to stay within it.

    Raises:
        InputError: numbers that make no sense, or too few rounds for the mode.
    """

    mode: Mode = Mode.VALIDATED
    rounds: int = _VALIDATED_ROUNDS
    samples: int = 18
    min_samples: int = 3
    sample_ns: int = 3_000_000
    warmup_ns: int = 60_000_000
    trim: int = 1
    floor_ratio: float = 0.01
    budget_ns: int = 60 * _SECOND_NS
    min_rounds: int = 0
    max_rounds: int = 0
    enough_ratio: float = 0.01

    def __post_init__(self) -> None:
        if self.rounds < 1 or not 1 <= self.min_samples <= self.samples:
            raise InputError("A protocol needs at least 1 round and 1 <= min_samples <= samples.")
        if self.trim < 0 or self.rounds <= 2 * self.trim:
            raise InputError(f"{self.rounds} rounds leave nothing after trimming {self.trim} a side.")
        if min(self.sample_ns, self.warmup_ns, self.budget_ns) <= 0 or not 0 < self.floor_ratio < 1:
            raise InputError("A protocol needs positive times and a floor between 0 and 1.")
        if min(self.min_rounds, self.max_rounds) < 0 or not 0 < self.enough_ratio < 1:
            raise InputError("A protocol needs numbers of rounds and a width between 0 and 1.")
        if self.fewest_rounds <= 2 * self.trim:
            raise InputError(f"{self.fewest_rounds} rounds leave nothing after trimming {self.trim} a side.")
        if self.mode is Mode.VALIDATED and self._is_weak():
            raise InputError(
                f"A validated measurement needs at least {_VALIDATED_ROUNDS} rounds, one of them "
                "trimmed at each end, 3 samples a round and a floor of 1 %; use mode 'screening'."
            )

    def _is_weak(self) -> bool:
        few = self.fewest_rounds < _VALIDATED_ROUNDS or self.min_samples < 3
        return few or self.trim < 1 or self.floor_ratio < 0.01

    @property
    def fewest_rounds(self) -> int:
        """Rounds that are always made."""
        return min(self.min_rounds or self.rounds, self.rounds)

    @property
    def most_rounds(self) -> int:
        """Rounds that are never exceeded."""
        return max(self.max_rounds, self.rounds)

    def trim_of(self, rounds: int) -> int:
        """Rounds to leave out at each end of the interval, given how many were made.

        More rounds than planned allow a larger trim: the largest whose interval covers the median as often
        as that of ``trim`` out of ``rounds`` does (order statistics of the sign test).
        """
        if rounds <= self.rounds or not self.trim:
            return min(self.trim, (rounds - 1) // 2)
        wanted = _coverage(self.rounds, self.trim)
        return max(
            t for t in range(self.trim, rounds // 2) if _coverage(rounds, t) >= wanted or t == self.trim
        )

    @classmethod
    def validated(cls, *, budget_s: float = 60.0) -> Protocol:
        """The protocol whose verdicts were checked: 0 false claims in 35 A/A comparisons."""
        return cls(budget_ns=round(budget_s * _SECOND_NS))

    @classmethod
    def screening(cls, *, budget_s: float = 10.0) -> Protocol:
        """Three short rounds, interval from the lowest to the highest: to rank, not to prove.

        Two rounds if the third would exceed the budget, as with models that take seconds to open.
        """
        budget_ns = round(budget_s * _SECOND_NS)
        return cls(mode=Mode.SCREENING, rounds=3, samples=9, trim=0, budget_ns=budget_ns, min_rounds=2)

    @classmethod
    def adaptive(cls, *, budget_s: float = 180.0, enough_ratio: float = 0.01) -> Protocol:
        """The validated protocol with up to 40 rounds, until the interval is narrow or the budget spent.

        Only the width decides when to stop, never the verdict, which would favour false claims.
        """
        budget_ns = round(budget_s * _SECOND_NS)
        return cls(budget_ns=budget_ns, max_rounds=40, enough_ratio=enough_ratio)

    def for_threads(self, threads: int) -> Protocol:
        """The protocol with the wider floor that several threads need."""
        if threads == 1 or self.floor_ratio >= THREADS_FLOOR_RATIO:
            return self
        return replace(self, floor_ratio=THREADS_FLOOR_RATIO)

    @classmethod
    def of(cls, mode: str | Mode | Protocol) -> Protocol:
        """The protocol of a mode's name or of "adaptive"; a protocol is returned as it is."""
        if isinstance(mode, Protocol):
            return mode
        if mode == ADAPTIVE:
            return cls.adaptive()
        try:
            return cls.validated() if Mode(mode) is Mode.VALIDATED else cls.screening()
        except ValueError:
            allowed = ", ".join([*(m.value for m in Mode), ADAPTIVE])
            raise InputError(f"'{mode}' is not a way of measuring; use one of: {allowed}.") from None

    def with_budget(self, budget_s: float) -> Protocol:
        """The same protocol with another time budget."""
        return replace(self, budget_ns=round(budget_s * _SECOND_NS))

    def describe(self, samples: tuple[int, int] | None = None, rounds: int | None = None) -> str:
        """One line for people.

        Args:
            samples: fewest and most samples a round really had, if it has been run.
            rounds: rounds that were really made.
        """
        low, high = samples or (self.samples, self.samples)
        count = str(low) if low == high else f"{low}-{high}"
        floor = f", nothing up to {100 * self.floor_ratio:.0f} % claimed" if self.floor_ratio > 0.01 else ""
        return f"{self.mode}: {rounds or self.rounds} rounds of {count} samples{floor}"

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "mode": self.mode.value}

    @classmethod
    def from_json(cls, data: object) -> Protocol:
        """Read what ``to_json`` wrote; raises InputError naming the key at fault."""
        record = Record(data, "protocol")
        counts = ("rounds", "samples", "min_samples", "sample_ns", "warmup_ns", "trim", "budget_ns")
        return cls(
            mode=record.member("mode", Mode),
            floor_ratio=record.number("floor_ratio"),
            enough_ratio=record.number("enough_ratio") if "enough_ratio" in record else 0.01,
            **{name: record.integer(name) for name in ("min_rounds", "max_rounds") if name in record},
            **{name: record.integer(name) for name in counts},
        )


def _coverage(rounds: int, trim: int) -> float:
    """How often the interval from the (trim + 1)-lowest to the (trim + 1)-highest holds the median."""
    outside = sum(comb(rounds, k) for k in range(trim + 1))
    return 1.0 - outside / 2.0 ** (rounds - 1)
