"""Progress of a job, from the function that does the work to whoever watches."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Progress:
    """How far a job is: ``done`` of ``total`` steps, and what it does in words."""

    done: int
    total: int
    text: str


OnProgress = Callable[[Progress], None]


def ignore_progress(_progress: Progress) -> None:
    """The default listener."""


def accepts_progress(function: Callable[..., Any]) -> bool:
    """Whether a job function has a parameter ``progress``."""
    try:
        return "progress" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # some built-ins have no signature
        return False
