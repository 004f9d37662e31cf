"""Fixtures that start JupyterLab and Chromium once per session, and a fresh page per test."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from tests.ui.chromium import MISSING, find_chromium
from tests.ui.harness import GuardedPage, Lab, VoilaPage
from tests.ui.server import JupyterServer, jupyter_server

RESULTS = Path(__file__).resolve().parents[2] / "test-results"
VIEWPORT = {"width": 1600, "height": 1000}
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
]
_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    """Remember a failure, so that the page fixture can take a picture before it closes."""
    report = yield
    item.stash[_FAILED] = item.stash.get(_FAILED, False) or report.failed
    return report


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JupyterServer]:
    """A JupyterLab server that knows nothing of the user's settings."""
    with jupyter_server(tmp_path_factory.mktemp("jupyter")) as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Headless Chromium."""
    path = find_chromium()
    if path is None:
        pytest.fail(MISSING, pytrace=False)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield running
        running.close()


@pytest.fixture
def browser_context(browser: Browser) -> Iterator[BrowserContext]:
    """An empty profile: no cookies, no stored JupyterLab layout."""
    context = browser.new_context(viewport=VIEWPORT, accept_downloads=True)
    yield context
    context.close()


@pytest.fixture
def lab(
    browser_context: BrowserContext, server: JupyterServer, request: pytest.FixtureRequest
) -> Iterator[Lab]:
    """JupyterLab, ready for ``open_notebook``."""
    page = Lab(browser_context, server)
    with _guarded(page, request):
        yield page


@pytest.fixture
def voila(
    browser_context: BrowserContext, server: JupyterServer, request: pytest.FixtureRequest
) -> Iterator[VoilaPage]:
    """Voila, ready for ``open``."""
    page = VoilaPage(browser_context, server)
    with _guarded(page, request):
        yield page


@contextlib.contextmanager
def _guarded(page: GuardedPage, request: pytest.FixtureRequest) -> Iterator[None]:
    try:
        yield
        if request.node.stash.get(_FAILED, False):
            _photograph(page, request.node)
        else:
            page.check()
    finally:
        page.server.shut_down_kernels()


def _photograph(page: GuardedPage, item: pytest.Item) -> None:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / (re.sub(r"[^\w.-]+", "_", item.nodeid) + ".png")
    page.page.screenshot(path=path)
    notes = [f"screenshot: {path}", *page.console_errors, *page.refused]
    item.add_report_section("call", "browser", "\n".join(notes))
