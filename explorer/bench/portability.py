"""The thesis' finding on the sample models: does optimising by one cost make another target slower?

Every sample by sums of isolated operator times, which is TASO's cost; the smaller ones also by the time measured on
each target, and the smallest by Apache TVM's. Run it as ``explorer bench portability``: hours on two cores, and what
was measured before comes from the cache.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from explorer.graph import sample_names
from explorer.runtime import Measurer, Progress, Protocol, Target
from explorer.search.portability import Matrix, Optimised
from explorer.session.portability import Plan, portability

COLUMNS = ("ort:level=all", "ort:level=disable", "openvino")
SUMS = COLUMNS[:2]
MEASURED_MODELS = (
    "squeezenet1_1",
    "mobilenet_v3_small",
    "shufflenet_v2_x1_0",
    "mobilenet_v2",
    "mobilenet_v3_large",
    "googlenet",
    "efficientnet_b0",
    "resnet18",
)
TVM_MODELS = MEASURED_MODELS[:1]
BUDGET = 8
SUM_BUDGET = 60
CELL_S = 40.0


def run(models: tuple[str, ...] = ()) -> dict[str, Any]:
    """Fill the matrices of all samples, or of some; see ``summarise``."""
    with Measurer() as measurer:
        return summarise(portability(plan, measurer, _say) for plan in plans(models or tuple(sample_names())))


def plans(models: tuple[str, ...]) -> Iterator[Plan]:
    """What to compare: one plan per model and kind of cost, so that no model needs every row."""
    for model in models:
        yield _plan(model, (), SUMS, COLUMNS)
        if model in MEASURED_MODELS:
            yield _plan(model, COLUMNS, (), COLUMNS)
        if model in TVM_MODELS:
            yield _plan(model, ("tvm",), ("tvm",), (*COLUMNS, "tvm"))


def _plan(model: str, rows: tuple[str, ...], sums: tuple[str, ...], columns: tuple[str, ...]) -> Plan:
    measured, summed, on = (tuple(map(Target.parse, specs)) for specs in (rows, sums, columns))
    cells = Protocol.validated(budget_s=CELL_S)
    budget = SUM_BUDGET if not rows else BUDGET
    return Plan((model,), measured, budget, summed, on, cells, opt_in=True)


def summarise(matrices: Iterable[Matrix]) -> dict[str, Any]:
    """All cells, and per search what it did and what it claims for the result by its own cost."""
    filled = list(matrices)
    return {
        "settings": list({tuple(sorted(m.settings.items())): m.settings for m in filled}.values()),
        "optimised": [_told(one) for matrix in filled for one in matrix.optimised],
        "cells": [cell.to_json() for matrix in filled for cell in matrix.cells],
    }


def _told(one: Optimised) -> dict[str, Any]:
    return {
        "model": one.model,
        "row": one.row,
        "claimed_ratio": one.claimed_ratio,
        "rules": dict(Counter(step.rule for step in one.steps).most_common()),
        "spent": one.spent,
        "failure": one.failure,
    }


def _say(progress: Progress) -> None:
    if ": " in progress.text:
        sys.stderr.write(f"[{progress.done}/{progress.total}] {progress.text}\n")
