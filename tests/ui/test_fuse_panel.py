"""The Fuse tab as a person meets it: hulls, slider, clicks in the graph, the bill, a search."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

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
    assert groups(page)[0] == "1 · 69.69 KB"

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


def click_at(page: Page, node: str) -> None:
    """Click a node once the picture has come to rest."""
    page.wait_for_function(f"() => {HOOK}.camera().still")
    click(page, node)
