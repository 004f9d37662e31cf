"""A search as a file: where it started, what was done, where it ended; replayable anywhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from explorer.cost import Delta, Source
from explorer.errors import InputError, RewriteError
from explorer.graph import Graph, freeze_weights
from explorer.records import Record, read_json, write_json
from explorer.rewrite import Candidate, RuleSet, apply, find_candidates

FORMAT = 1
SWITCH = "switch"
"""What stands for a rule in steps that are no rewrites: settings of the runtime, and freezing."""
FREEZE = f"{SWITCH}:freeze-weights"
"""The place of the one switch that changes the graph."""


@dataclass(frozen=True)
class Step:
    """One accepted rewrite.

    Attributes:
        place: rule, nodes and variant, as in a candidate's id.
        rule: the rule's name.
        nodes: ids of the nodes it removed.
        predicted: delta a cost model predicted, if one was asked.
        measured: delta that was measured, if it was; of the whole batch.
        batch: how many rewrites the measured delta covers, this one included.
    """

    place: str
    rule: str
    nodes: tuple[str, ...]
    predicted: Delta | None = None
    measured: Delta | None = None
    batch: int = 1

    @classmethod
    def of(cls, candidate: Candidate, delta: Delta | None = None, batch: int = 1) -> Step:
        """The step that a candidate makes; the delta stands where its source says."""
        is_predicted = delta is not None and delta.source is Source.PREDICTED
        predicted, measured = (delta, None) if is_predicted else (None, delta)
        return cls(candidate.place, candidate.rule, candidate.nodes, predicted, measured, batch)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "place": self.place,
            "rule": self.rule,
            "nodes": list(self.nodes),
            "predicted": None if self.predicted is None else self.predicted.to_json(),
            "measured": None if self.measured is None else self.measured.to_json(),
            "batch": self.batch,
        }

    @classmethod
    def from_json(cls, data: object) -> Step:
        """Read what ``to_json`` wrote; raises InputError naming the key at fault."""
        record = Record(data, "step")
        predicted, measured = record.optional("predicted"), record.optional("measured")
        return cls(
            place=record.text("place"),
            rule=record.text("rule"),
            nodes=record.texts("nodes"),
            predicted=None if predicted is None else Delta.from_json(predicted),
            measured=None if measured is None else Delta.from_json(measured),
            batch=record.integer("batch", minimum=1),
        )


def claimed_ratio(steps: Iterable[Step]) -> float:
    """Time after / time before that the deltas of steps add up to: their product over moves, not over rewrites."""
    deltas = ((step.measured or step.predicted, step.batch) for step in steps)
    return prod((delta.ratio ** (1 / batch) for delta, batch in deltas if delta is not None), start=1.0)


@dataclass(frozen=True)
class Trajectory:
    """Everything needed to walk the same way again.

    Attributes:
        model: sample name or path of the model.
        fill_weights: seed of the filled weights, or None.
        start: fingerprint of the graph at the start.
        end: fingerprint at the end; ``replay`` must reach it.
        steps: the accepted rewrites, in order.
        settings: strategy, cost, target, budget, seed: how the steps were found.
    """

    model: str
    fill_weights: int | None
    start: str
    end: str
    steps: tuple[Step, ...]
    settings: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "format": FORMAT,
            "model": self.model,
            "fill_weights": self.fill_weights,
            "start": self.start,
            "end": self.end,
            "steps": [step.to_json() for step in self.steps],
            "settings": self.settings,
        }

    @classmethod
    def from_json(cls, data: object) -> Trajectory:
        """Read what ``to_json`` wrote; raises InputError naming the key at fault."""
        record = Record(data, "trajectory")
        if record.integer("format") != FORMAT:
            raise InputError(f"This version reads trajectories of format {FORMAT} only.")
        seed = record.optional("fill_weights")
        return cls(
            model=record.text("model"),
            fill_weights=None if seed is None else record.integer("fill_weights"),
            start=record.text("start"),
            end=record.text("end"),
            steps=tuple(Step.from_json(step) for step in record.items("steps")),
            settings=record.text_map("settings"),
        )

    def write(self, path: str | Path) -> Path:
        """Write as JSON; raises InputError if the place cannot be written."""
        return write_json(path, self.to_json())

    @classmethod
    def read(cls, path: str | Path) -> Trajectory:
        """Read a file; raises InputError that names it."""
        return cls.from_json(read_json(path, "trajectory"))


def replay(trajectory: Trajectory, graph: Graph, rules: RuleSet) -> list[Graph]:
    """Apply the steps again; returns the graph after each step.

    Raises:
        InputError: the graph is not the one the trajectory starts from.
        RewriteError: a step no longer applies, or the end is another graph.
    """
    if graph.fingerprint() != trajectory.start:
        raise InputError(
            f"The trajectory starts from another model: '{graph.name}' has fingerprint "
            f"{graph.fingerprint()[:8]}, expected {trajectory.start[:8]} ({trajectory.model})."
        )
    graphs = []
    for number, step in enumerate(trajectory.steps, start=1):
        if step.rule == SWITCH:
            graph = after_switch(graph, step.place)
        else:
            graph = apply(graph, _candidate_at(graph, step, number, rules), rules)
        graphs.append(graph)
    if graph.fingerprint() != trajectory.end:
        raise RewriteError(
            f"Replaying '{trajectory.model}' ended on another graph ({graph.fingerprint()[:8]} instead of "
            f"{trajectory.end[:8]}); the rules have changed since it was written."
        )
    return graphs


def after_switch(graph: Graph, place: str) -> Graph:
    """The graph after a switch: with frozen weights, or as it is if the switch is one of the runtime's."""
    return freeze_weights(graph) if place == FREEZE else graph


def _candidate_at(graph: Graph, step: Step, number: int, rules: RuleSet) -> Candidate:
    found = find_candidates(graph, rules.only([step.rule])).candidates
    for candidate in found:
        if candidate.place == step.place:
            return candidate
    raise RewriteError(f"Step {number} ('{step.place}') no longer applies; the rules or the model changed.")
