"""The Runtime tab without a browser: what a click sends is a change of a trait or a message."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from explorer.errors import Cancelled
from explorer.graph import describe, load
from explorer.runtime import InlineExecutor, Measurer, Mode, Target
from explorer.runtime.cache import NoCache
from explorer.runtime.dummy import PlantedMeasurer
from explorer.session import Session
from explorer.ui.app import CANDIDATES, NODE, RUNTIME
from explorer.ui.panels.runtime import PORTABILITY, ROOFLINE, TIME, VIEW
from explorer.ui.runtime_scene import INSERTED, executed_scene
from tests.models import model
from tests.session.planted import planted_ns, saved_model, two_blocks
from tests.ui.planted_app import Driver, planted_app

ALL, DISABLE = "ort:level=all,threads=1", "ort:level=disable,threads=1"


class HalfPlanted(PlantedMeasurer):
    """Planted times; what needs the runtime itself (profile, view, comparing graphs) is asked for real."""

    def __init__(self) -> None:
        super().__init__(planted_ns)
        self._real = Measurer(executor=InlineExecutor(), cache=NoCache())
        self.profile = self._real.profile
        self.runtime_view = self._real.runtime_view
        self.is_absorbed = self._real.is_absorbed

    def close(self) -> None:
        self._real.close()
        super().close()


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("EXPLORER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("EXPLORER_STRICT", "1")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def driver():
    made = Driver(
        Session(two_blocks().SerializeToString(), name="blocks", target=ALL, measurer=HalfPlanted())
    )
    made.app.tabs.selected_index = RUNTIME
    yield made
    made.check()
    made.app.close()


def panel_of(driver: Driver):
    return driver.app.runtime.panel


def section(driver: Driver, name: str):
    buttons = panel_of(driver).section
    buttons.set_state({"index": buttons.options.index(name)})
    driver.settle()
    return panel_of(driver)


def test_one_section_is_shown_at_a_time(driver: Driver):
    panel = panel_of(driver)
    boxes = {TIME: panel.time_box, ROOFLINE: panel.roofline_box, VIEW: panel.view_box}
    boxes[PORTABILITY] = panel.portability.box
    for name in boxes:
        section(driver, name)
        assert [shown for shown, box in boxes.items() if box.layout.display == ""] == [name]


def test_times_are_listed_and_colour_the_graph(driver: Driver):
    driver.press(panel_of(driver).profile)
    assert f"per run on {ALL}" in panel_of(driver).times.value
    assert driver.app.graph.view.colour_by == "time"


def test_the_roofline_is_measured_once_and_a_point_shows_its_nodes(driver: Driver):
    panel = section(driver, ROOFLINE)
    assert panel.chart is None
    driver.press(panel.measure_roofs)
    profile = driver.session.snapshot().profile
    points = [trace for trace in panel.chart.traces if trace["mode"] == "markers"]
    kernels = {kernel.name: kernel for kernel in profile.kernels}
    names = [name for trace in points for name in trace["customdata"]]
    assert {kernels[name].op_type for name in names} >= {"Conv"}
    assert "executed operators are drawn" in panel.remarks.value
    panel.chart._handle_custom_msg({"kind": "click", "customdata": names[0]}, [])
    assert driver.app.graph.view.highlighted["nodes"] == list(kernels[names[0]].nodes)
    panel.chart._handle_custom_msg({"kind": "click", "customdata": None}, [])
    before = panel.chart
    driver.click_nodes(*kernels[names[0]].nodes)
    assert driver.app.tabs.selected_index == RUNTIME
    rings = [width for trace in before.traces[1:] for width in trace["marker"]["line"]["width"]]
    assert max(rings) > min([0.8, *rings]) or len(rings) == 1
    assert panel.chart is before


def test_the_runtime_s_graph_stands_beside_the_model_and_candidates_are_marked(driver: Driver):
    panel = section(driver, VIEW)
    assert panel.beside.disabled
    driver.press(panel.look)
    canvas = driver.app.graph.view
    assert canvas.comparison["after"] == "As the runtime executes it"
    assert panel.beside.value
    assert "operators are executed for the model’s 6" in panel.facts.value
    assert "does the work of n0 Conv + n1 BatchNormalization + n2 Relu" in panel.facts.value
    rows = driver.app.candidates.table.rows
    absorbed = [row["rule"] for row in rows if row["absorbed"]]
    assert "fold-batchnorm-into-conv" in absorbed
    assert f"The runtime does {len(absorbed)} of {len(rows)} candidates itself" in panel.facts.value
    driver.choose(panel.beside, False)
    assert canvas.comparison == {}


def test_leaving_the_runtime_s_view_shows_the_model_alone(driver: Driver):
    panel = section(driver, VIEW)
    driver.press(panel.look)
    assert driver.app.graph.is_comparing
    section(driver, PORTABILITY)
    assert not driver.app.graph.is_comparing
    assert not panel.beside.value


def test_a_fused_group_is_pointed_at(driver: Driver):
    panel = section(driver, VIEW)
    driver.press(panel.look)
    text, value = panel.point.options[-1]
    assert text.startswith("fused: ")
    driver.choose(panel.point, value)
    assert driver.app.graph.view.highlighted["nodes"] == value.split("+")
    driver.choose(panel.point, "")
    assert driver.app.graph.view.highlighted == {}


def test_leaving_the_tab_and_changing_the_graph_end_the_comparison(driver: Driver):
    panel = section(driver, VIEW)
    driver.press(panel.look)
    driver.app.tabs.selected_index = NODE
    assert driver.app.graph.view.comparison == {}
    assert not panel.beside.value
    driver.app.tabs.selected_index = RUNTIME
    driver.choose(panel.beside, True)
    assert driver.app.graph.view.comparison
    driver.session.accept(driver.session.candidates()[0].id)
    driver.settle()
    assert driver.app.graph.view.comparison == {}
    assert not panel.beside.value


def test_selecting_a_candidate_ends_the_comparison(driver: Driver):
    panel = section(driver, VIEW)
    driver.press(panel.look)
    driver.app.tabs.selected_index = CANDIDATES
    driver.select_fold()
    assert driver.app.graph.view.comparison == {}
    assert driver.app.graph.view.highlighted["nodes"] == ["n0", "n1"]


def test_a_target_that_hides_its_graph_is_explained():
    driver = Driver(
        Session(two_blocks().SerializeToString(), name="blocks", target=ALL, measurer=HalfPlanted())
    )
    driver.app.tabs.selected_index = RUNTIME
    panel = section(driver, VIEW)
    driver.session.target = "openvino"
    driver.settle()
    driver.press(panel.look)
    assert "OpenVINO" in driver.app.strip.text
    assert all(not row["absorbed"] for row in driver.app.candidates.table.rows)
    driver.app.close()


def test_nodes_of_the_runtime_keep_the_ids_of_what_they_do():
    graph = load(two_blocks(), name="blocks")
    with Measurer(executor=InlineExecutor(), cache=NoCache()) as measurer:
        view = measurer.runtime_view(graph, ALL)
    scene, altered = executed_scene(describe(graph), view)
    ids = [node.id for node in scene.nodes if node.kind == "op"]
    assert {"n0", "n3"} <= set(ids)
    assert {"n0", "n3"} <= set(altered)
    assert len(ids) == len(view.nodes)
    assert sum(one.startswith(INSERTED) for one in ids) == len(view.inserted)


def test_why_a_fusion_did_not_happen_is_told_in_words():
    text = """(float[1,3,8,8] x) => (float[1,4,6,6] y, float[1,4,6,6] c) {
        c = Conv(x, w)
        y = Relu(c)
    }"""
    w = np.random.default_rng(1).standard_normal((4, 3, 3, 3)).astype("f4")
    source = model(text, w=w).SerializeToString()
    driver = Driver(Session(source, name="shared", target="ort:level=extended", measurer=HalfPlanted()))
    driver.app.tabs.selected_index = RUNTIME
    panel = section(driver, VIEW)
    driver.press(panel.look)
    assert (
        "n0 Conv + n1 Relu (ConvActivationFusion): &#x27;c&#x27; between them is an output"
        in panel.facts.value
    )
    assert panel.point.options[1] == ("not fused: n0 Conv + n1 Relu", "n0+n1")
    driver.app.close()


# Portability


def ready(driver: Driver):
    """The section with two rows, one by operator sum, two columns, a small budget."""
    part = section(driver, PORTABILITY).portability
    driver.choose(part.budget, 4)
    driver.choose(part.cells, Mode.SCREENING)
    driver.choose(part.lines[0].as_sum, True)
    return part


def test_what_is_chosen_becomes_a_plan_and_its_cost_is_said(driver: Driver):
    part = ready(driver)
    plan = part.plan()
    assert plan.rows == (ALL, DISABLE, f"operator-sum@{ALL}")
    assert [str(target) for target in plan.columns] == [ALL, DISABLE]
    assert "3 searches, 6 cells: at most" in part.cost.value
    for line in part.lines:
        driver.choose(line.as_column, False)
    assert part.plan() is None
    assert part.run.disabled
    assert "at least one row and one column" in part.cost.value
    driver.choose(part.lines[0].as_column, True)
    assert not part.run.disabled


def test_threads_and_an_unusual_target_are_on_offer(driver: Driver):
    part = section(driver, PORTABILITY).portability
    assert part.current.box.layout.display == "none"
    driver.session.target = Target.parse("ort:level=all,threads=2,disabled=GeluFusionL2")
    driver.settle()
    assert part.current.box.layout.display == ""
    driver.choose(part.current.as_row, True)
    assert str(part.plan().targets[-1]) == str(driver.session.target)
    assert {target.threads for target in part.plan().targets} == {2}


def test_the_matrix_is_filled_and_shown(driver: Driver):
    part = ready(driver)
    assert part.save.disabled
    driver.press(part.run)
    matrix = driver.session.known.matrix
    assert len(matrix.cells) == 6
    assert part.map.value.count('<td class="hm-') == 6
    assert "<caption>blocks</caption>" in part.map.value
    driver.choose(part.path, "travel.html")
    driver.press(part.save)
    assert Path("travel.html").read_text().startswith("<!doctype html>")
    driver.choose(part.path, "travel.json")
    driver.press(part.save)
    assert json.loads(Path("travel.json").read_text())["rows"] == list(matrix.rows)
    assert "travel.json" in driver.app.strip.text


def test_a_matrix_is_loaded_and_one_of_another_model_says_so(driver: Driver):
    part = ready(driver)
    driver.press(part.run)
    data = driver.session.known.matrix.to_json()
    text = json.dumps(data).replace('"blocks"', '"net"')
    Path("other.json").write_text(text)
    driver.choose(part.path, "other.json")
    driver.press(part.load)
    assert "<caption>net</caption>" in part.map.value
    assert driver.app.strip.text == "This matrix is about net, not about blocks."
    driver.choose(part.path, "nowhere.json")
    driver.press(part.load)
    assert "'nowhere.json' cannot be read" in driver.app.strip.text
    driver.choose(part.path, " ")
    driver.press(part.load)
    assert driver.app.strip.text == "Give the name of the file."


def test_a_run_can_be_stopped(driver: Driver, monkeypatch: pytest.MonkeyPatch):
    def wait(_session, _plan, _progress, cancel):
        cancel.wait(60)
        raise Cancelled("stopped")

    monkeypatch.setattr(Session, "portability", wait)
    part = ready(driver)
    driver.press(part.run, settle=False)
    driver.until(lambda: not part.stop.disabled)
    driver.press(part.stop)
    assert driver.app.strip.text == "Portability: stopped."
    assert part.stop.disabled


def test_without_a_model_nothing_can_be_asked():
    driver = Driver(None)
    driver.app.tabs.selected_index = RUNTIME
    panel = panel_of(driver)
    assert panel.profile.disabled
    assert panel.look.disabled
    assert panel.portability.run.disabled
    driver.app.close()


def test_another_model_shows_nothing_of_the_last_one(driver: Driver, tmp_path: Path):
    driver.press(section(driver, VIEW).look)
    driver.press(ready(driver).run)
    driver.app.controller.show(Session(saved_model(tmp_path), measurer=HalfPlanted(), target=DISABLE))
    driver.settle()
    panel = panel_of(driver)
    assert driver.app.graph.view.comparison == {}
    assert panel.portability.save.disabled
    assert "hm-cell" not in panel.portability.map.value
    section(driver, VIEW)
    assert "operators are executed" not in panel.facts.value


def test_controls_have_names_for_screen_readers():
    driver = planted_app()
    part = driver.app.runtime.panel.portability
    assert all(box.description and box.tooltip for line in part.lines for box in line.boxes)
    driver.app.close()
