"""The latency curve of a session: time relative to the original over accepted moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from explorer.runtime import Source
from explorer.session import CurvePoint

_LOOKS = {
    "measured": ("var(--ec-blue)", "solid", "circle"),
    "predicted": ("var(--ec-orange)", "dash", "circle-open"),
}
_LEAST_MOVES = 4
_MOST_TICKS = 8
_LEAST_RANGE = (95.0, 101.0)  # per cent: so that little noise looks little


def curve_figure(points: Sequence[CurvePoint]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Traces and layout; intervals as error bars, points of which nothing is known left out.

    What is predicted goes on from the last measured point as a line of its own.
    """
    known = [point for point in points if point.ratio is not None]
    measured = [point for point in known if point.source is Source.MEASURED]
    predicted = known[len(measured) :]
    traces = [_trace("measured", measured)]
    if predicted:
        traces.append(_trace("predicted", [*measured[-1:], *predicted]))
    low = min([_LEAST_RANGE[0], *(100 * point.low for point in known if point.low is not None)])
    high = max([_LEAST_RANGE[1], *(100 * point.high for point in known if point.high is not None)])
    moves = max([_LEAST_MOVES, *(point.step for point in points)])
    room = 0.06 * (high - low)
    layout = {
        "xaxis": _axis("accepted moves", -0.02 * moves, 1.03 * moves) | {"dtick": -(-moves // _MOST_TICKS)},
        "yaxis": _axis("time, % of original", low - room, high + room),
        "showlegend": bool(predicted),
        "legend": {"x": 1, "xanchor": "right", "y": 1, "font": {"size": 11}, "bgcolor": "rgba(0,0,0,0)"},
    }
    return traces, layout


def _trace(name: str, points: Sequence[CurvePoint]) -> dict[str, Any]:
    bands = [
        (100 * p.ratio, 100 * p.low, 100 * p.high)
        for p in points
        if p.ratio is not None and p.low is not None and p.high is not None
    ]
    colour, dash, symbol = _LOOKS[name]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": [point.step for point in points],
        "y": [ratio for ratio, _, _ in bands],
        "text": [point.label for point in points],
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [high - ratio for ratio, _, high in bands],
            "arrayminus": [ratio - low for ratio, low, _ in bands],
            "thickness": 1.2,
            "color": "var(--ec-muted)",
        },
        "line": {"color": colour, "width": 2, "dash": dash},
        "marker": {"color": colour, "size": 8, "symbol": symbol},
        "hovertemplate": f"%{{y:.1f}} % of the original's time, {name}<br>%{{text}}<extra></extra>",
    }


def _axis(title: str, low: float, high: float) -> dict[str, Any]:
    return {"title": {"text": title}, "range": [low, high]}
