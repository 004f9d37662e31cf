"""The model and what the runtime makes of it, as two scenes that can be compared."""

from __future__ import annotations

from dataclasses import replace

from explorer.graph import GraphSummary
from explorer.runtime import RuntimeView
from explorer.ui.graphview import scene_of
from explorer.ui.graphview.scene import Scene

INSERTED = "rt:"
"""Before the ids of nodes that the runtime added."""


def executed_scene(summary: GraphSummary, view: RuntimeView) -> tuple[Scene, tuple[str, ...]]:
    """The runtime's graph with the model's ids where it does the model's work, and what it altered.

    A node of the runtime that does the work of several has the id of the first of them with the same
    operator, so that the others are shown as removed; a node that the runtime added has an id of its own.

    Args:
        summary: the model.
        view: the runtime's graph.

    Returns:
        The scene, and the ids of nodes that stay but do more, or do it in another form.
    """
    operators = {node.id: node.operator for node in summary.nodes}
    types = {node.id: node.op_type for node in summary.nodes}
    ids: dict[str, str] = {}
    altered: list[str] = []
    theirs = {node.id: node.operator for node in view.summary.nodes}
    for node in view.nodes:
        same = [one for one in node.nodes if types.get(one) == node.op_type]
        ids[node.id] = next(iter([*same, *node.nodes]), INSERTED + node.id)
        if len(node.nodes) > 1 or (same and operators[same[0]] != theirs.get(node.id)):
            altered.append(ids[node.id])
    scene = scene_of(view.summary)
    ends = {node.id for node in scene.nodes} - set(theirs)
    taken = {
        node.id: ids.get(node.id, node.id if node.id in ends else INSERTED + node.id) for node in scene.nodes
    }
    nodes = tuple(
        replace(node, id=taken[node.id], parent=None if node.parent is None else taken[node.parent])
        for node in scene.nodes
    )
    return Scene(nodes, scene.edges, summary.name), tuple(altered)
