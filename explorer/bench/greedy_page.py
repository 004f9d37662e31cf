"""The page ``docs/beyond_ort.md``: what ``explorer bench greedy`` found, as Markdown, no number typed by hand.

``python -m explorer.bench.greedy_page docs/beyond_ort.json > docs/beyond_ort.md`` writes it.
"""

from __future__ import annotations

from typing import Any

from explorer.bench.markdown import table, verdict, write_page

_LONGEST = 90


def page(result: dict[str, Any]) -> str:
    """A result of ``explorer.bench.greedy.summarise`` as one Markdown page."""
    rows = {name: row for name, row in result["models"].items() if "delta" in row}
    return "\n\n".join(
        [
            _head(result, len(rows)),
            "## What was kept",
            _kept(rows),
            "## Where the time goes before",
            _times(rows),
            "## What was compared",
            *(_compared(name, row) for name, row in rows.items()),
            "",
        ]
    )


def _head(result: dict[str, Any], count: int) -> str:
    slower = ", ".join(result["slower"]) or "none"
    change = 100 * (result["geometric_mean_ratio"] - 1)
    return (
        "# Beyond ONNX Runtime's own best level\n\n"
        "Written by `python -m explorer.bench.greedy_page docs/beyond_ort.json` from `explorer bench greedy --json`: "
        f"measured greedy search on {count} sample models on `{result['target']}`, at most {result['budget']} timed "
        f"comparisons per model ({result['note']}). Ratios are of the model that ONNX Runtime optimises by itself at "
        f"this level.\n\n**Geometric mean {change:+.1f} %; faster on {result['kept']} models; slower on: {slower}.** "
        "Where nothing was kept the ratio counts as 1."
    )


def _kept(rows: dict[str, dict[str, Any]]) -> str:
    body = (
        [
            name,
            "{} to {}".format(*row["nodes"]),
            verdict(row["delta"]) if _is_kept(row) else "unchanged",
            verdict(row["control"]),
            "; ".join(row["taken"]) if _is_kept(row) else "nothing",
        ]
        for name, row in rows.items()
    )
    return table(["model", "nodes", "result against the original", "control", "rewrites kept"], body)


def _is_kept(row: dict[str, Any]) -> bool:
    return bool(row["delta"]["verdict"] == "FASTER")


def _times(rows: dict[str, dict[str, Any]]) -> str:
    body = (
        [name, f"{row['total_ns'] / 1e6:.1f}", ", ".join(map(_share, row["time"]))]
        for name, row in rows.items()
        if "time" in row
    )
    return table(["model", "ms", "share of the time of all kernels (number of kernels)"], body)


def _share(entry: dict[str, Any]) -> str:
    return f"{entry['op']} {100 * entry['share']:.1f} % ({entry['kernels']})"


def _compared(name: str, row: dict[str, Any]) -> str:
    lines = (f"- {_short(entry['move'])}: {verdict(entry)}" for entry in row["compared"])
    return f"**{name}**\n\n" + "\n".join(lines)


def _short(label: str) -> str:
    return label if len(label) <= _LONGEST else f"... {label[-_LONGEST:]}"


if __name__ == "__main__":
    write_page(page, "greedy")
