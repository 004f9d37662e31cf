"""The portability matrix as a heat map in HTML: for the app, and as a page of its own without any script."""

from __future__ import annotations

import html
from functools import cache
from math import log
from pathlib import Path

from explorer.cost import Delta, Verdict
from explorer.errors import TargetError
from explorer.runtime import Target
from explorer.search.portability import Cell, Matrix, Optimised

FULL_COLOUR_RATIO = 1.5
"""From this ratio on (or its inverse) the colour is at its strongest."""

_SUM = "operator-sum@"
_SIGNS = {Verdict.FASTER: "▼", Verdict.SLOWER: "▲", Verdict.WITHIN_NOISE: "≈", Verdict.IDENTICAL: "="}
_WORDS = {
    Verdict.FASTER: "faster",
    Verdict.SLOWER: "slower than unoptimised",
    Verdict.WITHIN_NOISE: "within noise",
    Verdict.IDENTICAL: "same graph at run time",
}
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body class="hm-page">
<h1>Does it travel?</h1>
<p>Each model was optimised once per row, by that row's cost, and every result was timed on every column
against the unoptimised model.</p>
{content}
<section><h2>How it was made</h2><dl>{settings}</dl></section>
</body>
</html>
"""


@cache
def style_text() -> str:
    """The style sheet of the heat map."""
    return (Path(__file__).parent / "matrix.css").read_text(encoding="utf-8")


def matrix_page(matrix: Matrix) -> str:
    """A self-contained HTML document: heat maps, what got slower, what each row did, how it was measured."""
    settings = "".join(
        f"<dt>{html.escape(name)}</dt><dd>{html.escape(text)}</dd>" for name, text in matrix.settings.items()
    )
    title = html.escape(f"Portability of {', '.join(matrix.models)}")
    return _PAGE.format(title=title, style=style_text(), content=matrix_html(matrix), settings=settings)


def matrix_html(matrix: Matrix) -> str:
    """Heat maps (one per model), the outcome in words, what got slower and what each row did; safe HTML."""
    maps = "".join(_map(matrix, model) for model in matrix.models)
    return (
        f'<div class="hm"><p class="hm-outcome"><b>{html.escape(_outcome(matrix))}</b></p>'
        f"{maps}{_legend(matrix)}{_slower(matrix)}{_rows(matrix)}</div>"
    )


def _outcome(matrix: Matrix) -> str:
    wanted = len(matrix.models) * len(matrix.rows) * len(matrix.columns)
    if not matrix.cells:
        return (
            f"{len(matrix.optimised)} of {len(matrix.models) * len(matrix.rows)} searches made; no cell yet."
        )
    missing = (
        "" if len(matrix.cells) == wanted else f" Not measured: {wanted - len(matrix.cells)} of {wanted}."
    )
    return matrix.sentence() + missing


def _legend(matrix: Matrix) -> str:
    how = html.escape(matrix.settings.get("cells", "")) or "see each cell"
    low, high = f"{1 / FULL_COLOUR_RATIO:.2f}", f"{FULL_COLOUR_RATIO:.2f}"
    return (
        '<p class="hm-legend"><span>Time after / time before, measured on the column’s target</span>'
        f'<span class="hm-scale" aria-hidden="true">{low} faster<i></i>{high} slower</span>'
        f"<span>interval: 2nd lowest to 2nd highest round (all rounds when screening); {how}</span></p>"
    )


def _map(matrix: Matrix, model: str) -> str:
    head = "".join(f'<th scope="col">{_words(column)}</th>' for column in matrix.columns)
    body = "".join(
        f'<tr><th scope="row">{_words(row)}</th>'
        + "".join(_cell(matrix.cell(model, row, column), row == column) for column in matrix.columns)
        + "</tr>"
        for row in matrix.rows
    )
    return (
        f'<div class="hm-scroll"><table><caption>{html.escape(model)}</caption>'
        f'<thead><tr><th class="hm-corner">optimised for ↓ measured on →</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _words(name: str) -> str:
    """A row's or column's name for people; the spec as tooltip."""
    spec = name.removeprefix(_SUM)
    try:
        runtime, _, rest = Target.parse(spec).label.partition(", ")
    except TargetError:  # made by another version
        runtime, rest = spec, ""
    lead = '<span class="hm-sum">sum of operator times</span>' if name.startswith(_SUM) else ""
    return (
        f'<div title="{html.escape(name)}">{lead}<b>{html.escape(runtime)}</b>'
        f"<span>{html.escape(rest)}</span></div>"
    )


def _cell(cell: Cell | None, is_own: bool) -> str:
    own = " hm-own" if is_own else ""
    note = '<div class="hm-note">its own target</div>' if is_own else ""
    if cell is None:
        return f'<td class="hm-none{own}">not measured</td>'
    if cell.delta is None:
        return f'<td class="hm-none{own}" title="{html.escape(cell.failure)}">could not be timed{note}</td>'
    delta, kind = cell.delta, cell.delta.verdict.value.lower()
    title = f"{interval_text(delta)}, {delta.source.value.lower()} on {delta.target}, {delta.protocol}"
    low_high = "" if delta.verdict is Verdict.IDENTICAL else f"{delta.low:.3f} … {delta.high:.3f}"
    return (
        f'<td class="hm-cell hm-{kind}{own}" style="--hm-mix:{mix_percent(delta.ratio):.0f}%;'
        f'--hm-tone:var(--hm-{"faster" if delta.ratio < 1 else "slower"})" title="{html.escape(title)}">'
        f'<div class="hm-ratio">{_SIGNS[delta.verdict]} {delta.ratio:.3f}</div>'
        f'<div class="hm-interval">{low_high}</div>'
        f'<div class="hm-verdict">{_WORDS[delta.verdict]}</div>{note}</td>'
    )


def mix_percent(ratio: float) -> float:
    """Strength of a cell's colour: 0 at ratio 1, 70 from ``FULL_COLOUR_RATIO`` or its inverse on."""
    return 70 * min(1.0, abs(log(ratio)) / log(FULL_COLOUR_RATIO))


