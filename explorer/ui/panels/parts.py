"""Small widgets that several panels use."""

from __future__ import annotations

import html
from collections.abc import Callable

import ipywidgets as widgets

from explorer.runtime import Delta
from explorer.ui.table.table import delta_wire


def button(text: str, tooltip: str, handler: Callable[[], None], *, style: str = "") -> widgets.Button:
    """A button with a text (icons alone need a font from elsewhere)."""
    made = widgets.Button(description=text, tooltip=tooltip, button_style=style)
    made.layout = widgets.Layout(width="auto", min_width="72px")
    made.on_click(lambda _button: handler())
    return made


def row(*children: widgets.Widget) -> widgets.HBox:
    """Widgets beside each other, wrapped where there is no room."""
    layout = widgets.Layout(flex_flow="row wrap", align_items="center", width="100%")
    return widgets.HBox(children, layout=layout)


def delta_html(delta: Delta | None) -> str:
    """A delta with interval, verdict and origin, as safe HTML; "not measured" for None."""
    wire = delta_wire(delta)
    if wire is None:
        return '<span class="explorer-muted">not measured</span>'
    return (
        f'<span class="explorer-{wire["verdict"].lower()}"><b>{wire["sign"]} {wire["text"]}</b></span> '
        f'<span class="explorer-muted">{html.escape(wire["interval"])}, {html.escape(wire["verdict_text"])}; '
        f"{html.escape(wire['origin'])}</span>"
    )
