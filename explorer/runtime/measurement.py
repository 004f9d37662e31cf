"""``Measurement`` of a pair of graphs and ``Latency`` of one: results with everything behind them.

One object is one line of JSON, with raw samples, protocol and environment, so that a result made on
one machine can be judged on another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import expm1, log
from typing import Any

from explorer.errors import InputError
from explorer.records import Record
from explorer.runtime.delta import Delta, Verdict
from explorer.runtime.environment import Environment
from explorer.runtime.protocol import Protocol
from explorer.runtime.samples import (
    BASE,
    CONTROL,
    OTHER,
    Round,
    rounds_from_json,
    rounds_to_json,
    runs_of,
    sample_counts,
)
from explorer.runtime.target import Target

FORMAT = 1


@dataclass(frozen=True)
class Measurement:
    """Two graphs timed against each other on one target.

    Attributes:
        a: fingerprint (or file name) of the graph that is the base of the ratio.
        b: fingerprint (or file name) of the other graph.
        target: canonical target spec; of a, if they ran on two.
        delta: time of b / time of a; names both targets if there are two.
        control: time of a second session of a / time of a, from the same rounds; None if IDENTICAL.
        rounds: raw samples; empty if IDENTICAL, because nothing needed measuring.
        protocol: how it was measured.
        environment: where.
        measured_at: UTC time in ISO 8601; not part of equality.
        elapsed_ns: wall time the measurement took; not part of equality.
        b_target: canonical spec of b's target if that is another one of the same runtime, else "".
    """

    a: str
    b: str
    target: str
    delta: Delta
    control: Delta | None
    rounds: tuple[Round, ...]
    protocol: Protocol
    environment: Environment
    measured_at: str = field(compare=False)
    elapsed_ns: int = field(compare=False)
    b_target: str = ""

    def __post_init__(self) -> None:
        identical = self.delta.verdict is Verdict.IDENTICAL
        if identical != (not self.rounds) or identical != (self.control is None):
            raise InputError("Only a measurement called IDENTICAL goes without samples and control.")

    @property
    def is_of_one(self) -> bool:
        """Whether a graph was timed against itself."""
        return self.a == self.b and not self.b_target

    @property
    def a_ns(self) -> float | None:
        """Median time of one run of a; None if IDENTICAL."""
        return runs_of(self.rounds, BASE) if self.rounds else None

    @property
    def b_ns(self) -> float | None:
        """Median time of one run of b; None if IDENTICAL."""
        return runs_of(self.rounds, OTHER) if self.rounds else None

    @property
    def samples(self) -> tuple[int, int]:
        """Fewest and most samples of a session in a round; (0, 0) if IDENTICAL."""
        return sample_counts(self.rounds) if self.rounds else (0, 0)

    @property
    def floor_ratio(self) -> float:
        """Relative difference that had to be exceeded to be claimed; 0 if IDENTICAL.

        The larger of the protocol's floor and the reach of the control's interval.
        """
        if self.control is None:
            return 0.0
        reach = max(abs(log(self.control.low)), abs(log(self.control.high)))
        return max(self.protocol.floor_ratio, expm1(reach))

    @property
    def notices(self) -> tuple[str, ...]:
        """What a reader should know before believing the verdict."""
        if self.control is None or self.control.verdict is Verdict.WITHIN_NOISE:
            return ()
        change = f"{self.control.percent:+.1f} %"
        return (f"The control, a against itself, differed by {change}: smaller differences are not claimed.",)

    def to_json(self) -> dict[str, Any]:
        """Plain values; ``json.dumps`` of it is one line."""
        return {
            "format": FORMAT,
            "a": self.a,
            "b": self.b,
            "target": self.target,
            **({"b_target": self.b_target} if self.b_target else {}),
            "delta": self.delta.to_json(),
            "control": self.control.to_json() if self.control else None,
            "a_ns": self.a_ns,
            "b_ns": self.b_ns,
            "floor_ratio": self.floor_ratio,
            "samples": rounds_to_json(self.rounds),
            "protocol": self.protocol.to_json(),
            "environment": self.environment.to_json(),
            "notices": list(self.notices),
            "measured_at": self.measured_at,
            "elapsed_ns": self.elapsed_ns,
        }

    @classmethod
    def from_json(cls, data: object) -> Measurement:
        """Read what ``to_json`` wrote; raises InputError naming the key at fault."""
        record = Record(data, "measurement")
        _check_format(record)
        control = record.optional("control")
        return cls(
            a=record.text("a"),
            b=record.text("b"),
            target=record.text("target"),
            delta=Delta.from_json(record.optional("delta")),
            control=None if control is None else Delta.from_json(control),
            rounds=rounds_from_json(record.items("samples"), (BASE, OTHER, CONTROL)),
            protocol=Protocol.from_json(record.optional("protocol")),
            environment=Environment.from_json(record.optional("environment")),
            measured_at=record.text("measured_at"),
            elapsed_ns=record.integer("elapsed_ns"),
            b_target=record.text("b_target") if "b_target" in record else "",
        )


def targets_text(target: str | Target, b_target: str | Target | None = None) -> str:
    """Where a ratio holds: one spec, or "that of b against that of a"."""
    if not b_target or str(b_target) == str(target):
        return str(target)
    return f"{b_target} against {target}"


@dataclass(frozen=True)
class Latency:
    """Time of one run of a graph. Compare graphs by ``Measurement``, never by two latencies.

    Attributes:
        model: fingerprint (or file name) of the graph.
        target: canonical target spec.
        ns: median over rounds of the round's median time of one run.
        low_ns: lower end of the interval over rounds.
        high_ns: upper end of the interval over rounds.
        rounds: raw samples.
        protocol: how it was measured.
        environment: where.
        measured_at: UTC time in ISO 8601; not part of equality.
        elapsed_ns: wall time it took; not part of equality.
    """

    model: str
    target: str
    ns: float
    low_ns: float
    high_ns: float
    rounds: tuple[Round, ...]
    protocol: Protocol
    environment: Environment
    measured_at: str = field(compare=False)
    elapsed_ns: int = field(compare=False)

    def __post_init__(self) -> None:
        if not 0 < self.low_ns <= self.ns <= self.high_ns:
            raise InputError("A latency must be positive and lie within its interval.")

    def to_json(self) -> dict[str, Any]:
        """Plain values; ``json.dumps`` of it is one line."""
        return {
            "format": FORMAT,
            "model": self.model,
            "target": self.target,
            "ns": self.ns,
            "low_ns": self.low_ns,
            "high_ns": self.high_ns,
            "samples": rounds_to_json(self.rounds),
            "protocol": self.protocol.to_json(),
            "environment": self.environment.to_json(),
            "measured_at": self.measured_at,
            "elapsed_ns": self.elapsed_ns,
        }

    @classmethod
    def from_json(cls, data: object) -> Latency:
        """Read what ``to_json`` wrote; raises InputError naming the key at fault."""
        record = Record(data, "latency")
        _check_format(record)
        return cls(
            model=record.text("model"),
            target=record.text("target"),
            ns=record.number("ns"),
            low_ns=record.number("low_ns"),
            high_ns=record.number("high_ns"),
            rounds=rounds_from_json(record.items("samples"), (BASE,)),
            protocol=Protocol.from_json(record.optional("protocol")),
            environment=Environment.from_json(record.optional("environment")),
            measured_at=record.text("measured_at"),
            elapsed_ns=record.integer("elapsed_ns"),
        )


def _check_format(record: Record) -> None:
    if record.integer("format") != FORMAT:
        raise InputError(f"This version reads measurements of format {FORMAT} only.")
