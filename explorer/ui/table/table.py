"""``CandidateTable``: the candidates as a real HTML table, the equivalent of what the canvas shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from explorer.runtime import Delta, Verdict
from explorer.session import CandidateRow
from explorer.ui.graphview.units import bytes_text

_FOLDER = Path(__file__).parent
Command = Callable[[str], None]


class CandidateTable(anywidget.AnyWidget):
    """Rows of candidates.

    Attributes:
        rows: what is shown; Python writes it.
        selected: id of the selected candidate or ""; both sides write it.
        focus: node ids; if not empty, rows at these nodes can be shown alone.
        busy: whether decisions are possible at the moment.
    """

    _esm = _FOLDER / "table.js"
    _css = _FOLDER / "table.css"

    rows = traitlets.List(traitlets.Dict()).tag(sync=True)
    selected = traitlets.Unicode().tag(sync=True)
    focus = traitlets.List(traitlets.Unicode()).tag(sync=True)
    busy = traitlets.Bool(False).tag(sync=True)

    def __init__(self) -> None:
        super().__init__()
        self._commands: list[Command] = []
        self.on_msg(self._on_message)

    def __repr__(self) -> str:
        return f"CandidateTable({len(self.rows)} rows, selected {self.selected!r})"

    def show(self, rows: Sequence[CandidateRow]) -> None:
        """Show these rows; the selection stays if it is still among them."""
        wire = [_wire(row) for row in rows]
        with self.hold_sync():
            if wire != self.rows:
                self.rows = wire
            if self.selected and self.selected not in {row["id"] for row in wire}:
                self.selected = ""

    def on_command(self, callback: Command) -> None:
        """Call with "accept", "reject", "measure", "undo" or "redo" when its key is pressed in the table."""
        self._commands.append(callback)

    def _on_message(self, _widget: object, content: dict[str, Any], _buffers: object) -> None:
        command = str(content.get("command", ""))
        for callback in tuple(self._commands):
            callback(command)


def _wire(row: CandidateRow) -> dict[str, Any]:
    candidate = row.candidate
    return {
        "id": row.id,
        "title": row.title,
        "rule": candidate.rule,
        "summary": candidate.summary,
        "nodes": list(candidate.nodes),
        "kind": candidate.numeric_class.value,
        "portable": candidate.portable,
        "bytes": candidate.bytes_delta,
        "bytes_text": _bytes_text(candidate.bytes_delta),
        "predicted": delta_wire(row.predicted),
        "measured": delta_wire(row.measured),
        "rejected": row.is_rejected,
    }


def _bytes_text(change: int) -> str:
    if not change:
        return "0"
    return ("+" if change > 0 else "−") + bytes_text(abs(change))


def delta_wire(delta: Delta | None) -> dict[str, Any] | None:
    """A delta as texts: the change, its interval, the verdict with a sign, where it comes from."""
    if delta is None:
        return None
    signs = {Verdict.FASTER: "▼", Verdict.SLOWER: "▲", Verdict.WITHIN_NOISE: "≈", Verdict.IDENTICAL: "="}
    low, high = 100 * (delta.low - 1), 100 * (delta.high - 1)
    identical = delta.verdict is Verdict.IDENTICAL
    return {
        "ratio": delta.ratio,
        "text": "0 %" if identical else f"{delta.percent:+.1f} %",
        "interval": "same graph for the runtime" if identical else f"{low:+.1f} … {high:+.1f} %",
        "verdict": delta.verdict.value,
        "sign": signs[delta.verdict],
        "verdict_text": delta.verdict.text,
        "origin": f"{delta.source.value.lower()} on {delta.target}, {delta.protocol}",
    }
