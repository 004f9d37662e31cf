"""Pages in docs/ that are made of a benchmark's JSON, so that no number is typed by hand."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from explorer.records import read_json


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def write_page(page: Callable[[dict[str, Any]], str], benchmark: str) -> None:
    """Print the page of the result in the file named on the command line."""
    found = read_json(sys.argv[1], f"result of explorer bench {benchmark}")
    if not isinstance(found, dict):
        sys.exit(f"'{sys.argv[1]}' is not a result of explorer bench {benchmark}.")
    sys.stdout.write(page(found))
