"""The portability matrix on real models: searches and measurements wired to a measurer.

An interrupted run is taken up by running it again: every comparison that was finished is in the cache, and
searches draw nothing by chance, so that they walk the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from explorer.cost import CostModel, Delta, OperatorSum
from explorer.errors import Cancelled, InputError
from explorer.graph import Feeds, Graph
from explorer.records import read_json, write_json, write_text
from explorer.runtime import Measurer, Mode, Protocol, Target
from explorer.runtime.executor import CancelToken
from explorer.runtime.progress import OnProgress, Progress, ignore_progress, part_of
from explorer.search import Greedy, Taken
from explorer.search.portability import Cell, Event, Found, Matrix, Optimised, travel
from explorer.search.trajectory import Step
from explorer.session.costs import MEASURED, OPERATOR_SUM, World, cost_model
from explorer.session.matrix_page import matrix_page
from explorer.session.session import Session

OnMatrix = Callable[[Matrix], None]


@dataclass(frozen=True)
class Plan:
    """What to compare.

    Args:
        models: paths or sample names.
        targets: what to optimise for by measuring: one row each.
        budget: comparisons per search.
        sums: targets whose sum of isolated operator times is a row too.
        on: what to measure each result on: one column each; the same as ``targets`` by default.
        protocol: how cells are measured; searches measure by screening.
        fill_weights: seed for structures without weights.
        opt_in: also use rules of class D and A.
        sum_budget: comparisons per search by a sum of operator times, which are cheap; as ``budget`` if None.

    Raises:
        InputError: nothing to compare, or a target twice.
    """

    models: tuple[str, ...]
    targets: tuple[Target, ...]
    budget: int = 30
    sums: tuple[Target, ...] = ()
    on: tuple[Target, ...] = ()
    protocol: str | Mode | Protocol = Mode.VALIDATED
    fill_weights: int | None = None
    opt_in: bool = False
    sum_budget: int | None = None

    def __post_init__(self) -> None:
        if not self.models or not self.rows or not self.columns:
            raise InputError("A portability matrix needs at least one model, one row and one column.")
        if any(len(set(one)) < len(one) for one in (self.models, self.rows, self.columns)):
            raise InputError("A portability matrix needs each model, each row and each column once.")

    @property
    def rows(self) -> tuple[str, ...]:
        """Names of the rows."""
        return (*map(str, self.targets), *(row_of_sum(target) for target in self.sums))

    @property
    def columns(self) -> tuple[Target, ...]:
        """What each result is measured on."""
        return self.on or self.targets

    @property
    def most_seconds(self) -> float:
        """What measuring takes at most, if every search spends its budget; usually much less."""
        cell_ns, search_ns = (Protocol.of(p).budget_ns for p in (self.protocol, Mode.SCREENING))
        rows, searches = len(self.rows), len(self.targets)
        return (
            len(self.models) * (searches * self.budget * search_ns + rows * len(self.columns) * cell_ns) / 1e9
        )

    @property
    def settings(self) -> dict[str, str]:
        """Search and protocol in words."""
        return {
            "strategy": "greedy",
            "budget": str(self.budget),
            **({} if self.sum_budget is None else {"budget by operator sums": str(self.sum_budget)}),
            "rules": "all, also domain-restricted and approximate ones"
            if self.opt_in
            else "exact and re-associated",
            "search": Protocol.screening().describe(),
            "cells": Protocol.of(self.protocol).describe(),
        }


def row_of_sum(target: Target) -> str:
    """Name of the row that is optimised by a target's sum of operator times."""
    return f"{OPERATOR_SUM}@{target}"


def portability(
    plan: Plan,
    measurer: Measurer,
    progress: OnProgress = ignore_progress,
    cancel: CancelToken | None = None,
    note: OnMatrix | None = None,
) -> Matrix:
    """Optimise every model once per row and measure each result on every column.

    Args:
        plan: what to compare.
        measurer: where to measure; its cache makes an interrupted run resumable.
        progress: called for every event and during measurements.
        cancel: stops when set.
        note: called with the matrix as far as it is filled, after every event.

    Raises:
        ModelError: a model cannot be opened.
        Cancelled: ``cancel`` was set.
    """
    filling = _Filling(plan, progress, cancel, note, tuple(Path(name).stem for name in plan.models))
    for path, name in zip(plan.models, filling.models, strict=True):
        with Session(path, fill_weights=plan.fill_weights, opt_in=plan.opt_in, measurer=measurer) as session:
            filling.fill(session, name)
    return filling.matrix()


