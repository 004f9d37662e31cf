"""The Fuse tab as a person meets it: hulls, slider, clicks in the graph, the bill, a search."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect

from tests.ui.app_page import AppPage
from tests.ui.graphview.test_lab import HOOK, click
from tests.ui.harness import RUN_MS, Lab

pytestmark = pytest.mark.browser

CELL = """
import os
os.environ["EXPLORER_STRICT"] = "1"
import explorer
app = explorer.open("resnet18")
app
"""


def groups(page: Page) -> list[str]:
    """Labels of the hulls that the canvas draws."""
    found: list[str] = page.evaluate(f"() => {HOOK}.view.state.groups.map((group) => group.label)")
    return found


def wait_groups(page: Page, condition: str) -> None:
    """Wait until the labels of the hulls, ``labels``, are as a JavaScript condition says."""
    page.wait_for_function(
        f"() => ((labels) => {condition})({HOOK}.view.state.groups.map((group) => group.label))"
    )


def test_groups_bill_and_search_of_resnet18(lab: Lab) -> None:
    lab.open_notebook([CELL])
    lab.run_all()
    page = lab.page
    page.wait_for_selector("[data-drawn]", timeout=RUN_MS)
    page.locator(".lm-TabBar-tab", has_text="Fuse").click()
    figures = page.locator(".explorer-fuse-figures")
    expect(figures).to_contain_text("5,973.75 KB", timeout=RUN_MS)
    expect(figures).to_contain_text("gap 0 %, proved")
    expect(figures).to_contain_text("14left out of all totals")
    page.wait_for_function(f"() => {HOOK}.view.state.groups.length > 11")
    wait_groups(page, "labels[0] === '1 · 69.69 KB'")

    click_at(page, "n0")
    page.keyboard.down("Shift")
    click(page, "n2")
    page.keyboard.up("Shift")
    bill = page.locator(".explorer-bill")
    expect(bill.locator(".eb-head")).to_contain_text("fits")
    expect(bill.locator(".eb-part")).to_have_count(2)
    bill.locator(".eb-part").first.click()
    page.wait_for_function(f"() => {HOOK}.view.state.highlightWire.label?.includes('KB')")
    bill.get_by_role("button", name="Blame").click()
    expect(bill.locator(".eb-row")).to_have_count(1)

    slider = page.locator(".explorer-fuse .noUi-handle")
    slider.focus()
    slider.press("End")
    expect(page.locator(".explorer-fuse .widget-readout")).to_have_text("2048 KB")
    expect(figures).not_to_contain_text("5,973.75 KB")
    expect(bill.locator(".eb-head")).to_contain_text("of 2048 KB")

    page.locator(".explorer-fuse button", has_text="Plans").click()
    search = page.locator(".explorer-fuse .widget-dropdown", has=page.get_by_text("Search", exact=True))
    search.locator("select").select_option(label="LS, local search")
    page.get_by_role("button", name="Search", exact=True).click()
    chart = page.locator(".explorer-fuse .explorer-chart-widget")
    expect(chart.locator(".legend")).to_contain_text("optimum, proved", timeout=RUN_MS)
    expect(chart.locator(".legend")).to_contain_text("LS 1000 plans, seed 0")

    page.locator(".lm-TabBar-tab", has_text="History").click()
    page.wait_for_function(f"() => {HOOK}.view.state.groups.length === 0")
    assert page.evaluate(f"() => {HOOK}.view.state.edges") is None


def test_lasso_blame_plans_stop_and_files_in_the_dark(lab: Lab) -> None:
    lab.open_notebook([CELL])
    lab.page.evaluate(
        "() => { window.jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' }); }"
    )
    lab.run_all()
    page, app = lab.page, AppPage(lab.page)
    app.wait_open("resnet18")
    app.tab("Fuse")
    page.wait_for_function(f"() => {HOOK}.theme().dark && {HOOK}.view.state.groups.length > 11")

    lasso(page, "n0", "n2")
    bill = page.locator(".explorer-bill")
    expect(bill.locator(".eb-head")).to_contain_text("27.69 KB of 128 KB")
    wait_groups(page, "labels.at(-1) === 'chosen · 27.69 KB, fits'")
    wait_light_hull(page)
    part = bill.locator(".eb-part").first
    assert (part.get_attribute("title") or "").startswith("weights of n0 Conv: 18.50 KB")
    app.press("Whole group")
    expect(bill.locator(".eb-head")).to_contain_text("69.69 KB of 128 KB")
    page.wait_for_function(f"() => {HOOK}.view.model.get('edge_values').title === 'A cut saves on chip, KB'")
    bill.get_by_role("button", name="Blame").click()
    bill.locator(".eb-row").first.click()
    page.wait_for_function(f"() => {HOOK}.view.state.highlightWire.nodes?.length > 0")

    page.locator(".explorer-fuse button", has_text="Plans").click()
    app.choose("Search", "RS, random plans")
    app.app.get_by_role("spinbutton", name="Plans").fill("1000000")
    app.press("Search")
    chart = page.locator(".explorer-fuse .explorer-chart-widget")
    expect(chart.locator(".legend")).to_contain_text("RS 1000000 plans", timeout=RUN_MS)
    app.press("Stop")
    app.says("Searching plans (RS): stopped.")
    app.idle()
    expect(app.button("Search")).to_be_enabled()
    table = page.locator(".explorer-fuse-table")
    expect(table).to_contain_text("plans tried")
    app.app.get_by_role("combobox", name="Plan B", exact=True).select_option(index=1)
    expect(table.locator("tr").first).to_contain_text("B − A")
    page.wait_for_function(f"() => {HOOK}.view.state.edges?.classes?.length === 3")
    wait_groups(page, "labels.length === 0")
    expect(page.locator(".eg-legend")).to_contain_text("in plan A only")
    app.press("Draw A")
    wait_groups(page, "labels.length > 0")
    drawn = groups(page)
    app.press("Draw B")
    wait_groups(page, f"labels.join() !== {json.dumps(','.join(drawn))}")

    path = app.app.get_by_role("textbox", name="Plan A as JSON", exact=True)
    app.press("Export")
    app.says("Wrote the plan to")
    app.press("Load")
    app.says("Plan A is now resnet18-lbdf-128kb.plan.json")
    expect(table).to_contain_text("read from a file")
    path.fill("nowhere.json")
    app.press("Load")
    app.says("'nowhere.json' cannot be read")


def lasso(page: Page, first: str, last: str) -> None:
    """Shift + drag around two nodes and what lies between them."""
    page.wait_for_function(f"() => {HOOK}.camera().still")
    top, low = (page.evaluate(f"(id) => {HOOK}.position(id)", node) for node in (first, last))
    corners = [(-130, top["y"] - 20), (130, top["y"] - 20), (130, low["y"] + 20), (-130, low["y"] + 20)]
    page.keyboard.down("Shift")
    page.mouse.move(top["x"] + corners[0][0], corners[0][1])
    page.mouse.down()
    for x, y in corners[1:]:
        page.mouse.move(top["x"] + x, y, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")


def wait_light_hull(page: Page) -> None:
    """Wait until the chosen hull's left outline stands out from the dark: a row across it has a light pixel."""
    page.wait_for_function(
        f"""() => {{
            const canvas = document.querySelector('.eg-canvas');
            const box = canvas.getBoundingClientRect();
            const at = {HOOK}.position('n1');
            const ratio = canvas.width / box.width;
            const y = Math.round((at.y + 36 - box.top) * ratio);
            const from = Math.round((at.x - 110 - box.left) * ratio);
            const row = canvas.getContext('2d').getImageData(from, y, 70, 1).data;
            return row.some((value, i) => i % 4 === 0 && value > 150);
        }}"""
    )


def click_at(page: Page, node: str) -> None:
    """Click a node once the picture has come to rest."""
    page.wait_for_function(f"() => {HOOK}.camera().still")
    click(page, node)
