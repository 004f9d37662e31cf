"""The seam a runtime implements in one file under ``explorer/runtime/backends``, and their registry.

A backend module is cheap to import: it names its options and loads its runtime only when a session is
opened.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from explorer.runtime.target import Option, Target

Array = npt.NDArray[Any]
Feeds = Mapping[str, Array]
"""Input name -> array; strings are object arrays. Names a model does not have are ignored."""

Timer = Callable[[], int]
"""A clock that returns nanoseconds."""

_STORED = re.compile(r"\.[0-9a-f]{16}\.onnx$")
_MODULES = {"ort": "explorer.runtime.backends.ort"}


class RuntimeSession(Protocol):
    """A model loaded into a runtime; ``close`` frees it."""

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs, in the order in which runs return them."""

    def bind(self, feeds: Feeds) -> Callable[[], Sequence[Any]]:
        """A call that runs the model once on these inputs and returns its outputs.

        Raises:
            RuntimeFailure: an input is missing, or (when called) the run fails.
        """

    def close(self) -> None:
        """Free the session; it cannot be used afterwards."""


class Backend(Protocol):
    """A runtime that can load and run ONNX files."""

    @property
    def title(self) -> str:
        """Its name for people."""

    @property
    def options(self) -> tuple[Option, ...]:
        """The options a target may set, in canonical order; one of them is ``threads``."""

    @property
    def saves_optimized(self) -> bool:
        """Whether ``save_optimized`` is possible."""

    def versions(self) -> dict[str, str]:
        """Names and versions of the libraries that decide how fast a model runs."""

    def settings(self, target: Target) -> dict[str, str]:
        """Every session setting that matters for a timing, as stored beside measurements."""

    def timer_name(self, target: Target) -> str:
        """The clock of module ``time`` that times a run fairly on this target."""

    def open(self, path: Path, target: Target) -> RuntimeSession:
        """Load an ONNX file; raises RuntimeFailure naming the file, the level and the reason."""

    def save_optimized(self, path: Path, target: Target, out_path: Path) -> None:
        """Write the model as the runtime would execute it; raises RuntimeFailure."""


def backend_names() -> tuple[str, ...]:
    """The runtimes a target can name."""
    return tuple(_MODULES)


def backend_for(name: str) -> Backend:
    """The backend registered under a name, without loading the runtime itself."""
    backend: Backend = import_module(_MODULES[name]).BACKEND
    return backend


def as_feeds(feeds: Mapping[str, npt.ArrayLike]) -> dict[str, Array]:
    """Inputs as contiguous arrays, made once so that no timed run converts anything."""
    arrays = {name: np.asarray(value) for name, value in feeds.items()}
    return {
        name: array if array.flags.c_contiguous else np.ascontiguousarray(array)
        for name, array in arrays.items()
    }


def stored_name(name: str, fingerprint: str) -> str:
    """File name for a graph that was written for a runtime; ``model_label`` gives the name back."""
    safe = re.sub(r"[^A-Za-z0-9_\-]+", "_", name)[:40] or "model"
    return f"{safe}.{fingerprint[:16]}.onnx"


def model_label(path: Path) -> str:
    """What to call a model file in messages: the graph's name if ``stored_name`` made it."""
    return _STORED.sub("", path.name)
