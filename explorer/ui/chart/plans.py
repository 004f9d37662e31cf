"""The curves of plan searches: best DRAM traffic over proposed plans, above the optimum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from explorer.fusion import KB, Optimum
from explorer.session.fusion_values import SearchCurve

_LOOKS = (("var(--ec-blue)", "solid"), ("var(--ec-orange)", "dash"), ("var(--ec-green)", "dot"))
_MORE_LOOKS = (("var(--ec-red)", "dashdot"), ("var(--ec-muted)", "longdash"))


def plans_figure(
    curves: Sequence[SearchCurve], optimum: Optimum | None
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Traces and layout; one line per search, the optimum or its bound as the floor."""
    looks = (*_LOOKS, *_MORE_LOOKS)
    traces = [_curve(curve, *looks[i % len(looks)]) for i, curve in enumerate(curves)]
    last = max((plans for curve in curves for plans, _ in curve.points), default=10)
    if optimum is not None and optimum.bound_bytes:
        traces.append(_floor(optimum, last))
    lows = [y for trace in traces for y in trace["y"]]
    low, high = (min(lows), max(lows)) if lows else (0.0, 1.0)
    room = 0.08 * (high - low) or 1.0
    layout = {
        "xaxis": {"title": {"text": "plans proposed"}, "range": [-0.02 * last, 1.03 * last]},
        "yaxis": {"title": {"text": "best DRAM traffic, KB"}, "range": [low - room, high + room]},
        "margin": {"l": 62, "r": 10, "t": 6, "b": 40},
        "showlegend": bool(traces),
        "legend": {"x": 1, "xanchor": "right", "y": 1, "font": {"size": 11}, "bgcolor": "rgba(0,0,0,0)"},
    }
    return traces, layout


def _curve(curve: SearchCurve, colour: str, dash: str) -> dict[str, Any]:
    name = curve.label.split(" · ")[0]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": [plans for plans, _ in curve.points],
        "y": [size / KB for _, size in curve.points],
        "line": {"color": colour, "width": 2, "dash": dash, "shape": "hv"},
        "hovertemplate": f"{name}<br>after %{{x}} plans: %{{y:,.2f}} KB<extra></extra>",
    }


def _floor(optimum: Optimum, last: int) -> dict[str, Any]:
    name = "optimum, proved" if optimum.is_proved else "lower bound, not proved"
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": [0, last],
        "y": [optimum.bound_bytes / KB] * 2,
        "line": {"color": "var(--ec-text)", "width": 1.4, "dash": "5px,3px"},
        "hovertemplate": f"{name}: %{{y:,.2f}} KB<extra></extra>",
    }
