"""The canvas in Chromium, on the page that ``to_html`` writes: no kernel, no server, no network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, Page

from explorer.ui.graphview import (
    EdgeClass,
    EdgeClasses,
    EdgeValues,
    GraphView,
    Group,
    Kind,
    Scene,
    SceneEdge,
    SceneNode,
    by_time,
)
from tests.ui.graphview.examples import HOSTILE, chain, hostile, scene_from, scoped

pytestmark = pytest.mark.browser

GRAPH = "document.getElementById('graph').explorerGraph"
Open = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """A function that shows a view in a fresh page; any error of the script fails the test."""
    contexts, errors = [], list[str]()

    def opened(view: GraphView, **options: Any) -> Page:
        context = browser.new_context(viewport={"width": 1000, "height": 700}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
        page.goto(view_file(view, tmp_path).as_uri())
        page.wait_for_selector("[data-drawn='1']")
        page.evaluate("window.sent = []; graphModel.on('sent', (m) => window.sent.push(m))")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert errors == []


def view_file(view: GraphView, folder: Path) -> Path:
    path = folder / "graph.html"
    view.to_html(path)
    return path


def settle(page: Page) -> None:
    """Wait until no glide and no redraw is under way."""
    page.wait_for_function(f"() => {GRAPH}.camera().still")


def click(page: Page, node: str, **options: Any) -> None:
    settle(page)
    at = page.evaluate(f"(id) => {GRAPH}.position(id)", node)
    page.mouse.click(at["x"], at["y"], **options)
    settle(page)


def selection(page: Page) -> list[str]:
    return page.evaluate("() => graphModel.get('selection')")


def commands(page: Page) -> list[dict[str, str]]:
    return page.evaluate("() => window.sent")


def pixels(page: Page) -> str:
    """What is on the canvas, as a data URL."""
    settle(page)
    return page.evaluate("() => document.querySelector('.eg-canvas').toDataURL()")


def test_a_click_selects_the_node_under_the_pointer(open_page: Open) -> None:
    page = open_page(GraphView(chain(5)))
    before = pixels(page)
    click(page, "n3")
    assert selection(page) == ["n3"]
    assert pixels(page) != before
    page.keyboard.down("Shift")
    click(page, "n1")
    assert selection(page) == ["n1", "n3"]
    click(page, "n3")
    assert selection(page) == ["n1"]
    page.keyboard.up("Shift")
    page.mouse.click(20, 120)
    assert selection(page) == []


def test_a_lasso_selects_what_it_surrounds(open_page: Open) -> None:
    page = open_page(GraphView(chain(5)))
    settle(page)
    first, last = (page.evaluate(f"(id) => {GRAPH}.position(id)", i) for i in ("n1", "n3"))
    page.keyboard.down("Shift")
    page.mouse.move(first["x"] - 150, first["y"] - 30)
    page.mouse.down()
    for x, y in [(first["x"] + 150, first["y"] - 30), (last["x"] + 150, last["y"] + 30),
                 (last["x"] - 150, last["y"] + 30)]:  # fmt: skip
        page.mouse.move(x, y, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    assert selection(page) == ["n1", "n2", "n3"]


def test_search_finds_steps_and_escape_clears(open_page: Open) -> None:
    labels = ["Conv", "Relu", "Conv", "Add", "Conv"]
    page = open_page(GraphView(scene_from([(i, i + 1) for i in range(4)], 5, labels)))
    page.locator(".eg-canvas").focus()
    page.keyboard.press("/")
    page.keyboard.type("conv")
    count = page.locator(".eg-found")
    assert count.text_content() == "3 found"
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert (count.text_content(), selection(page)) == ("2 of 3", ["n2"])
    page.keyboard.press("Shift+Enter")
    assert selection(page) == ["n0"]
    page.keyboard.press("Escape")
    assert (count.text_content(), page.locator(".eg-input").input_value()) == ("", "")
    page.keyboard.press("Escape")
    assert selection(page) == []


def test_search_finds_names_and_ids_and_says_when_nothing_is_found(open_page: Open) -> None:
    page = open_page(GraphView(chain(12)))
    box = page.locator(".eg-input")
    box.fill("/node7")
    box.press("Enter")
    assert selection(page) == ["n7"]
    box.fill("n1")
    box.press("Enter")
    assert selection(page) == ["n1"]  # the exact id comes before n10 and n11
    box.fill("nowhere")
    assert page.locator(".eg-found").text_content() == "none"


def test_a_hit_in_a_closed_block_asks_python_to_open_it(open_page: Open) -> None:
    view = GraphView(scoped([()] + [("a",)] * 5))
    view.collapse_all()
    page = open_page(view)
    box = page.locator(".eg-input")
    box.fill("n4")
    box.press("Enter")
    assert {"command": "reveal", "argument": "n4"} in commands(page)


def test_blocks_ask_to_be_opened_and_say_why_nothing_happens(open_page: Open) -> None:
    view = GraphView(scoped([()] + [("a",)] * 5))
    view.collapse_all()
    page = open_page(view)
    at = page.evaluate(f"(id) => {GRAPH}.position(id)", "n3")
    page.mouse.dblclick(at["x"], at["y"])
    assert commands(page) == [{"command": "toggle", "argument": "scope:a"}]
    page.wait_for_selector("text=needs a running kernel", timeout=10_000)


def test_an_opened_block_stays_where_it_was(open_page: Open) -> None:
    view = GraphView(scoped([("z",)] * 9 + [("a",)] * 5 + [()] * 9))
    view.collapse_all()
    closed = dict(view.picture)
    view.expand("scope:z")
    opened = dict(view.picture)
    view.picture = closed
    page = open_page(view)
    settle(page)
    where = page.evaluate(f"() => {GRAPH}.position('n12')")
    page.evaluate(
        "(wire) => { const view = " + GRAPH + ".view;"
        " view.framing.holdStill(view.state.picture.home[12]);"
        " const bytes = (v) => new DataView(Uint8Array.from(v).buffer);"
        " const revive = ([k, v]) => [k, Array.isArray(v) && k !== 'blocks' ? bytes(v) : v];"
        " graphModel.set('picture', Object.fromEntries(Object.entries(wire).map(revive))); }",
        numbers(opened),
    )
    page.wait_for_selector("[data-drawn='2']")
    settle(page)
    there = page.evaluate(f"() => {GRAPH}.position('n12')")
    assert there == pytest.approx(where, abs=1)


def numbers(wire: dict[str, Any]) -> dict[str, Any]:
    """Playwright sends no bytes, but lists of numbers."""
    return {k: list(v) if isinstance(v, bytes) else v for k, v in wire.items()}


def test_keys_move_along_lines_and_choose(open_page: Open) -> None:
    page = open_page(GraphView(chain(4)))
    canvas = page.locator(".eg-canvas")
    assert canvas.get_attribute("role") == "application"
    assert "4 nodes" in (canvas.get_attribute("aria-label") or "")
    click(page, "n1")
    page.keyboard.press("ArrowDown")
    assert "n2" in (page.locator(".eg-spoken").text_content() or "")
    page.keyboard.press("Enter")
    assert selection(page) == ["n2"]
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Shift+Enter")
    assert selection(page) == ["n1", "n2"]


def test_keys_go_no_further_than_the_view(open_page: Open) -> None:
    page = open_page(GraphView(chain(3)))
    page.evaluate("window.heard = []; document.addEventListener('keydown', (e) => window.heard.push(e.key))")
    page.locator(".eg-canvas").focus()
    for key in ("d", "x", "f", "Enter", "Escape", "ArrowDown"):
        page.keyboard.press(key)
    page.locator(".eg-input").fill("")
    page.locator(".eg-input").press("d")
    assert page.evaluate("window.heard") == []


def test_wheel_zooms_to_the_pointer_and_buttons_fit(open_page: Open) -> None:
    page = open_page(GraphView(chain(30)))
    settle(page)
    at = page.evaluate(f"() => {GRAPH}.position('n3')")
    scale = page.evaluate(f"() => {GRAPH}.camera().scale")
    assert scale == 1  # a long graph opens at original size, at its top
    page.mouse.move(at["x"], at["y"])
    page.mouse.wheel(0, -300)
    settle(page)
    assert page.evaluate(f"() => {GRAPH}.camera().scale") > scale
    assert page.evaluate(f"() => {GRAPH}.position('n3')") == pytest.approx(at, abs=1)
    page.get_by_role("button", name="Fit", exact=True).click()
    settle(page)
    for node in ("n0", "n29"):
        spot = page.evaluate(f"(id) => {GRAPH}.position(id)", node)
        assert 0 < spot["y"] < 700


def test_svg_and_png_of_the_whole_picture(open_page: Open, tmp_path: Path) -> None:
    page = open_page(GraphView(hostile()))
    with page.expect_download() as caught:
        page.get_by_role("button", name="SVG").click()
    target = tmp_path / "saved.svg"
    caught.value.save_as(target)
    root = ElementTree.fromstring(target.read_text(encoding="utf-8"))
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert tags == {"svg", "title", "rect", "path", "text"}
    assert any("<img src=x" in (element.text or "") for element in root.iter())
    with page.expect_download() as caught:
        page.get_by_role("button", name="PNG").click()
    image = tmp_path / "saved.png"
    caught.value.save_as(image)
    assert image.read_bytes().startswith(b"\x89PNG")
    assert page.title() == HOSTILE.replace("\x00", "\ufffd")


def test_hostile_names_stay_text(open_page: Open) -> None:
    page = open_page(GraphView(hostile()))
    settle(page)
    at = page.evaluate(f"() => {GRAPH}.position('n0')")
    page.mouse.move(at["x"], at["y"])
    page.wait_for_selector(".eg-tip:not([hidden])")
    assert page.locator(".eg-tip img, .eg-legend img").count() == 0
    assert page.locator(".eg-tip-name").text_content() == HOSTILE
    assert page.title() != "owned"


def test_the_theme_is_followed(open_page: Open) -> None:
    page = open_page(GraphView(chain(3)), color_scheme="light")
    light = pixels(page)
    assert page.evaluate(f"() => {GRAPH}.theme().dark") is False
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"() => {GRAPH}.theme().dark")
    dark = pixels(page)
    assert dark != light
    page.evaluate(
        "document.body.style.setProperty('--jp-layout-color0', 'rgb(250, 250, 250)');"
        "document.body.style.setProperty('--jp-ui-font-color0', 'rgb(10, 10, 10)');"
        "document.body.dataset.jpThemeLight = 'true'"
    )
    page.wait_for_function(f"() => !{GRAPH}.theme().dark")
    assert page.evaluate(f"() => {GRAPH}.theme().background") == "rgb(250,250,250)"
    assert pixels(page) not in {light, dark}


def test_a_style_sheet_that_arrives_late_is_noticed(open_page: Open) -> None:
    page = open_page(GraphView(chain(3)), color_scheme="light")
    page.evaluate(
        "const style = document.createElement('style');"
        "style.textContent = ':root { --jp-layout-color0: #111111; --jp-ui-font-color0: #eeeeee; }';"
        "document.head.appendChild(style)"
    )
    page.wait_for_function(f"() => {GRAPH}.theme().dark")


def test_a_hidden_view_draws_when_it_is_shown(open_page: Open) -> None:
    page = open_page(GraphView(chain(3)))
    page.evaluate("document.getElementById('graph').style.display = 'none'")
    page.evaluate("graphModel.set('highlighted', { nodes: ['n1'], label: 'site', dim: true })")
    page.evaluate("document.getElementById('graph').style.display = ''")
    page.wait_for_function(f"() => {GRAPH}.view.state.highlight?.boxes.size === 1")


def test_highlight_comes_into_view_and_dims_the_rest(open_page: Open) -> None:
    view = GraphView(chain(60))
    view.highlight(["n50", "n51"], "fold")
    page = open_page(view)
    page.evaluate("graphModel.set('highlighted', graphModel.get('highlighted'))")
    page.wait_for_function(f"() => {GRAPH}.position('n50').y < 600")
    settle(page)
    alpha = page.evaluate(f"() => {GRAPH}.view.state.looks.map((look) => look.alpha)")
    assert [i for i, value in enumerate(alpha) if value == 1] == [50, 51]
    page.locator(".eg-canvas").focus()
    page.keyboard.press("Escape")
    settle(page)
    assert page.evaluate(f"() => {GRAPH}.view.state.looks.every((look) => look.alpha === 1)")


def test_before_and_after_are_linked_panes(open_page: Open) -> None:
    view = GraphView()
    view.compare(scene_from([(0, 1), (1, 2)], 3), scene_from([(0, 1)], 2), changed=["n0"])
    page = open_page(view)
    panes = page.evaluate(f"() => {GRAPH}.view.ports().map((p) => [p.pane, p.title, p.note])")
    assert panes == [["before", "Before", "−1  ~1"], ["after", "After", "~1"]]
    split = pixels(page)
    page.get_by_role("button", name="Merged").click()
    assert page.evaluate(f"() => {GRAPH}.view.ports().length") == 1
    assert pixels(page) != split
    assert "removed" in (page.locator(".eg-legend").text_content() or "")


def test_colours_have_a_legend_with_their_source(open_page: Open) -> None:
    view = GraphView(chain(3), colourings=[by_time({"n0": 2e6, "n1": 5e5}, "measured: test")])
    page = open_page(view)
    page.locator(".eg-select").select_option("time")
    legend = page.locator(".eg-legend")
    legend.get_by_text("measured: test").wait_for()
    assert "2 ms" in (legend.text_content() or "")
    assert commands(page) == [{"command": "colour", "argument": "time"}]


def test_groups_values_and_classes_of_edges_are_drawn(open_page: Open) -> None:
    view = GraphView(chain(4))
    plain = pixels(open_page(view))
    view.set_groups([Group("g", "group 1", ["n0", "n1"])])
    grouped = pixels(open_page(view))
    view.set_groups([])
    view.set_edge_values(EdgeValues("Score", {("n0", "n1"): 1.0, ("n1", "n2"): 0.1}))
    page = open_page(view)
    valued = pixels(page)
    assert "Score" in (page.locator(".eg-legend").text_content() or "")
    only, both = frozenset({("n0", "n1")}), frozenset({("n1", "n2"), ("n2", "n3")})
    view.set_edge_values(
        EdgeClasses(
            "Through DRAM", [EdgeClass("in A", only, "#D55E00"), EdgeClass("in both", both, "#7A8794")]
        )
    )
    page = open_page(view)
    assert len({plain, grouped, valued, pixels(page)}) == 4
    assert "Through DRAMin A1in both2" in (page.locator(".eg-legend").text_content() or "")


def test_stubs_lead_to_the_other_end(open_page: Open) -> None:
    page = open_page(GraphView(scene_from([(0, i) for i in range(1, 12)], 12)))
    page.evaluate(f"() => {GRAPH}.reveal('n2')")
    settle(page)
    stub = page.evaluate(
        f"""() => {{
            const view = {GRAPH}.view;
            const {{ picture }} = view.state;
            const n = [...Array(picture.stubCount).keys()].find((s) => picture.stubIncoming(s));
            const box = view.canvas.getBoundingClientRect();
            const at = view.camera.toScreen(
                view.ports()[0].port, picture.stubPoints[n * 2] + 20, picture.stubPoints[n * 2 + 1] + 9);
            return {{ x: box.left + at[0], y: box.top + at[1] }};
        }}"""
    )
    page.mouse.click(stub["x"], stub["y"])
    assert selection(page) == ["n0"]


def test_an_empty_graph_says_so(open_page: Open) -> None:
    page = open_page(GraphView(Scene(title="empty")))
    assert page.get_by_text("No nodes to show").is_visible()


def test_before_anything_is_open_the_view_says_so(open_page: Open) -> None:
    page = open_page(GraphView(Scene()))
    assert page.get_by_text("No model is open").is_visible()


def test_five_thousand_nodes_are_drawn(open_page: Open) -> None:
    count = 5000
    nodes = [SceneNode(f"n{i}", "Conv", detail="1×8", family="conv") for i in range(count)]
    nodes.append(SceneNode("out0", "y", Kind.OUTPUT))
    edges = [SceneEdge(i, i + 1, f"t{i}") for i in range(count)]
    edges += [SceneEdge(i, i + 7, f"t{i}") for i in range(0, count - 7, 5)]
    view = GraphView(Scene(tuple(nodes), tuple(edges)))
    view.expand_all()
    page = open_page(view)
    page.get_by_role("button", name="Fit", exact=True).click()
    click(page, "n2500")
    assert len(selection(page)) == 1