def portability_of(
    session: Session,
    plan: Plan,
    progress: OnProgress = ignore_progress,
    cancel: CancelToken | None = None,
    note: OnMatrix | None = None,
) -> Matrix:
    """The same for the model that a session opened, as it was opened; see ``Session.portability``."""
    name = session.original.name
    filling = _Filling(plan, progress, cancel, note, (name,))
    with Session(session.original, opt_in=plan.opt_in, dims=session.dims, measurer=session.measurer) as fresh:
        filling.fill(fresh, name)
    return filling.matrix()


def read_matrix(path: str | Path) -> Matrix:
    """Read a matrix from JSON; raises InputError that names what is wrong."""
    return Matrix.from_json(read_json(path, "portability matrix"))


def write_matrix(matrix: Matrix, path: str | Path) -> Path:
    """Write a matrix: as a self-contained page if the name ends in .html, else as JSON.

    Raises:
        InputError: the place cannot be written.
    """
    path = Path(path).expanduser()
    if path.suffix.lower() not in {".html", ".htm"}:
        return write_json(path, matrix.to_json())
    return write_text(path, matrix_page(matrix))


class _Filling:
    """A matrix that grows by events."""

    def __init__(
        self,
        plan: Plan,
        progress: OnProgress,
        cancel: CancelToken | None,
        note: OnMatrix | None,
        models: tuple[str, ...],
    ) -> None:
        self._plan, self._progress, self._cancel, self._note = plan, progress, cancel, note
        self.models = models
        self._events: list[Event] = []
        self._total = len(models) * len(plan.rows) * (1 + len(plan.columns))
        self._machine = ""

    def matrix(self) -> Matrix:
        """The matrix as far as it is filled."""
        return Matrix(
            rows=self._plan.rows,
            columns=tuple(map(str, self._plan.columns)),
            models=self.models,
            optimised=tuple(e for e in self._events if isinstance(e, Optimised)),
            cells=tuple(e for e in self._events if isinstance(e, Cell)),
            settings={**self._plan.settings, "machine": self._machine},
        )

    def fill(self, session: Session, name: str) -> None:
        """Add all events of one model."""
        where = session.measurer.environment(self._plan.columns[0], self._cancel)
        self._machine = where.machine
        self._tell()
        for event in self._travel(session, name):
            self._events.append(event)
            self._progress(Progress(len(self._events), self._total, describe(event)))
            self._tell()
            if self._cancel is not None and self._cancel.is_set():
                raise Cancelled("The portability matrix was stopped.")

    def _tell(self) -> None:
        if self._note is not None:
            self._note(self.matrix())

    def _inner(self, progress: Progress) -> None:
        """Progress of the measurement under way, as a part of the whole."""
        part_of(self._progress, len(self._events), self._total)(progress)

    def _travel(self, session: Session, name: str) -> Iterator[Event]:
        feeds, measurer, plan = session.feeds(), session.measurer, self._plan

        def search(graph: Graph, cost: CostModel) -> Found:
            own = plan.sum_budget if isinstance(cost, OperatorSum) else None
            return _greedy(session, graph, cost, plan.budget if own is None else own)

        def measure(before: Graph, after: Graph, column: str) -> Delta:
            return measurer.measure(
                before, after, feeds, column, plan.protocol, self._inner, self._cancel
            ).delta

        rows = _rows(plan, measurer, feeds, self._inner, self._cancel)
        columns = [str(target) for target in plan.columns]
        return travel(name, session.original, rows, columns, search, measure)


def describe(event: Event) -> str:
    """An event in words."""
    if isinstance(event, Optimised):
        found = event.failure or f"{len(event.steps)} rewrites after {event.spent} comparisons"
        return f"{event.model} optimised by {event.row}: {found}"
    if event.delta is None:
        return f"{event.model}, {event.row} on {event.column}: {event.failure}"
    verdict = f"{event.delta.percent:+.1f} %, {event.delta.verdict.text}"
    return f"{event.model}, {event.row} on {event.column}: {verdict}"


def _rows(
    plan: Plan, measurer: Measurer, feeds: Feeds, progress: OnProgress, cancel: CancelToken | None
) -> dict[str, CostModel]:
    def model(name: str, target: Target) -> CostModel:
        return cost_model(name, World(measurer, target, feeds, progress, cancel))

    measured = {str(target): model(MEASURED, target) for target in plan.targets}
    return measured | {row_of_sum(target): model(OPERATOR_SUM, target) for target in plan.sums}


def _greedy(session: Session, graph: Graph, cost: CostModel, budget: int) -> Found:
    greedy = Greedy(graph, session.rules, cost, session.check, budget)
    taken = [event for event in greedy.events() if isinstance(event, Taken)]
    steps = [Step.of(c, event.delta, len(event.candidates)) for event in taken for c in event.candidates]
    return Found(greedy.position.graph, tuple(steps), greedy.spent)
