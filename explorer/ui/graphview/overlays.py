"""What can be laid over the picture: a highlighted site, groups, values or classes of edges."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
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
        for i, key in _keys_of(scene, self.values):
            values[i] = self.values[key]
            solid[i] = not self.selected or key in self.selected
        return {
            "title": self.title,
            "unit": self.unit,
            "source": self.source,
            "values": values.tobytes(),
            "solid": solid.tobytes(),
        }


@dataclass(frozen=True)
class EdgeClass:
    """Edges that mean the same and are drawn alike.

    Attributes:
        label: What the legend says.
        members: (source id, target id) or (source id, target id, tensor).
        colour: CSS hexadecimal colour.
        width: Of the line, in pixels at full size.
        dash: Lengths of dashes and gaps, such as ``"9,5"``; "" for a solid line.
    """

    label: str
    members: frozenset[tuple[str, ...]]
    colour: str
    width: float = 4.0
    dash: str = ""


@dataclass(frozen=True)
class EdgeClasses:
    """Edges in classes; an edge in none of them is drawn thin. Where lines run together, the first class shows.

    Attributes:
        title: What the legend says above the classes.
        classes: In the order of the legend.
        source: Where they come from.
    """

    title: str
    classes: Sequence[EdgeClass]
    source: str = ""

    def wire(self, scene: Scene) -> dict[str, Any]:
        """What the canvas gets: how each class looks, and for each edge of the scene its class (255: none)."""
        codes = np.full(len(scene.edges), 255, dtype=np.uint8)
        for code in reversed(range(len(self.classes))):
            for i, _ in _keys_of(scene, self.classes[code].members):
                codes[i] = code
        looks = [
            {"label": one.label, "colour": one.colour, "width": one.width, "dash": one.dash}
            for one in self.classes
        ]
        return {"title": self.title, "source": self.source, "classes": looks, "codes": codes.tobytes()}


def _keys_of(scene: Scene, known: Collection[tuple[str, ...]]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Each edge that is known by its ends, or by them and its tensor, with that key."""
    for i, edge in enumerate(scene.edges):
        pair = (scene.nodes[edge.source].id, scene.nodes[edge.target].id)
        for key in (pair, (*pair, edge.tensor)):
            if key in known:
                yield i, key
