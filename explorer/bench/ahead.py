"""Does looking ahead pay? Measured greedy search with and without a scout, at the same budget of comparisons.

Run it as ``explorer bench ahead``: an hour on two cores, and what was measured before comes from the cache.
"""

from __future__ import annotations

import sys
from typing import Any

from explorer.bench.greedy import TARGET, row_of
from explorer.errors import ExplorerError
from explorer.runtime import Measurer
from explorer.session import Session
from explorer.session.costs import OPERATOR_SUM

MODELS = (
    "squeezenet1_1",
    "mobilenet_v2",
    "mobilenet_v3_large",
    "shufflenet_v2_x1_0",
    "resnet18",
    "googlenet",
    "bert_base",
    "gpt2",
)
BUDGET = 6
"""Small: with a large one the plain search finds by itself what there is to be found."""


def run(models: tuple[str, ...] = MODELS, budget: int = BUDGET, target: str = TARGET) -> dict[str, Any]:
    """Per model, and for the plain search and the scouted one, what ``greedy.row_of`` tells."""
    with Measurer() as measurer:
        rows = {
            name: {
                way: _row(name, budget, target, scout, measurer)
                for way, scout in (("plain", None), ("scouted", OPERATOR_SUM))
            }
            for name in models
        }
    return {"target": target, "budget": budget, "scout": OPERATOR_SUM, "models": rows}


def _row(name: str, budget: int, target: str, scout: str | None, measurer: Measurer) -> dict[str, Any]:
    try:
        with Session(name, target=target, measurer=measurer) as session:
            row = row_of(session, budget, scout)
    except ExplorerError as error:
        row = {"failed": str(error)}
    sys.stderr.write(f"{name}, {scout or 'plain'}: {row.get('conclusion') or row.get('failed')}\n")
    return row
