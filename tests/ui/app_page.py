"""The app in a browser page, as a person uses it; what it shows is read from the page alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import FilePayload, Locator, Page

SOON_MS = 30_000
WORK_MS = 180_000

SITE = """() => document.querySelector('.explorer-app .lm-Widget[data-boxes]')
    ?.explorerGraph.view.model.get('highlighted').nodes ?? []"""
POSITION = """(id) => document.querySelector('.explorer-app .lm-Widget[data-boxes]')
    .explorerGraph.position(id)"""
STILL = """() => document.querySelector('.explorer-app .lm-Widget[data-boxes]')
    ?.explorerGraph.camera().still"""
SCENE = """() => {
    const { scene } = document.querySelector('.explorer-app .lm-Widget[data-boxes]').explorerGraph.view.state;
    return { title: scene.title, nodes: scene.count, edges: scene.edgeCount };
}"""


class AppPage:
    """What a person sees and presses."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.strip = page.locator(".explorer-strip")
        self.app = page.locator(".explorer-app")
        self.rows = self.app.locator(".explorer-table").first.locator("tbody tr")

    def wait_open(self, name: str) -> None:
        """Wait until a model is open, drawn, and its candidates are listed."""
        self.says(name)
        self.page.wait_for_function(f"() => ({SCENE})().title === {name!r}", timeout=SOON_MS)
        self.idle()

    def idle(self) -> None:
        """Wait until nothing runs."""
        self.app.get_by_role("button", name="Cancel", exact=True).wait_for(state="hidden", timeout=WORK_MS)

    def says(self, text: str, timeout: float = SOON_MS) -> None:
        """Wait for words in the strip."""
        self.strip.get_by_text(text).first.wait_for(timeout=timeout)

    def button(self, name: str) -> Locator:
        """A button by its text."""
        return self.app.get_by_role("button", name=name, exact=True)

    def press(self, name: str) -> None:
        """Press a button, once it can be pressed."""
        self.button(name).click(timeout=SOON_MS)

    def tab(self, name: str) -> None:
        """Show a tab."""
        self.app.get_by_role("tab", name=name, exact=True).click()

    def choose(self, label: str, option: str) -> None:
        """Choose from a list."""
        self.app.get_by_role("combobox", name=label, exact=True).select_option(label=option)

    def open_path(self, path: Path | str) -> None:
        """Give a path and press Enter."""
        field = self.app.get_by_role("textbox", name="File", exact=True)
        field.fill(str(path))
        field.press("Enter")

    def upload(self, file: Path | FilePayload) -> None:
        """Choose a file with the Upload button."""
        with self.page.expect_file_chooser() as chooser:
            self.press("Upload")
        chooser.value.set_files(file)

    def filter(self, text: str) -> None:
        """Filter the candidates."""
        self.app.get_by_role("searchbox", name="Filter candidates").fill(text)

    def row(self, place: str) -> Locator:
        """The row of a candidate by rule and nodes."""
        return self.app.locator(f'tr[data-place="{place}"]')

    def select(self, place: str) -> None:
        """Click a candidate's row and wait until its site is outlined."""
        self.row(place).click()
        self.wait_site(place.partition(":")[2].split("+"))

    def site(self) -> list[str]:
        """The nodes outlined in the graph."""
        found: list[str] = self.page.evaluate(SITE)
        return found

    def wait_site(self, nodes: Sequence[str]) -> None:
        """Wait until exactly these nodes are outlined."""
        wanted = list(nodes)
        self.page.wait_for_function(
            f"(wanted) => JSON.stringify(({SITE})()) === JSON.stringify(wanted)", arg=wanted, timeout=SOON_MS
        )

    def scene(self) -> dict[str, Any]:
        """Title, nodes (ends of the graph included) and edges of the drawn graph."""
        found: dict[str, Any] = self.page.evaluate(SCENE)
        return found

    def click_node(self, node: str) -> None:
        """Click a node in the graph, where it is drawn."""
        self.page.wait_for_function(STILL, timeout=SOON_MS)
        place = self.page.evaluate(POSITION, node)
        self.page.mouse.click(place["x"], place["y"])
