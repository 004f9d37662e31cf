"""What can be laid over the picture: a highlighted site, groups, and values of edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from explorer.ui.graphview.palette import CATEGORIES
from explorer.ui.graphview.scene import Scene


@dataclass(frozen=True)
class Group:
    """Nodes drawn in one coloured, labelled hull, such as a fusion group.

    Attributes:
        id: Stable name of the group.
        label: What stands on the hull.
        nodes: Ids of its nodes.
        colour: CSS hexadecimal colour, "currentcolor" for that of the theme's text, or "" for the palette's
            next one.
    """

    id: str
    label: str
    nodes: Sequence[str]
    colour: str = ""


def groups_wire(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """What the canvas gets."""
    return [
        {
            "id": group.id,
            "label": group.label,
            "nodes": list(group.nodes),
            "colour": group.colour or CATEGORIES[i % len(CATEGORIES)],
        }
        for i, group in enumerate(groups)
    ]


@dataclass(frozen=True)
class EdgeValues:
    """A number per edge, drawn as width and colour; chosen edges solid, the others dashed.

    Attributes:
        title: What the legend says, such as ``"Explanation score"``.
        values: (source id, target id) or (source id, target id, tensor) -> number, not negative.
        selected: The keys that are drawn solid; empty means all.
        unit: As in ``ScaleColouring``.
        source: Where the numbers come from.
    """

    title: str
    values: Mapping[tuple[str, ...], float]
    selected: frozenset[tuple[str, ...]] = frozenset()
    unit: str = ""
    source: str = ""

    def wire(self, scene: Scene) -> dict[str, Any]:
        """What the canvas gets: float32 value (NaN: none) and a flag per edge of the scene."""
        values = np.full(len(scene.edges), np.nan, dtype=np.float32)
        solid = np.zeros(len(scene.edges), dtype=np.uint8)
        for i, edge in enumerate(scene.edges):
            pair = (scene.nodes[edge.source].id, scene.nodes[edge.target].id)
            for key in (pair, (*pair, edge.tensor)):
                if key in self.values:
                    values[i] = self.values[key]
                    solid[i] = not self.selected or key in self.selected
        return {
            "title": self.title,
            "unit": self.unit,
            "source": self.source,
            "values": values.tobytes(),
            "solid": solid.tobytes(),
        }
