"""A JupyterLab server of the tests' own: no token, no user settings, dead when they are done."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

START_SECONDS = 90.0
REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class JupyterServer:
    """A running server: its address without a trailing slash, the folder it serves, its log."""

    url: str
    root: Path
    log: Path

    def shut_down_kernels(self) -> None:
        """End every session and kernel, so that the next test starts from none."""
        for kind in ("sessions", "kernels"):
            for entry in json.loads(request(f"{self.url}/api/{kind}")):
                with contextlib.suppress(urllib.error.HTTPError):
                    request(f"{self.url}/api/{kind}/{entry['id']}", method="DELETE")


def request(url: str, method: str = "GET") -> bytes:
    """The body of the answer; raises on anything but 2xx."""
    query = urllib.request.Request(url, method=method)
    with urllib.request.urlopen(query, timeout=20) as answer:
        return answer.read()


def free_port() -> int:
    """A port on loopback that nothing listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def isolated_environment(state: Path) -> dict[str, str]:
    """The environment with Jupyter's and IPython's user folders moved below ``state``."""
    folders = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "IPYTHONDIR": "ipython",
    }
    places = {name: str(state / folder) for name, folder in folders.items()}
    search = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]))
    return os.environ | places | {"PYTHONPATH": search, "PYTHONUNBUFFERED": "1"}


def _command(port: int, root: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "jupyterlab", "--allow-root", "--no-browser", "--ip=127.0.0.1"),
        *(f"--port={port}", "--ServerApp.port_retries=0", f"--ServerApp.root_dir={root}"),
        *("--IdentityProvider.token=", "--ServerApp.password="),
        *("--ServerApp.disable_check_xsrf=True", "--LabApp.expose_app_in_browser=True"),
        "--LabApp.news_url=",
    ]


@contextlib.contextmanager
def jupyter_server(folder: Path) -> Iterator[JupyterServer]:
    """Serve ``folder/work`` until the block ends, then end the server and all it started."""
    root = folder / "work"
    root.mkdir()
    log = folder / "jupyter.log"
    port = free_port()
    environment = isolated_environment(folder / "state")
    with log.open("wb") as sink, process_group(_command(port, root), environment, sink) as process:
        server = JupyterServer(f"http://127.0.0.1:{port}", root, log)
        wait_until_answering(f"{server.url}/api/status", process, log)
        yield server


@contextlib.contextmanager
def process_group(
    command: list[str], environment: dict[str, str], output: object, cwd: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run ``command`` in a process group of its own; afterwards no descendant is left."""
    process = subprocess.Popen(
        command,
        env=environment,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=output,  # type: ignore[arg-type]  # Popen's own type for it cannot be spelled
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    # Kernels live in process groups of their own, so they are collected before their parent goes.
    with contextlib.suppress(psutil.NoSuchProcess):
        descendants = psutil.Process(process.pid).children(recursive=True)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        _, alive = psutil.wait_procs([psutil.Process(process.pid), *descendants], timeout=10)
        for survivor in alive:
            with contextlib.suppress(psutil.NoSuchProcess):
                survivor.kill()
    process.wait(timeout=10)


def wait_until_answering(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Return once ``url`` answers; show the log when the server dies or takes too long."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            request(url)
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise RuntimeError(f"no answer from {url}; its log:\n{log.read_text(errors='replace')[-4000:]}")


@contextlib.contextmanager
def launched(call: str, folder: Path) -> Iterator[str]:
    """Run ``explorer.launch.<call>`` in ``folder/work`` with no user settings; the printed address."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    log = folder / "server.log"
    program = f"import sys; from explorer import launch; sys.exit(launch.{call})"
    command = [sys.executable, "-c", program]
    environment = isolated_environment(folder / "state")
    with log.open("wb") as sink, process_group(command, environment, sink, work) as process:
        deadline = time.monotonic() + START_SECONDS
        while not (found := re.search(r"explorer is at (\S+)", log.read_text())):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        yield found[1]
