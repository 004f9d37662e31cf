"""``explorer lab`` and ``explorer app``: the notebook they open, the model they pass, who may come in."""

from __future__ import annotations

import json
import os
import socket
import sys
import urllib.error
import urllib.parse
import urllib.request
import uuid
from pathlib import Path

import pytest

from explorer import launch
from explorer.errors import ExplorerError, InputError
from tests.ui.server import free_port, launched

ORIGINAL = launch.packaged_notebook().read_bytes()


def edit(path: Path, old: str, new: str) -> bytes:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return path.read_bytes()


def add_cell(path: Path, source: str) -> bytes:
    notebook = json.loads(path.read_bytes())
    notebook["cells"].append({**notebook["cells"][-1], "id": "more", "source": source})
    path.write_text(json.dumps(notebook))
    return path.read_bytes()


class TestWorkingCopy:
    def test_the_first_call_copies_the_notebook(self, tmp_path: Path) -> None:
        copy = launch.working_copy(tmp_path)
        assert copy == tmp_path / "explore.ipynb"
        assert copy.read_bytes() == ORIGINAL

    def test_the_second_call_keeps_what_was_added(self, tmp_path: Path) -> None:
        changed = add_cell(launch.working_copy(tmp_path), "print('mine')")
        again = launch.working_copy(tmp_path)
        assert again.read_bytes() == changed
        assert [path.name for path in tmp_path.iterdir()] == ["explore.ipynb"]

    def test_a_changed_app_cell_is_left_alone_and_a_fresh_copy_made(self, tmp_path: Path) -> None:
        first = launch.working_copy(tmp_path)
        changed = edit(first, "explorer.open(os", "explorer.open(my_os")
        second = launch.working_copy(tmp_path)
        assert second.name == "explore-2.ipynb"
        assert (first.read_bytes(), second.read_bytes()) == (changed, ORIGINAL)
        assert launch.working_copy(tmp_path) == second

    @pytest.mark.parametrize("content", [b"", b"\xff not a notebook", b"[1]", b'{"cells": [{}]}'])
    def test_a_foreign_file_of_that_name_is_left_alone(self, tmp_path: Path, content: bytes) -> None:
        foreign = tmp_path / "explore.ipynb"
        foreign.write_bytes(content)
        assert launch.working_copy(tmp_path).name == "explore-2.ipynb"
        assert foreign.read_bytes() == content

    def test_a_folder_that_cannot_be_written_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(ExplorerError, match=r"Cannot write the notebook .*missing"):
            launch.working_copy(tmp_path / "missing")


class TestLessons:
    def test_they_lie_beside_the_notebook_and_changed_ones_stay(self, tmp_path: Path) -> None:
        launch.working_copy(tmp_path)
        launch.place_lessons(tmp_path)
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {"explore.ipynb", "fusion.ipynb", "portability.ipynb"}
        changed = add_cell(tmp_path / "fusion.ipynb", "print('mine')")
        (tmp_path / "portability.ipynb").unlink()
        launch.place_lessons(tmp_path)
        assert (tmp_path / "fusion.ipynb").read_bytes() == changed
        assert (tmp_path / "portability.ipynb").exists()

    def test_a_folder_that_cannot_be_written_has_none(self, tmp_path: Path) -> None:
        launch.place_lessons(tmp_path / "missing")
        assert list(tmp_path.iterdir()) == []


class TestModel:
    @pytest.fixture(autouse=True)
    def _clean_variable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(launch.MODEL_VARIABLE, "")

    def test_a_sample_is_passed_by_name(self) -> None:
        launch._hand_over("resnet18")
        assert os.environ[launch.MODEL_VARIABLE] == "resnet18"

    def test_a_file_is_passed_with_its_whole_path(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        odd = Path("it's \"odd\"\n__import__('os').onnx")
        odd.touch()
        launch._hand_over(str(odd))
        assert os.environ[launch.MODEL_VARIABLE] == str(tmp_path.resolve() / odd)

    def test_without_a_model_the_variable_is_left_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(launch.MODEL_VARIABLE, "mine.onnx")
        launch._hand_over(None)
        assert os.environ[launch.MODEL_VARIABLE] == "mine.onnx"

    @pytest.mark.parametrize("start", [launch.lab, launch.app])
    def test_an_unknown_model_is_refused_before_anything_starts(self, start) -> None:
        with pytest.raises(InputError, match=r"'resnet19' is neither .* resnet18"):
            start("resnet19")


class TestPort:
    def test_a_taken_port_is_refused_in_words(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            with pytest.raises(InputError, match=f"Port {port} cannot be used .*in use"):
                launch._usable_port(port, launch.LAB_PORT)
            assert launch._usable_port(None, port) > port

    @pytest.mark.parametrize("port", [-1, 0, 65536, 10**9])
    def test_a_number_that_is_no_port_is_refused(self, port: int) -> None:
        with pytest.raises(InputError, match="1 to 65535"):
            launch._usable_port(port, launch.LAB_PORT)


class TestBrowser:
    def test_no_display_no_browser(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "platform", "linux")
        for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
            monkeypatch.delenv(name, raising=False)
        assert not launch._can_show_a_browser()

    def test_the_address_is_opened_through_a_private_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened: list[str] = []
        monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
        monkeypatch.setattr("webbrowser.open", opened.append)
        launch._open_browser("http://127.0.0.1:1/?token=secret")
        (page,) = (tmp_path / "runtime").iterdir()
        assert opened == [page.as_uri()]
        assert "url=http://127.0.0.1:1/?token=secret" in page.read_text()
        assert page.stat().st_mode & 0o077 == 0


def fetch(url: str) -> tuple[int, str, dict[str, str]]:
    """Status, body and headers; a refusal is an answer too."""
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.status, answer.read().decode(), dict(answer.headers)
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode(), dict(refusal.headers)


@pytest.mark.slow
def test_lab_serves_the_copied_notebook_to_the_owner_of_the_token(tmp_path: Path) -> None:
    port = free_port()
    with launched(f"lab('resnet18', port={port}, browser=False)", tmp_path) as address:
        parts = urllib.parse.urlsplit(address)
        assert (parts.hostname, parts.port) == ("127.0.0.1", port)
        assert parts.path == "/lab/tree/explore.ipynb"
        contents = f"http://127.0.0.1:{port}/api/contents/explore.ipynb"
        assert fetch(contents)[0] == 403
        status, body, _ = fetch(f"{contents}?{parts.query}")
        assert status == 200
        cell = json.loads(ORIGINAL)["cells"][-1]
        assert json.loads(body)["content"]["cells"][-1]["source"] == "".join(cell["source"])
        assert fetch(address)[0] == 200
    names = {path.name for path in (tmp_path / "work").glob("*.ipynb")}
    assert names == {"explore.ipynb", "fusion.ipynb", "portability.ipynb"}


@pytest.mark.slow
def test_app_shows_its_page_to_the_owner_of_the_token_and_stays_local(tmp_path: Path) -> None:
    port = free_port()
    with launched(f"app('resnet18', port={port}, browser=False)", tmp_path) as address:
        assert address.startswith(f"http://127.0.0.1:{port}/?token=")
        status, body, headers = fetch(address)
        assert status == 200
        assert "rendered_cells" in body
        assert headers["Content-Security-Policy"] == launch.LOCAL_ONLY
        assert "rendered_cells" not in fetch(f"http://127.0.0.1:{port}/")[1]
        assert fetch(f"http://127.0.0.1:{port}/api/kernels/{uuid.uuid4()}/channels")[0] == 403
