from __future__ import annotations

import numpy as np
import pytest

from explorer.graph import describe, load
from explorer.ui.graphview import (
    CategoryColouring,
    EdgeClass,
    EdgeClasses,
    EdgeValues,
    Group,
    ScaleColouring,
    by_bytes,
    by_flops,
    by_operator,
    by_time,
    scene_of,
)
from explorer.ui.graphview.overlays import groups_wire
from explorer.ui.graphview.palette import CATEGORIES, FAMILIES
from explorer.ui.graphview.units import bytes_text, count_text, time_text
from tests.ui.graphview.examples import chain, scene_from


def test_scale_values_follow_the_order_of_the_scene() -> None:
    wire = ScaleColouring("k", "T", "ns", {"n2": 3.0, "n0": 1.0, "gone": 9.0}).wire(chain(3))
    values = np.frombuffer(wire["values"], dtype=np.float32)
    np.testing.assert_array_equal(values, np.array([1, np.nan, 3], dtype=np.float32))


def test_unknown_units_are_refused() -> None:
    with pytest.raises(ValueError, match="'parsec' is not one of"):
        ScaleColouring("k", "T", "parsec", {})


def test_categories_get_colours_of_their_own() -> None:
    colouring = CategoryColouring("g", "Group", {"n0": "a", "n1": "b", "n3": "a"}, {"b": "#123456"})
    wire = colouring.wire(chain(4))
    assert np.frombuffer(wire["codes"], dtype=np.int32).tolist() == [0, 1, -1, 0]
    assert wire["labels"] == ["a", "b"]
    assert wire["colours"] == [CATEGORIES[0], "#123456"]


def test_operators_are_coloured_by_family() -> None:
    summary = describe(load("vgg16"))
    wire = by_operator(scene_of(summary)).wire(scene_of(summary))
    assert FAMILIES["conv"][0] in wire["labels"]
    assert wire["colours"][wire["labels"].index(FAMILIES["conv"][0])] == FAMILIES["conv"][1]


def test_bytes_and_flops_come_from_the_summary() -> None:
    summary = describe(load("vgg16"))
    conv = next(node for node in summary.nodes if node.op_type == "Conv")
    assert by_bytes(summary).values[conv.id] == conv.bytes
    assert by_flops(summary).values[conv.id] == conv.flops


def test_times_say_where_they_come_from() -> None:
    wire = by_time({"n0": 1500.0}, "measured, ort:level=disable").wire(chain(1))
    assert (wire["unit"], wire["source"]) == ("ns", "measured, ort:level=disable")


def test_edge_values_by_nodes_or_by_tensor() -> None:
    scene = scene_from([(0, 1), (1, 2), (0, 2)], 3)
    values = {("n0", "n1"): 0.5, ("n0", "n2", "t0"): 2.0, ("n1", "n2", "other"): 7.0}
    wire = EdgeValues("Score", values, frozenset({("n0", "n1")})).wire(scene)
    found = np.frombuffer(wire["values"], dtype=np.float32)
    np.testing.assert_array_equal(found, np.array([0.5, np.nan, 2], dtype=np.float32))
    assert list(wire["solid"]) == [1, 0, 0]


def test_edges_in_classes_are_coded_the_first_class_first() -> None:
    scene = scene_from([(0, 1), (1, 2), (0, 2)], 3)
    first = EdgeClass("A only", frozenset({("n0", "n1")}), "#112233")
    second = EdgeClass("both", frozenset({("n0", "n1"), ("n0", "n2", "t0")}), "#445566", 2.0, "9,5")
    wire = EdgeClasses("Through DRAM", [first, second], "predicted").wire(scene)
    assert list(wire["codes"]) == [0, 255, 1]
    assert [(one["label"], one["dash"]) for one in wire["classes"]] == [("A only", ""), ("both", "9,5")]


def test_without_a_choice_all_edges_are_solid() -> None:
    wire = EdgeValues("Bytes", {("n0", "n1"): 1.0}).wire(chain(2))
    assert list(wire["solid"]) == [1]


def test_groups_take_colours_in_turn() -> None:
    wire = groups_wire([Group("a", "A", ["n0"]), Group("b", "B", ("n1",), "#ff0000")])
    assert [group["colour"] for group in wire] == [CATEGORIES[0], "#ff0000"]
    assert wire[1]["nodes"] == ["n1"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (784_000, "784 kB"), (3_211_264, "3.21 MB"),
     (25_600_000, "25.6 MB"), (999_600, "1 MB"), (-2000, "-2 kB")],
)  # fmt: skip
def test_bytes_for_people(value: float, text: str) -> None:
    assert bytes_text(value) == text


def test_counts_and_times_for_people() -> None:
    assert count_text(118_013_952) == "118 M"
    assert count_text(64) == "64"
    assert time_text(1_240_000) == "1.24 ms"
    assert time_text(640) == "640 ns"
