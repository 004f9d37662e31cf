"""The sample models that come with the package: structures of real architectures without weights."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from explorer.errors import ModelError


@cache
def samples_dir() -> Path:
    """Where the structures lie: inside the installed package, or at the top of a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "sample_models"
    return installed if installed.is_dir() else package.parent / "sample_models"


@cache
def sample_names() -> tuple[str, ...]:
    """Names of the sample models, sorted."""
    return tuple(sorted(path.stem for path in samples_dir().glob("*.onnx")))


def is_sample(name: str) -> bool:
    """Whether ``name`` is the name of a sample model."""
    return name in sample_names()


def sample_path(name: str) -> Path:
    """The structure file of a sample; raises ModelError for an unknown name."""
    if not is_sample(name):
        raise ModelError(f"No sample is called '{name}'; samples are: {', '.join(sample_names())}.")
    return samples_dir() / f"{name}.onnx"
