"""The make targets, and what a machine without a usable Python is told."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TARGETS = ["explore", "app", "test", "test-fast", "lint", "bench", "notebooks", "clean"]


def run(*command: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, env=variables or None, capture_output=True, text=True, timeout=120, check=False
    )


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


class TestHelp:
    def test_it_is_the_default_and_lists_every_target(self, repository: Path) -> None:
        listed = run("make", cwd=repository).stdout
        assert [name for name in TARGETS if f"make {name} " not in listed] == []

    @pytest.mark.parametrize(
        ("settings", "expected"),
        [
            (["PORT=8899"], "--port 8899"),
            (["NO_BROWSER=1"], "--no-browser"),
            (["PORT=8899", "NO_BROWSER=1"], "--port 8899 --no-browser"),
        ],
    )
    def test_settings_reach_the_command(self, repository: Path, settings: list[str], expected: str) -> None:
        for target, command in {"explore": "lab", "app": "app"}.items():
            planned = run("make", "-n", target, *settings, cwd=repository).stdout
            assert f"-m explorer {command}" in planned
            assert expected in " ".join(planned.split())


class TestMakeVenv:
    @pytest.fixture
    def tools(self, tmp_path: Path) -> Path:
        """A PATH with a shell and nothing else."""
        folder = tmp_path / "bin"
        folder.mkdir()
        for name in ("sh", "rm"):
            (folder / name).symlink_to(str(shutil.which(name)))
        return folder

    def make(self, repository: Path, tools: Path, *arguments: str) -> tuple[int, str]:
        command = ["sh", str(repository / "tools" / "make_venv.sh"), "venv", *arguments]
        done = run(*command, cwd=tools.parent, PATH=str(tools))
        return done.returncode, done.stderr

    def test_no_python_is_one_sentence(self, repository: Path, tools: Path) -> None:
        script(tools / "python3", "exit 1")
        code, message = self.make(repository, tools)
        assert code == 1
        assert message.startswith("No Python 3.11 or newer found on PATH")

    def test_an_old_python_chosen_by_hand_is_refused(self, repository: Path, tools: Path) -> None:
        script(tools / "python3.9", "exit 1")
        code, message = self.make(repository, tools, "python3.9")
        assert code == 1
        assert message.startswith("PYTHON=python3.9 is not a Python 3.11 or newer")

    def test_a_python_without_ensurepip_is_named(self, repository: Path, tools: Path) -> None:
        body = f'case "$*" in *ensurepip*) exit 1 ;; esac\nexec "{sys.executable}" "$@"'
        script(tools / "python3", body)
        code, message = self.make(repository, tools)
        assert code == 1
        assert message.startswith("python3 has no venv module with pip")
        assert not (tools.parent / "venv").exists()

    def test_an_old_python3_is_passed_over_for_a_newer_name(self, repository: Path, tools: Path) -> None:
        script(tools / "python3", "exit 1")
        script(tools / "python3.12", f'exec "{sys.executable}" "$@"')
        assert self.make(repository, tools) == (0, "")
        assert (tools.parent / "venv" / "bin" / "python").exists()
