"""The page ``docs/peers.md``: other optimisers beside ours, as Markdown, no number typed by hand.

``python -m explorer.bench.peers_page docs/peers.json > docs/peers.md`` writes it.
"""

from __future__ import annotations

from typing import Any

from explorer.bench.markdown import table, verdict, write_page

_ORIGIN = "Written by `python -m explorer.bench.peers_page docs/peers.json` from `explorer bench peers`."
_READING = (
    "Every result is first compared with the original numerically. The rows of ONNX Runtime's own levels are against "
    "its best one; *explorer exact* and *re-associated* accept everything of their class that makes the graph smaller, "
    "unmeasured; *explorer measured* is greedy search on measured cost at the first target, kept only if validated as "
    "faster."
)


def page(result: dict[str, Any]) -> str:
    """A result of ``explorer.bench.peers.run`` as one Markdown page, a table per model."""
    parts = [
        "# Other optimisers, side by side in one run",
        f"{_ORIGIN} {result['note'].capitalize()}. {_READING}",
    ]
    for name, rows in result["models"].items():
        heads = ["", "nodes", "equal", *(f"`{target}`" for target in result["targets"])]
        parts += [
            f"## {name}",
            table(heads, (_row(tool, row, result["targets"]) for tool, row in rows.items())),
        ]
    return "\n\n".join(parts) + "\n"


def _row(tool: str, row: dict[str, Any], targets: list[str]) -> list[str]:
    if "failed" in row:
        return [tool, "-", f"failed: {row['failed']}", *("-" for _ in targets)]
    is_equal = {True: "yes", False: row.get("problem", "no"), None: "-"}[row.get("equal")]
    deltas = row.get("deltas", {})
    return [tool, str(row["nodes"]), is_equal, *(verdict(deltas.get(target)) for target in targets)]


if __name__ == "__main__":
    write_page(page, "peers")
