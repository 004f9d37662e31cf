from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from itertools import combinations, pairwise

import pytest

from explorer.graph import describe, load
from explorer.ui.graphview import Scene, SceneEdge, SceneNode, scene_of
from explorer.ui.graphview.blocks import build_tree
from explorer.ui.graphview.layering import by_rank
from explorer.ui.graphview.layout import MAX_STUBS, Box, Drawing, draw
from explorer.ui.graphview.nets import MAX_FAN_OUT
from explorer.ui.graphview.visible import first_open, visible
from tests.ui.graphview.examples import chain, conditional, scene_from, scoped

SAMPLES = ["resnet18", "googlenet", "densenet121", "bert_base", "llama_small"]


def everything(scene: Scene) -> Drawing:
    tree = build_tree(scene)
    return draw(scene, visible(scene, tree, {block.id for block in tree.blocks}))


def overlaps(a: Box, b: Box) -> bool:
    return a.x < b.x + b.width and b.x < a.x + a.width and a.y < b.y + b.height and b.y < a.y + a.height


def siblings(drawing: Drawing) -> Iterator[list[Box]]:
    by_parent: dict[int | None, list[Box]] = {}
    for box in drawing.boxes:
        by_parent.setdefault(box.item.parent, []).append(box)
    return iter(by_parent.values())


def check_drawing(scene: Scene, drawing: Drawing) -> None:
    for boxes in siblings(drawing):
        assert not any(overlaps(a, b) for a, b in combinations(boxes, 2))
    for box in drawing.boxes:
        assert box.x >= -1e-6
        assert box.x + box.width <= drawing.width + 1e-6
        assert box.y + box.height <= drawing.height + 1e-6
        if box.item.parent is not None:
            frame = drawing.boxes[box.item.parent]
            assert frame.x < box.x
            assert box.x + box.width < frame.x + frame.width
            assert frame.y < box.y
            assert box.y + box.height < frame.y + frame.height
    drawn = [m for line in drawing.lines for m in line.members]
    drawn += [m for stub in drawing.stubs if stub.incoming for m in stub.members]
    between = [
        i for i, edge in enumerate(scene.edges) if drawing.home[edge.source] != drawing.home[edge.target]
    ]
    assert sorted(drawn) == between


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_first_and_whole(name: str) -> None:
    scene = scene_of(describe(load(name)))
    tree = build_tree(scene)
    check_drawing(scene, draw(scene, visible(scene, tree, first_open(scene, tree))))
    check_drawing(scene, draw(scene, visible(scene, tree, frozenset())))
    check_drawing(scene, everything(scene))


def test_the_fallback_engine_keeps_the_promises_too() -> None:
    scene = scene_of(describe(load("googlenet")))
    tree = build_tree(scene)
    opened = {block.id for block in tree.blocks}
    check_drawing(scene, draw(scene, visible(scene, tree, opened), by_rank))


def test_lines_begin_and_end_at_their_boxes() -> None:
    drawing = everything(scene_of(describe(load("squeezenet1_1"))))
    for line in drawing.lines:
        source, target = drawing.boxes[line.source], drawing.boxes[line.target]
        (x, y), (nx, ny) = line.points[0], line.points[-1]
        assert y == pytest.approx(source.y + source.height)
        assert source.x < x < source.x + source.width
        assert ny == pytest.approx(target.y)
        assert target.x < nx < target.x + target.width


def test_the_main_path_of_a_network_stays_in_one_column() -> None:
    scene = scene_of(describe(load("resnet18")))
    drawing = everything(scene)
    adds = [drawing.boxes[drawing.home[i]] for i, n in enumerate(scene.nodes) if n.label == "Add"]
    assert len({round(box.x, 2) for box in adds}) == 1


_SCRIPT = """
import hashlib
from explorer.graph import describe, load
from explorer.ui.graphview import GraphView, scene_of
view = GraphView(scene_of(describe(load("densenet121"))))
view.expand_all()
print(hashlib.sha256(repr(view.drawing).encode()).hexdigest())
"""


def test_positions_are_the_same_in_another_process() -> None:
    here: dict[str, object] = {}
    exec(_SCRIPT.replace("print(", "result = ("), here)
    command = [sys.executable, "-c", _SCRIPT]
    there = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)
    assert there.stdout.strip() == here["result"]
    assert len(str(here["result"])) == len(hashlib.sha256().hexdigest())


