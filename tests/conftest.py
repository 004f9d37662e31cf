"""What every test shares: strict callbacks, a cache of its own, seeded inputs, the sample files."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import hypothesis
import numpy as np
import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
SAMPLES = REPOSITORY / "sample_models"

hypothesis.settings.register_profile(
    "explorer", derandomize=True, deadline=None, database=None, max_examples=50
)
hypothesis.settings.load_profile("explorer")

_CACHE = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """Give this process (under xdist: this worker) an empty cache and strict callbacks."""
    config.stash[_CACHE] = tempfile.mkdtemp(prefix="explorer-test-cache-")
    os.environ["EXPLORER_CACHE_DIR"] = config.stash[_CACHE]
    os.environ["EXPLORER_STRICT"] = "1"
    os.environ.pop("EXPLORER_MODEL", None)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the cache again."""
    shutil.rmtree(config.stash.get(_CACHE, ""), ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take long first, and let a browser that was kept waiting try once more.

    xdist gives whole files to its workers in this order; a long one started last would run alone. A second try
    is told in the summary (``RERUN``): it is a test that has to wait for something more.
    """
    ranks: dict[Path, int] = {}
    for item in items:
        rank = next((i for i, mark in enumerate(("browser", "slow")) if item.get_closest_marker(mark)), 2)
        ranks[item.path] = min(rank, ranks.get(item.path, rank))
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.flaky(reruns=1))
    items.sort(key=lambda item: ranks[item.path])


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout's root folder."""
    return REPOSITORY


@pytest.fixture(scope="session")
def sample_paths() -> dict[str, Path]:
    """The sample structures (weights are graph inputs) by name, in alphabetical order."""
    return {path.stem: path for path in sorted(SAMPLES.glob("*.onnx"))}


@pytest.fixture(scope="session")
def sample_path(sample_paths: dict[str, Path]) -> Callable[[str], Path]:
    """A function from a sample's name to its file."""
    return sample_paths.__getitem__


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator that starts from the same seed in every test."""
    return np.random.default_rng(20240611)
