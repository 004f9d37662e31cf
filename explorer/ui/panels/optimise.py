"""Watch a search: its next choice before it is taken, the curve growing, Step, Run and Stop."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass

import ipywidgets as widgets

from explorer.search import (
    Evaluated,
    Evaluating,
    Failed,
    Finished,
    LeftOut,
    Proposed,
    Scouted,
    Scouting,
    Taken,
)
from explorer.session import Confirmed, OptimiseEvent, Snapshot
from explorer.session.costs import Way, ways
from explorer.ui.chart import Chart, curve_figure
from explorer.ui.panels.parts import button, column, delta_html, field, marked, muted, row, short_delta_html

_LOG_LINES = 200
_START = "Step compares until there is a choice to show, and waits. Run goes on to the end."


@dataclass(frozen=True)
class OptimiseActions:
    """What the panel asks the app to do; the first three take the budget and what to compare by.

    Attributes:
        step: go on to the next proposal (taking the one that is shown, if any).
        skip: do not take the proposal that is shown; go on to the next.
        run: go on to the end.
        stop: stop now.
    """

    step: Callable[[int, Way], None]
    skip: Callable[[int, Way], None]
    run: Callable[[int, Way], None]
    stop: Callable[[], None]


class OptimisePanel:
    """Greedy search by a cost model of one's choice; the result is always measured.

    The chart is made by ``show_chart``, not at once: plotly.js is 5 MB.
    """

    def __init__(self, actions: OptimiseActions) -> None:
        offered = [(way.label, way) for way in ways()]
        self.way = field(widgets.Dropdown(options=offered, description="Greedy by"), grow=True)
        self.way.tooltip = (
            "What the search compares by; the end result is measured in any case. Looking ahead: predictions find a "
            "whole way first, which is then measured as one move, and taken apart if it does not gain"
        )
        self.budget = field(widgets.BoundedIntText(value=30, min=1, max=10000, description="Budget"))
        self.budget.tooltip = "How many comparisons the search may make"
        self.step = button(
            "Step", "Take the choice that is shown, and find the next (S)", self._with_settings(actions.step)
        )
        self.skip = button(
            "Skip", "Do not take the choice that is shown; find another", self._with_settings(actions.skip)
        )
        self.run = button(
            "Run",
            "Go on until nothing gains or the budget is spent",
            self._with_settings(actions.run),
            style="primary",
        )
        self.stop = button("Stop", "Stop; what was taken stays", actions.stop)
        self.next = marked(widgets.HTML(), "next")
        self.log = marked(widgets.HTML(), "log")
        self.chart_box = marked(widgets.Box(), "chart")
        self.chart: Chart | None = None
        self._snapshot: Snapshot | None = None
        self._lines: list[str] = []
        self.proposal: Proposed | None = None
        self.reset()
        self.box = column(
            row(self.way, self.budget, self.step, self.skip, self.run, self.stop),
            self.next,
            self.chart_box,
            self.log,
        )

    def show_chart(self) -> None:
        """Make the chart, once."""
        if self.chart is None:
            self.chart = Chart("Time relative to the original over accepted moves", height=230)
            self.chart_box.children = (self.chart,)
            self._redraw()

    def render(self, snapshot: Snapshot) -> None:
        """Redraw the curve."""
        self._snapshot = snapshot
        self._redraw()

    def disable(self, is_busy: bool) -> None:
        """Stop works while something runs; everything else when nothing does."""
        nothing = is_busy or self._snapshot is None
        for widget in (self.step, self.run, self.budget, self.way):
            widget.disabled = nothing
        self.skip.disabled = nothing or self.proposal is None
        self.stop.disabled = not is_busy

    def show_event(self, event: OptimiseEvent) -> None:
        """Note what the search just said."""
        self.proposal = event if isinstance(event, Proposed) else None
        match event:
            case Scouting(move=move, spent=spent, budget=budget):
                self._show_next("Looking ahead", move.label, f"{spent} of at most {budget} predictions made")
            case Scouted(delta=delta, sentence=sentence):
                told = "" if delta is None else short_delta_html(delta)
                self._add(f"{told} <b>Looked ahead</b> {html.escape(sentence)}")
            case Evaluating(move=move, spent=spent, budget=budget):
                self._show_next("Comparing", move.label, f"{spent} of {budget} comparisons made")
            case Evaluated(move=move, delta=delta):
                self._add(f"{short_delta_html(delta)} {html.escape(move.label)}")
            case LeftOut(delta=delta, label=label, fate=fate):
                self._add(f"{short_delta_html(delta)} {html.escape(label)}: {fate}")
            case Failed(move=move, reason=reason):
                text = html.escape(f"left out {move.label}: {reason}")
                self._add(f'<span class="explorer-muted">{text}</span>')
            case Proposed(move=move, delta=delta):
                self._show_next("Next choice", move.label, delta_html(delta))
            case Taken(move=move):
                self._add(f"<b>✓ took</b> {html.escape(move.label)}")
            case Finished(reason=reason):
                self._show_next("Search ended", reason, "Confirming by a validated measurement")
            case Confirmed(sentence=sentence, measurement=measurement):
                self._add(f"<b>Result</b> {html.escape(sentence)}")
                lead = "against itself " if measurement.is_of_one else ""
                self._show_next("Result", sentence, lead + delta_html(measurement.delta))

    def show_stopped(self) -> None:
        """Say that the search was stopped or failed."""
        self.proposal = None
        self._show_next("Stopped", "What was taken stays; Step or Run start again from here", "")

    def reset(self) -> None:
        """Forget the last search."""
        self._lines.clear()
        self.proposal = None
        self.log.value = muted("What the search compares is listed here, the latest first.")
        self._show_next("Ready", _START, "")

    def _with_settings(self, action: Callable[[int, Way], None]) -> Callable[[], None]:
        return lambda: action(int(self.budget.value), self.way.value)

    def _redraw(self) -> None:
        if self.chart is not None and self._snapshot is not None:
            self.chart.show(curve_figure(self._snapshot.curve))

    def _show_next(self, head: str, text: str, detail: str) -> None:
        safe = html.escape(text)
        self.next.value = (
            f'<div role="status"><b>{html.escape(head)}</b>'
            f'<div class="explorer-two-lines" title="{safe}">{safe}</div>'
            f'<div class="explorer-line">{detail}</div></div>'
        )

    def _add(self, line: str) -> None:
        self._lines = [line, *self._lines][:_LOG_LINES]
        items = "".join(f"<li>{item}</li>" for item in self._lines)
        self.log.value = f"<ul>{items}</ul>"
