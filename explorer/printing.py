"""How commands print: JSON or lines to stdout, progress to stderr, values as the JSON documents hold them."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from explorer.graph import TensorInfo
    from explorer.runtime import Delta, Progress
    from explorer.session import CandidateRow


def candidate_row(row: CandidateRow) -> dict[str, Any]:
    """A row of the candidate table as plain values."""
    candidate = row.candidate
    return {
        "id": row.id,
        "rule": candidate.rule,
        "family": row.family,
        "numeric_class": candidate.numeric_class.value,
        "portable": candidate.portable,
        "nodes": list(candidate.nodes),
        "summary": candidate.summary,
        "bytes_delta": candidate.bytes_delta,
        "predicted": None if row.predicted is None else row.predicted.to_json(),
        "measured": None if row.measured is None else row.measured.to_json(),
    }


def deltas_text(row: CandidateRow) -> str:
    """Predicted and measured delta, those that are known."""
    return "; ".join(delta_text(delta) for delta in (row.predicted, row.measured) if delta is not None)


def tensor_row(tensor: TensorInfo) -> dict[str, Any]:
    """A model's input or output as plain values."""
    return {
        "name": tensor.name,
        "dtype": tensor.dtype,
        "shape": None if tensor.shape is None else list(tensor.shape),
    }


def delta_text(delta: Delta | None) -> str:
    """A delta in one line; "" if there is none."""
    if delta is None:
        return ""
    if delta.low == delta.high == 1.0:
        return f"identical for the runtime ({delta.target})"
    low, high = 100 * (delta.low - 1), 100 * (delta.high - 1)
    where = f", {delta.target}" if " against " in delta.target else ""
    return f"{delta.percent:+.1f} % ({low:+.1f} to {high:+.1f}), {delta.verdict.text}, {delta.source.value.lower()}, {delta.protocol}{where}"


def say(text: str) -> None:
    """A line to stderr."""
    sys.stderr.write(text + "\n")


def show_progress(progress: Progress) -> None:
    """One line on a terminal that the next one replaces."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{progress.text} ({progress.done} of {progress.total})")
        if progress.done >= progress.total:
            sys.stderr.write("\r\x1b[K")


def print_result(arguments: Namespace, data: dict[str, Any], lines: Iterable[str]) -> int:
    """JSON or lines to stdout, as the command line asks for; returns the exit code."""
    if arguments.json:
        sys.stdout.write(json.dumps(data, indent=1) + "\n")
    else:
        sys.stdout.write("\n".join(lines) + "\n")
    return 0