def test_names_and_shapes_do_not_move_anything() -> None:
    def picture(label: str) -> Drawing:
        scene = Scene(
            (SceneNode("a", label), SceneNode("b", label, detail=label)),
            (SceneEdge(0, 1, label, label),),
        )
        return draw(scene, visible(scene, build_tree(scene), frozenset()))

    assert picture("Add") is picture("<script>")


def test_many_consumers_are_drawn_as_stubs_except_the_nearest() -> None:
    last = MAX_FAN_OUT + 2
    pairs = [(0, i) for i in range(1, last)] + [(i, last) for i in range(1, last)]
    drawing = everything(scene_from(pairs, last + 1))
    incoming = [stub for stub in drawing.stubs if stub.incoming]
    outgoing = [stub for stub in drawing.stubs if not stub.incoming]
    assert len(incoming) == MAX_FAN_OUT
    assert [len(stub.members) for stub in outgoing] == [MAX_FAN_OUT]
    assert sum(line.source == drawing.home[0] for line in drawing.lines) == 1


def test_far_lines_are_drawn_as_stubs() -> None:
    count = 80
    scene = scene_from([*((i, i + 1) for i in range(count - 1)), (2, 75)], count)
    drawing = everything(scene)
    far = len(scene.edges) - 1
    assert [stub.members for stub in drawing.stubs] == [(far,), (far,)]
    assert far not in [m for line in drawing.lines for m in line.members]


def test_more_stubs_than_fit_share_the_last_label() -> None:
    wide = MAX_FAN_OUT + 1
    sources, targets = 6, range(6, 6 + wide)
    scene = scene_from([(s, t) for s in range(sources) for t in targets], sources + wide)
    drawing = everything(scene)
    labels = [stub for stub in drawing.stubs if stub.box == drawing.home[6 + wide - 1]]
    assert len(labels) == MAX_STUBS
    assert sorted(m for stub in labels for m in stub.members) == [
        i for i, edge in enumerate(scene.edges) if edge.target == 6 + wide - 1
    ]


def test_components_stand_side_by_side() -> None:
    scene = scene_from([(0, 1), (2, 3), (3, 4)], 6)
    drawing = everything(scene)
    check_drawing(scene, drawing)
    assert drawing.height < 3 * 100
    assert {box.y for box in drawing.boxes if box.y < 10} == {0.0}


def test_bodies_lie_inside_their_host_and_captures_go_in() -> None:
    scene = conditional()
    drawing = everything(scene)
    check_drawing(scene, drawing)
    host = drawing.boxes[drawing.home[scene.index["n1"]]]
    inner = drawing.boxes[drawing.home[scene.index["n4"]]]
    assert host.item.frame
    assert inner.depth == 2
    assert host.y < inner.y < host.y + host.height


def test_a_line_from_a_host_into_its_body_starts_at_its_border() -> None:
    nodes = (SceneNode("n0", "Loop"), SceneNode("n1", "Add", parent="n0"))
    scene = Scene(nodes, (SceneEdge(0, 1, "state"),))
    drawing = everything(scene)
    host = drawing.boxes[drawing.home[0]]
    assert drawing.lines[0].points[0][1] == pytest.approx(host.y)


def test_cycles_self_loops_and_parallel_edges_are_drawn() -> None:
    pairs = [(0, 1), (1, 2), (2, 0), (1, 1), (0, 1)]
    nodes = tuple(SceneNode(f"n{i}", "Op") for i in range(3))
    scene = Scene(nodes, tuple(SceneEdge(a, b, f"t{i}") for i, (a, b) in enumerate(pairs)))
    drawing = everything(scene)
    check_drawing(scene, drawing)
    back = next(line for line in drawing.lines if line.members == (2,))
    assert back.points[0][1] > back.points[-1][1]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_tiny_graphs(count: int) -> None:
    scene = chain(count)
    drawing = everything(scene)
    assert len(drawing.boxes) == count
    check_drawing(scene, drawing)


def test_opening_and_closing_comes_back_to_the_same_picture() -> None:
    scene = scoped([(f"s{i // 8}", f"t{i // 4}") for i in range(40)])
    tree = build_tree(scene)
    some = {tree.blocks[0].id}
    before = draw(scene, visible(scene, tree, some))
    draw(scene, visible(scene, tree, {block.id for block in tree.blocks}))
    assert draw(scene, visible(scene, tree, some)) == before


def test_points_of_lines_are_not_repeated() -> None:
    drawing = everything(scene_of(describe(load("googlenet"))))
    for line in drawing.lines:
        assert all(a != b for a, b in pairwise(line.points))
