"""The candidates: select, compare, measure, accept, reject."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass

import ipywidgets as widgets

from explorer.session import CandidateRow, Snapshot
from explorer.ui.panels.parts import button, column, delta_html, marked, muted, row
from explorer.ui.table import CandidateTable

_CLASSES = {
    "E": "exact: the same bits",
    "R": "re-associated: equal up to rounding",
    "D": "equal for finite values only",
    "A": "an approximation",
}


@dataclass(frozen=True)
class CandidateActions:
    """What the panel asks the app to do; most take the id of the selected candidate.

    ``predict`` predicts all of them for "".
    """

    select: Callable[[str], None]
    compare: Callable[[str, bool], None]
    measure: Callable[[str], None]
    measure_all: Callable[[], None]
    predict: Callable[[str], None]
    accept: Callable[[str], None]
    reject: Callable[[str], None]
    command: Callable[[str], None]


class CandidatePanel:
    """The candidate table with its buttons."""

    def __init__(self, actions: CandidateActions) -> None:
        self._actions = actions
        self._snapshot: Snapshot | None = None
        self._muted = False
        self.table = CandidateTable()
        self.table.observe(lambda change: self._on_select(str(change["new"])), "selected")
        self.table.on_command(self._on_key)
        self.accept = button(
            "Accept", "Check and apply the selected rewrite (A)", self._accept, style="primary"
        )
        self.reject = button("Reject", "Leave this site alone, or take that back (X)", self._reject)
        self.measure = button("Measure", "Time the result against the current graph (M)", self._measure)
        self.measure_all = button(
            "Measure all", "Screen every candidate that is not rejected", actions.measure_all
        )
        self.predict = button(
            "Predict",
            "Predict the selected rewrite by the sum of its operators' times, each timed alone on the target",
            self._predict,
        )
        self.predict_all = button(
            "Predict all",
            "The same for every candidate: seconds for a model's operators, then little for each candidate",
            lambda: actions.predict(""),
        )
        self.compare = widgets.ToggleButton(
            description="Before / after", tooltip="Show both graphs side by side (B)"
        )
        self.compare.layout.width = "auto"
        self.compare.observe(self._on_compare, "value")
        self.chosen = marked(widgets.HTML(), "chosen")
        self._show_selected()
        self.box = column(
            row(
                self.accept,
                self.reject,
                self.compare,
                self.measure,
                self.measure_all,
                self.predict,
                self.predict_all,
            ),
            self.chosen,
            self.table,
        )

    @property
    def selected(self) -> CandidateRow | None:
        """The selected row, if any."""
        rows = self._snapshot.rows if self._snapshot is not None else ()
        return next((r for r in rows if r.id == self.table.selected), None)

    def render(self, snapshot: Snapshot) -> None:
        """Show the rows; rows that are being looked for leave what is shown in place."""
        self._snapshot = snapshot
        self.table.show(snapshot.rows, ready=snapshot.is_ready)
        self._show_selected()

    def disable(self, is_busy: bool) -> None:
        """Nothing is decided while something is measured."""
        for widget in (self.measure, self.predict, self.accept, self.reject, self.compare):
            widget.disabled = is_busy or self.selected is None
        for widget in (self.measure_all, self.predict_all):
            widget.disabled = is_busy or not (self._snapshot and self._snapshot.rows)
        self.table.busy = is_busy

    def focus(self, nodes: tuple[str, ...]) -> None:
        """Note which nodes are selected in the graph: the table can be filtered by them."""
        self.table.focus = list(nodes)

    def _on_select(self, identifier: str) -> None:
        self._show_selected()
        self._actions.select(identifier)
        if not identifier:
            self.end_comparison()
        elif self.compare.value:
            self._actions.compare(identifier, True)

    def end_comparison(self) -> None:
        """Show the button as it is when one graph is shown; does not change what is shown."""
        self._muted = True
        self.compare.value = False
        self._muted = False

    def _on_compare(self, change: dict[str, bool]) -> None:
        if self.table.selected and not self._muted:
            self._actions.compare(self.table.selected, bool(change["new"]))

    def _on_key(self, command: str) -> None:
        own = {"accept": self.accept, "reject": self.reject, "measure": self.measure}
        if command in own:
            if not own[command].disabled:
                own[command].click()
        elif command == "compare":
            if self.table.selected:
                self.compare.value = not self.compare.value
        else:
            self._actions.command(command)

    def _measure(self) -> None:
        if self.table.selected:
            self._actions.measure(self.table.selected)

    def _predict(self) -> None:
        if self.table.selected:
            self._actions.predict(self.table.selected)

    def _accept(self) -> None:
        if self.table.selected:
            self._actions.accept(self.table.selected)

    def _reject(self) -> None:
        if self.table.selected:
            self._actions.reject(self.table.selected)

    def _show_selected(self) -> None:
        chosen = self.selected
        self.reject.description = "Allow again" if chosen is not None and chosen.is_rejected else "Reject"
        self.chosen.value = (
            muted("Select a row to see its site in the graph, then measure it or accept it.")
            if chosen is None
            else chosen_html(chosen)
        )


def chosen_html(row: CandidateRow) -> str:
    """The selected candidate on four lines, as safe HTML; what is cut shows as a tooltip."""
    summary, kind = html.escape(row.candidate.summary), row.numeric_class.value
    predicted = delta_html(row.predicted, "not predicted")
    if row.unpredicted:
        reason = html.escape(row.unpredicted)
        predicted = f'<span class="explorer-muted" title="{reason}">cannot be predicted: {reason}</span>'
    return (
        f'<div class="explorer-line"><b>{html.escape(row.title)}</b> '
        f'<span class="explorer-muted">class {kind}, {_CLASSES[kind]}</span></div>'
        f'<div class="explorer-line" title="{summary}">{summary}</div>'
        f'<div class="explorer-line">{delta_html(row.measured)}</div>'
        f'<div class="explorer-line">{predicted}</div>'
    )