def interval_text(delta: Delta) -> str:
    """A ratio with its interval."""
    return f"{delta.ratio:.3f} ({delta.low:.3f} … {delta.high:.3f})"


def _slower(matrix: Matrix) -> str:
    cells = matrix.slower()
    if not cells:
        return "<p>No cell is measurably slower than the unoptimised model.</p>" if matrix.cells else ""
    items = "".join(
        f"<li>{html.escape(c.model)}, optimised by {html.escape(c.row)}, on {html.escape(c.column)}: "
        f"<b>{html.escape(interval_text(c.delta))}</b>{_claim(matrix, c)}</li>"
        for c in cells
        if c.delta is not None
    )
    return f"<section><h2>Slower than the unoptimised model</h2><ul>{items}</ul></section>"


def _claim(matrix: Matrix, cell: Cell) -> str:
    claimed = matrix.claim(cell.model, cell.row)
    return "" if claimed is None else f"; by its own cost the row claims {claimed:.3f}"


def _rows(matrix: Matrix) -> str:
    items = "".join(f"<li>{_done(one)}</li>" for one in matrix.optimised)
    return f"<section><h2>What each row did</h2><ul>{items}</ul></section>" if items else ""


def _done(one: Optimised) -> str:
    who = html.escape(f"{one.model}, {one.row}")
    if one.failure:
        return f"{who}: no result: {html.escape(one.failure)}"
    counts: dict[str, int] = {}
    for step in one.steps:
        counts[step.rule] = counts.get(step.rule, 0) + 1
    rules = ", ".join(f"{rule} × {count}" if count > 1 else rule for rule, count in counts.items())
    found = html.escape(rules) or "nothing found that gains: the model is unchanged"
    claim = f", claims {one.claimed_ratio:.3f} by its own cost" if one.steps else ""
    return f"{who}: {found} <span>({one.spent} comparisons{claim})</span>"
