"""A running event loop for a test, whatever runs in the thread that asks."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def run_in_loop(coroutine: Coroutine[Any, Any, T], *, timeout_s: float = 60.0) -> T:
    """Run a coroutine to its end in a new loop, in a thread of its own.

    Playwright's synchronous interface leaves a running loop in the thread of the browser tests, and
    `asyncio.run` refuses to start beside it.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="loop") as pool:
        return pool.submit(asyncio.run, coroutine).result(timeout_s)
