"""The graph view: scenes, their layout, and the canvas widget that draws them."""

from explorer.ui.graphview.adapter import scene_of
from explorer.ui.graphview.colouring import (
    CategoryColouring,
    Colouring,
    ScaleColouring,
    by_bytes,
    by_flops,
    by_operator,
    by_time,
)
from explorer.ui.graphview.diff import changes, compare
from explorer.ui.graphview.overlays import EdgeClass, EdgeClasses, EdgeValues, Group
from explorer.ui.graphview.scene import EdgeStyle, Kind, Scene, SceneEdge, SceneNode, Status
from explorer.ui.graphview.widget import GraphView

__all__ = [
    "CategoryColouring",
    "Colouring",
    "EdgeClass",
    "EdgeClasses",
    "EdgeStyle",
    "EdgeValues",
    "GraphView",
    "Group",
    "Kind",
    "ScaleColouring",
    "Scene",
    "SceneEdge",
    "SceneNode",
    "Status",
    "by_bytes",
    "by_flops",
    "by_operator",
    "by_time",
    "changes",
    "compare",
    "scene_of",
]
