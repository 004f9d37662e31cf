"""The latency curve of a session: time relative to the original over accepted moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from explorer.session import CurvePoint

_LEAST_MOVES = 4
_MOST_TICKS = 8
_LEAST_RANGE = (95.0, 101.0)  # per cent: so that little noise looks little


def curve_figure(points: Sequence[CurvePoint]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Traces and layout; intervals as error bars, points that were not measured left out."""
    known = [
        (p, 100 * p.ratio, 100 * p.low, 100 * p.high)
        for p in points
        if p.ratio is not None and p.low is not None and p.high is not None
    ]
    trace = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": [point.step for point, *_ in known],
        "y": [ratio for _, ratio, _, _ in known],
        "text": [point.label for point, *_ in known],
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [high - ratio for _, ratio, _, high in known],
            "arrayminus": [ratio - low for _, ratio, low, _ in known],
            "thickness": 1.2,
            "color": "var(--ec-muted)",
        },
        "line": {"color": "var(--ec-blue)", "width": 2},
        "marker": {"color": "var(--ec-blue)", "size": 8},
        "hovertemplate": "%{y:.1f} % of the original's time<br>%{text}<extra></extra>",
    }
    low = min([_LEAST_RANGE[0], *(low for _, _, low, _ in known)])
    high = max([_LEAST_RANGE[1], *(high for *_, high in known)])
    moves = max([_LEAST_MOVES, *(point.step for point in points)])
    room = 0.06 * (high - low)
    layout = {
        "xaxis": _axis("accepted moves", -0.02 * moves, 1.03 * moves) | {"dtick": -(-moves // _MOST_TICKS)},
        "yaxis": _axis("time, % of original", low - room, high + room),
    }
    return [trace], layout


def _axis(title: str, low: float, high: float) -> dict[str, Any]:
    return {"title": {"text": title}, "range": [low, high]}
