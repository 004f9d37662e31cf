"""Measured greedy search on every sample at the runtime's own best level: does anything beat ONNX Runtime alone?

The evidence behind "beyond the catalogue": per model the moves that were compared, what each gained, what was
kept, and the validated time of the result against the original. Run it as ``explorer bench greedy``; hours on
two cores, and what was measured before comes from the cache.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from math import exp, log
from typing import Any

from explorer.errors import ExplorerError
from explorer.graph import sample_names
from explorer.runtime import Delta, Measurer, Profile, Verdict
from explorer.search import Evaluated, Failed, LeftOut, Scouted, Taken
from explorer.session import Session
from explorer.session.optimise import Confirmed, OptimiseEvent

TARGET = "ort:level=all,threads=1"
BUDGET = 20
_MOST_OPS = 6


def run(models: tuple[str, ...] = (), budget: int = BUDGET, target: str = TARGET) -> dict[str, Any]:
    """Optimise every model (all samples by default); see ``summarise``."""
    names = models or tuple(sample_names())
    with Measurer() as measurer:
        rows = {name: _say(name, _row(name, budget, target, measurer)) for name in names}
    return summarise(rows, budget, target)


def summarise(rows: dict[str, dict[str, Any]], budget: int, target: str) -> dict[str, Any]:
    """The geometric mean of the time ratios, where nothing was kept counts as 1; and the models that got slower."""
    ratios = {name: row["delta"]["ratio"] for name, row in rows.items() if "delta" in row}
    slower = [
        name for name, row in rows.items() if row.get("delta", {}).get("verdict") == Verdict.SLOWER.name
    ]
    mean = exp(sum(map(log, ratios.values())) / len(ratios)) if ratios else None
    return {
        "target": target,
        "budget": budget,
        "models": rows,
        "geometric_mean_ratio": mean,
        "kept": sum(row.get("delta", {}).get("verdict") == Verdict.FASTER.name for row in rows.values()),
        "slower": slower,
        "note": "moves: screening; the result against the original: validated, and taken back unless faster",
    }


def _row(name: str, budget: int, target: str, measurer: Measurer) -> dict[str, Any]:
    try:
        with Session(name, target=target, measurer=measurer) as session:
            profile = measurer.profile(session.graph, session.feeds(), session.target)
            return {"total_ns": profile.total_ns, "time": shares(profile), **row_of(session, budget)}
    except ExplorerError as error:
        return {"failed": str(error)}


def row_of(session: Session, budget: int, scout: str | None = None) -> dict[str, Any]:
    """What a search on a session compared, refused, kept, and how the result was confirmed."""
    before = len(session.graph.nodes)
    events = list(session.optimise(budget=budget, scout=scout))
    return {"nodes": [before, len(session.graph.nodes)], **_told(events)}


def shares(profile: Profile) -> list[dict[str, Any]]:
    """Where the time goes: share and number of kernels per operator of the runtime, largest first."""
    counts = Counter(kernel.op_type for kernel in profile.kernels)
    spent: dict[str, float] = defaultdict(float)
    for kernel in profile.kernels:
        spent[kernel.op_type] += kernel.ns
    total = sum(spent.values()) or 1
    largest = sorted(spent.items(), key=lambda item: -item[1])[:_MOST_OPS]
    return [{"op": op, "share": ns / total, "kernels": counts[op]} for op, ns in largest]


def _told(events: list[OptimiseEvent]) -> dict[str, Any]:
    compared = [
        {
            "move": e.label if isinstance(e, LeftOut) else e.move.label,
            "rule": e.move.rule,
            **e.delta.to_json(),
        }
        for e in events
        if isinstance(e, Evaluated | LeftOut)
    ]
    refused = [{"move": e.move.label, "reason": e.reason} for e in events if isinstance(e, Failed)]
    taken = [e.move.label for e in events if isinstance(e, Taken)]
    ahead = [
        {"move": e.move and e.move.label, "moves": e.moves, "delta": _plain(e.delta)}
        for e in events
        if isinstance(e, Scouted)
    ]
    told: dict[str, Any] = {"ahead": ahead, "compared": compared, "refused": refused, "taken": taken}
    for event in events:
        if isinstance(event, Confirmed):
            told |= {"delta": event.delta.to_json(), "control": _plain(event.measurement.control)}
            told |= {"conclusion": event.sentence}
    return told


def _plain(delta: Delta | None) -> dict[str, Any] | None:
    return None if delta is None else delta.to_json()


def _say(name: str, row: dict[str, Any]) -> dict[str, Any]:
    sys.stderr.write(f"{name}: {row.get('conclusion') or row.get('failed')}\n")
    return row
