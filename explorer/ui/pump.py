"""Bring changes from the session's threads to the kernel's own thread, where widgets may be touched."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable

Guard = Callable[[Callable[[], None]], Callable[[], None]]


class Pump:
    """Calls ``render`` in the event loop's thread, once for many notifications in a row.

    Without a running loop (a plain script, a test) nothing is called until ``flush``.

    Args:
        render: brings the screen up to date.
        guard: wraps what is called, so that an error is shown somewhere.
    """

    def __init__(self, render: Callable[[], None], guard: Guard = lambda function: function) -> None:
        self._render, self._guard = render, guard
        self._lock = threading.Lock()
        self._posted: deque[Callable[[], None]] = deque()
        self._waiting = self._closed = False
        try:
            self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None

    def notify(self) -> None:
        """Ask for a rendering; callable from any thread."""
        with self._lock:
            if self._waiting or self._closed:
                return
            self._waiting = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.flush)

    def post(self, function: Callable[[], None]) -> None:
        """Have a function called before the next rendering; callable from any thread."""
        self._posted.append(function)
        self.notify()

    def flush(self) -> None:
        """Render now, if anything has changed since the last time."""
        with self._lock:
            if not self._waiting or self._closed:
                return
            self._waiting = False
        while self._posted:
            self._guard(self._posted.popleft())()
        self._guard(self._render)()

    def close(self) -> None:
        """Render nothing any more."""
        with self._lock:
            self._closed = True
        self._posted.clear()
