"""``explorer lab`` and ``explorer app`` as a person meets them: token, address, policy and all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext

from explorer import launch
from tests.ui.harness import READY_MS, RUN_MS, VOILA_CDNS, GuardedPage, VoilaPage
from tests.ui.server import JupyterServer, launched

pytestmark = pytest.mark.browser

BUTTON = """
import ipywidgets
label = ipywidgets.Label("not pressed")
button = ipywidgets.Button(description="Press")
button.on_click(lambda _: setattr(label, "value", "python " + "heard it"))
ipywidgets.VBox([button, label])
"""
COUNTER = """
import anywidget, traitlets
class Counter(anywidget.AnyWidget):
    _esm = '''
    export default { render({ model, el }) {
        const button = document.createElement("button");
        const paint = () => { button.textContent = `count ${model.get("count")}`; };
        button.className = "counter";
        button.onclick = () => {
            model.set("count", model.get("count") + 1);
            model.save_changes();
        };
        model.on("change:count", paint);
        paint();
        el.append(button);
    } };
    '''
    count = traitlets.Int(0).tag(sync=True)
counter = Counter()
doubled = ipywidgets.Label("doubled 0")
counter.observe(lambda change: setattr(doubled, "value", f"doubled {2 * change.new}"), "count")
ipywidgets.VBox([counter, doubled])
"""


def press_both(page: GuardedPage) -> None:
    page.page.get_by_role("button", name="Press").click()
    page.page.get_by_text("python heard it").wait_for()
    for count in range(3):
        page.page.locator("button.counter", has_text=f"count {count}").click()
    page.page.get_by_text("doubled 6").wait_for()


def notebook_with(folder: Path, *cells: str) -> None:
    """The packaged notebook as ``folder/work/explore.ipynb``, with code cells before its own."""
    notebook = json.loads(launch.packaged_notebook().read_bytes())
    (app_cell,) = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    added = [{**app_cell, "id": f"c{i}", "source": source} for i, source in enumerate(cells)]
    notebook["cells"] = [*added, *notebook["cells"]]
    (folder / "work").mkdir()
    (folder / "work" / "explore.ipynb").write_text(json.dumps(notebook))


def test_lab_passes_the_model_to_the_kernel(browser_context: BrowserContext, tmp_path: Path) -> None:
    notebook_with(tmp_path, "import os; print('model is', os.environ['EXPLORER_MODEL'])")
    with launched("lab('resnet18', browser=False)", tmp_path) as address:
        lab = GuardedPage(browser_context, JupyterServer(address, tmp_path, tmp_path))
        lab.page.goto(address)
        lab.page.locator(".jp-CodeCell .cm-content").first.click(timeout=READY_MS)
        lab.page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=READY_MS)
        lab.page.keyboard.press("Control+Enter")
        lab.page.get_by_text("model is resnet18", exact=True).wait_for(timeout=READY_MS)
        assert lab.page.get_by_text("Jupyter news").count() == 0  # its question comes before a cell can run
        lab.check()


def test_app_runs_widgets_under_a_policy_that_lets_nothing_out(
    browser_context: BrowserContext, tmp_path: Path
) -> None:
    notebook_with(tmp_path, BUTTON, COUNTER)
    with launched("app('resnet18', browser=False)", tmp_path) as address:
        page = VoilaPage(browser_context, JupyterServer(address, tmp_path, tmp_path))
        page.page.goto(address, timeout=RUN_MS)
        press_both(page)
        page.check()
        assert page.refused == []  # the browser itself did not ask for Voila's fonts
        assert any(VOILA_CDNS[0] in text for text in page.console_errors)
