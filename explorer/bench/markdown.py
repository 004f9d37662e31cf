"""Pages in docs/ that are made of a benchmark's JSON, so that no number is typed by hand."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from explorer.records import read_json


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def verdict_name(kind: str) -> str:
    """A verdict's value in words: "WITHIN_NOISE" is "within noise"."""
    return kind.lower().replace("_", " ")


def verdict(delta: Mapping[str, Any] | None) -> str:
    """A delta's JSON in words: "-4.1 % (-5.0 to -3.2), faster"; "-" for none."""
    if delta is None:
        return "-"
    if delta["verdict"] == "IDENTICAL":
        return "identical"
    ratio, low, high = (100 * (delta[key] - 1) for key in ("ratio", "low", "high"))
    return f"{ratio:+.1f} % ({low:+.1f} to {high:+.1f}), {verdict_name(delta['verdict'])}"


def write_page(page: Callable[[dict[str, Any]], str], benchmark: str) -> None:
    """Print the page of the result in the file named on the command line."""
    found = read_json(sys.argv[1], f"result of explorer bench {benchmark}")
    if not isinstance(found, dict):
        sys.exit(f"'{sys.argv[1]}' is not a result of explorer bench {benchmark}.")
    sys.stdout.write(page(found))
