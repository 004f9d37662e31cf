"""The page ``docs/portability.md``: does an optimisation travel, as Markdown, no number typed by hand.

``python -m explorer.bench.portability_page docs/portability.json > docs/portability.md`` writes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from explorer.bench.markdown import table, verdict, verdict_name, write_page

_SUM = "operator-sum@"
_MOST_RULES = 5
_VERDICTS = ("FASTER", "SLOWER", "WITHIN_NOISE", "IDENTICAL")
_KINDS = {
    (False, True): "measured on the same target",
    (False, False): "measured on another target",
    (True, True): "sum of operator times on the same target",
    (True, False): "sum of operator times on another target",
}

Cells = list[dict[str, Any]]


def page(result: dict[str, Any]) -> str:
    """A result of ``explorer.bench.portability.summarise`` as one Markdown page."""
    cells: Cells = [cell for cell in result["cells"] if cell["delta"] is not None]
    rows = {(one["model"], one["row"]): one for one in result["optimised"]}
    models = list(dict.fromkeys(cell["model"] for cell in result["cells"]))
    return "\n\n".join(
        [
            _head(result, cells, models),
            "## By which cost, on which target",
            _kinds(cells),
            "## Slower than doing nothing",
            _slower(cells, rows),
            "## By target",
            _targets(cells),
            "## Every model",
            *(f"### {model}\n\n{_model(result['cells'], rows, model)}" for model in models),
            "",
        ]
    )


def _head(result: dict[str, Any], cells: Cells, models: list[str]) -> str:
    how = [", ".join(f"{name}: {text}" for name, text in one.items()) for one in result["settings"]]
    lost = len(result["cells"]) - len(cells)
    failed = f" {lost} more could not be timed." if lost else ""
    counts = _counts(cells)
    return (
        "# Does it travel?\n\n"
        "Written by `python -m explorer.bench.portability_page docs/portability.json` from `explorer bench portability "
        f"--json`. {len(models)} sample models, each optimised by greedy search once per cost; every result was timed "
        "on every target against the unoptimised model on that target. A sum of operator times (TASO's cost) times "
        "every operator alone and adds up. What a cost *claims* is the product over the moves it accepted: of screening "
        "measurements, which flatter what was chosen for being fast, or of predicted sums; what was *measured* has its "
        f"interval.\n\n**Of {len(cells)} results {counts['SLOWER']} are slower than the "
        f"unoptimised model and {counts['FASTER']} faster.**{failed}\n\n"
        + "\n".join(f"- {line}" for line in how)
    )


def _kinds(cells: Cells) -> str:
    groups: dict[str, Cells] = {name: [] for name in _KINDS.values()}
    for cell in cells:
        is_sum = cell["row"].startswith(_SUM)
        groups[_KINDS[is_sum, cell["row"].removeprefix(_SUM) == cell["column"]]].append(cell)
    return table(["optimised by", "results", *map(verdict_name, _VERDICTS)], _counted(groups))


def _targets(cells: Cells) -> str:
    groups: dict[str, Cells] = {}
    for cell in cells:
        groups.setdefault(f"`{cell['column']}`", []).append(cell)
    return table(["timed on", "results", *map(verdict_name, _VERDICTS)], _counted(groups))


def _counted(groups: dict[str, Cells]) -> Iterable[list[str]]:
    for name, cells in groups.items():
        counts = _counts(cells)
        yield [name, str(len(cells)), *(str(counts[kind]) for kind in _VERDICTS)]


def _counts(cells: Cells) -> Counter[str]:
    return Counter(cell["delta"]["verdict"] for cell in cells)


def _slower(cells: Cells, rows: dict[tuple[str, str], dict[str, Any]]) -> str:
    found = [cell for cell in cells if cell["delta"]["verdict"] == "SLOWER"]
    if not found:
        return "None."
    found.sort(key=lambda cell: -cell["delta"]["ratio"])
    body = (
        [
            cell["model"],
            f"`{cell['row']}`",
            _claim(rows[cell["model"], cell["row"]]),
            f"`{cell['column']}`",
            verdict(cell["delta"]),
            _rules(rows[cell["model"], cell["row"]]),
        ]
        for cell in found
    )
    return table(["model", "optimised by", "which claims", "timed on", "measured", "rewrites"], body)


def _model(cells: Cells, rows: dict[tuple[str, str], dict[str, Any]], model: str) -> str:
    own = {(cell["row"], cell["column"]): cell for cell in cells if cell["model"] == model}
    columns = list(dict.fromkeys(column for _, column in own))
    body = (
        [
            f"`{row}`",
            _claim(one),
            *(_cell(own.get((row, column))) for column in columns),
            one["failure"] or _rules(one),
        ]
        for (name, row), one in rows.items()
        if name == model
    )
    return table(
        ["optimised by", "which claims", *(f"on `{column}`" for column in columns), "rewrites"], body
    )


def _cell(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return "-"
    return verdict(cell["delta"]) if cell["delta"] is not None else "could not be timed"


def _claim(one: dict[str, Any]) -> str:
    return "-" if one["failure"] else f"{100 * (one['claimed_ratio'] - 1):+.1f} %"


def _rules(one: dict[str, Any]) -> str:
    rules = list(one["rules"].items())
    named = [f"{rule} × {count}" if count > 1 else rule for rule, count in rules[:_MOST_RULES]]
    more = sum(count for _, count in rules[_MOST_RULES:])
    return ", ".join([*named, *([f"{more} more"] if more else [])]) or "nothing that gains"


if __name__ == "__main__":
    write_page(page, "portability")
