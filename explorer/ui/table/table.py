"""Tables of sites in the graph, as real HTML tables: the equivalent of what the canvas shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from explorer.rewrite import Rejection
from explorer.session import CandidateRow
from explorer.ui.table.wire import Wire, candidate_wire, near_miss_wires

_FOLDER = Path(__file__).parent
Command = Callable[[str], None]


class SiteTable(anywidget.AnyWidget):
    """Rows that each concern some nodes of the graph.

    Attributes:
        kind: what the rows are: "candidates" or "near misses".
        rows: what is shown; Python writes it.
        selected: id of the selected row or ""; both sides write it.
        focus: ids of the nodes selected in the graph.
        only_here: show only rows at these nodes; both sides write it.
        busy: whether decisions are impossible at the moment.
        state: "closed" before a model is open, "loading" while rows are being looked for, "ready".
    """

    _esm = _FOLDER / "table.js"
    _css = _FOLDER / "table.css"

    kind = traitlets.Unicode().tag(sync=True)
    rows = traitlets.List(traitlets.Dict()).tag(sync=True)
    selected = traitlets.Unicode().tag(sync=True)
    focus = traitlets.List(traitlets.Unicode()).tag(sync=True)
    only_here = traitlets.Bool(False).tag(sync=True)
    busy = traitlets.Bool(False).tag(sync=True)
    state = traitlets.Unicode("closed").tag(sync=True)

    def __init__(self, kind: str) -> None:
        super().__init__(kind=kind)
        self._commands: list[Command] = []
        self.on_msg(self._on_message)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.rows)} rows, selected {self.selected!r})"

    def _show(self, wires: list[Wire], *, ready: bool) -> None:
        """Show these rows; the selection stays if it is still among them."""
        with self.hold_sync():
            if wires != self.rows:
                self.rows = wires
            if self.selected and self.selected not in {wire["id"] for wire in wires}:
                self.selected = ""
            self.state = "ready" if ready else "loading"

    def at_focus(self) -> int:
        """How many rows are at the nodes selected in the graph."""
        focus = set(self.focus)
        return sum(not focus.isdisjoint(row["nodes"]) for row in self.rows)

    def on_command(self, callback: Command) -> None:
        """Call with the command of a key that was pressed in the app, such as "accept" or "undo"."""
        self._commands.append(callback)

    def _on_message(self, _widget: object, content: Mapping[str, Any], _buffers: object) -> None:
        command = str(content.get("command", ""))
        for callback in tuple(self._commands):
            callback(command)


class CandidateTable(SiteTable):
    """Where rules apply."""

    def __init__(self) -> None:
        super().__init__("candidates")

    def show(self, rows: Sequence[CandidateRow], *, ready: bool = True) -> None:
        """Show these candidates; the selection stays if it is still among them."""
        self._show([candidate_wire(row) for row in rows], ready=ready)


class NearMissTable(SiteTable):
    """Where rules almost apply, and why they do not."""

    def __init__(self) -> None:
        super().__init__("near misses")

    def show(self, rejections: Sequence[Rejection], titles: Mapping[str, str], *, ready: bool = True) -> None:
        """Show these near misses; ``titles`` are those of the rules, by name."""
        self._show(near_miss_wires(rejections, titles), ready=ready)
