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


def part_of(progress: OnProgress, number: int, count: int) -> OnProgress:
    """A listener for the progress of one of ``count`` equal parts, numbered from 0."""

    def report(inner: Progress) -> None:
        done, total = number * inner.total + inner.done, count * inner.total
        progress(Progress(done, total, f"{number + 1} of {count}, {inner.text}"))

    return report


def accepts_progress(function: Callable[..., Any]) -> bool:
    """Whether a job function has a parameter ``progress``."""
    try:
        return "progress" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # some built-ins have no signature
        return False
