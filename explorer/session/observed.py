"""State that changes under a lock, with a number for each version and listeners to tell."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Listener = Callable[[], None]


class Observed:
    """Something whose changes are numbered and announced."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._listeners: list[Listener] = []
        self._number = 0

    @property
    def number(self) -> int:
        """Grows with every change of state; a snapshot carries the number it was taken at."""
        return self._number

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call ``listener`` (from any thread) after every change; returns how to stop that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def _tell(self) -> None:
        for listener in tuple(self._listeners):
            listener()

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold the lock, then number the new state and tell the listeners."""
        with self._lock:
            yield
            self._number += 1
        self._tell()
