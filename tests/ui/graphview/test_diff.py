from __future__ import annotations

from dataclasses import replace

from explorer.ui.graphview import Scene, SceneEdge, SceneNode, Status, changes, compare
from explorer.ui.graphview.diff import BEFORE
from tests.ui.graphview.examples import scene_from


def fates(scene: Scene) -> dict[str, str]:
    return {node.id: str(node.status) for node in scene.nodes}


def joins(scene: Scene) -> dict[tuple[str, str], str]:
    ids = [node.id for node in scene.nodes]
    return {(ids[e.source], ids[e.target]): str(e.status) for e in scene.edges}


BEFORE_SCENE = scene_from([(0, 1), (1, 2)], 3)
AFTER_SCENE = Scene(
    (*BEFORE_SCENE.nodes[:1], SceneNode("n9", "FusedConv"), BEFORE_SCENE.nodes[2]),
    (SceneEdge(0, 1, "a"), SceneEdge(1, 2, "b")),
)


def test_nodes_and_edges_are_added_and_removed() -> None:
    merged = compare(BEFORE_SCENE, AFTER_SCENE)
    assert fates(merged) == {"n0": "kept", "n1": "removed", "n9": "added", "n2": "kept"}
    assert joins(merged) == {
        ("n0", "n9"): "added",
        ("n9", "n2"): "added",
        ("n0", "n1"): "removed",
        ("n1", "n2"): "removed",
    }
    assert changes(merged) == ["n1", "n9"]


def test_renamed_tensors_are_kept() -> None:
    after = replace(BEFORE_SCENE, edges=(SceneEdge(0, 1, "other"), SceneEdge(1, 2, "names")))
    merged = compare(BEFORE_SCENE, after)
    assert changes(merged) == []
    assert set(joins(merged).values()) == {"kept"}


def test_changed_nodes_are_marked_and_stay_in_both() -> None:
    merged = compare(BEFORE_SCENE, BEFORE_SCENE, changed=["n1"])
    assert fates(merged)["n1"] == Status.CHANGED
    assert changes(merged) == ["n1"]


def test_an_operator_that_became_another_is_shown_twice() -> None:
    nodes = (BEFORE_SCENE.nodes[0], SceneNode("n1", "Gemm"), BEFORE_SCENE.nodes[2])
    merged = compare(BEFORE_SCENE, replace(BEFORE_SCENE, nodes=nodes), changed=["n1"])
    assert fates(merged) == {"n0": "kept", "n1": "added", f"n1{BEFORE}": "removed", "n2": "kept"}
    labels = {node.id: node.label for node in merged.nodes}
    assert labels[f"n1{BEFORE}"] == "Relu"


def test_a_second_use_of_a_tensor_counts() -> None:
    twice = replace(BEFORE_SCENE, edges=(*BEFORE_SCENE.edges, SceneEdge(0, 1, "t0")))
    statuses = [str(edge.status) for edge in compare(BEFORE_SCENE, twice).edges]
    assert statuses == ["kept", "kept", "added"]


def test_bodies_follow_a_host_that_was_removed() -> None:
    before = Scene((SceneNode("h", "If"), SceneNode("b", "Add", parent="h")))
    merged = compare(before, Scene((SceneNode("c", "Add"),)))
    assert fates(merged) == {"h": "removed", "b": "removed", "c": "added"}
