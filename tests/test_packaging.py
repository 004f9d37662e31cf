"""A wheel carries all that the app needs where there is no checkout."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    run = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "--quiet", "-w", str(folder)],
        cwd=repository,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    (path,) = folder.glob("explorer-*.whl")
    return zipfile.ZipFile(path)


def test_the_sample_models_are_inside(wheel: zipfile.ZipFile, sample_paths: dict[str, Path]) -> None:
    inside = {name for name in wheel.namelist() if name.startswith("explorer/sample_models/")}
    assert len(sample_paths) == 21
    assert {f"explorer/sample_models/{path.name}" for path in sample_paths.values()} <= inside
    assert any("README" in name for name in inside)  # origin and licence travel with the files


def test_the_notebook_is_inside(wheel: zipfile.ZipFile, repository: Path) -> None:
    packed = wheel.read("explorer/notebooks/explore.ipynb")
    assert packed == (repository / "notebooks" / "explore.ipynb").read_bytes()


@pytest.mark.parametrize("pattern", ["*.py", "*.js", "*.css", "py.typed"])
def test_every_source_and_asset_is_inside(wheel: zipfile.ZipFile, repository: Path, pattern: str) -> None:
    expected = {str(path.relative_to(repository)) for path in (repository / "explorer").rglob(pattern)}
    assert expected
    assert expected <= set(wheel.namelist())


def test_no_leftovers_are_inside(wheel: zipfile.ZipFile) -> None:
    unwanted = ("__pycache__", ".ipynb_checkpoints", "test-results", ".venv")
    assert [name for name in wheel.namelist() if any(part in name for part in unwanted)] == []
