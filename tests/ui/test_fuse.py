"""The Fuse tab without a browser: what a click sends is a change of a trait or a message."""

from __future__ import annotations

import json
import time
from collections import Counter

import pytest

from explorer.fusion import KB
from explorer.graph import load
from explorer.runtime import InlineExecutor, Measurer
from explorer.runtime.cache import NoCache
from explorer.session import Session
from explorer.session.fusion_traffic import plan_difference
from explorer.ui.app import FUSE, HISTORY, NODE, App
from explorer.ui.bill.wire import kb_text
from explorer.ui.panels.fuse import BESIDE, GROUP, PLANS
from tests.models import model


@pytest.fixture(scope="module")
def graph():
    return load("resnet18")


def open_app(source):
    measurer = Measurer(executor=InlineExecutor(), cache=NoCache())
    return App(Session(source, measurer=measurer))


@pytest.fixture
def app(graph, monkeypatch, tmp_path):
    monkeypatch.setenv("EXPLORER_STRICT", "1")
    monkeypatch.chdir(tmp_path)
    one = open_app(graph)
    one.tabs.selected_index = FUSE
    yield one
    one.close()


def finish(app):
    """Wait for the jobs, rendering as the event loop would."""
    deadline = time.monotonic() + 60
    while app.controller.jobs and time.monotonic() < deadline:
        app.flush()
        time.sleep(0.02)
    app.flush()
    assert not app.controller.jobs


def click(widget):
    widget.click()


def test_opening_the_tab_shows_the_optimum_and_its_groups(app):
    panel, view = app.fuse.panel, app.graph.view
    assert "5,973.75 KB" in panel.totals.value
    assert "<b>optimal</b><span>gap 0 %, proved</span>" in panel.totals.value
    assert '<b>14</b><span class="explorer-fuse-why">left out of all totals</span>' in panel.totals.value
    assert "n68 Gemm: its weights alone" in panel.totals.value
    assert "KB = 1024 bytes" in panel.totals.value
    labels = [group["label"] for group in view.groups]
    assert labels[0] == "1 · 69.69 KB"
    assert view.groups[0]["nodes"] == ["n0", "n1", "n2", "n3"]
    assert labels.count("left out") > 1
    assert view.edge_values["title"] == "DRAM traffic, KB"


def test_leaving_the_tab_takes_everything_off_the_graph(app):
    app.graph.view.set_state({"selection": ["n4", "n6", "n7"]})
    view = app.graph.view
    assert view.colour_by == "blame"
    app.tabs.selected_index = HISTORY
    assert view.groups == []
    assert view.edge_values == {}
    assert view.highlighted == {}
    assert view.colour_by == "op"
    assert "blame" not in {colouring["key"] for colouring in view.colourings}
    app.tabs.selected_index = FUSE
    assert view.groups[-1]["label"].startswith("chosen")


def test_the_buffer_slider_answers_at_once(app):
    panel = app.fuse.panel
    assert panel.buffer.value == 128 * KB
    sizes = [value for _, value in panel.buffer.options]
    assert (sizes[0], sizes[-1]) == (128 * KB, 2048 * KB)
    panel.buffer.value = 512 * KB
    assert "5,973.75 KB" not in panel.totals.value
    assert "the buffer has 512 KB" in panel.totals.value
    assert app.session.fusion.settings.buffer_bytes == 512 * KB
    panel.scheme.value = "brr"
    assert "BRR, 512 KB" in panel.totals.value


def test_clicked_operations_get_bill_and_blame(app):
    app.graph.view.set_state({"selection": ["n4", "n6", "n7"]})
    panel = app.fuse.panel
    assert app.tabs.selected_index == FUSE
    bill = panel.bill.bill
    assert (bill["demand"], bill["capacity"], bill["fits"]) == ("186.25 KB", "128 KB", False)
    assert sum(line["bytes"] for line in bill["lines"]) == bill["demand_bytes"]
    assert {kind["kind"] for kind in bill["kinds"]} == {"weights", "line_buffer"}
    blamed = {line["title"]: (line["held"], line["relief"]) for line in bill["blame"]}
    assert blamed["n4 Conv"] == ("93.12 KB", "93.12 KB")
    assert blamed["n4 Conv → n6 Relu"] == ("0.00 KB", "93.12 KB")
    assert app.graph.view.edge_values["title"] == "A cut saves on chip, KB"
    assert app.graph.view.groups[-1]["label"] == "chosen · 186.25 KB, does not fit"
    panel.buffer.value = 256 * KB
    assert panel.bill.bill["fits"]


def test_a_line_of_the_bill_points_at_its_nodes(app):
    app.graph.view.set_state({"selection": ["n4", "n6", "n7"]})
    panel = app.fuse.panel
    line = next(line for line in panel.bill.bill["lines"] if line["kind"] == "line_buffer")
    panel.bill._handle_custom_msg({"nodes": line["nodes"], "label": line["title"]}, [])
    assert app.graph.view.highlighted["nodes"] == line["nodes"]
    assert app.graph.view.highlighted["label"] == line["title"]


def test_a_choice_that_is_no_group_is_refused_with_its_path(app):
    app.graph.view.set_state({"selection": ["n3", "n9"]})
    assert "n3 -&gt; n4 -&gt; n6 -&gt; n7 -&gt; n9" in app.fuse.panel.choice.value
    assert app.graph.view.highlighted["nodes"] == ["n3", "n4", "n5", "n6", "n7", "n8", "n9"]
    assert app.graph.view.groups == []
    assert app.fuse.panel.bill.bill == {}
    app.graph.view.set_state({"selection": ["n4", "n7"]})
    assert "The shortest way between them: n4 → n6 → n7." in app.fuse.panel.choice.value
    click(app.fuse.panel.clear)
    assert len(app.graph.view.groups) > 11
    assert app.graph.view.highlighted == {}
    assert app.graph.view.selection == []


