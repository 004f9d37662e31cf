"""Open the app in JupyterLab, or by Voila as a page of its own: on loopback, behind a token.

Both run in the current folder, so that models are found and exports land where the person works.
The notebook is copied there once as ``explore.ipynb``, the lessons beside it. It reads the model from the environment
variable ``EXPLORER_MODEL``: a name typed at the command line never becomes code.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import urllib.parse
import warnings
import webbrowser
from contextlib import suppress
from html import escape
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

from explorer.errors import ExplorerError, InputError

HOST = "127.0.0.1"
LAB_PORT = 8888
APP_PORT = 8866
PORTS_TRIED = 50
MODEL_VARIABLE = "EXPLORER_MODEL"

# JupyterLab's own switch, `news_url`, ends the requests but not the question whether to make them.
ANNOUNCEMENTS = "@jupyterlab/apputils-extension:announcements"

# Voila's template asks CDNs for an icon font and MathJax; the app needs neither.
LOCAL_ONLY = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; "
    f"connect-src 'self' ws://{HOST}:* data: blob:; frame-ancestors 'self'"
)


def lab(model: str | None = None, port: int | None = None, browser: bool = True) -> int:
    """Start JupyterLab on the app's notebook and stay until it is stopped.

    Args:
        model: a path or the name of a sample to open; None lets the person pick one in the app.
        port: where to listen on loopback; None takes the first free one from 8888.
        browser: open one, if this machine can; the address is printed in any case.

    Returns:
        The exit code for the command line.

    Raises:
        InputError: the model is unknown, or the port cannot be used.
        ExplorerError: the folder cannot be written, or JupyterLab is not installed.
    """
    port = _usable_port(port, LAB_PORT)
    _hand_over(model)
    try:
        from jupyterlab.labapp import LabApp
    except ImportError as error:
        raise _not_installed("JupyterLab", "jupyterlab") from error
    _hide_deprecations_of_jupyter()
    notebook = working_copy(Path.cwd())
    place_lessons(notebook.parent)
    page = f"/lab/tree/{urllib.parse.quote(notebook.name)}"
    token = secrets.token_hex(24)
    options = {
        "Application.log_level": "WARN",
        "IdentityProvider.token": token,
        "LabApp.check_for_updates_class": "jupyterlab.handlers.announcements.NeverCheckForUpdate",
        "LabApp.default_url": page,
        "LabApp.news_url": None,
        "ServerApp.allow_root": _is_root(),
        "ServerApp.ip": HOST,
        "ServerApp.open_browser": browser and _can_show_a_browser(),
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.root_dir": notebook.parent,
    }
    server = LabApp.initialize_server([f"--{name}={value}" for name, value in options.items()])
    server.web_app.settings["page_config_hook"] = without_announcements
    server.io_loop.add_callback(_announce, _address(port, page, token))
    server.start()
    return 0


def app(model: str | None = None, port: int | None = None, browser: bool = True) -> int:
    """Show the app as a page by Voila and stay until it is stopped; arguments as for ``lab``.

    Raises:
        InputError: the model is unknown, or the port cannot be used.
        ExplorerError: the folder cannot be written, or Voila is not installed.
    """
    port = _usable_port(port, APP_PORT)
    _hand_over(model)
    try:
        from tornado.ioloop import IOLoop
        from voila.app import Voila
    except ImportError as error:
        raise _not_installed("Voila", "voila") from error
    voila = Voila.instance(log_level="WARN")
    voila.initialize([str(working_copy(Path.cwd()))])
    # Set after initialize: no configuration file opens the page to others.
    voila.ip, voila.port, voila.port_retries = HOST, port, 0
    voila.token, voila.open_browser = secrets.token_hex(24), False
    voila.tornado_settings = {"headers": {"Content-Security-Policy": LOCAL_ONLY}}
    voila.voila_configuration.show_tracebacks = True
    address = _address(port, "/", voila.token)
    IOLoop.current().add_callback(_announce, address)
    if browser and _can_show_a_browser():
        IOLoop.current().add_callback(_open_browser, address)
    try:
        voila.start()
    finally:
        _redirect_file().unlink(missing_ok=True)
    return 0


def without_announcements(_handler: object, page_config: dict[str, Any]) -> dict[str, Any]:
    """JupyterLab's page configuration with the extension switched off that asks and fetches news and updates."""
    disabled = page_config.get("disabledExtensions", [])
    return page_config | {"disabledExtensions": [*disabled, ANNOUNCEMENTS]}


