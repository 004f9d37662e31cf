from __future__ import annotations

import pytest

from explorer.runtime import Source
from explorer.session import CurvePoint
from explorer.ui.chart import Chart, curve_figure

POINTS = (
    CurvePoint(0, "original", 1.0, 1.0, 1.0),
    CurvePoint(1, "fold", 0.9, 0.88, 0.93),
    CurvePoint(2, "by hand", None, None, None),
)


def test_the_curve_shows_per_cent_with_intervals_and_leaves_out_what_is_unknown():
    (trace,), layout = curve_figure(POINTS)
    assert trace["x"] == [0, 1]
    assert trace["y"] == pytest.approx([100, 90])
    assert trace["error_y"]["array"] == pytest.approx([0, 3])
    assert trace["error_y"]["arrayminus"] == pytest.approx([0, 2])
    assert trace["text"] == ["original", "fold"]
    low, high = layout["yaxis"]["range"]
    assert low < 88
    assert high > 101


def test_what_is_predicted_goes_on_from_the_last_measured_point_as_a_line_of_its_own():
    predicted = CurvePoint(2, "by a sum", 0.6, 0.6, 0.6, Source.PREDICTED)
    (measured, other), layout = curve_figure(
        (*POINTS[:2], predicted, CurvePoint(3, "by hand", None, None, None))
    )
    assert (measured["name"], measured["x"]) == ("measured", [0, 1])
    assert (other["name"], other["x"]) == ("predicted", [1, 2])
    assert other["y"] == pytest.approx([90, 60])
    assert other["line"]["dash"] != measured["line"]["dash"]
    assert layout["showlegend"]
    assert layout["yaxis"]["range"][0] < 60
    assert not curve_figure(POINTS)[1]["showlegend"]


def test_a_little_noise_looks_little():
    _, layout = curve_figure(POINTS[:1])
    low, high = layout["yaxis"]["range"]
    assert low < 95 < 101 < high
    assert layout["xaxis"]["range"][1] >= 4
    assert layout["xaxis"]["dtick"] == 1


def test_long_curves_have_whole_ticks():
    points = [CurvePoint(step, "x", 1.0, 1.0, 1.0) for step in range(31)]
    assert curve_figure(points)[1]["xaxis"]["dtick"] == 4


def test_colours_are_the_page_s():
    (trace,), _ = curve_figure(POINTS)
    assert {trace["line"]["color"], trace["marker"]["color"]} == {"var(--ec-blue)"}


def test_the_widget_brings_plotly_js_without_importing_plotly_and_beside_a_small_module():
    chart = Chart("a chart")
    state = chart.get_state()
    assert "plotly.js v" in state["_plotly"][:400]
    assert state["_plotly"].rstrip().endswith("export default module.exports;")
    assert len(str(chart._esm)) < 20_000
    assert str(chart._esm).rstrip().endswith("export default { render };")


def test_a_figure_is_shown_in_place_and_clicks_come_back():
    chart, heard = Chart("a chart"), []
    chart.show(curve_figure(POINTS))
    assert (len(chart.traces), chart.layout_["xaxis"]["title"]["text"]) == (1, "accepted moves")
    chart.on_click(heard.append)
    chart._handle_custom_msg({"kind": "click", "customdata": "n7"}, [])
    chart.on_click(heard.append, remove=True)
    chart._handle_custom_msg({"kind": "click", "customdata": "n8"}, [])
    assert heard == ["n7"]
