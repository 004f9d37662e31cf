from __future__ import annotations

import onnx
import onnx.parser

from explorer.graph import Graph, describe, load
from explorer.ui.graphview import EdgeStyle, Kind, Scene, scene_of

CONV = """
<ir_version: 8, opset_import: ["": 17]>
agraph (float[1, 3, 8, 8] x) => (float[1, 4, 4, 4] y)
<float[4, 3, 3, 3] w = {%s}, float[4] b = {0, 0, 0, 0}>
{
  c = Conv <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x, w, b)
  y = Relu (c)
}
""" % ", ".join(["0.5"] * 108)  # noqa: UP031 (braces mean something else in this text)

CAPTURE = """
<ir_version: 8, opset_import: ["": 17]>
agraph (float[2] x, bool flag) => (float[2] y)
{
  a = Neg (x)
  y = If (flag) <
    then_branch = yes () => (float[2] p) { p = Abs (a) },
    else_branch = no () => (float[2] q) { q = Exp (a) }
  >
}
"""


def opened(text: str) -> Graph:
    return load(onnx.parser.parse_model(text).SerializeToString())


def joins(scene: Scene) -> list[tuple[str, str, str]]:
    label = [node.label for node in scene.nodes]
    return [(label[e.source], label[e.target], str(e.style)) for e in scene.edges]


def test_constants_are_no_boxes() -> None:
    scene = scene_of(describe(opened(CONV)))
    assert [(node.label, node.kind) for node in scene.nodes] == [
        ("x", Kind.INPUT), ("Conv", Kind.OP), ("Relu", Kind.OP), ("y", Kind.OUTPUT),
    ]  # fmt: skip
    assert joins(scene) == [("x", "Conv", "data"), ("Conv", "Relu", "data"), ("Relu", "y", "data")]


def test_boxes_say_shape_window_and_cost() -> None:
    conv = scene_of(describe(opened(CONV))).nodes[1]
    assert (conv.hint, conv.detail, conv.family) == ("3×3 /2", "1×4×4×4", "conv")
    assert "112 parameters" in conv.tooltip[0]
    assert "kernel_shape" in conv.tooltip[1]


def test_edges_say_shape_and_bytes() -> None:
    edge = scene_of(describe(opened(CONV))).edges[1]
    assert (edge.tensor, edge.shape, edge.bytes) == ("c", "1×4×4×4", 256)


def test_bodies_and_captures() -> None:
    scene = scene_of(describe(opened(CAPTURE)))
    parents = {node.label: node.parent for node in scene.nodes}
    host = next(node.id for node in scene.nodes if node.label == "If")
    assert parents["Abs"] == parents["Exp"] == host
    assert parents["Neg"] is None
    styles = {(a, b): style for a, b, style in joins(scene)}
    assert styles["Neg", "Abs"] == styles["Neg", "Exp"] == EdgeStyle.CAPTURE
    assert styles["flag", "If"] == EdgeStyle.DATA


def test_every_sample_gives_a_scene_with_all_its_operators() -> None:
    summary = describe(load("mobilenet_v2"))
    scene = scene_of(summary)
    shown = [node.id for node in scene.nodes if node.kind is Kind.OP]
    assert shown == [node.id for node in summary.nodes if not node.is_constant]
    assert sum(edge.source is None for edge in summary.edges) == sum(
        scene.nodes[edge.source].kind is Kind.INPUT for edge in scene.edges
    )


SCOPED = """
<ir_version: 8, opset_import: ["": 17]>
agraph (float[2] x) => (float[2] y)
{
  a = Neg (x)
  b = Abs (a)
  c = Exp (b)
  y = Neg (c)
}
"""


def named(names: list[str]) -> Scene:
    model = onnx.parser.parse_model(SCOPED)
    for node, name in zip(model.graph.node, names, strict=True):
        node.name = name
    return scene_of(describe(load(model.SerializeToString())))


def test_nodes_of_a_rewrite_join_the_scope_of_their_neighbours() -> None:
    scene = named(["/net/a/Neg", "", "/net/b/Exp", "/other/Neg"])
    scopes = {node.id: node.scope for node in scene.nodes}
    assert scopes["n1"] == ("net",)
    assert scopes["n3"] == ("other",)


def test_between_two_modules_they_join_their_consumers() -> None:
    scene = named(["/one/a/Neg", "", "/two/part/b/Exp", "/two/c/Neg"])
    assert {node.id: node.scope for node in scene.nodes}["n1"] == ("two", "part")


def test_one_neighbour_does_not_pull_them_into_its_own_module() -> None:
    scene = named(["", "", "/net/b/Exp", "/net/c/Neg"])
    scopes = {node.id: node.scope for node in scene.nodes}
    assert scopes["n0"] == ()
    assert scopes["n1"] == ("net",)


def test_names_without_scopes_stay_without() -> None:
    scene = named(["neg", "", "exp", "/"])
    assert {node.scope for node in scene.nodes} == {()}
