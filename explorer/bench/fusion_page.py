"""The page ``docs/fusion.md``: the tables of ``explorer bench fusion`` as Markdown, no number typed by hand.

``python -m explorer.bench.fusion_page docs/fusion.json > docs/fusion.md`` writes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from explorer.bench.fusion import SEARCH_LABELS
from explorer.bench.markdown import table, write_page

_TITLES = {"II": "LBDF", "III": "local search", "IV": "random search"}


def page(result: dict[str, Any]) -> str:
    """All tables of a result of ``explorer.bench.fusion.run`` as one Markdown page."""
    parts = [_head(result)]
    for number, title in _TITLES.items():
        rows = [row for row in result["tables"] if row["table"] == number]
        if rows:
            settings = f"{title}, {rows[0]['buffer_kb']} KB, {rows[0]['budget']:,} plans"
            parts += [f"## The paper's Table {number}: {settings}", _searches(rows)]
    parts += ["## What needs no luck", _BASELINES, _baselines(result["baselines"])]
    parts += ["## How the cost grows", _GROWTH, _growth(result["growth"])]
    if result["bounds"]:
        parts += ["## Where a proof is out of reach, or nearly", _BOUNDS, _bounds(result["bounds"])]
    return "\n\n".join(parts) + "\n"


_BASELINES = (
    "*Interval* is the best plan whose groups are intervals of one topological order, *greedy* grows each group "
    "until it is full. Under BRR a full group has no room left and reads its weights again for every few rows, so "
    "greedy can be worse than no fusion at all. Where the optimum is proved, the gap to it is exact."
)
_GROWTH = (
    "All samples under LBDF with 256 KB; plans per processor second over 500 plans, costs of groups remembered "
    "within a run only. The last column is the time of a plan per operation: where it stays level, the cost of a "
    "plan grows linearly with the network."
)
_BOUNDS = (
    "Under BRR groups are held back by rows only, so these networks have very many. After the time limit there is "
    "a plan and a lower bound (CP-SAT); the gap is an upper limit."
)


def _head(result: dict[str, Any]) -> str:
    minutes = result["processor_seconds"] / 60
    notes = "\n".join(f"- {note}" for note in result["notes"])
    return (
        "# Fusion plans against the optimum\n\n"
        "Written by `python -m explorer.bench.fusion_page docs/fusion.json` from one run of `explorer bench fusion "
        f"--json`: {result['seeds']} seeds per search, {minutes:.0f} processor minutes on {result['cpu']}, at most "
        f"{result['peak_memory_mib']:,.0f} MiB of memory. Traffic is predicted by the cost model, nothing of it is "
        "measured.\n\n"
        "**The paper's figures stand beside ours for orientation only.** Its cost functions are not public, so the "
        "two cost models are not identical, and neither column can win over the other. What can be compared is each "
        f"search with the optimum of its own model.\n\n{notes}"
    )


def _searches(rows: Iterable[dict[str, Any]]) -> str:
    heads = (
        "network",
        "scheme",
        "search",
        "DRAM MB, mean (min to max)",
        "gap to optimum, mean (max)",
        "optimum MB",
        "largest group KB",
        "plans/s",
        "paper MB",
        "paper, best explained",
        "paper, largest KB",
    )
    return table(heads, [_search_cells(row) for row in rows])


def _search_cells(row: dict[str, Any]) -> list[str]:
    dram, gap = row["dram_mb"], row["gap_ratio"]
    largest = row["paper_largest_group_kb"]
    return [
        row["network"],
        row["scheme"].upper(),
        SEARCH_LABELS[row["search"]],
        f"{dram['mean']:.3f} ({dram['min']:.3f} to {dram['max']:.3f})",
        f"{gap['mean']:+.1%} ({gap['max']:+.1%})",
        _optimum(row["optimum_mb"], row["optimum_proved"]),
        f"{row['largest_group_kb']['max']:.1f}",
        f"{row['plans_per_second']['mean']:,.0f}",
        f"{row['paper_mb']:.3f}",
        f"{row['paper_with_explainer_mb']:.3f}",
        "-" if largest is None else f"{largest:.3f}",
    ]


def _baselines(rows: Iterable[dict[str, Any]]) -> str:
    heads = (
        "network",
        "scheme",
        "KB",
        "left out",
        "layer by layer MB",
        "greedy MB",
        "gap",
        "interval MB",
        "gap",
        "optimum MB",
        "ideals",
        "seconds",
    )
    cells = [
        [
            row["network"],
            row["scheme"].upper(),
            f"{row['buffer_kb']}",
            f"{row['removed']}",
            f"{row['layer_by_layer_mb']:.3f}",
            f"{row['greedy_mb']:.3f}",
            f"{row['greedy_gap_ratio']:+.1%}",
            f"{row['interval_mb']:.3f}",
            f"{row['interval_gap_ratio']:+.1%}",
            _optimum(row["optimum_mb"], row["optimum_proved"]),
            f"{row['ideals']:,}",
            f"{row['optimum_seconds']:.2f}",
        ]
        for row in rows
    ]
    return table(heads, cells)


def _growth(rows: Iterable[dict[str, Any]]) -> str:
    heads = (
        "network",
        "operations",
        "edges",
        "ideals",
        "optimum, seconds",
        *SEARCH_LABELS.values(),
        "µs per operation (LS, NSGA-II, RS)",
    )
    cells = [
        [
            row["network"],
            f"{row['operations']}",
            f"{row['edges']}",
            f"{row['ideals']:,}",
            f"{row['optimum_seconds']:.2f}" + ("" if row["optimum_proved"] else " (a bound)"),
            *(f"{row['plans_per_second'][search]:,.0f}/s" for search in SEARCH_LABELS),
            ", ".join(
                f"{1e6 / row['plans_per_second'][search] / row['operations']:.1f}" for search in SEARCH_LABELS
            ),
        ]
        for row in sorted(rows, key=lambda row: row["operations"])
    ]
    return table(heads, cells)


def _bounds(rows: Iterable[dict[str, Any]]) -> str:
    heads = (
        "network",
        "KB",
        "operations",
        "limit, seconds",
        "taken",
        "plan MB",
        "no plan below MB",
        "gap at most",
    )
    cells = [
        [
            row["network"],
            f"{row['buffer_kb']}",
            f"{row['operations']}",
            f"{row['time_limit_seconds']:g}",
            f"{row['seconds']:.1f}",
            f"{row['plan_mb']:.3f}",
            f"{row['bound_mb']:.3f}",
            _gap(row),
        ]
        for row in rows
    ]
    return table(heads, cells)


def _gap(row: dict[str, Any]) -> str:
    if row["gap_ratio"] is None:
        return "unknown"
    return "0, proved" if row["method"] == "ideals" else f"{row['gap_ratio']:.1%}"


def _optimum(megabytes: float, is_proved: bool) -> str:
    return f"{megabytes:.3f}" if is_proved else f"≥ {megabytes:.3f}"


if __name__ == "__main__":
    write_page(page, "fusion")
