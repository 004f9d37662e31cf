"""Which browser the tests take, and what is tried when there is none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.ui import chromium


def program(folder: Path, name: str, exit_code: int) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\nexit {exit_code}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def path_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH, with no browser downloaded by Playwright."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(chromium, "_downloaded", list)
    return tmp_path


def test_the_first_name_on_path_is_taken(path_folder: Path) -> None:
    program(path_folder, "google-chrome", 0)
    first = program(path_folder, "chromium", 0)
    assert chromium.find_chromium() == first


def test_a_stub_that_does_not_start_is_passed_over(path_folder: Path) -> None:
    program(path_folder, "chromium-browser", 10)
    works = program(path_folder, "google-chrome-stable", 0)
    assert chromium.find_chromium() == works


def test_a_downloaded_browser_comes_after_path(path_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    downloaded = program(path_folder, "headless", 0)
    monkeypatch.setattr(chromium, "_downloaded", lambda: [downloaded])
    assert chromium.find_chromium() == downloaded
    on_path = program(path_folder, "chromium", 0)
    assert chromium.find_chromium() == on_path


def test_debian_s_package_is_tried_after_the_download(
    path_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[str] = []

    def apt() -> None:
        attempts.append("apt")
        program(path_folder, "chromium", 0)

    monkeypatch.setattr(chromium, "_download_with_playwright", lambda: attempts.append("download"))
    monkeypatch.setattr(chromium, "_install_debian_package", apt)
    assert chromium.install_chromium() == path_folder / "chromium"
    assert attempts == ["download", "apt"]


def test_without_root_debian_s_package_is_not_tried(
    path_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = path_folder / "trace"
    apt = path_folder / "apt-get"
    apt.write_text(f'#!/bin/sh\necho "$@" >> {trace}\n')
    apt.chmod(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    chromium._install_debian_package()
    assert not trace.exists()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    chromium._install_debian_package()
    assert [line.split()[1] for line in trace.read_text().splitlines()] == ["update", "install"]
