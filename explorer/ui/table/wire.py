"""What the tables get: rows as plain values, deltas as texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from explorer.cost.operator_sum import SENTENCE
from explorer.rewrite import Rejection
from explorer.runtime import Delta, Mode, Source, Verdict
from explorer.search import SWITCH
from explorer.session import CandidateRow
from explorer.ui.graphview.units import bytes_text

SIGNS = {Verdict.FASTER: "▼", Verdict.SLOWER: "▲", Verdict.WITHIN_NOISE: "≈", Verdict.IDENTICAL: "="}
Wire = dict[str, Any]


def candidate_wire(row: CandidateRow) -> Wire:
    """One candidate."""
    candidate = row.candidate
    return {
        "id": row.id,
        "title": row.title,
        "rule": candidate.rule,
        "place": candidate.place if candidate.rule == SWITCH else "",
        "summary": candidate.summary,
        "nodes": list(candidate.nodes),
        "kind": candidate.numeric_class.value,
        "portable": candidate.portable,
        "bytes": candidate.bytes_delta,
        "bytes_text": _change_text(candidate.bytes_delta),
        "predicted": delta_wire(row.predicted),
        "measured": delta_wire(row.measured),
        "rejected": row.is_rejected,
        "absorbed": bool(row.is_absorbed),
        "unpredicted": row.unpredicted,
    }


def near_miss_wires(rejections: Sequence[Rejection], titles: Mapping[str, str]) -> list[Wire]:
    """Near misses in the order given; ``titles`` are those of the rules, by name."""
    return [
        {
            "id": f"{number}:{miss.rule}:{'+'.join(miss.nodes)}",
            "title": titles.get(miss.rule, miss.rule),
            "rule": miss.rule,
            "summary": miss.reason,
            "nodes": list(miss.nodes),
        }
        for number, miss in enumerate(rejections)
    ]


def _change_text(change: int) -> str:
    if not change:
        return "0"
    return ("+" if change > 0 else "−") + bytes_text(abs(change))


def delta_wire(delta: Delta | None) -> Wire | None:
    """A delta as texts: the change, its interval, the verdict with a sign, where it comes from."""
    if delta is None:
        return None
    identical = delta.verdict is Verdict.IDENTICAL
    low, high = _percent(delta.low), _percent(delta.high)
    return {
        "ratio": delta.ratio,
        "text": "0 %" if identical else f"{_percent(delta.ratio)} %",
        "interval": "the runtime executes the same graph" if identical else f"{low} … {high} %",
        "verdict": delta.verdict.value,
        "sign": SIGNS[delta.verdict],
        "verdict_text": delta.verdict.text,
        "measured": delta.source is Source.MEASURED,
        "mark": "" if identical else _mark(delta),
        "origin": f"{delta.source.value.lower()}, {delta.protocol}, on {delta.target}",
    }


def _mark(delta: Delta) -> str:
    """What stands beside the interval, because it says how far to trust the number."""
    if delta.source is Source.PREDICTED:
        return "operator sum" if delta.protocol.startswith(SENTENCE) else "predicted"
    return "screening" if delta.protocol.startswith(Mode.SCREENING.value) else ""


def _percent(ratio: float) -> str:
    text = f"{100 * (ratio - 1):+.1f}".replace("-", "−")
    return "0.0" if text[1:] == "0.0" else text
