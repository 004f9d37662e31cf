"""Drive JupyterLab and Voila as a person would, and notice what must never happen.

Every page aborts and records requests that leave the machine and collects errors of the browser's
console; ``check`` fails the test on either.
"""

from __future__ import annotations

import shutil
import urllib.parse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Route, WebSocket

from tests.ui.server import JupyterServer

LOOPBACK = {"127.0.0.1", "localhost", "::1"}
READY_MS = 90_000
RUN_MS = 180_000

# Voila's page names an icon font and MathJax on CDNs. The requests are aborted; nothing of ours
# asks for them, and `explorer app` forbids them by its content security policy.
VOILA_CDNS = (
    "https://cdn.jsdelivr.net/npm/@fortawesome/",
    "https://cdnjs.cloudflare.com/ajax/libs/mathjax/",
)
# JupyterLab's debugger asks a kernel about breakpoints, and complains when it is restarted then.
DEBUGGER_AT_RESTART = "Could not restore the debugger state"

KERNEL_READY = """() => {
    const context = window.jupyterapp?.shell?.currentWidget?.context;
    const kernel = context?.sessionContext?.session?.kernel;
    return kernel?.connectionStatus === 'connected' && kernel.status === 'idle';
}"""
START_RUN = """() => {
    window.harnessRun = null;
    window.jupyterapp.commands.execute('notebook:run-all-cells').then(
        () => { window.harnessRun = 'done'; },
        (error) => { window.harnessRun = String(error); });
}"""
OUTPUTS = """() => window.jupyterapp.shell.currentWidget.content.widgets
    .filter((cell) => cell.model.type === 'code')
    .map((cell) => cell.model.outputs.toJSON())"""
RESTART = """() => {
    window.harnessRestart = null;
    window.jupyterapp.shell.currentWidget.context.sessionContext.session.kernel.restart().then(
        () => { window.harnessRestart = 'done'; },
        (error) => { window.harnessRestart = String(error); });
}"""


def write_notebook(path: Path, cells: Sequence[str]) -> Path:
    """A notebook of these code cells, each an execution on its own."""
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in cells],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    nbformat.write(notebook, path)
    return path


class GuardedPage:
    """A browser page that cannot reach anything but this machine.

    Attributes:
        page: Playwright's page, for whatever the test wants to press or read.
        refused: addresses that were asked for and not fetched.
        console_errors: what the page complained about, with where it comes from.
        tolerated: addresses and messages of JupyterLab's or Voila's own that are no failure.
    """

    tolerated: tuple[str, ...] = ()

    def __init__(self, context: BrowserContext, server: JupyterServer) -> None:
        self.server = server
        self.refused: list[str] = []
        self.console_errors: list[str] = []
        context.route("**/*", self._route)
        self.page: Page = context.new_page()
        self.page.on("websocket", self._on_websocket)
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.console_errors.append(f"uncaught: {error}"))

    def _route(self, route: Route) -> None:
        if _is_local(route.request.url):
            route.fallback()
        else:
            self.refused.append(route.request.url)
            route.abort()

    def _on_websocket(self, socket: WebSocket) -> None:
        if not _is_local(socket.url):
            self.refused.append(socket.url)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.console_errors.append(f"{message.text} ({message.location.get('url', '')})")

    def check(self) -> None:
        """Fail if anything wanted to leave the machine or the browser reported an error."""
        refused = [url for url in self.refused if not url.startswith(self.tolerated)]
        assert not refused, f"left the machine: {refused}"
        errors = [text for text in self.console_errors if not any(t in text for t in self.tolerated)]
        assert not errors, f"browser console: {errors}"

    def place(self, source: Sequence[str] | Path, name: str) -> str:
        """Put a notebook (cells, or a file to copy) into the server's folder; its file name."""
        target = self.server.root / f"{name}.ipynb"
        if isinstance(source, Path):
            shutil.copyfile(source, target)
        else:
            write_notebook(target, source)
        return urllib.parse.quote(target.name)


class Lab(GuardedPage):
    """JupyterLab on one notebook."""

    tolerated = (DEBUGGER_AT_RESTART,)

    def open_notebook(self, source: Sequence[str] | Path, name: str = "test") -> None:
        """Open cells, or a copy of a notebook file, and wait until its kernel can be used."""
        file_name = self.place(source, name)
        self.page.goto(f"{self.server.url}/lab/tree/{file_name}?reset")
        self.page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=READY_MS)
        self.wait_idle()

    def wait_idle(self) -> None:
        """Wait until the kernel is connected and has nothing to do."""
        self.page.wait_for_function(KERNEL_READY, timeout=READY_MS)

    def start_run(self) -> None:
        """Run all cells without waiting for them."""
        self.page.evaluate(START_RUN)

    def finish_run(self) -> None:
        """Wait for the run that ``start_run`` began; fail with the traceback if a cell failed."""
        self._wait_for("harnessRun")
        failures = [o for outputs in self.outputs() for o in outputs if o["output_type"] == "error"]
        assert not failures, "\n".join(["a cell failed:", *failures[0]["traceback"]])

    def run_all(self) -> None:
        """Run all cells and wait for the last one."""
        self.start_run()
        self.finish_run()

    def restart_kernel(self) -> None:
        """Restart the kernel as Kernel > Restart does, without its question."""
        self.page.evaluate(RESTART)
        self._wait_for("harnessRestart")
        self.wait_idle()

    def outputs(self) -> list[list[dict[str, Any]]]:
        """The outputs of every code cell, in the notebook file's format."""
        found: list[list[dict[str, Any]]] = self.page.evaluate(OUTPUTS)
        return found

    def _wait_for(self, flag: str) -> None:
        self.page.wait_for_function(f"() => window.{flag} !== null", timeout=RUN_MS)
        assert self.page.evaluate(f"() => window.{flag}") == "done"


class VoilaPage(GuardedPage):
    """A notebook as a page of its own, rendered by the same server."""

    tolerated = VOILA_CDNS

    def open(self, source: Sequence[str] | Path, name: str = "page") -> None:
        """Show cells, or a copy of a notebook file, and wait until all have run."""
        file_name = self.place(source, name)
        self.page.goto(f"{self.server.url}/voila/render/{file_name}", timeout=RUN_MS)
        self.page.wait_for_selector("#rendered_cells", state="visible", timeout=RUN_MS)


def _is_local(url: str) -> bool:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme in {"data", "blob", "about"} or parts.hostname in LOOPBACK
