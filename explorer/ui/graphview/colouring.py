"""What the colours of the boxes mean: operator families, a measured or counted value, groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from explorer.graph import GraphSummary
from explorer.ui.graphview.palette import (
    CATEGORIES,
    FAMILIES,
    SEQUENTIAL_DARK,
    SEQUENTIAL_LIGHT,
)
from explorer.ui.graphview.scene import Scene

#: Units the canvas knows how to write.
UNITS = ("bytes", "ns", "count", "ratio", "")


@dataclass(frozen=True)
class ScaleColouring:
    """A number per node on a continuous scale; closed blocks show the sum of their nodes.

    Attributes:
        key: Short name by which it is chosen, such as ``"time"``.
        title: What the legend says, such as ``"Time per node"``.
        unit: ``"bytes"``, ``"ns"``, ``"count"``, ``"ratio"`` (drawn as per cent) or ``""``.
        values: Node id -> number; nodes without one are drawn neutral, as "unknown".
        source: Where the numbers come from, shown in the legend (measured or predicted, target).
        is_partial: Only some nodes are meant to have a value; the others say nothing.

    Raises:
        ValueError: The unit is not known.
    """

    key: str
    title: str
    unit: str
    values: Mapping[str, float]
    source: str = ""
    is_partial: bool = False

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ValueError(f"unit {self.unit!r} is not one of {UNITS}")

    def wire(self, scene: Scene) -> dict[str, Any]:
        """What the canvas gets: float32 values in the order of the scene's nodes."""
        values = [self.values.get(node.id, np.nan) for node in scene.nodes]
        return {
            "key": self.key,
            "kind": "scale",
            "title": self.title,
            "unit": self.unit,
            "source": self.source,
            "partial": self.is_partial,
            "values": np.asarray(values, dtype=np.float32).tobytes(),
            "stops": {"light": SEQUENTIAL_LIGHT, "dark": SEQUENTIAL_DARK},
        }


@dataclass(frozen=True)
class CategoryColouring:
    """A category per node.

    Attributes:
        key: Short name by which it is chosen, such as ``"op"``.
        title: What the legend says.
        categories: Node id -> category; nodes without one are drawn neutral.
        colours: Category -> colour; the others get the palette's, in order of appearance.
    """

    key: str
    title: str
    categories: Mapping[str, str]
    colours: Mapping[str, str] = field(default_factory=dict)

    def wire(self, scene: Scene) -> dict[str, Any]:
        """What the canvas gets: int32 codes (-1: none) in the order of the scene's nodes."""
        seen: dict[str, int] = {}
        codes = []
        for node in scene.nodes:
            name = self.categories.get(node.id)
            codes.append(-1 if name is None else seen.setdefault(name, len(seen)))
        free = [c for c in CATEGORIES if c not in self.colours.values()] or list(CATEGORIES)
        colours, used = [], 0
        for name in seen:
            colours.append(self.colours.get(name) or free[used % len(free)])
            used += name not in self.colours
        return {
            "key": self.key,
            "kind": "category",
            "title": self.title,
            "codes": np.asarray(codes, dtype=np.int32).tobytes(),
            "labels": list(seen),
            "colours": colours,
        }


Colouring = ScaleColouring | CategoryColouring


def by_operator(scene: Scene) -> CategoryColouring:
    """Operator families, as in the legend of every view."""
    return CategoryColouring(
        "op",
        "Operator",
        {node.id: FAMILIES.get(node.family, FAMILIES["other"])[0] for node in scene.nodes},
        dict(FAMILIES.values()),
    )


def by_bytes(summary: GraphSummary) -> ScaleColouring:
    """Bytes each node reads and writes."""
    values = {n.id: float(n.bytes) for n in summary.nodes if n.bytes is not None}
    return ScaleColouring("bytes", "Bytes read and written", "bytes", values, "from the shapes")


def by_flops(summary: GraphSummary) -> ScaleColouring:
    """Floating-point operations of each node."""
    values = {n.id: float(n.flops) for n in summary.nodes if n.flops is not None}
    return ScaleColouring("flops", "Floating-point operations", "count", values, "from the shapes")


def by_time(nanoseconds: Mapping[str, float], source: str) -> ScaleColouring:
    """Time of each node in nanoseconds; ``source`` says how it was measured, and on what."""
    return ScaleColouring("time", "Time per node", "ns", nanoseconds, source)