def test_groups_are_taken_from_the_plan(app):
    panel = app.fuse.panel
    panel.groups.value = panel.groups.options[2][1]
    assert app.graph.view.selection == ["n4", "n5", "n6"]
    assert panel.bill.bill["demand"] == "93.12 KB"
    app.graph.view.set_state({"selection": ["n8"]})
    assert panel.bill.bill["demand"] == "93.12 KB"
    click(panel.whole)
    assert app.graph.view.selection == ["n7", "n8", "n9", "n10"]
    app.graph.view.set_state({"selection": ["n68"]})
    click(panel.whole)
    assert "does not fit the buffer" in app.strip.text


def test_a_search_draws_its_curve_above_the_floor(app):
    panel = app.fuse.panel
    panel.mode.value = PLANS
    panel.search.value, panel.budget.value = "ls", 50
    click(panel.run)
    finish(app)
    assert app.strip.last_error is None
    curve, floor = panel.chart.traces
    assert curve["x"][-1] == 50
    assert floor["name"] == "optimum, proved"
    assert floor["y"] == [5973.75, 5973.75]
    assert min(curve["y"]) >= 5973.75
    assert panel.plan_a.value.startswith("LS 50 plans, seed 0")


def test_two_plans_stand_side_by_side_and_either_is_drawn(app):
    panel = app.fuse.panel
    panel.mode.value = PLANS
    panel.buffer.value = 1024 * KB
    panel.plan_b.value = "EXACT · LBDF, 128 KB"
    assert panel.table.value.count("<td>") == 3 * 3 + 4 * 2
    assert "5,973.75 KB" in panel.table.value
    assert panel.drawn.value == BESIDE
    panel.drawn.value = "a"
    drawn_a = list(app.graph.view.groups)
    panel.drawn.value = "b"
    assert app.graph.view.groups != drawn_a
    assert app.graph.view.groups[0]["label"] == "1 · 69.69 KB"
    panel.plan_b.value = ""
    assert app.graph.view.groups == drawn_a


def test_who_picks_a_second_plan_sees_what_only_one_of_them_cuts(app):
    panel, view = app.fuse.panel, app.graph.view
    panel.mode.value = PLANS
    panel.buffer.value = 1024 * KB
    panel.plan_b.value = "EXACT · LBDF, 128 KB"
    a, b = (facts.found.plan for facts in (panel._view.current, panel._view.compared))
    assert [one["label"] for one in view.edge_values["classes"]] == [
        "in plan A only",
        "in plan B only",
        "in both plans",
    ]
    found = plan_difference(a, b, app.graph.summary)
    counts = Counter(view.edge_values["codes"])
    assert counts[1] == len(found.only_b) > 0
    assert counts[2] == len(found.both)
    assert view.groups == []
    assert f"B moves {kb_text(b.dram_bytes - a.dram_bytes)}" in panel.difference.value
    assert "more than A." in panel.difference.value
    edge = max(found.only_b, key=lambda one: found.only_b[one])
    text, ends = panel.differing.options[1]
    assert ends == (edge.source, edge.target)
    panel.differing.value = ends
    assert view.highlighted["nodes"] == list(ends)
    assert view.highlighted["label"] == text.partition(":")[0] == "B only"
    panel.plan_b.value = panel.plan_a.value
    assert "Both plans move the same number of bytes." in panel.difference.value
    assert "Both cut the same edges." in panel.difference.value
    assert panel.differing.layout.display == "none"
    panel.plan_b.value = ""
    assert panel.difference.layout.display == "none"
    assert view.edge_values["title"] == "DRAM traffic, KB"


def test_a_plan_is_exported(app, tmp_path):
    panel = app.fuse.panel
    assert panel.path.value == "resnet18-lbdf-128kb.plan.json"
    click(panel.export)
    assert json.loads((tmp_path / panel.path.value).read_text())["dram_bytes"] == 5973.75 * KB
    assert "Wrote the plan" in app.strip.text


def test_a_scheme_that_is_not_for_the_network_says_so(monkeypatch):
    app = open_app(load("mobilenet_v3_small"))
    app.tabs.selected_index = FUSE
    app.fuse.panel.scheme.value = "brr"
    assert "squeeze-and-excite" in app.fuse.panel.totals.value
    assert app.fuse.panel.run.disabled
    assert app.graph.view.groups == []
    app.fuse.panel.scheme.value = "lbdf"
    assert "DRAM traffic" in app.fuse.panel.totals.value
    app.close()


def test_unknown_dims_can_be_given():
    app = open_app(load(model("(float[N,2,8,8] x) => (float[N,2,8,8] y) { r = Relu(x) y = Sigmoid(r) }")))
    app.tabs.selected_index = FUSE
    panel = app.fuse.panel
    assert panel.dims.layout.display == ""
    assert "for example N=1." in panel.totals.value
    panel.dims.value = "N=two"
    assert "no size of a dimension" in app.strip.text
    panel.dims.value = "N=2"
    assert "1.00 KB" in panel.totals.value
    app.close()


def test_hostile_names_stay_text(app):
    evil = load(model("(float[1,2,8,8] x) => (float[1,2,8,8] y) { y = Relu(x) }"))
    evil.name = "<img src=x onerror=alert(1)>"
    app.controller.show(Session(evil, measurer=Measurer(executor=InlineExecutor(), cache=NoCache())))
    app.flush()
    panel = app.fuse.panel
    for text in (panel.totals.value, panel.choice.value, panel.table.value):
        assert "<img" not in text
    assert panel.mode.value == GROUP
    assert app.tabs.selected_index != NODE
