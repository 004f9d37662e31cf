"""Does it travel? Optimise once per row, measure every result on every column.

A row is a cost to optimise by (a target's measured time, or a sum of isolated operator times); a column is a
target on which the result is timed against the unoptimised model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from explorer.cost import CostModel, Delta, Verdict
from explorer.errors import InputError, RewriteError, RuntimeFailure, WorkerError
from explorer.graph import Graph
from explorer.records import Record
from explorer.search.trajectory import Step, claimed_ratio

FORMAT = 1
_LOST = (RuntimeFailure, WorkerError, RewriteError)


@dataclass(frozen=True)
class Optimised:
    """What the search found by one row's cost for one model.

    Attributes:
        model: the model's name.
        row: the row's name.
        steps: accepted rewrites.
        spent: comparisons the search made.
        fingerprint: of the result.
        failure: why there is none; "" if there is one.
    """

    model: str
    row: str
    steps: tuple[Step, ...]
    spent: int
    fingerprint: str
    failure: str = ""

    @property
    def claimed_ratio(self) -> float:
        """Time after / time before, as the row's own cost has it."""
        return claimed_ratio(self.steps)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**vars(self), "steps": [step.to_json() for step in self.steps]}

    @classmethod
    def from_json(cls, data: object) -> Optimised:
        """Read what ``to_json`` wrote; raises InputError naming the key at fault."""
        record = Record(data, "optimised model")
        return cls(
            model=record.text("model"),
            row=record.text("row"),
            steps=tuple(Step.from_json(step) for step in record.items("steps")),
            spent=record.integer("spent"),
            fingerprint=record.text("fingerprint"),
            failure=record.text("failure"),
        )


@dataclass(frozen=True)
class Cell:
    """A row's result for one model on one column.

    Attributes:
        model: the model's name.
        row: whose cost it was optimised by.
        column: the target it was timed on.
        delta: time against the unoptimised model on that target; None if it could not be timed.
        failure: why not; "" if it could.
    """

    model: str
    row: str
    column: str
    delta: Delta | None
    failure: str = ""

    @property
    def is_slower(self) -> bool:
        """Whether the column target got measurably slower than without optimising."""
        return self.delta is not None and self.delta.verdict is Verdict.SLOWER

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**vars(self), "delta": None if self.delta is None else self.delta.to_json()}

    @classmethod
    def from_json(cls, data: object) -> Cell:
        """Read what ``to_json`` wrote; raises InputError naming the key at fault."""
        record = Record(data, "cell")
        delta = record.optional("delta")
        return cls(
            model=record.text("model"),
            row=record.text("row"),
            column=record.text("column"),
            delta=None if delta is None else Delta.from_json(delta),
            failure=record.text("failure"),
        )


Event = Optimised | Cell


@dataclass(frozen=True)
class Matrix:
    """Every row's result on every column, for one or more models.

    Attributes:
        rows: names of the costs.
        columns: canonical target specs.
        models: names of the models.
        optimised: what was found per model and row.
        cells: per model, row and column.
        settings: search, budget and protocol, in words.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    models: tuple[str, ...]
    optimised: tuple[Optimised, ...]
    cells: tuple[Cell, ...]
    settings: dict[str, str]

    def cell(self, model: str, row: str, column: str) -> Cell | None:
        """One cell; None if it has not been made."""
        key = (model, row, column)
        return next((c for c in self.cells if (c.model, c.row, c.column) == key), None)

    def claim(self, model: str, row: str) -> float | None:
        """Time after / time before that the row's own cost claims for its result; None without a result."""
        found = next((one for one in self.optimised if (one.model, one.row) == (model, row)), None)
        return None if found is None or found.failure else found.claimed_ratio

    def slower(self) -> tuple[Cell, ...]:
        """Cases in which optimising made the column's target slower than doing nothing, worst first."""
        found = [(cell.delta.ratio, cell) for cell in self.cells if cell.delta is not None and cell.is_slower]
        return tuple(cell for _, cell in sorted(found, key=lambda pair: -pair[0]))

    def counts(self) -> dict[str, int]:
        """How many cells have which verdict, and how many could not be timed ("FAILED")."""
        names = [cell.delta.verdict.value if cell.delta is not None else "FAILED" for cell in self.cells]
        return {name: names.count(name) for name in dict.fromkeys([*(v.value for v in Verdict), "FAILED"])}

    def sentence(self) -> str:
        """The outcome in words."""
        counts, slower = self.counts(), self.slower()
        total = len(self.cells)
        text = (
            f"{counts['FASTER']} of {total} cells are measurably faster than the unoptimised model, "
            f"{len(slower)} slower, {counts['WITHIN_NOISE'] + counts['IDENTICAL']} neither"
        )
        return f"{text}, {counts['FAILED']} could not be timed." if counts["FAILED"] else f"{text}."

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "format": FORMAT,
            "rows": list(self.rows),
            "columns": list(self.columns),
            "models": list(self.models),
            "cells": [cell.to_json() for cell in self.cells],
            "slower": [cell.to_json() for cell in self.slower()],
            "optimised": [one.to_json() for one in self.optimised],
            "counts": self.counts(),
            "settings": self.settings,
        }

    @classmethod
    def from_json(cls, data: object) -> Matrix:
        """Read what ``to_json`` wrote; raises InputError naming the key at fault."""
        record = Record(data, "portability matrix")
        if record.integer("format") != FORMAT:
            raise InputError(f"This version reads portability matrices of format {FORMAT} only.")
        return cls(
            rows=record.texts("rows"),
            columns=record.texts("columns"),
            models=record.texts("models"),
            optimised=tuple(Optimised.from_json(one) for one in record.items("optimised")),
            cells=tuple(Cell.from_json(cell) for cell in record.items("cells")),
            settings=record.text_map("settings"),
        )


@dataclass(frozen=True)
class Found:
    """The end of one search."""

    graph: Graph
    steps: tuple[Step, ...]
    spent: int


Search = Callable[[Graph, CostModel], Found]
Measure = Callable[[Graph, Graph, str], Delta]


def travel(
    model: str,
    graph: Graph,
    rows: Mapping[str, CostModel],
    columns: Sequence[str],
    search: Search,
    measure: Measure,
) -> Iterator[Event]:
    """Fill the matrix for one model; every search first, so that all results are timed close together.

    Args:
        model: its name.
        graph: the unoptimised model.
        rows: cost models by row name.
        columns: target specs.
        search: optimises a graph by a cost model.
        measure: time of the second graph divided by that of the first, on a target.

    Yields:
        One ``Optimised`` per row, then one ``Cell`` per row and column. What fails is an event like any
        other: it says why, and the rest goes on.
    """
    results: dict[str, Graph] = {}
    failures: dict[str, str] = {}
    for row, cost in rows.items():
        try:
            found = search(graph, cost)
        except _LOST as failure:
            failures[row] = str(failure)
            yield Optimised(model, row, (), 0, "", str(failure))
            continue
        results[row] = found.graph
        yield Optimised(model, row, found.steps, found.spent, found.graph.fingerprint())
    for column in columns:
        for row in rows:
            if row in failures:
                yield Cell(model, row, column, None, failures[row])
            else:
                yield _cell(model, row, column, graph, results[row], measure)


def _cell(model: str, row: str, column: str, before: Graph, after: Graph, measure: Measure) -> Cell:
    try:
        return Cell(model, row, column, measure(before, after, column))
    except _LOST as failure:
        return Cell(model, row, column, None, str(failure))
