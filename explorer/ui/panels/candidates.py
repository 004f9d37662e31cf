"""The candidates: select, compare, measure, accept, reject; and why rules do not apply elsewhere."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass

import ipywidgets as widgets

from explorer.rewrite import Rejection
from explorer.session import CandidateRow, Snapshot
from explorer.ui.panels.parts import button, delta_html, row
from explorer.ui.table import CandidateTable

_MOST_REJECTIONS = 200


@dataclass(frozen=True)
class CandidateActions:
    """What the panel asks the app to do; each takes the id of the selected candidate."""

    select: Callable[[str], None]
    compare: Callable[[str, bool], None]
    measure: Callable[[str], None]
    measure_all: Callable[[], None]
    accept: Callable[[str], None]
    reject: Callable[[str], None]
    undo: Callable[[], None]
    redo: Callable[[], None]


class CandidatePanel:
    """The candidate table with its buttons."""

    def __init__(self, actions: CandidateActions) -> None:
        self._actions = actions
        self._snapshot: Snapshot | None = None
        self._focus: tuple[str, ...] = ()
        self.table = CandidateTable()
        self.table.observe(lambda change: self._on_select(str(change["new"])), "selected")
        self.table.on_command(self._on_key)
        self.measure = button("Measure", "Time the result against the current graph (M)", self._measure)
        self.measure_all = button("Measure all", "Screen every candidate", actions.measure_all)
        self.accept = button(
            "Accept", "Check and apply the selected rewrite (A)", self._accept, style="success"
        )
        self.reject = button("Reject", "Leave this site alone, or take that back (X)", self._reject)
        self.undo = button("Undo", "Take back the last accepted rewrite (U)", actions.undo)
        self.redo = button("Redo", "Accept again what was undone (R)", actions.redo)
        self.compare = widgets.ToggleButton(
            description="Before / after", tooltip="Show both graphs side by side", layout={"width": "auto"}
        )
        self.compare.observe(self._on_compare, "value")
        self.chosen = widgets.HTML()
        self.why_not = widgets.HTML()
        near = widgets.Accordion([self.why_not], titles=("Why not here? Near misses and their reasons",))
        self.box = widgets.VBox(
            [
                row(self.accept, self.reject, self.measure, self.measure_all),
                row(self.undo, self.redo, self.compare),
                self.chosen,
                self.table,
                near,
            ]
        )

    @property
    def selected(self) -> CandidateRow | None:
        """The selected row, if any."""
        rows = self._snapshot.rows if self._snapshot is not None else ()
        return next((r for r in rows if r.id == self.table.selected), None)

    def render(self, snapshot: Snapshot) -> None:
        """Show the rows and what is possible now."""
        self._snapshot = snapshot
        self.table.show(snapshot.rows)
        self._show_selected()
        self._show_reasons()

    def disable(self, is_busy: bool) -> None:
        """Nothing is decided while something is measured; undo and redo depend on the history."""
        snapshot, chosen = self._snapshot, self.selected
        for widget in (self.measure, self.accept, self.reject, self.compare):
            widget.disabled = is_busy or chosen is None
        self.measure_all.disabled = is_busy or not (snapshot and snapshot.rows)
        self.undo.disabled = is_busy or not (snapshot and snapshot.can_undo)
        self.redo.disabled = is_busy or not (snapshot and snapshot.can_redo)
        self.table.busy = is_busy

    def focus(self, nodes: tuple[str, ...]) -> None:
        """Note which nodes are selected in the graph: filters the table and the near misses."""
        self._focus = nodes
        self.table.focus = list(nodes)
        self._show_reasons()

    def _on_select(self, identifier: str) -> None:
        self._show_selected()
        self._actions.select(identifier)
        if self.compare.value and identifier:
            self._actions.compare(identifier, True)

    def _on_compare(self, change: dict[str, bool]) -> None:
        if self.table.selected:
            self._actions.compare(self.table.selected, bool(change["new"]))

    def _on_key(self, command: str) -> None:
        keys = {
            "accept": self._accept,
            "reject": self._reject,
            "measure": self._measure,
            "undo": self._actions.undo,
            "redo": self._actions.redo,
        }
        if command in keys:
            keys[command]()

    def _measure(self) -> None:
        if self.table.selected:
            self._actions.measure(self.table.selected)

    def _accept(self) -> None:
        if self.table.selected:
            self._actions.accept(self.table.selected)

    def _reject(self) -> None:
        if self.table.selected:
            self._actions.reject(self.table.selected)

    def _show_selected(self) -> None:
        chosen = self.selected
        if chosen is None:
            self.chosen.value = '<div class="explorer-muted">Select a row to see its site in the graph.</div>'
            return
        self.reject.description = "Allow again" if chosen.is_rejected else "Reject"
        self.chosen.value = (
            f'<div class="explorer-chosen"><b>{html.escape(chosen.title)}</b> '
            f"{html.escape(chosen.candidate.summary)}<br>measured: {delta_html(chosen.measured)}</div>"
        )

    def _show_reasons(self) -> None:
        if self._snapshot is None:
            return
        focus = set(self._focus)
        found = [r for r in self._snapshot.rejections if not focus or focus & set(r.nodes)]
        self.why_not.value = reasons_html(found, bool(focus))


def reasons_html(rejections: list[Rejection], at_selection: bool) -> str:
    """Near misses as a list, as safe HTML."""
    where = " at the selected nodes" if at_selection else ""
    if not rejections:
        return f"<div class='explorer-muted'>No near misses{where}.</div>"
    items = "".join(
        f"<li><b>{html.escape(r.rule)}</b> at {html.escape(', '.join(r.nodes))}: {html.escape(r.reason)}</li>"
        for r in rejections[:_MOST_REJECTIONS]
    )
    more = len(rejections) - _MOST_REJECTIONS
    rest = (
        f"<div class='explorer-muted'>and {more} more; select nodes to narrow them down</div>"
        if more > 0
        else ""
    )
    return f"<div>{len(rejections)} near misses{where}:</div><ul class='explorer-reasons'>{items}</ul>{rest}"
