"""The candidates: select, compare, measure, accept, reject."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass

import ipywidgets as widgets

from explorer.search import SWITCH
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

    ``predict`` predicts all of them for "". ``measure_all`` is told whether to measure switches too.
    """

    select: Callable[[str], None]
    compare: Callable[[str, bool], None]
    measure: Callable[[str], None]
    measure_all: Callable[[bool], None]
    find_switches: Callable[[], None]
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
        self._asked = ("", "")
        self.table = CandidateTable()
        self.table.observe(lambda change: self._on_select(str(change["new"])), "selected")
        self.table.on_command(self._on_key)
        self.accept = button(
            "Accept", "Check and apply the selected rewrite (A)", self._accept, style="primary"
        )
        self.reject = button("Reject", "Leave this site alone, or take that back (X)", self._reject)
        self.measure = button("Measure", "Time the result against the current graph (M)", self._measure)
        self.measure_all = button(
            "Measure all",
            "Screen every candidate in the table that is not rejected",
            lambda: actions.measure_all(bool(self.switches.value)),
        )
        self.switches = widgets.ToggleButton(
            description="Switches",
            tooltip="Also list settings of the runtime to try: levels, its own optimisers, frozen weights",
        )
        self.switches.layout.width = "auto"
        self.switches.observe(self._on_switches, "value")
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
                marked(row(self.accept, self.reject, self.compare, self.measure, self.predict), "tight"),
                marked(row(self.measure_all, self.predict_all, self.switches), "tight"),
            ),
            self.chosen,
            self.table,
        )

    @property
    def selected(self) -> CandidateRow | None:
        """The selected row, if any."""
        return next((row for row in self._rows() if row.id == self.table.selected), None)

    def render(self, snapshot: Snapshot) -> None:
        """Show the rows; rows that are being looked for leave what is shown in place."""
        self._snapshot = snapshot
        self.table.show(self._rows(), ready=snapshot.is_ready)
        self._show_selected()
        self._find_switches()

    def _rows(self) -> tuple[CandidateRow, ...]:
        if self._snapshot is None:
            return ()
        return (*(self._snapshot.switches if self.switches.value else ()), *self._snapshot.rows)

    def _on_switches(self, _change: object) -> None:
        if self._snapshot is not None:
            self.render(self._snapshot)

    def _find_switches(self) -> None:
        """Ask the runtime for its own optimisers, once per graph and target, if they are to be shown."""
        snapshot = self._snapshot
        if not self.switches.value or snapshot is None or not snapshot.is_ready:
            return
        asked = snapshot.fingerprint, snapshot.target
        if not snapshot.are_switches_complete and asked != self._asked:
            self._asked = asked
            self._actions.find_switches()

    def disable(self, is_busy: bool) -> None:
        """Nothing is decided while something is measured."""
        for widget in (self.measure, self.predict, self.accept, self.reject, self.compare):
            widget.disabled = is_busy or self.selected is None
        if self.selected is not None and self.selected.candidate.rule == SWITCH:
            self.predict.disabled = self.compare.disabled = True
        for widget in (self.measure_all, self.predict_all):
            widget.disabled = is_busy or not (self._snapshot and self._snapshot.rows)
        self.measure_all.disabled = is_busy or not self._rows()
        self.switches.disabled = self._snapshot is None
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
            if self.table.selected and not self.compare.disabled:
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
    if row.candidate.rule == SWITCH:
        predicted = (
            '<span class="explorer-muted">predictions add up operators: a switch can only be measured</span>'
        )
    if row.unpredicted:
        reason = html.escape(row.unpredicted)
        predicted = f'<span class="explorer-muted" title="{reason}">cannot be predicted: {reason}</span>'
    return (
        f'<div class="explorer-line" title="{html.escape(row.title)}: class {kind}, {_CLASSES[kind]}">'
        f'<b>{html.escape(row.title)}</b> <span class="explorer-muted">class {kind}, {_CLASSES[kind]}</span></div>'
        f'<div class="explorer-line" title="{summary}">{summary}</div>'
        f'<div class="explorer-line">{delta_html(row.measured)}</div>'
        f'<div class="explorer-line">{predicted}</div>'
    )
