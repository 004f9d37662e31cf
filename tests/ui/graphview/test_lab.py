"""The graph view inside JupyterLab: Python hears clicks, the notebook hears no keys, nothing is lost."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.ui.harness import Lab

pytestmark = pytest.mark.browser

CELL = """
from explorer.ui.graphview import GraphView, Scene, SceneEdge, SceneNode
from ipywidgets import Label, VBox

def node(i):
    scope = ("stage", f"part{i // 5}") if 5 <= i < 15 else ()
    return SceneNode(f"n{i}", "Conv", name=f"/conv{i}", detail="1×8×4×4", family="conv", scope=scope)

nodes = tuple(node(i) for i in range(20))
edges = tuple(SceneEdge(i, i + 1, f"t{i}") for i in range(19))
view = GraphView(Scene(nodes, edges), height=420)
view.collapse_all()
said = Label("nothing yet")
view.on_select(lambda ids: setattr(said, "value", "selected " + " ".join(ids)))
VBox([view, said])
"""
HOOK = "[...document.querySelectorAll('[data-drawn]')].find((el) => el.explorerGraph).explorerGraph"
CELLS = "() => window.jupyterapp.shell.currentWidget.content.widgets.length"
RUN = "(command) => { window.jupyterapp.commands.execute(command); }"
CLOSED, OPEN = 11, 23


def wait_drawn(page: Page, boxes: int) -> None:
    page.wait_for_selector(f'[data-drawn][data-boxes="{boxes}"]', timeout=60_000)
    page.wait_for_function(f"() => {HOOK}.camera().still")


def click(page: Page, node: str) -> None:
    at = page.evaluate(f"(id) => {HOOK}.position(id)", node)
    page.mouse.click(at["x"], at["y"])


def test_clicks_reach_python_and_keys_stay_in_the_view(lab: Lab) -> None:
    lab.open_notebook([CELL, "1 + 1"])
    lab.run_all()
    page = lab.page
    wait_drawn(page, CLOSED)
    click(page, "n2")
    page.wait_for_selector("text=selected n2")
    page.locator(".explorer-graph").get_by_text("Expand all").click()
    wait_drawn(page, OPEN)
    click(page, "n3")
    page.wait_for_selector("text=selected n3")
    for key in ("d", "d", "x", "a", "b", "Enter"):  # delete, cut, insert cells in command mode
        page.keyboard.press(key)
    assert page.evaluate(CELLS) == 2
    page.keyboard.press("Escape")
    page.wait_for_function("() => document.body.textContent.includes('selected ')")
    page.locator(".explorer-graph .eg-input").fill("/conv9")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=selected n9")


def test_the_theme_of_jupyterlab_is_followed(lab: Lab) -> None:
    lab.open_notebook([CELL])
    lab.run_all()
    page = lab.page
    wait_drawn(page, CLOSED)
    assert page.evaluate(f"() => {HOOK}.theme().dark") is False
    page.evaluate(
        "() => { window.jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' }); }"
    )
    page.wait_for_function(f"() => {HOOK}.theme().dark", timeout=30_000)
    page.wait_for_function(f"() => {HOOK}.camera().still")
    corner = "document.querySelector('.eg-canvas').getContext('2d').getImageData(3, 3, 1, 1).data[0]"
    assert page.evaluate(f"() => {corner}") < 60


def test_a_saved_notebook_draws_the_graph_without_running(lab: Lab) -> None:
    lab.open_notebook([CELL])
    lab.run_all()
    page = lab.page
    wait_drawn(page, CLOSED)
    page.evaluate(RUN, "@jupyter-widgets/jupyterlab-manager:saveWidgetState")
    saved = lab.server.root / "test.ipynb"
    for _ in range(40):  # the setting takes effect some time after the command
        page.evaluate(RUN, "docmanager:save")
        page.wait_for_timeout(250)
        if '"widgets"' in saved.read_text(encoding="utf-8"):
            break
    lab.server.shut_down_kernels()
    page.goto(f"{lab.server.url}/lab/tree/test.ipynb?reset")
    wait_drawn(page, CLOSED)
    assert page.evaluate(f"() => {HOOK}.position('n0')")
