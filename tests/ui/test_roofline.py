"""The roofline figure: where points and roofs stand, what is left out, what a click carries."""

from __future__ import annotations

from dataclasses import replace
from math import log10

import pytest

from explorer.runtime.dummy import PLANTED
from explorer.runtime.profile import Kernel, Profile
from explorer.runtime.roofs import Roofs
from explorer.ui.chart.roofline import drawn, left_out, roofline_figure
from explorer.ui.panels.runtime_text import roofline_html

TARGET = "ort:level=all,threads=1"
ROOFS = Roofs(TARGET, gflops_per_s=80.0, gbytes_per_s=20.0)


def kernel(name: str, op_type: str, nodes: tuple[str, ...], ns: float, flops: int | None, size: int | None):
    return Kernel(name, op_type, nodes, (), ns, ns * 0.9, ns * 1.1, ns / 1000, flops, size, "")


CONV = kernel("k0", "Conv", ("n0", "n1"), 500.0, 20_000, 1_000)
POOL = kernel("k1", "MaxPool", ("n2",), 200.0, 400, 2_000)
MOVE = kernel("k2", "Transpose", ("n3",), 150.0, 0, 4_000)
ODD = kernel("k3", "<b>Odd</b>", ("n4",), 100.0, None, 4_000)
REORDER = kernel("k4", "ReorderOutput", (), 50.0, None, None)
INNER = replace(kernel("k5", "Add", ("n5",), 10.0, 100, 100), in_body=True)
PROFILE = Profile(
    "f", TARGET, (CONV, POOL, MOVE, ODD, REORDER, INNER), 1000.0, "planted", PLANTED, "2026-01-01"
)


def test_a_point_stands_at_its_intensity_and_its_rate():
    (roof, *points), layout = roofline_figure(PROFILE, ROOFS)
    found = {trace["name"]: (trace["x"], trace["y"], trace["customdata"]) for trace in points}
    assert found == {
        "Convolution": ([20.0], [40.0], ["k0"]),
        "Pooling, reduction": ([0.2], [2.0], ["k1"]),
    }
    assert layout["xaxis"]["type"] == layout["yaxis"]["type"] == "log"
    assert roof["x"][1] == pytest.approx(4.0)
    assert roof["y"][1:] == [80.0, 80.0]
    assert roof["y"][0] == pytest.approx(20.0 * roof["x"][0])
    for trace in points:
        for axis, values in (("xaxis", trace["x"]), ("yaxis", trace["y"])):
            low, high = layout[axis]["range"]
            assert all(low < log10(value) < high for value in values)


def test_size_and_ring_say_share_and_selection():
    (_, conv, pool), _ = roofline_figure(PROFILE, ROOFS, selected=("n1",))
    assert conv["marker"]["size"][0] > pool["marker"]["size"][0]
    assert conv["marker"]["line"]["width"][0] > pool["marker"]["line"]["width"][0]
    assert conv["marker"]["symbol"] != pool["marker"]["symbol"]


def test_hovering_names_the_nodes_the_time_and_the_rates():
    (_, conv, _), _ = roofline_figure(PROFILE, ROOFS)
    text = conv["text"][0]
    assert text.startswith("<b>Conv</b> n0 + n1<br>500 ns (450 ns … 550 ns), 50.0 % of the model, measured")
    assert "20.00 FLOPs per byte" in text
    assert "40.00 GFLOP/s, 2.00 GB/s" in text
    hostile = replace(PROFILE, kernels=(replace(CONV, op_type="<img src=x>"),))
    assert "<img" not in roofline_figure(hostile, ROOFS)[0][1]["text"][0]


def test_what_cannot_be_drawn_is_named_with_its_reason_and_its_share():
    assert drawn(PROFILE) == (CONV, POOL)
    moving, inserted, unknown = left_out(PROFILE)
    assert "only move data: Transpose; 15.0 % of the time" in moving
    assert "inserted by the runtime" in inserted
    assert "ReorderOutput; 5.0 %" in inserted
    assert unknown.startswith("Not drawn, FLOPs or bytes unknown")
    text = roofline_html(PROFILE, ROOFS)
    assert "2 of 5 executed operators are drawn" in text
    assert "&lt;b&gt;Odd&lt;/b&gt;" in text


def test_a_profile_without_points_still_shows_the_roofs():
    traces, layout = roofline_figure(replace(PROFILE, kernels=(MOVE,)), ROOFS)
    assert len(traces) == 1
    assert not layout["showlegend"]
    assert [one["text"] for one in layout["annotations"]] == ["80.0 GFLOP/s", "20.0 GB/s"]
