"""Two versions of a graph as one scene, so that what was kept stands still."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace

from explorer.ui.graphview.scene import Scene, SceneEdge, SceneNode, Status

#: Suffix of the id under which the old form of a node is shown that became another operator.
BEFORE = "@before"


def compare(before: Scene, after: Scene, changed: Collection[str] = ()) -> Scene:
    """Merge two scenes; every node and edge says whether it was kept, added, removed or changed.

    Nodes are matched by id, edges by the nodes they join. A node that became another operator is
    shown twice: removed, under its id with ``BEFORE`` appended, and added.

    Args:
        before: The graph as it was.
        after: The graph as it is, or would be.
        changed: Ids of nodes that stay but have other attributes or weights.
    """
    renamed = {
        node.id: node.id + BEFORE
        for node in before.nodes
        if node.id in after.index and after.nodes[after.index[node.id]].label != node.label
    }
    nodes = _nodes(before, after, frozenset(changed), renamed)
    index = {node.id: i for i, node in enumerate(nodes)}
    old = [index[renamed.get(node.id, node.id)] for node in before.nodes]
    new = [index[node.id] for node in after.nodes]
    return Scene(tuple(nodes), tuple(_edges(before, after, old, new)), after.title or before.title)


def _nodes(before: Scene, after: Scene, changed: frozenset[str], renamed: dict[str, str]) -> list[SceneNode]:
    """After's nodes in their order; each removed one follows what stood before it."""
    kept = {node.id for node in before.nodes} & set(after.index) - set(renamed)
    followers: defaultdict[str, list[SceneNode]] = defaultdict(list)
    last = ""
    for node in before.nodes:
        if node.id in kept:
            last = node.id
            continue
        parent = renamed.get(node.parent, node.parent) if node.parent is not None else None
        old = replace(node, id=renamed.get(node.id, node.id), status=Status.REMOVED, parent=parent)
        followers[last].append(old)
    merged = list(followers[""])
    for node in after.nodes:
        if node.id not in kept:
            status = Status.ADDED
        else:
            status = Status.CHANGED if node.id in changed else Status.KEPT
        merged.append(replace(node, status=status))
        merged += followers[node.id] if node.id in kept else []
    return merged


def _edges(before: Scene, after: Scene, old: list[int], new: list[int]) -> list[SceneEdge]:
    left: defaultdict[tuple[int, int], list[SceneEdge]] = defaultdict(list)
    for edge in before.edges:
        pair = (old[edge.source], old[edge.target])
        left[pair].append(replace(edge, source=pair[0], target=pair[1], status=Status.REMOVED))
    merged: list[SceneEdge] = []
    for edge in after.edges:
        pair = (new[edge.source], new[edge.target])
        match = left[pair].pop(0) if left[pair] else None
        status = Status.ADDED if match is None else Status.KEPT
        merged.append(replace(edge, source=pair[0], target=pair[1], status=status))
    return merged + [edge for rest in left.values() for edge in rest]


def changes(scene: Scene) -> list[str]:
    """Ids of the nodes of a comparison that are not simply kept."""
    return [node.id for node in scene.nodes if node.status is not Status.KEPT]
