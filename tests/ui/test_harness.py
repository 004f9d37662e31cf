"""The harness itself: its guards see what they are there to see."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ui.harness import Lab, write_notebook

pytestmark = pytest.mark.browser


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
