from __future__ import annotations

from math import exp, log, log1p

import pytest

from explorer.runtime import Protocol, Target, Verdict
from explorer.runtime.dummy import PLANTED
from explorer.runtime.estimate import (
    LogInterval,
    compare,
    identical,
    judge,
    latency_from,
    measurement_from,
    round_log_ratio,
    spread,
)
from explorer.runtime.samples import Series

TARGET = Target.parse("ort")
VALIDATED = Protocol.validated()


def one_round(a, b, control, runs=1):
    return {
        "a": Series(tuple(a), runs),
        "b": Series(tuple(b), runs),
        "control": Series(tuple(control), runs),
    }


def constant_rounds(ratios, controls, base=1_000_000):
    pairs = zip(ratios, controls, strict=True)
    return tuple(one_round([base] * 3, [round(base * r)] * 3, [round(base * c)] * 3) for r, c in pairs)


def test_a_round_pairs_its_samples():
    # The clock halves its speed after the first sample: unpaired medians would give 2 for b / a.
    one = one_round([100, 200, 200], [200, 400, 200], [100, 200, 200])
    assert round_log_ratio(one, "b", "a") == pytest.approx(log(2))
    assert round_log_ratio(one, "control", "a") == 0


def test_runs_per_sample_are_divided_out():
    one = {"a": Series((1000,), 10), "b": Series((1000,), 5)}
    assert round_log_ratio(one, "b", "a") == pytest.approx(log(2))


def test_the_interval_runs_from_the_second_lowest_to_the_second_highest():
    values = [5.0, -9.0, 1.0, 2.0, 3.0, 4.0, 6.0, 7.0, 8.0, 99.0]
    assert spread(values, 1) == LogInterval(4.5, 1.0, 8.0)
    assert spread([3.0, 1.0, 2.0], 0) == LogInterval(2.0, 1.0, 3.0)


@pytest.mark.parametrize(
    ("interval", "floor", "verdict"),
    [
        (LogInterval(-0.05, -0.08, -0.02), 0.01, Verdict.FASTER),
        (LogInterval(0.05, 0.02, 0.08), 0.01, Verdict.SLOWER),
        (LogInterval(0.05, -0.001, 0.08), 0.01, Verdict.WITHIN_NOISE),
        (LogInterval(0.05, 0.0, 0.08), 0.01, Verdict.WITHIN_NOISE),
        (LogInterval(0.009, 0.008, 0.0095), 0.01, Verdict.WITHIN_NOISE),
        (LogInterval(-0.05, -0.08, -0.02), 0.06, Verdict.WITHIN_NOISE),
    ],
)
def test_a_claim_needs_both_the_interval_and_the_floor(interval, floor, verdict):
    assert judge(interval, floor) is verdict


def test_values_of_a_clear_difference():
    ratios = [0.90, 0.91, 0.89, 0.92, 0.88, 0.90, 0.90, 0.90, 0.95, 0.70]
    delta, control = compare(constant_rounds(ratios, [1.0] * 10), VALIDATED, "t")
    assert delta.verdict is Verdict.FASTER
    assert (delta.ratio, delta.low, delta.high) == pytest.approx((0.90, 0.88, 0.92))
    assert (control.ratio, control.verdict) == (1.0, Verdict.WITHIN_NOISE)
    assert delta.protocol == "validated: 10 rounds of 3 samples"


def test_the_floor_is_what_the_model_shows_against_itself():
    controls = [1.0, 1.04, 0.96, 1.05, 0.95, 1.0, 1.0, 1.04, 0.97, 1.02]
    noisy = constant_rounds([0.97] * 10, controls)
    quiet = constant_rounds([0.97] * 10, [1.0] * 10)
    assert compare(noisy, VALIDATED, "t")[0].verdict is Verdict.WITHIN_NOISE
    assert compare(quiet, VALIDATED, "t")[0].verdict is Verdict.FASTER


def test_the_floor_that_counted_is_shown():
    def floor(controls):
        rounds = constant_rounds([1.5] * 10, controls)
        return measurement_from(rounds, ("a", "b"), TARGET, VALIDATED, PLANTED, elapsed_ns=5).floor_ratio

    assert floor([1.0] * 10) == 0.01
    assert floor([1.0] * 7 + [1.04] * 3) == pytest.approx(0.04)
    assert floor([1.0] * 7 + [0.96] * 3) == pytest.approx(1 / 0.96 - 1)
    assert identical(("a", "b"), TARGET, VALIDATED, PLANTED).floor_ratio == 0


def test_one_percent_is_never_claimed():
    for ratio in (0.991, 1.0099):
        delta, _ = compare(constant_rounds([ratio] * 10, [1.0] * 10), VALIDATED, "t")
        assert delta.verdict is Verdict.WITHIN_NOISE
    delta, _ = compare(constant_rounds([1.011] * 10, [1.0] * 10), VALIDATED, "t")
    assert delta.verdict is Verdict.SLOWER
    assert log(delta.ratio) > log1p(0.01)


def test_a_control_that_differs_is_called_different_and_noticed():
    rounds = constant_rounds([1.2] * 10, [1.03] * 10)
    result = measurement_from(rounds, ("a", "b"), TARGET, VALIDATED, PLANTED, elapsed_ns=5)
    assert result.control is not None
    assert result.control.verdict is Verdict.SLOWER
    assert result.notices == (
        "The control, a against itself, differed by +3.0 %: smaller differences are not claimed.",
    )
    assert result.delta.verdict is Verdict.SLOWER


def test_screening_uses_every_round():
    rounds = constant_rounds([0.8, 0.9, 0.85], [1.0, 1.0, 1.0])
    delta, _ = compare(rounds, Protocol.screening(), "t")
    assert (delta.low, delta.ratio, delta.high) == pytest.approx((0.8, 0.85, 0.9))
    assert delta.protocol.startswith("screening")


def test_measurement_and_latency_carry_medians():
    rounds = constant_rounds([0.5] * 10, [1.0] * 10, base=2_000)
    pair = measurement_from(rounds, ("a", "b"), TARGET, VALIDATED, PLANTED, elapsed_ns=5)
    assert (pair.a_ns, pair.b_ns, pair.samples) == (2000, 1000, (3, 3))
    alone = [{"a": Series((n * 100,) * 3, 10)} for n in (9, 1, 2, 3, 4, 5, 6, 7, 8, 10)]
    one = latency_from(tuple(alone), "m", TARGET, VALIDATED, PLANTED, elapsed_ns=5)
    assert (one.low_ns, one.ns, one.high_ns) == (20, 55, 90)


def test_identical_needs_no_samples():
    result = identical(("a", "b"), TARGET, VALIDATED, PLANTED)
    assert result.delta.verdict is Verdict.IDENTICAL
    assert (result.control, result.rounds, result.a_ns, result.samples) == (None, (), None, (0, 0))
    assert exp(0) == result.delta.ratio
