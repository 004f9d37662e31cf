"""What was accepted and undone, the measured total, export, saving and reopening."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass

import ipywidgets as widgets

from explorer.session import HistoryRow, Snapshot
from explorer.ui.panels.parts import button, column, delta_html, field, marked, muted, row


@dataclass(frozen=True)
class HistoryActions:
    """What the panel asks the app to do; the last three take a path."""

    undo: Callable[[], None]
    redo: Callable[[], None]
    measure_total: Callable[[], None]
    export: Callable[[str], None]
    save: Callable[[str], None]
    reopen: Callable[[str], None]


class HistoryPanel:
    """The history with its buttons. Undo and Redo stand on top of the app, where they are always in reach."""

    def __init__(self, actions: HistoryActions) -> None:
        self._name = ""
        self._snapshot: Snapshot | None = None
        self.undo = button("Undo", "Take back the last accepted rewrite (U)", actions.undo)
        self.redo = button("Redo", "Accept again what was undone (R)", actions.redo)
        self.list = marked(widgets.HTML(), "history")
        self.total = marked(widgets.HTML(), "total")
        self.measure_total = button(
            "Measure total", "Time the current graph against the original", actions.measure_total
        )
        self.export_path = field(widgets.Text(description="Model as ONNX"), grow=True)
        self.export = button(
            "Export",
            "Check numerically against the original, then write the file",
            lambda: actions.export(self.export_path.value),
        )
        self.save_path = field(widgets.Text(description="Session as JSON"), grow=True)
        self.save = button(
            "Save", "Write history and measurements", lambda: actions.save(self.save_path.value)
        )
        self.reopen = button(
            "Reopen",
            "Go on with the session saved at this path",
            lambda: actions.reopen(self.save_path.value),
        )
        self.box = column(
            self.list,
            row(self.measure_total, self.total),
            row(self.export_path, self.export),
            row(self.save_path, self.save, self.reopen),
        )

    def render(self, snapshot: Snapshot) -> None:
        """Show the accepted rewrites, the undone ones in grey."""
        self._snapshot = snapshot
        if snapshot.name != self._name:
            self._name = snapshot.name
            self.export_path.value = f"{snapshot.name}-rewritten.onnx"
            self.save_path.value = f"{snapshot.name}.session.json"
        items = "".join(_item(entry) for entry in snapshot.history)
        empty = muted("Nothing accepted yet: this is the model as it was opened.")
        self.list.value = f"<ol>{items}</ol>" if items else empty
        self.total.value = f"against the original: {delta_html(snapshot.total)}"

    def disable(self, is_busy: bool) -> None:
        """Wait for what runs; undo and redo depend on the history."""
        snapshot = self._snapshot
        for widget in (self.measure_total, self.export, self.save):
            widget.disabled = is_busy or snapshot is None
        self.reopen.disabled = is_busy
        self.undo.disabled = is_busy or not (snapshot and snapshot.can_undo)
        self.redo.disabled = is_busy or not (snapshot and snapshot.can_redo)


def _item(entry: HistoryRow) -> str:
    state, mark = (' class="explorer-undone"', "(undone) ") if entry.is_undone else ("", "")
    label = html.escape(entry.label)
    return (
        f'<li{state}><div class="explorer-line" title="{label}">{mark}<b>{label}</b></div>'
        f"<div>{delta_html(entry.delta)}</div>"
        f'<div class="explorer-muted">numerically {html.escape(entry.check)}</div></li>'
    )
