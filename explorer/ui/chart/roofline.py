"""The roofline of a profile: arithmetic intensity against achieved rate, under the target's measured roofs."""

from __future__ import annotations

import html
from collections.abc import Collection, Sequence
from math import floor, log10, sqrt
from typing import Any

from explorer.runtime.profile import Kernel, Profile
from explorer.runtime.roofs import Roofs
from explorer.ui.graphview.palette import FAMILIES, family_of
from explorer.ui.graphview.units import bytes_text, count_text, time_text

_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "hexagon")
_SMALLEST, _LARGEST = 7.0, 34.0
_FAMILIES = tuple(FAMILIES)


def drawn(profile: Profile) -> tuple[Kernel, ...]:
    """The kernels that have a place in the diagram: FLOPs, bytes and time are known and not 0."""
    return tuple(k for k in profile.kernels if k.flops_per_byte and k.gflops_per_s and not k.in_body)


def roofline_figure(
    profile: Profile, roofs: Roofs, selected: Collection[str] = ()
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Traces and layout, both axes logarithmic; ``customdata`` of a point is its kernel's name.

    Args:
        profile: measured times.
        roofs: what the target reaches at best.
        selected: ids of nodes whose kernels get a ring.
    """
    kernels = drawn(profile)
    families: dict[str, list[Kernel]] = {}
    for kernel in kernels:
        families.setdefault(family_of(kernel.op_type), []).append(kernel)
    low, high = _limits([k.flops_per_byte or 0.0 for k in kernels], roofs.ridge_flops_per_byte)
    bottom, top = _limits([k.gflops_per_s or 0.0 for k in kernels], roofs.gflops_per_s)
    traces = [_roof(roofs, 10**low, 10**high)]
    traces += [_points(family, found, selected) for family, found in sorted(families.items())]
    layout = {
        "xaxis": _axis("FLOPs per byte moved", low, high),
        "yaxis": _axis("GFLOP/s reached", bottom, top),
        "annotations": [
            _remark(high - 0.03, log10(roofs.gflops_per_s), f"{roofs.gflops_per_s:.1f} GFLOP/s", "right"),
            _slope_remark(roofs, low, bottom),
        ],
        "showlegend": bool(families),
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": {"size": 11},
                   "itemsizing": "constant", "itemclick": False, "itemdoubleclick": False},
        "margin": {"l": 62, "r": 12, "t": 30, "b": 42},
        "hovermode": "closest",
    }  # fmt: skip
    return traces, layout


def left_out(profile: Profile) -> list[str]:
    """What has no place in the diagram, and why; one sentence per reason."""
    shown = set(drawn(profile))
    rest = [kernel for kernel in profile.kernels if kernel not in shown and not kernel.in_body]
    inserted = [kernel for kernel in rest if not kernel.nodes]
    moving = [kernel for kernel in rest if kernel.nodes and kernel.flops == 0]
    other = [kernel for kernel in rest if kernel not in inserted and kernel not in moving]
    reasons = (
        (moving, "no floating-point operations, they only move data"),
        (inserted, "inserted by the runtime, nothing is counted for them"),
        (other, "FLOPs or bytes unknown (an unknown shape, or an operator without a formula)"),
    )
    return [f"Not drawn, {reason}: {_named(found)}." for found, reason in reasons if found]


def _named(kernels: Sequence[Kernel]) -> str:
    share = 100 * sum(kernel.share for kernel in kernels)
    counts: dict[str, int] = {}
    for kernel in kernels:
        counts[kernel.op_type] = counts.get(kernel.op_type, 0) + 1
    names = [f"{op} × {count}" if count > 1 else op for op, count in counts.items()]
    more = f" and {len(names) - 6} other operators" if len(names) > 6 else ""
    return f"{', '.join(names[:6])}{more}; {share:.1f} % of the time"


def _limits(values: Sequence[float], roof: float) -> tuple[float, float]:
    """Range of a logarithmic axis that holds values and roof."""
    every = [log10(value) for value in (*values, roof)]
    low, high = min(every), max(every)
    return min(low - 0.25, floor(high) - 1.0), high + 0.4


def _roof(roofs: Roofs, low: float, high: float) -> dict[str, Any]:
    xs = [low, roofs.ridge_flops_per_byte, high]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": xs,
        "y": [min(roofs.gflops_per_s, roofs.gbytes_per_s * x) for x in xs],
        "line": {"color": "var(--ec-text)", "width": 1.6},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _points(family: str, kernels: Sequence[Kernel], selected: Collection[str]) -> dict[str, Any]:
    title, colour = FAMILIES.get(family, FAMILIES["other"])
    rings = [3.0 if not set(kernel.nodes).isdisjoint(selected) else 0.8 for kernel in kernels]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": title,
        "x": [kernel.flops_per_byte for kernel in kernels],
        "y": [kernel.gflops_per_s for kernel in kernels],
        "customdata": [kernel.name for kernel in kernels],
        "text": [_hover(kernel) for kernel in kernels],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {
            "color": colour,
            "opacity": 0.75,
            "symbol": _SYMBOLS[_FAMILIES.index(family) % len(_SYMBOLS)] if family in _FAMILIES else "circle",
            "size": [_SMALLEST + (_LARGEST - _SMALLEST) * sqrt(min(k.share, 1.0)) for k in kernels],
            "line": {"width": rings, "color": "var(--ec-text)"},
        },
    }


def _hover(kernel: Kernel) -> str:
    nodes = " + ".join(kernel.nodes)
    lines = (
        f"<b>{html.escape(kernel.op_type)}</b> {html.escape(nodes)}",
        (
            f"{time_text(kernel.ns)} ({time_text(kernel.low_ns)} … {time_text(kernel.high_ns)}), "
            f"{100 * kernel.share:.1f} % of the model, measured"
        ),
        (
            f"{count_text(kernel.flops or 0)} FLOPs, {bytes_text(kernel.bytes or 0)}: "
            f"{kernel.flops_per_byte:.2f} FLOPs per byte"
        ),
        f"{kernel.gflops_per_s:.2f} GFLOP/s, {kernel.gbytes_per_s:.2f} GB/s",
        html.escape(kernel.note),
    )
    return "<br>".join(filter(None, lines))


def _axis(title: str, low: float, high: float) -> dict[str, Any]:
    # Plain numbers at powers of ten: 0.01, 1, 100.
    return {"title": {"text": title}, "type": "log", "range": [low, high], "dtick": 1, "tickformat": "~g"}


def _remark(x: float, y: float, text: str, anchor: str) -> dict[str, Any]:
    return {
        "x": x, "y": y, "text": text, "xanchor": anchor, "yanchor": "top", "showarrow": False,
        "font": {"size": 11, "color": "var(--ec-text)"},
    }  # fmt: skip


def _slope_remark(roofs: Roofs, low: float, bottom: float) -> dict[str, Any]:
    """Beside the slope, where it enters the picture."""
    ridge = log10(roofs.ridge_flops_per_byte)
    start = max(low, bottom - log10(roofs.gbytes_per_s))
    x = start + 0.1 * (ridge - start)
    remark = _remark(x, x + log10(roofs.gbytes_per_s), f"{roofs.gbytes_per_s:.1f} GB/s", "left")
    return {**remark, "xshift": 8}
