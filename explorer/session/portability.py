"""The portability matrix on real models: searches and measurements wired to a measurer.

An interrupted run is taken up by running it again: every comparison that was finished is in the cache, and
searches draw nothing by chance, so that they walk the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from explorer.cost import CostModel, Delta, MeasuredCost, OperatorSum
from explorer.errors import InputError
from explorer.graph import Feeds, Graph
from explorer.runtime import Measurer, Mode, Protocol, Target
from explorer.runtime.executor import CancelToken
from explorer.runtime.progress import OnProgress, Progress, ignore_progress
from explorer.search import Greedy, Taken
from explorer.search.portability import Cell, Event, Found, Matrix, Optimised, travel
from explorer.search.trajectory import Step
from explorer.session.session import Session

OPERATOR_SUM = "operator-sum"


@dataclass(frozen=True)
class Plan:
    """What to compare.

    Args:
        models: paths or sample names.
        targets: specs; rows and columns.
        budget: comparisons per search.
        sums: targets whose sum of isolated operator times is a row too.
        protocol: how cells are measured; searches measure by screening.
        fill_weights: seed for structures without weights.
        opt_in: also use rules of class D and A.

    Raises:
        InputError: nothing to compare, or a target twice.
    """

    models: tuple[str, ...]
    targets: tuple[Target, ...]
    budget: int = 30
    sums: tuple[Target, ...] = ()
    protocol: str | Mode | Protocol = Mode.VALIDATED
    fill_weights: int | None = None
    opt_in: bool = False

    def __post_init__(self) -> None:
        if not self.models or not self.targets:
            raise InputError("A portability matrix needs at least one model and one target.")
        if len(set(self.targets)) < len(self.targets) or len(set(self.models)) < len(self.models):
            raise InputError("A portability matrix needs each model and each target once.")

    @property
    def rows(self) -> tuple[str, ...]:
        """Names of the rows."""
        return (*map(str, self.targets), *(row_of_sum(target) for target in self.sums))

    @property
    def settings(self) -> dict[str, str]:
        """Search and protocol in words."""
        return {
            "strategy": "greedy",
            "budget": str(self.budget),
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
) -> Matrix:
    """Optimise every model once per row and measure each result on every column.

    Args:
        plan: what to compare.
        measurer: where to measure; its cache makes an interrupted run resumable.
        progress: called for every event and during measurements.
        cancel: stops when set.

    Raises:
        ModelError: a model cannot be opened.
        Cancelled: ``cancel`` was set.
    """
    events: list[Event] = []
    total = len(plan.models) * len(plan.rows) * (1 + len(plan.targets))
    for name in plan.models:
        with Session(name, fill_weights=plan.fill_weights, opt_in=plan.opt_in, measurer=measurer) as session:
            for event in _travel(session, name, plan, progress, cancel):
                events.append(event)
                progress(Progress(len(events), total, describe(event)))
    return Matrix(
        rows=plan.rows,
        columns=tuple(map(str, plan.targets)),
        models=tuple(Path(name).stem for name in plan.models),
        optimised=tuple(e for e in events if isinstance(e, Optimised)),
        cells=tuple(e for e in events if isinstance(e, Cell)),
        settings=plan.settings,
    )


def describe(event: Event) -> str:
    """An event in words."""
    if isinstance(event, Optimised):
        found = event.failure or f"{len(event.steps)} rewrites after {event.spent} comparisons"
        return f"{event.model} optimised by {event.row}: {found}"
    if event.delta is None:
        return f"{event.model}, {event.row} on {event.column}: {event.failure}"
    verdict = f"{event.delta.percent:+.1f} %, {event.delta.verdict.text}"
    return f"{event.model}, {event.row} on {event.column}: {verdict}"


def _travel(
    session: Session, name: str, plan: Plan, progress: OnProgress, cancel: CancelToken | None
) -> Iterator[Event]:
    feeds, measurer = session.feeds(), session.measurer

    def search(graph: Graph, cost: CostModel) -> Found:
        return _greedy(session, graph, cost, plan.budget)

    def measure(before: Graph, after: Graph, column: str) -> Delta:
        return measurer.measure(before, after, feeds, column, plan.protocol, progress, cancel).delta

    rows = _rows(plan, measurer, feeds, progress, cancel)
    columns = [str(target) for target in plan.targets]
    return travel(Path(name).stem, session.original, rows, columns, search, measure)


def _rows(
    plan: Plan, measurer: Measurer, feeds: Feeds, progress: OnProgress, cancel: CancelToken | None
) -> dict[str, CostModel]:
    rows: dict[str, CostModel] = {}
    for target in plan.targets:
        rows[str(target)] = MeasuredCost(measurer, target, feeds, Mode.SCREENING, progress, cancel)
    for target in plan.sums:
        # No error of the model: in this world the sum is the truth, as it was for TASO.
        rows[row_of_sum(target)] = OperatorSum(measurer, target, feeds, 0.0, progress, cancel)
    return rows


def _greedy(session: Session, graph: Graph, cost: CostModel, budget: int) -> Found:
    greedy = Greedy(graph, session.rules, cost, session.check, budget)
    taken = [event for event in greedy.events() if isinstance(event, Taken)]
    steps = [Step.of(c, event.delta, len(event.candidates)) for event in taken for c in event.candidates]
    return Found(greedy.graph, tuple(steps), greedy.spent)
