"""``import explorer`` stays light: what it loads is checked, how long it takes is not asserted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import explorer

HEAVY = ["anywidget", "ipywidgets", "numpy", "onnx", "onnx_ir", "onnxruntime", "plotly", "torch"]
KERNEL_FREE = ["onnxruntime", "openvino", "torch", "torch_geometric"]


def loaded_by(statement: str, suspects: list[str], repository: Path) -> list[str]:
    """Which of the suspects a fresh interpreter has loaded after the statement."""
    program = f"{statement}\nimport json, sys\nprint(json.dumps([m for m in {suspects} if m in sys.modules]))"
    run = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(repository)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    found: list[str] = json.loads(run.stdout.splitlines()[-1])
    return found


def test_import_explorer_loads_nothing_heavy(repository: Path) -> None:
    assert loaded_by("import explorer", HEAVY, repository) == []


@pytest.mark.parametrize("module", ["explorer.session", "explorer.ui", "explorer.cli"])
def test_the_app_loads_neither_a_runtime_nor_torch(module: str, repository: Path) -> None:
    assert loaded_by(f"import {module}", KERNEL_FREE, repository) == []


def test_the_check_sees_what_is_loaded(repository: Path) -> None:
    assert loaded_by("import onnx", HEAVY, repository) == ["numpy", "onnx"]


@pytest.mark.parametrize("name", explorer.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(explorer, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        explorer.nonsense  # noqa: B018 (reading it is the test)
