"""Are the verdicts right? Pairs of equal models, and pairs with a planted difference of known size.

``explorer calibrate --target T --pairs 200 --record FILE``: results are written line by line, so that a run
of hours can be interrupted and goes on where it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from math import sqrt
from pathlib import Path
from typing import Any

from explorer.errors import InputError, RuntimeFailure, WorkerError
from explorer.graph import Feeds, Graph, load, make_feeds
from explorer.records import Record
from explorer.runtime import Measurement, Measurer, Mode, Protocol, Target, Verdict
from explorer.runtime.planting import plant_share
from explorer.runtime.progress import OnProgress, Progress, ignore_progress

EFFECTS = (0.02, 0.05, 0.10)
QUICK_MODELS = ("squeezenet1_1", "mobilenet_v3_small", "shufflenet_v2_x1_0", "resnet18", "googlenet")
"""Samples of 10 to 100 ms a run: 200 pairs of the larger ones would take a day."""

_Z_95 = 1.96


@dataclass(frozen=True)
class Plan:
    """What to calibrate.

    Args:
        target: canonical spec.
        models: names of samples, or paths.
        pairs: A/A pairs in all, dealt out to the models in turn.
        planted: pairs with a planted difference, per effect.
        effects: planted differences relative to the model's time.
        protocol: how each pair is measured.
    """

    target: Target
    models: tuple[str, ...] = QUICK_MODELS
    pairs: int = 200
    planted: int = 20
    effects: tuple[float, ...] = EFFECTS
    protocol: Protocol = Protocol.validated()  # noqa: RUF009 (frozen)

    def cases(self) -> Iterator[tuple[str, float, int]]:
        """Model, effect (0 for A/A) and number of every pair."""
        for effect, count in ((0.0, self.pairs), *((effect, self.planted) for effect in self.effects)):
            models = islice(cycle(self.models), count)
            yield from ((model, effect, number) for number, model in enumerate(models))


@dataclass(frozen=True)
class Trial:
    """One pair.

    Attributes:
        model: its name.
        effect: planted difference; 0 for a model against itself.
        number: of the pair, within its effect.
        expected: ratio that was planted, as far as it is known.
        ratio: measured.
        low: lower end of the interval.
        high: upper end of the interval.
        verdict: what was claimed.
        elapsed_s: wall time of the measurement.
        key: target, protocol and versions, to tell trials of different calibrations apart.
    """

    model: str
    effect: float
    number: int
    expected: float
    ratio: float
    low: float
    high: float
    verdict: Verdict
    elapsed_s: float
    key: str

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**vars(self), "verdict": self.verdict.value}

    @classmethod
    def from_json(cls, data: object) -> Trial:
        """Read what ``to_json`` wrote; raises InputError naming the key at fault."""
        record = Record(data, "calibration trial")
        numbers = "effect expected ratio low high elapsed_s".split()
        return cls(
            model=record.text("model"),
            number=record.integer("number"),
            verdict=record.member("verdict", Verdict),
            key=record.text("key"),
            **{name: record.number(name) for name in numbers},
        )


def calibrate(
    plan: Plan, measurer: Measurer, record: Path | None = None, progress: OnProgress = ignore_progress
) -> list[Trial]:
    """Measure every pair of the plan that the record does not hold yet.

    Args:
        plan: what to measure.
        measurer: where.
        record: file of JSON lines to go on with; None to keep nothing.
        progress: called before each pair.

    Raises:
        InputError: the record is not one, or a model cannot be opened.
    """
    graphs = {name: load(name) for name in plan.models}
    key = _key(plan, measurer)
    known = {(t.model, t.effect, t.number): t for t in read_trials(record) if t.key == key}
    cases, trials = list(plan.cases()), []
    for done, case in enumerate(cases):
        kind = f"planted {100 * case[1]:.0f} %" if case[1] else "A/A"
        progress(Progress(done, len(cases), f"pair {done + 1}: {case[0]}, {kind}"))
        trial = known.get(case) or _trial(case, graphs[case[0]], plan, measurer, key)
        if trial is not None and case not in known and record is not None:
            with record.open("a", encoding="utf-8") as file:
                file.write(json.dumps(trial.to_json()) + "\n")
        trials += [trial] if trial is not None else []
    return trials


def _trial(
    case: tuple[str, float, int], graph: Graph, plan: Plan, measurer: Measurer, key: str
) -> Trial | None:
    """One pair; None if it was lost, which is no verdict."""
    model, effect, number = case
    try:
        other, feeds, expected = _pair(graph, effect, measurer, plan.target)
        found = measurer.measure(graph, other, feeds, plan.target, plan.protocol, fresh=True, absorb=False)
    except (RuntimeFailure, WorkerError):
        return None
    return _trial_of(model, effect, number, expected, found, key)


def _pair(graph: Graph, effect: float, measurer: Measurer, target: Target) -> tuple[Graph, Feeds, float]:
    feeds = make_feeds(graph)
    return plant_share(graph, effect, feeds, measurer, target) if effect else (graph, feeds, 1.0)


def _trial_of(model: str, effect: float, number: int, expected: float, found: Measurement, key: str) -> Trial:
    delta, seconds = found.delta, found.elapsed_ns / 1e9
    numbers = (expected, delta.ratio, delta.low, delta.high)
    return Trial(model, effect, number, *numbers, delta.verdict, seconds, key)


def _key(plan: Plan, measurer: Measurer) -> str:
    where = measurer.environment(plan.target)
    parts = (str(plan.target), plan.protocol.to_json(), where.cpu_model, where.versions)
    return json.dumps(parts, sort_keys=True)


def read_trials(record: Path | None) -> list[Trial]:
    """Trials of a record; none if it does not exist. Raises InputError naming the line at fault."""
    if record is None or not record.exists():
        return []
    trials = []
    for number, line in enumerate(record.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            trials.append(Trial.from_json(json.loads(line)))
        except ValueError as error:
            raise InputError(f"Line {number} of '{record}' is not a calibration trial.") from error
    return trials


def summarise(trials: Iterable[Trial], plan: Plan) -> dict[str, Any]:
    """Share of false claims, and power per planted difference, each with a 95 % interval."""
    trials = list(trials)
    equal = [t for t in trials if t.effect == 0]
    claims = [t for t in equal if t.verdict in {Verdict.FASTER, Verdict.SLOWER}]
    return {
        "target": str(plan.target),
        "protocol": plan.protocol.describe(),
        "models": list(plan.models),
        "pairs": len(equal),
        "claims": len(claims),
        "false_claims": share(len(claims), len(equal)),
        "largest_claim_ratio": max((abs(t.ratio - 1) for t in claims), default=0.0),
        "power": [_power([t for t in trials if t.effect == effect], effect) for effect in plan.effects],
        "seconds_per_pair": sum(t.elapsed_s for t in trials) / len(trials) if trials else 0.0,
        "trials": [trial.to_json() for trial in trials],
    }


def _power(trials: Sequence[Trial], effect: float) -> dict[str, Any]:
    found = [t for t in trials if t.verdict is Verdict.SLOWER]
    wrong = [t for t in trials if t.verdict is Verdict.FASTER]
    errors = sorted(t.ratio - t.expected for t in trials)
    return {
        "effect": effect,
        "pairs": len(trials),
        "found": share(len(found), len(trials)),
        "wrong_sign": len(wrong),
        "median_error": errors[len(errors) // 2] if errors else None,
        "interval_holds_expected": share(sum(t.low <= t.expected <= t.high for t in trials), len(trials)),
    }


def share(hits: int, total: int) -> dict[str, float] | None:
    """A share with Wilson's 95 % interval; None of nothing."""
    if not total:
        return None
    rate, z2 = hits / total, _Z_95**2
    centre = (rate + z2 / (2 * total)) / (1 + z2 / total)
    reach = _Z_95 * sqrt(rate * (1 - rate) / total + z2 / (4 * total**2)) / (1 + z2 / total)
    return {"share": rate, "low": max(0.0, centre - reach), "high": min(1.0, centre + reach)}


def run() -> dict[str, Any]:
    """The benchmark's default: 40 A/A and 15 planted pairs on ONNX Runtime by screening, in minutes."""
    plan = Plan(
        Target.parse("ort"),
        models=QUICK_MODELS[:2],
        pairs=40,
        planted=5,
        protocol=Protocol.of(Mode.SCREENING),
    )
    with Measurer() as measurer:
        return summarise(calibrate(plan, measurer), plan)
