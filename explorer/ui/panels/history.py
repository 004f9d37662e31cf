"""What was accepted and undone, the measured total, export and saving."""

from __future__ import annotations

import html
from collections.abc import Callable

import ipywidgets as widgets

from explorer.session import HistoryRow, Snapshot
from explorer.ui.panels.parts import button, delta_html, row


class HistoryPanel:
    """The history with its buttons.

    Args:
        measure_total: time the current graph against the original.
        export: write the model to a path.
        save: write the session to a path.
    """

    def __init__(
        self,
        measure_total: Callable[[], None],
        export: Callable[[str], None],
        save: Callable[[str], None],
    ) -> None:
        self._name = ""
        self.list = widgets.HTML()
        self.total = widgets.HTML()
        self.measure_total = button(
            "Measure total", "Time the current graph against the original", measure_total
        )
        self.export_path = widgets.Text(description="Export to", layout={"width": "300px"})
        self.export = button(
            "Export", "Check numerically, then write ONNX", lambda: export(self.export_path.value)
        )
        self.save_path = widgets.Text(description="Session", layout={"width": "300px"})
        self.save = button(
            "Save", "Write the session as JSON, to reopen it later", lambda: save(self.save_path.value)
        )
        self.box = widgets.VBox(
            [
                self.list,
                row(self.measure_total, self.total),
                row(self.export_path, self.export),
                row(self.save_path, self.save),
            ]
        )

    def render(self, snapshot: Snapshot) -> None:
        """Show the accepted rewrites, the undone ones in grey."""
        if snapshot.name != self._name:
            self._name = snapshot.name
            self.export_path.value = f"{snapshot.name}-rewritten.onnx"
            self.save_path.value = f"{snapshot.name}.session.json"
        items = "".join(_item(entry) for entry in snapshot.history)
        empty = '<div class="explorer-muted">Nothing accepted yet. The original is untouched.</div>'
        self.list.value = f'<ol class="explorer-history">{items}</ol>' if items else empty
        self.total.value = f"current against original: {delta_html(snapshot.total)}"

    def disable(self, is_busy: bool) -> None:
        """Wait for what runs."""
        for widget in (self.measure_total, self.export, self.save):
            widget.disabled = is_busy


def _item(entry: HistoryRow) -> str:
    state = " class='explorer-undone'" if entry.is_undone else ""
    undone = " <i>undone</i>" if entry.is_undone else ""
    return (
        f"<li{state}><b>{html.escape(entry.label)}</b>{undone}<br>{delta_html(entry.measured)}<br>"
        f"<span class='explorer-muted'>numerically {html.escape(entry.check)}</span></li>"
    )
