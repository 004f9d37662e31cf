"""The seam a runtime implements in one file under ``explorer/runtime/backends``, and their registry.

A backend module is cheap to import: it names its options and loads its runtime only when a session is
opened.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from explorer.errors import TargetError

if TYPE_CHECKING:
    from explorer.runtime.executed import Executed
    from explorer.runtime.target import Option, Target

Array = npt.NDArray[Any]
Feeds = Mapping[str, Array]
"""Input name -> array; strings are object arrays. Names a model does not have are ignored."""

Timer = Callable[[], int]
"""A clock that returns nanoseconds."""

_STORED = re.compile(r"\.[0-9a-f]{16}\.onnx$")
_LONGEST = 300
_MODULES = {
    "ort": "explorer.runtime.backends.ort",
    "openvino": "explorer.runtime.backends.openvino",
    "tvm": "explorer.runtime.backends.tvm",
}


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
    def requires(self) -> str:
        """The Python module that must be installed."""

    @property
    def extra(self) -> str:
        """The extra of this package that installs it; "" if it always comes along."""

    @property
    def options(self) -> tuple[Option, ...]:
        """The options a target may set, in canonical order; one of them is ``threads``."""

    @property
    def saves_optimized(self) -> bool:
        """Whether ``save_optimized`` is possible."""

    @property
    def profiles(self) -> bool:
        """Whether ``profile`` is possible."""

    @property
    def names_optimizers(self) -> bool:
        """Whether ``acting_optimizers`` is possible and a target can disable what it names."""

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

    def profile(self, path: Path, target: Target, feeds: Feeds, runs: int) -> tuple[Executed, ...]:
        """Time of each executed operator in a fresh session; raises RuntimeFailure."""

    def acting_optimizers(self, path: Path, target: Target) -> tuple[str, ...]:
        """Which of the runtime's own optimisers change the model on this target; raises RuntimeFailure."""


def backend_names() -> tuple[str, ...]:
    """The runtimes a target can name."""
    return tuple(_MODULES)


def backend_for(name: str) -> Backend:
    """The backend registered under a name, without loading the runtime itself."""
    backend: Backend = import_module(_MODULES[name]).BACKEND
    return backend


def is_installed(name: str) -> bool:
    """Whether the runtime behind a backend can be imported here, without importing it."""
    return find_spec(backend_for(name).requires) is not None


def missing_runtime(backend: Backend) -> TargetError:
    """The error to raise where a runtime is asked for that is not installed."""
    return TargetError(
        f"{backend.title} is not installed here; install it with `pip install 'explorer[{backend.extra}]'` "
        "or choose another target."
    )


def in_one_line(text: str) -> str:
    """A library's message without line breaks, cut to a readable length."""
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


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
