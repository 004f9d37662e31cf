"""Does timing the changed region alone tell the sign of the end-to-end difference?

For every candidate: the region cut out before and after, timed against each other, beside the whole models.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from explorer.bench.calibrate import share
from explorer.errors import ExplorerError
from explorer.graph import Graph, load, make_feeds
from explorer.rewrite import Candidate, apply, default_rules, find_candidates
from explorer.runtime import Delta, Measurer, Mode, Protocol, Target, Verdict
from explorer.runtime.progress import OnProgress, Progress, ignore_progress
from explorer.runtime.region_time import measure_region

MODELS = ("squeezenet1_1", "mobilenet_v3_small", "resnet18", "shufflenet_v2_x1_0")
CANDIDATES = 60


@dataclass(frozen=True)
class Comparison:
    """One candidate, timed both ways.

    Attributes:
        model: its name.
        place: the candidate.
        region: delta of the changed region alone.
        whole: delta of the whole model.
        region_s: wall time of the first.
        whole_s: wall time of the second.
        nodes: size of the region before and after.
    """

    model: str
    place: str
    region: Delta
    whole: Delta
    region_s: float
    whole_s: float
    nodes: tuple[int, int]

    @property
    def agrees(self) -> bool | None:
        """Whether both claim the same sign; None unless both claim one."""
        signs = {Verdict.FASTER, Verdict.SLOWER}
        if self.region.verdict not in signs or self.whole.verdict not in signs:
            return None
        return self.region.verdict is self.whole.verdict

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        deltas = {"region": self.region.to_json(), "whole": self.whole.to_json()}
        return {**vars(self), **deltas, "nodes": list(self.nodes), "agrees": self.agrees}


def compare(
    models: Sequence[str],
    target: str | Target,
    measurer: Measurer,
    count: int = CANDIDATES,
    mode: str | Mode | Protocol = Mode.SCREENING,
    progress: OnProgress = ignore_progress,
) -> list[Comparison]:
    """Time candidates both ways, dealt out to models and rules in turn; what cannot be timed is left out."""
    found: list[Comparison] = []
    for name, candidate, graph in _dealt(models):
        if len(found) >= count:
            break
        progress(Progress(len(found), count, f"{name}: {candidate.place}"))
        try:
            found.append(_comparison(name, candidate, graph, target, measurer, mode))
        except ExplorerError:
            continue
    return found


def _comparison(
    name: str,
    candidate: Candidate,
    graph: Graph,
    target: str | Target,
    measurer: Measurer,
    mode: str | Mode | Protocol,
) -> Comparison:
    after = apply(graph, candidate, default_rules())
    whole = measurer.measure(graph, after, make_feeds(graph), target, mode, fresh=True)
    region = measure_region(graph, after, make_feeds(graph), measurer, target, mode, fresh=True)
    seconds = (region.measurement.elapsed_ns / 1e9, whole.elapsed_ns / 1e9)
    return Comparison(name, candidate.place, region.delta, whole.delta, *seconds, region.nodes)


def _dealt(models: Sequence[str]) -> Iterator[tuple[str, Candidate, Graph]]:
    """Candidates of all models in turn, one rule after the other, so that none crowds out the rest."""
    queues = []
    for name in models:
        graph = load(name)
        by_rule: dict[str, list[Candidate]] = {}
        for candidate in find_candidates(graph, default_rules()).candidates:
            by_rule.setdefault(candidate.rule, []).append(candidate)
        queues.append((name, graph, list(by_rule.values())))
    deepest = max((len(rule) for _, _, rules in queues for rule in rules), default=0)
    for depth in range(deepest):
        for name, graph, rules in queues:
            yield from ((name, rule[depth], graph) for rule in rules if depth < len(rule))


def summarise(found: Sequence[Comparison], target: str | Target) -> dict[str, Any]:
    """How often the signs agree where both claim one, and what the region costs to time."""
    both = [c for c in found if c.agrees is not None]
    region_s, whole_s = sum(c.region_s for c in found), sum(c.whole_s for c in found)
    absorbed = [c for c in found if c.whole.verdict is Verdict.IDENTICAL]
    return {
        "target": str(target),
        "candidates": len(found),
        "both_claim": len(both),
        "sign_agrees": share(sum(bool(c.agrees) for c in both), len(both)),
        "only_region_claims": sum(_claims(c.region) and not _claims(c.whole) for c in found),
        "only_whole_claims": sum(_claims(c.whole) and not _claims(c.region) for c in found),
        "absorbed_by_both": sum(c.region.verdict is Verdict.IDENTICAL for c in absorbed),
        "absorbed": len(absorbed),
        "time_ratio": region_s / whole_s if whole_s else None,
        "comparisons": [c.to_json() for c in found],
    }


def _claims(delta: Delta) -> bool:
    return delta.verdict in {Verdict.FASTER, Verdict.SLOWER}


def run() -> dict[str, Any]:
    """The benchmark: 60 candidates of four samples on ONNX Runtime, by screening."""
    target = Target.parse("ort")
    with Measurer() as measurer:
        return summarise(compare(MODELS, target, measurer), target)