def working_copy(folder: Path) -> Path:
    """The notebook to open in ``folder``; a copy is made where there is none yet.

    A notebook that still holds the cell which opens the app is used again, with whatever was added
    to it. One in which that cell was changed is left alone, and the next free name is taken:
    ``explore-2.ipynb``, ``explore-3.ipynb``.

    Raises:
        ExplorerError: the folder cannot be written.
    """
    original = packaged_notebook().read_bytes()
    for number in count(1):
        target = folder / ("explore.ipynb" if number == 1 else f"explore-{number}.ipynb")
        try:
            with target.open("xb") as file:
                file.write(original)
        except FileExistsError:
            if not _code_cells(original) <= _code_cells(_read(target)):
                continue
        except OSError as error:
            raise ExplorerError(
                f"Cannot write the notebook '{target}' ({error.strerror}); "
                "start from a folder you may write to."
            ) from error
        return target
    raise AssertionError  # count() does not end


def place_lessons(folder: Path) -> None:
    """Put copies of the other notebooks beside it, where there are none yet; they are an offer, nothing needs them."""
    for lesson in packaged_notebook().parent.glob("*.ipynb"):
        with suppress(OSError), (folder / lesson.name).open("xb") as file:
            file.write(lesson.read_bytes())


def packaged_notebook() -> Path:
    """The notebook as it came: inside the installed package, or at the top of a checkout."""
    package = Path(__file__).resolve().parent
    places = [package / "notebooks", package.parent / "notebooks"]
    return next(path for place in places if (path := place / "explore.ipynb").is_file())


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _code_cells(notebook: bytes) -> set[str]:
    try:
        cells = json.loads(notebook)["cells"]
        return {"".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"}
    except (ValueError, KeyError, TypeError):
        return set()


def _hand_over(model: str | None) -> None:
    if model is not None:
        os.environ[MODEL_VARIABLE] = _checked(model)


def _checked(model: str) -> str:
    from explorer.graph.samples import is_sample, sample_names

    if is_sample(model):
        return model
    path = Path(model).expanduser()
    if not path.is_file():
        known = ", ".join(sample_names())
        raise InputError(f"'{model}' is neither a file nor a sample model; samples are: {known}.")
    return str(path.resolve())


def _usable_port(port: int | None, first: int) -> int:
    if port is None:
        return next((p for p in range(first, first + PORTS_TRIED) if _obstacle(p) is None), first)
    if (obstacle := _obstacle(port)) is not None:
        raise InputError(f"Port {port} cannot be used ({obstacle}); choose another one.")
    return port


def _obstacle(port: int) -> str | None:
    if not 0 < port < 65536:
        return "ports are 1 to 65535"
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the servers do
        try:
            probe.bind((HOST, port))
        except OSError as error:
            return (error.strerror or str(error)).lower()
    return None


def _hide_deprecations_of_jupyter() -> None:
    # Nothing the person could act on. Voila, which the server loads too, asks to show them when it
    # is imported: after that, the later filter wins.
    with suppress(ImportError):
        import_module("voila")
    warnings.filterwarnings("ignore", category=DeprecationWarning)


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def _can_show_a_browser() -> bool:
    # Without a display a text browser would take over the terminal.
    if sys.platform.startswith("linux") and not any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    ):
        return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


def _address(port: int, page: str, token: str) -> str:
    return f"http://{HOST}:{port}{page}?token={token}"


def _announce(address: str) -> None:
    sys.stdout.write(f"explorer is at {address}\nStop it with Ctrl-C.\n")
    sys.stdout.flush()


def _open_browser(address: str) -> None:
    # Through a private file, as Jupyter does it: command lines, unlike files, show to every user.
    page = _redirect_file()
    page.parent.mkdir(parents=True, exist_ok=True)
    page.touch(mode=0o600)
    page.write_text(f'<meta http-equiv="refresh" content="0; url={escape(address)}">')
    webbrowser.open(page.as_uri())


def _redirect_file() -> Path:
    from jupyter_core.paths import jupyter_runtime_dir

    return Path(jupyter_runtime_dir()) / f"explorer-{os.getpid()}-open.html"


def _not_installed(name: str, package: str) -> ExplorerError:
    return ExplorerError(f"{name} is not installed here; install it with: pip install {package}")
