"""The page ``docs/measuring.md``: how far the verdicts can be trusted, as Markdown, no number typed by hand.

``python -m explorer.bench.measuring_page docs/measuring.json > docs/measuring.md`` writes it; the file holds the
results of ``explorer calibrate --json`` and ``explorer bench regions`` under "calibration" and "regions".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from explorer.bench.markdown import table, verdict_name, write_page

_ORIGIN = (
    "Written by `python -m explorer.bench.measuring_page docs/measuring.json` from one run of `explorer calibrate "
    "--json` and one of `explorer bench regions`."
)


def page(result: dict[str, Any]) -> str:
    """Calibration and the comparison of regions with whole models."""
    return "\n\n".join(
        [
            "# How far the verdicts can be trusted",
            _ORIGIN,
            "## Calibration",
            _calibration(result["calibration"]),
            "## The changed region alone",
            _regions(result["regions"]),
            "",
        ]
    )


def _calibration(found: dict[str, Any]) -> str:
    rows = [
        [
            f"{100 * power['effect']:.0f} %",
            str(power["pairs"]),
            _share(power["found"]),
            str(power["wrong_sign"]),
            f"{100 * (power['median_error'] or 0.0):+.1f} %",
        ]
        for power in found["power"]
    ]
    heads = ["planted", "pairs", "called slower", "called faster", "median error of the ratio"]
    return (
        f"On `{found['target']}` ({found['protocol']}), {', '.join(found['models'])}: of **{found['pairs']} pairs of a "
        f"model with itself {found['claims']} were called faster or slower**: {_share(found['false_claims'])}. A pair "
        f"takes {found['seconds_per_pair']:.0f} s on average.\n\nPlanted differences are operators of a cost that was "
        "measured alone, so that the error of the ratio is also that of the planting.\n\n"
        + table(heads, rows)
    )


def _regions(found: dict[str, Any]) -> str:
    agrees = "nothing to compare" if found["sign_agrees"] is None else _share(found["sign_agrees"])
    ratio = "-" if found["time_ratio"] is None else f"{found['time_ratio']:.2f}"
    return (
        f"{found['candidates']} candidates on `{found['target']}`, timed end to end and with their changed region cut "
        f"out, by screening. Where both claim a difference ({found['both_claim']}), the sign agrees: **{agrees}**. Only "
        f"the region claims one: {found['only_region_claims']}; only the whole model: {found['only_whole_claims']}. "
        f"Timing the region takes {ratio} of the time. Of {found['absorbed']} candidates that the runtime absorbs in "
        f"the whole model, it absorbs {found['absorbed_by_both']} in the region too.\n\n"
        + _matrix(found["comparisons"])
    )


def _matrix(comparisons: Iterable[dict[str, Any]]) -> str:
    counts = Counter((c["region"]["verdict"], c["whole"]["verdict"]) for c in comparisons)
    kinds = sorted({kind for pair in counts for kind in pair})
    rows = ([verdict_name(kind), *(str(counts[kind, whole]) for whole in kinds)] for kind in kinds)
    return table(["region, whole model:", *map(verdict_name, kinds)], rows)


def _share(share: dict[str, float]) -> str:
    return f"{100 * share['share']:.0f} % ({100 * share['low']:.0f} to {100 * share['high']:.0f} %)"


if __name__ == "__main__":
    write_page(page, "calibrate and regions")
