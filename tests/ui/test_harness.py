"""The harness itself: widgets answer clicks, and its guards see what they are there to see."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ui.harness import Lab, VoilaPage, write_notebook

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


def press_both(page: Lab | VoilaPage) -> None:
    page.page.get_by_role("button", name="Press").click()
    page.page.get_by_text("python heard it").wait_for()
    for count in range(3):
        page.page.locator("button.counter", has_text=f"count {count}").click()
    page.page.get_by_text("doubled 6").wait_for()


def test_widgets_answer_clicks_in_lab(lab: Lab) -> None:
    lab.open_notebook([BUTTON, COUNTER], name="name with space")
    lab.run_all()
    press_both(lab)


def test_widgets_answer_clicks_in_voila(voila: VoilaPage) -> None:
    voila.open([BUTTON, COUNTER])
    press_both(voila)


def test_kernels_do_not_outlive_their_test(lab: Lab) -> None:
    kernels = f"{lab.server.url}/api/kernels"
    assert lab.page.request.post(kernels, data={"name": "python3"}).ok
    assert len(lab.page.request.get(kernels).json()) == 1
    lab.server.shut_down_kernels()
    assert lab.page.request.get(kernels).json() == []


def test_a_failing_cell_fails_the_run(lab: Lab) -> None:
    lab.open_notebook(["1 / 0"])
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        lab.run_all()


def test_a_restarted_kernel_has_forgotten_its_variables(lab: Lab) -> None:
    lab.open_notebook(["first_time = 'x' not in globals(); x = 1; first_time"])
    for expected in ("True", "True"):
        lab.run_all()
        assert lab.outputs()[0][0]["data"]["text/plain"] == expected
        lab.restart_kernel()


def test_a_request_to_the_outside_is_stopped_and_reported(lab: Lab) -> None:
    lab.page.goto("about:blank")
    lab.page.evaluate("() => fetch('https://example.invalid/x').catch(() => null)")
    assert lab.refused == ["https://example.invalid/x"]
    with pytest.raises(AssertionError, match=r"example\.invalid"):
        lab.check()
    lab.refused.clear()
    lab.console_errors.clear()


def test_an_error_in_the_console_is_reported(lab: Lab) -> None:
    lab.page.goto("about:blank")
    lab.page.evaluate("() => console.error('the widget broke')")
    with pytest.raises(AssertionError, match="the widget broke"):
        lab.check()
    lab.console_errors.clear()


def test_a_notebook_file_is_copied_not_opened_in_place(lab: Lab, tmp_path: Path) -> None:
    original = write_notebook(tmp_path / "original.ipynb", ["21 * 2"])
    before = original.read_bytes()
    lab.open_notebook(original)
    lab.run_all()
    assert lab.outputs()[0][0]["data"]["text/plain"] == "42"
    assert original.read_bytes() == before
