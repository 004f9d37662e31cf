"""The Runtime tab as a person meets it: predictions, times, roofline, the runtime's graph, the heat map."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.models import CASES
from tests.ui.app_page import WORK_MS, AppPage
from tests.ui.harness import Lab

pytestmark = pytest.mark.browser

FOLD = "fold-batchnorm-into-conv:n0+n1"
POINTS = ".explorer-rt-chart .point"


# Times are planted, so that nothing waits for measurements; what the runtime itself says is real.
CELL = """
from explorer.runtime import InlineExecutor, Measurer
from explorer.runtime.cache import NoCache
from explorer.runtime.dummy import PlantedMeasurer
from explorer.session import Session
from explorer.ui.app import App

real = Measurer(executor=InlineExecutor(), cache=NoCache())
planted = PlantedMeasurer(lambda graph, target: 1e6 * len(graph.nodes) * (2 if target.level == "all" else 1))
for name in ("profile", "runtime_view", "is_absorbed"):
    setattr(planted, name, getattr(real, name))
App(Session({model!r}, target="ort:level=all,threads=1", measurer=planted))
"""


def opened(lab: Lab) -> AppPage:
    model = str(CASES / "conv_shared_weight_two_bn.onnx")
    lab.open_notebook([CELL.format(model=model)], name="runtime")
    lab.run_all()
    app = AppPage(lab.page)
    app.wait_open("conv_shared_weight_two_bn")
    return app


def test_what_the_runtime_does_and_whether_it_travels(lab: Lab, tmp_path: Path) -> None:
    app = opened(lab)
    expect(app.rows.first).to_contain_text("Fold BatchNormalization into Conv")

    # Predicted
    app.press("Predict all")
    column = app.app.get_by_role("columnheader", name=re.compile("^Predicted"))
    expect(column).to_contain_text("operator sum", timeout=WORK_MS)
    app.idle()
    expect(app.row(FOLD).locator("td").nth(2)).to_contain_text("…")
    column.get_by_role("button").click()
    expect(column).to_have_attribute("aria-sort", "ascending")

    # Roofline: a click on a point outlines the nodes of its kernel
    app.tab("Runtime")
    app.press("Roofline")
    app.press("Measure roofline")
    lab.page.locator(POINTS).first.wait_for(timeout=WORK_MS)
    app.idle()
    expect(app.app.locator(".explorer-rt-remarks")).to_contain_text("executed operators are drawn")
    place = lab.page.locator(POINTS).first.bounding_box()
    assert place is not None
    lab.page.mouse.click(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    lab.page.wait_for_function("() => document.querySelector('.explorer-app .lm-Widget[data-boxes]')"
                               ".explorerGraph.view.model.get('highlighted').nodes?.length > 0")  # fmt: skip

    # The runtime's own graph
    app.press("Runtime's view")
    app.press("Ask the runtime")
    lab.page.get_by_role("button", name="Side by side").wait_for(timeout=WORK_MS)
    app.idle()
    expect(app.app.locator(".explorer-rt-part .explorer-details").last).to_contain_text("candidates itself")
    app.tab("Candidates")
    lab.page.get_by_role("button", name="Side by side").wait_for(state="hidden")
    expect(app.row(FOLD).locator(".et-absorbed")).to_have_text("runtime does it")

    # Portability, on the smallest matrix
    app.tab("Runtime")
    app.press("Portability")
    line = app.app.locator(".explorer-rt-line", has_text="all optimisations")
    for name in ("optimise for it", "measure on it"):
        line.get_by_role("checkbox", name=name).uncheck()
    app.choose("Cells", "screening, up to 10 s each")
    app.app.locator(".explorer-rt-part").get_by_role("spinbutton", name="Budget").fill("1")
    lab.page.keyboard.press("Tab")
    expect(app.app.locator(".explorer-rt-cost")).to_contain_text("1 searches, 1 cells")
    app.press("Run")
    cell = app.app.locator(".hm td")
    expect(cell).to_have_text(re.compile(r"\d\.\d\d"), timeout=WORK_MS)
    app.idle()
    page = tmp_path / "travels.html"
    app.app.get_by_role("textbox", name=re.compile("^Matrix as")).fill(str(page))
    lab.page.locator(".explorer-rt-part").get_by_role("button", name="Save").click()
    app.says(f"Wrote {page}")
    ratio = cell.locator(".hm-ratio").inner_text()

    # The report needs no script and nothing from elsewhere
    report = lab.page.context.new_page()
    report.set_content(page.read_text())
    expect(report.locator("td .hm-ratio")).to_have_text(ratio)
    report.close()

    # A saved session brings the matrix back, also when another model was open in between
    saved = tmp_path / "travels.session.json"
    app.tab("History")
    app.app.get_by_role("textbox", name="Session as JSON").fill(str(saved))
    app.app.get_by_role("button", name="Save", exact=True).last.click()
    app.says(f"Wrote {saved}")
    app.open_path(CASES / "odd_names.onnx")
    app.says("The session with 'conv_shared_weight_two_bn' was kept")
    app.press("Dismiss")
    app.wait_open("odd_names")
    app.tab("Runtime")
    expect(app.app.locator(".hm")).to_have_count(0)
    app.open_path(saved)
    app.wait_open("conv_shared_weight_two_bn")
    expect(cell.locator(".hm-ratio")).to_have_text(ratio)
    expect(cell.locator(".hm-ratio")).to_be_visible()
