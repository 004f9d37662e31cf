from __future__ import annotations

from explorer.ui.graphview.blocks import build_tree
from explorer.ui.graphview.visible import around, first_open, visible
from tests.ui.graphview.examples import conditional, scoped

SCOPES = [()] + [("net", "a")] * 5 + [("net", "b")] * 5 + [()]


def test_closed_blocks_hide_their_nodes() -> None:
    scene = scoped(SCOPES)
    tree = build_tree(scene)
    view = visible(scene, tree, frozenset())
    assert [(item.node, item.block) for item in view.items] == [(0, None), (11, None), (None, 0)]
    assert view.home == (0, *[2] * 10, 1)
    assert [(link.source, link.target) for link in view.links] == [(0, 2), (2, 1)]


def test_open_blocks_are_frames_around_their_content() -> None:
    scene = scoped(SCOPES)
    tree = build_tree(scene)
    view = visible(scene, tree, {"scope:net", "scope:net/scope:a"})
    frames = [i for i, item in enumerate(view.items) if item.frame]
    assert [tree.blocks[view.items[i].block].title for i in frames] == ["net", "a"]
    assert view.items[view.home[1]].parent == frames[1]
    assert view.items[view.home[6]].block is not None  # "b" is still closed
    assert view.home[6] == view.home[10]


def test_lines_into_a_closed_block_are_bundled_and_keep_their_edges() -> None:
    scene = scoped([(), *[("a",)] * 4], [(0, 1), (0, 2), (1, 3), (2, 4)])
    tree = build_tree(scene)
    closed = visible(scene, tree, frozenset())
    assert [link.members for link in closed.links] == [(0, 1)]
    opened = visible(scene, tree, {tree.blocks[0].id})
    assert sorted(link.members for link in opened.links) == [(0,), (1,), (2,), (3,)]


def test_small_graphs_open_whole_large_ones_closed() -> None:
    small = scoped([(f"s{i // 10}",) for i in range(100)])
    assert len(first_open(small, build_tree(small))) == 10
    large = scoped([(f"s{i // 10}",) for i in range(400)])
    assert first_open(large, build_tree(large)) == frozenset()


def test_large_graphs_open_down_to_a_screenful() -> None:
    scene = scoped([(f"stage{i // 150}", f"block{i // 10}") for i in range(450)])
    tree = build_tree(scene)
    opened = first_open(scene, tree)
    assert opened == {"scope:stage0", "scope:stage1", "scope:stage2"}
    assert sum(not item.frame for item in visible(scene, tree, opened).items) == 45


def test_around_names_what_hides_a_node() -> None:
    scene = conditional()
    tree = build_tree(scene)
    inside = around(tree, [scene.index["n4"]])
    assert inside == {"host:n1", "host:n1/body:else_branch"}
    assert around(tree, [scene.index["n1"]]) == frozenset()
    view = visible(scene, tree, inside)
    assert view.items[view.home[scene.index["n4"]]].node == scene.index["n4"]


def test_a_closed_host_shows_as_one_box() -> None:
    scene = conditional()
    view = visible(scene, build_tree(scene), frozenset())
    boxes = {view.home[scene.index[i]] for i in ("n1", "n2", "n3", "n4")}
    assert len(boxes) == 1
