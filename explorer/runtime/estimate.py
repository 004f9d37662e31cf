"""From raw samples to a ratio, an interval and a verdict. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import exp, expm1, log, log1p
from statistics import median

from explorer.runtime.delta import Delta, Source, Verdict
from explorer.runtime.environment import Environment
from explorer.runtime.measurement import Latency, Measurement, targets_text
from explorer.runtime.protocol import Protocol
from explorer.runtime.samples import BASE, CONTROL, OTHER, Round, sample_counts
from explorer.runtime.target import Target

ABSORBED = "not timed: the runtime executes the same graph for both"


@dataclass(frozen=True)
class LogInterval:
    """A log ratio with an interval; 0 means no difference."""

    estimate: float
    low: float
    high: float

    @property
    def reach(self) -> float:
        """Largest distance from 0 that the interval contains."""
        return max(abs(self.low), abs(self.high))

    def excludes_zero(self) -> bool:
        """Whether the whole interval lies on one side of 0."""
        return self.low > 0 or self.high < 0


def round_log_ratio(one: Round, numerator: str, denominator: str) -> float:
    """Median over the paired samples of one round of log(time / time)."""
    pairs = zip(one[numerator].per_run_ns, one[denominator].per_run_ns, strict=True)
    return median(log(n / d) for n, d in pairs)


def spread(values: Sequence[float], trim: int) -> LogInterval:
    """Median, and the lowest and highest value after leaving out ``trim`` at each end."""
    ordered = sorted(values)
    return LogInterval(median(ordered), ordered[trim], ordered[-1 - trim])


def half_width(rounds: Sequence[Round], protocol: Protocol) -> float:
    """Half the relative width of the interval that these rounds give: of the ratio, or of one model's time."""
    trim = protocol.trim_of(len(rounds))
    if OTHER in rounds[0]:
        found = spread([round_log_ratio(r, OTHER, BASE) for r in rounds], trim)
    else:
        found = spread([log(r[BASE].median_ns) for r in rounds], trim)
    return expm1((found.high - found.low) / 2)


def judge(interval: LogInterval, floor: float) -> Verdict:
    """A difference is claimed only if the interval excludes 0 and the estimate exceeds the floor."""
    if not interval.excludes_zero() or abs(interval.estimate) <= floor:
        return Verdict.WITHIN_NOISE
    return Verdict.FASTER if interval.estimate < 0 else Verdict.SLOWER


def compare(
    rounds: Sequence[Round], protocol: Protocol, target: str, b_target: str = ""
) -> tuple[Delta, Delta]:
    """The delta of b against a, and that of the control (a again, on a's target) against a.

    The floor of the first is the larger of the protocol's and the reach of the control's interval: a
    difference must exceed what the same model shows against itself in the same rounds.
    """
    smallest = log1p(protocol.floor_ratio)
    text, trim = protocol.describe(sample_counts(rounds), len(rounds)), protocol.trim_of(len(rounds))
    pair = spread([round_log_ratio(r, OTHER, BASE) for r in rounds], trim)
    control = spread([round_log_ratio(r, CONTROL, BASE) for r in rounds], trim)
    verdict = judge(pair, max(smallest, control.reach))
    return (
        _delta(pair, verdict, targets_text(target, b_target), text),
        _delta(control, judge(control, smallest), target, text),
    )


def _delta(interval: LogInterval, verdict: Verdict, target: str, protocol: str) -> Delta:
    ratio, low, high = (exp(v) for v in (interval.estimate, interval.low, interval.high))
    return Delta(ratio, low, high, verdict, Source.MEASURED, target, protocol)


def measurement_from(
    rounds: tuple[Round, ...],
    names: tuple[str, str],
    target: Target,
    protocol: Protocol,
    environment: Environment,
    *,
    elapsed_ns: int,
    b_target: Target | None = None,
) -> Measurement:
    """The measurement that raw samples of a, b and the control amount to, made now."""
    other = str(b_target or "")
    delta, control = compare(rounds, protocol, str(target), other)
    return Measurement(
        a=names[0],
        b=names[1],
        target=str(target),
        delta=delta,
        control=control,
        rounds=rounds,
        protocol=protocol,
        environment=environment,
        measured_at=utc_now(),
        elapsed_ns=elapsed_ns,
        b_target=other,
    )


def identical(
    names: tuple[str, str],
    target: Target,
    protocol: Protocol,
    environment: Environment,
    b_target: Target | None = None,
) -> Measurement:
    """The measurement of two graphs that the runtime turns into the same one: nothing was timed."""
    return Measurement(
        a=names[0],
        b=names[1],
        target=str(target),
        delta=Delta.identical(targets_text(target, b_target), ABSORBED),
        control=None,
        rounds=(),
        protocol=protocol,
        environment=environment,
        measured_at=utc_now(),
        elapsed_ns=0,
        b_target=str(b_target or ""),
    )


def latency_from(
    rounds: tuple[Round, ...],
    name: str,
    target: Target,
    protocol: Protocol,
    environment: Environment,
    *,
    elapsed_ns: int,
) -> Latency:
    """The latency that raw samples of one model amount to, made now."""
    values, trim = sorted(r[BASE].median_ns for r in rounds), protocol.trim_of(len(rounds))
    return Latency(
        model=name,
        target=str(target),
        ns=median(values),
        low_ns=values[trim],
        high_ns=values[-1 - trim],
        rounds=rounds,
        protocol=protocol,
        environment=environment,
        measured_at=utc_now(),
        elapsed_ns=elapsed_ns,
    )


def utc_now() -> str:
    """The present time, ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
