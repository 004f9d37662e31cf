"""The page ``docs/looking_ahead.md``: what ``explorer bench ahead`` found, as Markdown, no number typed by hand.

``python -m explorer.bench.ahead_page docs/looking_ahead.json > docs/looking_ahead.md`` writes it.
"""

from __future__ import annotations

from math import exp, log
from typing import Any

from explorer.bench.markdown import table, verdict, write_page

Row = dict[str, Any]


def page(result: dict[str, Any]) -> str:
    """A result of ``explorer.bench.ahead.run`` as one Markdown page."""
    rows = {
        name: row
        for name, row in result["models"].items()
        if all("delta" in row[way] for way in ("plain", "scouted"))
    }
    return "\n\n".join(
        [
            _head(result, rows),
            table(_HEADS, (_line(n, r) for n, r in rows.items())),
            "## Kept",
            "\n".join(_kept(rows)),
            "",
        ]
    )


def _head(result: dict[str, Any], rows: dict[str, Row]) -> str:
    plain, scouted = (_mean(rows, way) for way in ("plain", "scouted"))
    return (
        "# Does looking ahead pay?\n\n"
        "Written by `python -m explorer.bench.ahead_page docs/looking_ahead.json` from `explorer bench ahead --json`: "
        f"measured greedy search on `{result['target']}` with at most {result['budget']} timed comparisons per model, "
        "plain, and after looking ahead: predictions (sums of isolated operator times) find a way, and the whole of it "
        "is compared first, as one move. Results are validated against the original, and taken back unless faster; "
        "then the ratio counts as 1.\n\n"
        f"**Geometric mean over {len(rows)} models: plain {plain}, looking ahead {scouted}.** The intervals lie apart in "
        f"favour of looking ahead on: {_apart(rows, 'scouted', 'plain')}; of the plain search on: "
        f"{_apart(rows, 'plain', 'scouted')}."
    )


def _mean(rows: dict[str, Row], way: str) -> str:
    ratios = [row[way]["delta"]["ratio"] for row in rows.values()]
    return f"{100 * (exp(sum(map(log, ratios)) / len(ratios)) - 1):+.1f} %" if ratios else "-"


def _apart(rows: dict[str, Row], better: str, worse: str) -> str:
    """Models whose whole interval by one search is below that by the other."""
    found = [n for n, row in rows.items() if row[better]["delta"]["high"] < row[worse]["delta"]["low"]]
    return ", ".join(found) or "none"


_HEADS = [
    "model",
    "plain",
    "compared (also untimed)",
    "predicted for the way ahead",
    "the way, measured",
    "looking ahead",
    "compared (also untimed)",
]


def _line(name: str, row: Row) -> list[str]:
    plain, scouted = row["plain"], row["scouted"]
    (ahead,) = scouted["ahead"]
    return [
        name,
        _result(plain),
        str(len(plain["compared"])),
        _promised(ahead),
        _whole(scouted, ahead["move"]),
        _result(scouted),
        str(len(scouted["compared"])),
    ]


def _promised(ahead: Row) -> str:
    if not ahead["moves"]:
        return "nothing"
    count = "1 move" if ahead["moves"] == 1 else f"{ahead['moves']} moves"
    return count if ahead["delta"] is None else f"{100 * (ahead['delta']['ratio'] - 1):+.1f} % by {count}"


def _whole(scouted: Row, label: str | None) -> str:
    """What was measured for the whole way; "-" if there was none, or something else was taken before it."""
    return verdict(next((entry for entry in scouted["compared"] if entry["move"] == label), None))


def _result(row: Row) -> str:
    return verdict(row["delta"]) if row["delta"]["verdict"] == "FASTER" else "unchanged"


def _kept(rows: dict[str, Row]) -> list[str]:
    return [
        f"- **{name}**, {way}: {'; '.join(row[way]['taken'])}"
        for name, row in rows.items()
        for way in ("plain", "scouted")
        if row[way]["delta"]["verdict"] == "FASTER"
    ]


if __name__ == "__main__":
    write_page(page, "ahead")
