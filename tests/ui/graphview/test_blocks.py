from __future__ import annotations

import pytest

from explorer.ui.graphview import Scene, SceneNode
from explorer.ui.graphview.blocks import BlockKind, Tree, build_tree
from tests.ui.graphview.examples import conditional, scene_from, scoped


def titles(tree: Tree) -> dict[str, int]:
    return {block.title: len(block.nodes) for block in tree.blocks}


def test_scopes_become_nested_blocks() -> None:
    scene = scoped([("net", "a")] * 4 + [("net", "b")] * 5 + [()])
    tree = build_tree(scene)
    assert titles(tree) == {"net": 9, "a": 4, "b": 5}
    assert [tree.blocks[block].title if block is not None else "" for block in tree.home] == [
        *["a"] * 4, *["b"] * 5, "",
    ]  # fmt: skip
    assert tree.blocks[1].parent == 0


def test_small_scopes_are_dissolved() -> None:
    tree = build_tree(scoped([("stage", f"layer{i}") for i in range(6)]))
    assert titles(tree) == {"stage": 6}


def test_a_scope_with_one_scope_inside_is_one_block_and_its_namesakes_stay_apart() -> None:
    scene = scoped([("f.1", "conv")] * 4 + [("f.2", "conv")] * 4)
    assert titles(build_tree(scene)) == {"f.1": 4, "f.2": 4}


def test_a_scope_that_is_left_and_entered_again_is_cut() -> None:
    order = [("a",)] * 4 + [("b",)] * 4 + [("a",)] * 4
    tree = build_tree(scoped(order))
    assert [(block.title, block.nodes) for block in tree.blocks] == [
        ("a", (0, 1, 2, 3)), ("b", (4, 5, 6, 7)), ("a", (8, 9, 10, 11)),
    ]  # fmt: skip
    assert len({block.id for block in tree.blocks}) == 3


def test_ids_differ_whatever_the_names_contain() -> None:
    scene = scoped([("a/scope:b",)] * 4 + [("a", "b")] * 4 + [("a",)] * 4)
    ids = [block.id for block in build_tree(scene).blocks]
    assert len(set(ids)) == len(ids)


def test_bodies_become_blocks_of_their_host() -> None:
    tree = build_tree(conditional())
    kinds = [(block.kind, block.title, block.nodes) for block in tree.blocks]
    assert kinds == [
        (BlockKind.HOST, "If", (3, 4, 5)),
        (BlockKind.BODY, "then_branch", (3,)),
        (BlockKind.BODY, "else_branch", (4, 5)),
    ]
    assert tree.blocks[0].host == 2


def test_repeats_stand_in_for_scopes() -> None:
    labels = ["Gather", *["MatMul", "Add", "Softmax", "MatMul", "Add", "Gelu"] * 12]
    scene = scene_from([(i, i + 1) for i in range(len(labels) - 1)], len(labels), labels)
    tree = build_tree(scene)
    assert [block.kind for block in tree.blocks] == [BlockKind.REPEAT] * 12
    assert {len(block.nodes) for block in tree.blocks} == {6}


def test_a_node_inside_itself_is_refused() -> None:
    scene = Scene((SceneNode("a", "If", parent="b"), SceneNode("b", "If", parent="a")))
    with pytest.raises(ValueError, match="lies inside itself"):
        build_tree(scene)
