"""Watch a search: its next choice before it is taken, the curve growing, Step, Run and Stop."""

from __future__ import annotations

import html
from collections.abc import Callable

import ipywidgets as widgets
import plotly.graph_objects as go

from explorer.search import Evaluated, Evaluating, Failed, Finished, Proposed, Taken
from explorer.session import Confirmed, OptimiseEvent, Snapshot
from explorer.ui.charts import curve_layout, curve_trace
from explorer.ui.panels.parts import button, delta_html, row

_LOG_LINES = 40


class OptimisePanel:
    """Greedy search on measured cost.

    Args:
        step: go on to the next proposal (taking the one that is shown, if any).
        skip: do not take the proposal that is shown; go on to the next.
        run: go on to the end.
        stop: stop now.
    """

    def __init__(
        self,
        step: Callable[[], None],
        skip: Callable[[], None],
        run: Callable[[], None],
        stop: Callable[[], None],
    ) -> None:
        self.strategy = widgets.Dropdown(
            options=[("greedy, measured cost", "greedy")], description="Strategy", layout={"width": "270px"}
        )
        self.budget = widgets.BoundedIntText(
            value=30, min=1, max=10000, description="Budget", layout={"width": "160px"}
        )
        self.budget.tooltip = "Comparisons the search may measure"
        self.step = button("Step", "Take the choice that is shown and find the next", step)
        self.skip = button("Skip", "Do not take the choice that is shown", skip)
        self.run = button("Run", "Go on until nothing gains or the budget is spent", run, style="primary")
        self.stop = button("Stop", "Stop; what was taken stays", stop)
        self.next = widgets.HTML()
        self.log = widgets.HTML()
        self.figure = go.FigureWidget(layout=curve_layout())
        self.figure.add_scatter(**curve_trace(()))
        self._lines: list[str] = []
        self.has_proposal = False
        self._show_next("Press Step to see the first choice, or Run.")
        self.box = widgets.VBox(
            [
                row(self.strategy, self.budget),
                row(self.step, self.skip, self.run, self.stop),
                self.next,
                self.figure,
                self.log,
            ]
        )

    def render(self, snapshot: Snapshot) -> None:
        """Redraw the curve."""
        trace = curve_trace(snapshot.curve)
        with self.figure.batch_update():
            for name in ("x", "y", "text", "error_y"):
                setattr(self.figure.data[0], name, trace[name])

    def disable(self, is_busy: bool) -> None:
        """Stop works while something runs; everything else when nothing does."""
        for widget in (self.step, self.run, self.budget, self.strategy):
            widget.disabled = is_busy
        self.skip.disabled = is_busy or not self.has_proposal
        self.stop.disabled = not is_busy

    def show_event(self, event: OptimiseEvent) -> None:
        """Note what the search just said."""
        self.has_proposal = isinstance(event, Proposed)
        match event:
            case Evaluating(move=move, spent=spent, budget=budget):
                self._show_next(f"measuring {move.label} ({spent} of {budget} comparisons made)")
            case Evaluated(move=move, delta=delta):
                self._add(f"{html.escape(move.label)}: {delta_html(delta)}")
            case Failed(move=move, reason=reason):
                self._add(f"{html.escape(move.label)}: left out, {html.escape(reason)}")
            case Proposed(move=move, delta=delta):
                self._show_next(f"next choice: {move.label}", delta_html(delta))
            case Taken(move=move):
                self._add(f"<b>took {html.escape(move.label)}</b>")
            case Finished(reason=reason):
                self._show_next(f"Search ended: {reason}.")
            case Confirmed(sentence=sentence, delta=delta):
                self._add(f"<b>{html.escape(sentence)}</b> {delta_html(delta)}")
                self._show_next(sentence)

    def reset(self) -> None:
        """Forget the last search."""
        self._lines.clear()
        self.log.value, self.has_proposal = "", False
        self._show_next("Press Step to see the first choice, or Run.")

    def _show_next(self, text: str, detail: str = "") -> None:
        self.next.value = f'<div class="explorer-next" role="status">{html.escape(text)} {detail}</div>'

    def _add(self, line: str) -> None:
        self._lines = [line, *self._lines][:_LOG_LINES]
        items = "".join(f"<li>{item}</li>" for item in self._lines)
        self.log.value = f'<ul class="explorer-log">{items}</ul>'
