"""Does it travel? Choose rows and columns, fill the portability matrix, look at its heat map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import ipywidgets as widgets

from explorer.runtime import Mode, Target
from explorer.search.portability import Matrix
from explorer.session import Snapshot
from explorer.session.matrix_page import matrix_html, style_text
from explorer.session.portability import Plan
from explorer.ui.panels.opening import target_options
from explorer.ui.panels.parts import button, field, marked, muted, row

_CELLS = (("validated, up to 60 s each", Mode.VALIDATED), ("screening, up to 10 s each", Mode.SCREENING))
_START = (
    "A row: the model is optimised by the time measured on that target, or by the sum of its isolated operator "
    "times there. A column: each result is timed on that target against the unoptimised model. "
    "Run fills the matrix; Load shows one written earlier, here or by `explorer portability --json`."
)
_CHOICES = (
    ("optimise for it", "A row: optimised by the time measured there"),
    ("by operator sum", "A row: optimised by the sum of its isolated operator times"),
    ("measure on it", "A column: every result is timed there"),
)
# What the boxes below mean; each of them has the words as its own label too, for screen readers.
_HEAD = (
    '<div class="explorer-rt-heads" aria-hidden="true"><span>target</span>'
    + "".join(f'<span title="{tip}">{text}</span>' for text, tip in _CHOICES)
    + "</div>"
)
_FIRST_ROWS = ("ort:level=all", "ort:level=disable")


@dataclass(frozen=True)
class PortabilityActions:
    """What the part asks the app to do; the last two take a path."""

    run: Callable[[Plan], None]
    stop: Callable[[], None]
    save: Callable[[str], None]
    load: Callable[[str], None]


class _Line:
    """One target on offer: whether it is a row, a row by its operator sum, a column."""

    def __init__(self, title: str, spec: str, changed: Callable[[], None], *, first: bool) -> None:
        self.spec = spec
        self.title = marked(widgets.HTML(), "rt-target")
        self.name(title)
        self.as_row, self.as_sum, self.as_column = (
            widgets.Checkbox(value=value, description=text, indent=False, tooltip=f"{tip} ({title})")
            for value, (text, tip) in zip((first, False, first), _CHOICES, strict=True)
        )
        for box in self.boxes:
            box.observe(lambda _change: changed(), "value")
        self.box = marked(widgets.HBox([self.title, *self.boxes]), "rt-line")

    @property
    def boxes(self) -> tuple[widgets.Checkbox, ...]:
        """The three choices."""
        return self.as_row, self.as_sum, self.as_column

    def name(self, title: str) -> None:
        """Call the target so."""
        self.title.value = f"<b>{title}</b>"


class PortabilityPart:
    """A section of the Runtime tab; ``box`` is its frame."""

    def __init__(self, actions: PortabilityActions) -> None:
        self._actions = actions
        self._snapshot: Snapshot | None = None
        self._shown: Matrix | None = None
        self._is_busy = False
        changed = self._choice_changed
        first = [str(Target.parse(spec)) for spec in _FIRST_ROWS]
        self.lines = [_Line(title, spec, changed, first=spec in first) for title, spec in target_options()]
        self.current = _Line("the current target", _FIRST_ROWS[0], changed, first=False)
        self.budget = field(widgets.BoundedIntText(value=10, min=1, max=10000, description="Budget"))
        self.budget.tooltip = "How many comparisons each search may make"
        self.cells = field(widgets.Dropdown(options=_CELLS, description="Cells"))
        for widget in (self.budget, self.cells):
            widget.observe(lambda _change: changed(), "value")
        self.run = button(
            "Run", "Optimise for every row, then measure every cell", self._run, style="primary"
        )
        self.stop = button("Stop", "Stop; cells that were measured stay", actions.stop)
        self.cost = marked(widgets.HTML(), "rt-cost")
        self.map = marked(widgets.HTML(muted(_START)), "rt-map")
        self.path = field(widgets.Text(description="Matrix as .json, or as a page .html"), grow=True)
        self.save = button(
            "Save", "Write the matrix; .html for a page", lambda: actions.save(self.path.value)
        )
        self.load = button("Load", "Show a matrix written as JSON", lambda: actions.load(self.path.value))
        style = widgets.HTML(f"<style>{style_text()}</style>")
        style.layout.display = "none"
        self.box = marked(
            widgets.VBox(
                [
                    style,
                    marked(widgets.HTML(_HEAD), "rt-line-head"),
                    *(line.box for line in (*self.lines, self.current)),
                    row(self.budget, self.cells, self.run, self.stop, self.cost),
                    self.map,
                    row(self.path, self.save, self.load),
                ]
            ),
            "rt-part",
        )

    def render(self, snapshot: Snapshot) -> None:
        """Show the matrix, and the session's target among those on offer."""
        old, self._snapshot = self._snapshot, snapshot
        target = Target.parse(snapshot.target)
        known = [Target.parse(line.spec) for line in self.lines]
        self.current.spec = snapshot.target
        self.current.name(target.label)
        self.current.box.layout.display = "none" if target.replace(threads=1) in known else ""
        if old is None or old.name != snapshot.name:
            self.path.value = f"{snapshot.name}-portability.json"
        if snapshot.matrix is not self._shown:
            self._shown = snapshot.matrix
            self.map.value = muted(_START) if snapshot.matrix is None else matrix_html(snapshot.matrix)
        self._say_cost()

    def disable(self, *, is_busy: bool) -> None:
        """One run at a time; the choices can be changed meanwhile."""
        self._is_busy = is_busy
        closed = self._snapshot is None
        self.run.disabled = is_busy or closed or self.plan() is None
        self.load.disabled = is_busy or closed
        self.save.disabled = self._shown is None
        self.stop.disabled = not is_busy

    def plan(self) -> Plan | None:
        """What is chosen; None if there is no row or no column, or no model."""
        lines = [*self.lines, *([self.current] if self.current.box.layout.display != "none" else [])]
        rows, sums, columns = (
            tuple(self._target(line) for line in lines if line.boxes[i].value) for i in range(3)
        )
        if self._snapshot is None or not columns or not (rows or sums):
            return None
        return Plan(
            models=(self._snapshot.name,),
            targets=rows,
            budget=int(self.budget.value),
            sums=sums,
            on=columns,
            protocol=self.cells.value,
            opt_in=self._snapshot.is_opt_in,
        )

    def _target(self, line: _Line) -> Target:
        """With as many threads as the session's target."""
        threads = 1 if self._snapshot is None else Target.parse(self._snapshot.target).threads
        return Target.parse(line.spec).replace(threads=threads)

    def _choice_changed(self) -> None:
        self._say_cost()
        self.disable(is_busy=self._is_busy)

    def _run(self) -> None:
        plan = self.plan()
        if plan is not None:
            self._actions.run(plan)

    def _say_cost(self) -> None:
        plan = self.plan()
        if plan is None:
            self.cost.value = muted("Choose at least one row and one column.")
            return
        cells, minutes = len(plan.rows) * len(plan.columns), plan.most_seconds / 60
        self.cost.value = muted(
            f"{len(plan.rows)} searches, {cells} cells: at most {minutes:.0f} min; stopped runs go on where they were"
        )
