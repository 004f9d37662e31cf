"""Charts as plotly traces, pure: values in, traces and layout out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from explorer.session import CurvePoint
from explorer.ui.graphview.palette import BLUE


def curve_trace(points: Sequence[CurvePoint]) -> dict[str, Any]:
    """Time relative to the original over accepted moves, with the intervals as error bars (percent)."""
    known = [p for p in points if p.ratio is not None and p.low is not None and p.high is not None]
    ratios = [100 * (p.ratio or 0) for p in known]
    return {
        "x": [p.step for p in known],
        "y": ratios,
        "text": [p.label for p in known],
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [100 * (p.high or 0) - y for p, y in zip(known, ratios, strict=True)],
            "arrayminus": [y - 100 * (p.low or 0) for p, y in zip(known, ratios, strict=True)],
            "thickness": 1.2,
        },
        "mode": "lines+markers",
        "line": {"color": BLUE, "width": 2},
        "marker": {"color": BLUE, "size": 8},
        "name": "product of measured steps",
        "hovertemplate": "%{y:.1f} % of the original's time<br>%{text}<extra></extra>",
    }


def curve_layout(height: int = 240) -> dict[str, Any]:
    """Axes and margins; transparent, so that the theme shows through."""
    grid = "rgba(128,128,128,0.25)"
    axis = {"gridcolor": grid, "zerolinecolor": grid, "color": "#808a96"}
    return {
        "height": height,
        "margin": {"l": 56, "r": 12, "t": 8, "b": 40},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "showlegend": False,
        "font": {"color": "#808a96"},
        "xaxis": {**axis, "title": {"text": "accepted moves"}, "dtick": 1, "rangemode": "tozero"},
        "yaxis": {**axis, "title": {"text": "time, % of original"}, "ticksuffix": " %"},
    }
