"""The page of how far verdicts can be trusted repeats the numbers of the two results."""

from __future__ import annotations

from explorer.bench.calibrate import Plan, Trial
from explorer.bench.calibrate import summarise as calibrated
from explorer.bench.measuring_page import page
from explorer.bench.regions import Comparison
from explorer.bench.regions import summarise as compared
from explorer.runtime import Delta, Protocol, Target, Verdict
from explorer.runtime.delta import Source

TARGET = Target.parse("ort")


def trial(effect: float, verdict: Verdict, number: int) -> Trial:
    return Trial("m", effect, number, 1 + effect, 1 + effect, 1.0, 1.1, verdict, 2.0, "key")


def delta(ratio: float, verdict: Verdict) -> Delta:
    return Delta(ratio, ratio, ratio, verdict, Source.MEASURED, str(TARGET), "screening")


def test_the_page_tells_shares_power_and_agreement():
    trials = [trial(0.0, Verdict.WITHIN_NOISE, i) for i in range(9)] + [trial(0.0, Verdict.FASTER, 9)]
    trials += [trial(0.05, Verdict.SLOWER, i) for i in range(4)]
    plan = Plan(TARGET, ("m",), 10, 4, (0.05,), Protocol.validated())
    faster, slower = delta(0.9, Verdict.FASTER), delta(1.1, Verdict.SLOWER)
    found = [
        Comparison("m", "a", faster, faster, 1.0, 2.0, (2, 1)),
        Comparison("m", "b", slower, faster, 1.0, 2.0, (2, 1)),
    ]
    text = page({"calibration": calibrated(trials, plan), "regions": compared(found, TARGET)})
    assert "**10 pairs of a model with itself 1 were called faster or slower**: 10 %" in text
    assert "| 5 % | 4 | 100 % (51 to 100 %) | 0 | +0.0 % |" in text
    assert "(2), the sign agrees: **50 %" in text
    assert "takes 0.50 of the time" in text
    assert "| slower | 1 | 0 |" in text
