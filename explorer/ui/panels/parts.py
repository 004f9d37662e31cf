"""Small widgets that several panels use, and texts for deltas."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import TypeVar

import ipywidgets as widgets

from explorer.runtime import Delta, Source
from explorer.ui.table.wire import delta_wire

W = TypeVar("W", bound=widgets.Widget)


def marked(widget: W, *names: str) -> W:
    """The widget with ``explorer-<name>`` among its CSS classes."""
    for name in names:
        widget.add_class(f"explorer-{name}")
    return widget


def button(text: str, tooltip: str, handler: Callable[[], None], *, style: str = "") -> widgets.Button:
    """A button with a text (icons need a font from elsewhere)."""
    made = widgets.Button(description=text, tooltip=tooltip, button_style=style)
    made.layout = widgets.Layout(width="auto")
    made.on_click(lambda _button: handler())
    return made


def field(widget: W, *, grow: bool = False) -> W:
    """A control whose description stands above it."""
    widget.layout.width = "auto"
    return marked(widget, "field", *(["grow"] if grow else []))


def row(*children: widgets.Widget) -> widgets.HBox:
    """Widgets beside each other, wrapped where there is no room."""
    return marked(widgets.HBox(children), "row")


def column(*children: widgets.Widget) -> widgets.VBox:
    """The content of a tab: widgets below each other, as high as the tab."""
    return marked(widgets.VBox(children), "panel")


def muted(text: str) -> str:
    """A remark in grey, as safe HTML."""
    return f'<div class="explorer-muted">{html.escape(text)}</div>'


def delta_html(delta: Delta | None, none: str = "not measured") -> str:
    """A delta with interval, verdict and origin, as safe HTML; ``none`` for None."""
    wire = delta_wire(delta)
    if wire is None:
        return f'<span class="explorer-muted">{html.escape(none)}</span>'
    origin = html.escape(f"{wire['interval']}; {wire['origin']}")
    return (
        f'<b class="explorer-{wire["verdict"].lower()}">{wire["sign"]} {wire["text"]} '
        f'{html.escape(wire["verdict_text"])}</b> <span class="explorer-muted" title="{origin}">{origin}</span>'
    )


def short_delta_html(delta: Delta) -> str:
    """The change and its verdict only, the rest as a tooltip; safe HTML."""
    wire = delta_wire(delta)
    assert wire is not None  # noqa: S101 (a delta was given)
    return (
        f'<b class="explorer-{wire["verdict"].lower()}" '
        f'title="{html.escape(wire["interval"] + "; " + wire["origin"])}">'
        f"{wire['sign']} {wire['text']} {html.escape(wire['verdict_text'])}</b>"
        + ("" if delta.source is Source.MEASURED else ' <span class="explorer-muted">predicted</span>')
    )
