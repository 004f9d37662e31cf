from __future__ import annotations

import numpy as np

from explorer.ui.graphview import Status, compare
from explorer.ui.graphview.blocks import build_tree
from explorer.ui.graphview.layout import draw
from explorer.ui.graphview.visible import visible
from explorer.ui.graphview.wire import BLOCK, FRAME, picture_wire, scene_wire
from tests.ui.graphview.examples import HOSTILE, conditional, hostile, scene_from, scoped


def test_texts_are_sent_once_and_unchanged() -> None:
    wire = scene_wire(hostile())
    texts = wire["texts"]
    assert len(set(texts)) == len(texts)
    nodes = np.frombuffer(wire["nodes"], dtype=np.int32).reshape(-1, 8)
    assert texts[nodes[1, 1]] == texts[nodes[1, 3]] == HOSTILE
    assert texts[nodes[2, 3]] == ""


def test_edges_carry_tensor_size_style_and_fate() -> None:
    merged = compare(scene_from([(0, 1)], 3), scene_from([(0, 1), (1, 2)], 3))
    wire = scene_wire(merged)
    edges = np.frombuffer(wire["edges"], dtype=np.int32).reshape(-1, 5)
    assert edges[:, :2].tolist() == [[0, 1], [1, 2]]
    assert (edges[:, 4] >> 3).tolist() == [
        list(Status).index(Status.KEPT),
        list(Status).index(Status.ADDED),
    ]
    assert np.frombuffer(wire["edge_bytes"], dtype=np.float32).tolist() == [512, 512]


def test_unknown_sizes_are_no_numbers() -> None:
    sizes = np.frombuffer(scene_wire(hostile())["edge_bytes"], dtype=np.float32)
    assert np.isnan(sizes).all()


def test_pictures_hold_boxes_lines_and_homes() -> None:
    scene = scoped([()] + [("a",)] * 4 + [("b",)] * 4)
    tree = build_tree(scene)
    drawing = draw(scene, visible(scene, tree, {tree.blocks[0].id}))
    wire = picture_wire(scene, tree, drawing)
    info = np.frombuffer(wire["box_info"], dtype=np.int32).reshape(-1, 5)
    assert sorted(info[:, 0].tolist()) == [0, 0, 0, 0, 0, BLOCK, FRAME]
    assert {block["title"]: block["count"] for block in wire["blocks"]} == {"a": 4, "b": 4}
    assert wire["blocks"][0]["contents"] == "Conv ×4"
    boxes = np.frombuffer(wire["boxes"], dtype=np.float32).reshape(-1, 4)
    np.testing.assert_allclose(boxes[:, 0], [box.x for box in drawing.boxes], rtol=1e-6)
    lines = np.frombuffer(wire["lines"], dtype=np.int32).reshape(-1, 6)
    assert lines[:, 3].sum() * 2 * 4 == len(wire["points"])
    assert np.frombuffer(wire["home"], dtype=np.int32).tolist() == list(drawing.home)


def test_hosts_are_known_as_nodes() -> None:
    scene = conditional()
    tree = build_tree(scene)
    wire = picture_wire(scene, tree, draw(scene, visible(scene, tree, frozenset())))
    info = np.frombuffer(wire["box_info"], dtype=np.int32).reshape(-1, 5)
    closed = info[info[:, 0] == BLOCK]
    assert closed[:, 1].tolist() == [scene.index["n1"]]
