"""The app in JupyterLab and Voila, in Chromium: real models, real measurements, real files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from playwright.sync_api import Locator, expect

import explorer
from explorer.graph import describe, make_feeds, save
from tests.models import CASES, run
from tests.ui.app_page import SOON_MS, WORK_MS, AppPage
from tests.ui.harness import Lab, VoilaPage

pytestmark = pytest.mark.browser

FOLD = "fold-batchnorm-into-conv"
# All of the app is on screen.
WHOLE = """() => {
    const app = document.querySelector('.explorer-app');
    const scroller = app.closest('.jp-WindowedPanel-outer');
    return app.getBoundingClientRect().bottom <= scroller.getBoundingClientRect().bottom + 1;
}"""
# The page and the canvas have the theme, and the chart has the page's colours.
THEMED = """(dark) => {
    const graph = document.querySelector('.explorer-app .lm-Widget[data-boxes]').explorerGraph;
    const chart = document.querySelector('.explorer-chart-widget');
    const text = getComputedStyle(document.body).getPropertyValue('--jp-ui-font-color0').trim();
    const blue = getComputedStyle(chart).getPropertyValue('--ec-blue').trim();
    return document.body.dataset.jpThemeLight === String(!dark) && graph.theme().dark === dark && text
        && chart.dataset.colours.includes(` ${text} `) && chart.dataset.colours.includes(` ${blue} `);
}"""


def opened(lab: Lab, *arguments: str, name: str = "explore") -> AppPage:
    """The app on a notebook page; arguments are those of ``explorer.open``, as text."""
    lab.open_notebook([f"import explorer\napp = explorer.open({', '.join(arguments)})\napp"], name=name)
    lab.run_all()
    return AppPage(lab.page)


def test_from_the_notebook_to_an_exported_model(lab: Lab, repository: Path, tmp_path: Path) -> None:
    lab.open_notebook(repository / "notebooks" / "explore.ipynb", name="explore")
    lab.run_all()
    app = AppPage(lab.page)
    app.says("Choose a sample, give a path, or upload a file to begin.")
    app.choose("Runtime", "ONNX Runtime, as written")
    app.choose("Timing", "screening, up to 10 s")
    app.choose("Model", "resnet18")
    app.wait_open("resnet18")
    lab.page.wait_for_function(WHOLE)  # although the cell above takes some room
    before = app.rows.count()
    app.filter("fold batchnormalization")
    lab.page.wait_for_function(
        "(before) => document.querySelectorAll('.explorer-table tbody tr').length < before", arg=before
    )
    place = f"{FOLD}:n0+n1"
    app.select(place)
    assert app.site() == ["n0", "n1"]

    app.press("Measure")
    measured = app.row(place).locator(".et-interval")
    measured.wait_for(timeout=WORK_MS)
    assert "…" in measured.inner_text()
    assert "screening" in measured.inner_text()
    app.idle()

    app.press("Accept")
    app.says("1 accepted", WORK_MS)
    expect(app.row(place)).to_have_count(0)
    app.press("Undo")
    app.row(place).wait_for()
    expect(app.strip).not_to_contain_text("accepted")
    app.select(place)
    app.press("Accept")
    app.says("1 accepted", WORK_MS)

    app.tab("History")
    app.app.get_by_role("textbox", name="Model as ONNX").fill(str(tmp_path / "out.onnx"))
    app.press("Export")
    app.says(f"Wrote {tmp_path / 'out.onnx'}: equal on", WORK_MS)
    original = explorer.load("resnet18")
    feeds = make_feeds(original)
    for expected, got in zip(run(original, feeds), run(tmp_path / "out.onnx", feeds), strict=True):
        np.testing.assert_allclose(got, expected, atol=2e-4 * np.abs(expected).max())
    kinds = [node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node]
    assert kinds.count("BatchNormalization") == 19


def test_errors_are_explained_in_the_strip_and_the_app_goes_on(lab: Lab, tmp_path: Path) -> None:
    app = opened(lab, repr(str(CASES / "odd_names.onnx")))
    app.wait_open("odd_names")
    app.open_path("/nowhere/model.onnx")
    app.says("'/nowhere/model.onnx' is neither a file nor a sample model")
    expect(app.strip.get_by_role("alert")).to_have_count(1)
    app.press("Dismiss")
    app.says("odd_names")
    app.upload({"name": "broken.onnx", "mimeType": "application/octet-stream", "buffer": b"\x08\x07 no"})
    app.says("'broken.onnx' is not an ONNX model")
    app.open_path(CASES / "unknown_custom_op.onnx")
    app.wait_open("unknown_custom_op")
    app.select(f"{FOLD}:n0+n1")
    app.press("Measure")
    app.says("ONNX Runtime has no operator vendor.ops::FancyGate", WORK_MS)
    app.idle()
    app.press("Before / after")
    lab.page.get_by_role("button", name="Side by side").wait_for()


def test_the_graph_of_odd_names_is_drawn_whole_and_answers_clicks(lab: Lab) -> None:
    app = opened(lab, repr(str(CASES / "odd_names.onnx")))
    app.wait_open("odd_names")
    graph = explorer.load(CASES / "odd_names.onnx")
    ends = len(graph.inputs) + len(graph.outputs)
    assert app.scene() == {"title": "odd_names", "nodes": 5 + ends, "edges": 7}
    details = app.app.locator(".explorer-details")
    for node in describe(graph).nodes:
        app.click_node(node.id)
        details.get_by_text(node.id, exact=True).wait_for()
        expect(details.locator("h4")).to_have_text(node.operator)
        name = details.locator("td").first.inner_text()
        assert " ".join(name.split()) == (" ".join(node.name.split()) or "(none)")


def test_cancel_while_measuring_and_the_kernel_answers_all_the_time(lab: Lab) -> None:
    app = opened(lab, "'squeezenet1_1'", "target='ort:level=disable,threads=1'")
    app.wait_open("squeezenet1_1")
    places = [row.get_attribute("data-place") for row in app.rows.all()[:2]]
    app.select(places[0])
    app.press("Measure")
    app.says("round 2 of 10", WORK_MS)
    app.select(places[1])  # Python answers while it measures
    expect(app.button("Accept")).to_be_disabled()
    app.press("Cancel")
    app.says(f"Measuring {places[0]}: stopped.")
    app.idle()
    app.press("Measure all")
    app.says("Measuring all: 2 of", WORK_MS)
    app.press("Cancel")
    app.says("Measuring all: stopped.")
    app.idle()
    expect(app.app.locator(".et-interval")).to_have_count(1)
    app.press("Accept")
    app.says("1 accepted", WORK_MS)


def test_themes_reach_every_part(lab: Lab) -> None:
    app = opened(lab, "'squeezenet1_1'")
    app.wait_open("squeezenet1_1")
    app.tab("Optimise")
    chart = app.app.locator(".explorer-chart-widget[data-points]")
    chart.wait_for(timeout=SOON_MS)
    seen = []
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        lab.page.evaluate(
            "(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", theme
        )
        lab.page.wait_for_function(THEMED, arg=theme.endswith("Dark"), timeout=SOON_MS)
        colours = [
            chart.locator(".point").first.evaluate("(node) => getComputedStyle(node).fill"),
            app.strip.evaluate("(node) => getComputedStyle(node).backgroundColor"),
            app.button("Step").evaluate("(node) => getComputedStyle(node).color"),
        ]
        seen.append(colours)
    light, dark = seen
    assert [a != b for a, b in zip(light, dark, strict=True)] == [True] * 3, seen


def test_on_a_laptop_no_row_of_controls_wraps_and_no_tab_is_cut(lab: Lab) -> None:
    app = opened(lab, "'squeezenet1_1'")
    app.wait_open("squeezenet1_1")
    tabs = app.app.locator(".explorer-side > .lm-TabBar .lm-TabBar-tabLabel")
    buttons = (
        *("Accept", "Reject", "Before / after", "Measure", "Predict"),
        *("Measure all", "Predict all", "Switches"),
    )

    def none_cut(texts: Locator) -> bool:
        return not texts.evaluate_all("(all) => all.some((one) => one.scrollWidth > one.clientWidth)")

    def is_whole() -> bool:
        lines = {round((app.button(name).bounding_box() or {"y": -1})["y"]) for name in buttons}
        return none_cut(tabs) and len(lines) == 1

    for width, height in ((1280, 800), (1440, 900)):
        lab.page.set_viewport_size({"width": width, "height": height})
        for is_open in (True, False):  # JupyterLab's side bar
            for _ in range(50):  # the layout follows in steps
                if is_whole():
                    break
                lab.page.wait_for_timeout(100)
            assert is_whole(), (width, is_open)
            lab.page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
    app.tab("Runtime")  # the side bar is open again
    app.press("Portability")
    targets = app.app.locator(".explorer-rt-target .widget-html-content")
    targets.first.wait_for()
    assert targets.count() > 4
    assert none_cut(targets)


def test_a_model_larger_than_a_message_can_be_uploaded(lab: Lab, tmp_path: Path) -> None:
    path = save(explorer.load("resnet18"), tmp_path / "big.onnx")
    assert path.stat().st_size > 40e6
    app = opened(lab)
    app.says("Choose a sample")
    app.upload(path)
    app.says("11.7 M parameters", WORK_MS)
    app.wait_open("big")


def test_a_restarted_kernel_loses_nothing_that_was_accepted(lab: Lab) -> None:
    app = opened(lab, repr(str(CASES / "conv_shared_weight_two_bn.onnx")))
    app.wait_open("conv_shared_weight_two_bn")
    app.rows.first.click()
    app.press("Accept")
    app.says("1 accepted", WORK_MS)
    lab.restart_kernel()
    lab.run_all()
    app.wait_open("conv_shared_weight_two_bn")
    expect(app.strip).not_to_contain_text("accepted")
    models = app.app.get_by_role("combobox", name="Model", exact=True)
    models.select_option(index=models.locator("option").count() - 1)
    app.says("1 accepted")


def test_keys_work_anywhere_in_the_app_and_leave_the_notebook_alone(lab: Lab) -> None:
    app = opened(lab, repr(str(CASES / "conv_shared_weight_two_bn.onnx")))
    app.wait_open("conv_shared_weight_two_bn")
    cells = "() => window.jupyterapp.shell.currentWidget.content.widgets.length"
    app.rows.first.click()
    lab.page.keyboard.press("x")
    app.button("Allow again").wait_for()
    app.button("Allow again").focus()
    lab.page.keyboard.press("x")
    app.button("Reject").wait_for()
    lab.page.keyboard.press("a")
    app.says("1 accepted", WORK_MS)
    app.idle()
    expect(app.button("Undo")).to_be_enabled()  # a key does nothing before
    lab.page.keyboard.press("u")
    app.strip.get_by_text("accepted").wait_for(state="hidden")
    lab.page.keyboard.press("d")
    lab.page.keyboard.press("d")  # in JupyterLab: delete the cell
    assert lab.page.evaluate(cells) == 1
    assert app.app.is_visible()


def test_the_same_app_as_a_page_of_its_own(voila: VoilaPage) -> None:
    voila.open(["import explorer\napp = explorer.open('squeezenet1_1')\napp"], name="explore")
    app = AppPage(voila.page)
    app.wait_open("squeezenet1_1")
    app.choose("Timing", "screening, up to 10 s")
    app.rows.first.click()
    app.press("Measure")
    app.app.locator(".et-value").first.wait_for(timeout=WORK_MS)
    app.idle()
    app.press("Accept")
    app.says("1 accepted", WORK_MS)
