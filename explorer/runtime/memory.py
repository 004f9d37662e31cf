"""Memory limits of worker processes.

On Linux ``RLIMIT_DATA`` bounds heap and private anonymous mappings. Tried with onnxruntime 1.32: its
arena reports a failed allocation as an ordinary error at this limit and at ``RLIMIT_AS`` alike, but
``RLIMIT_AS`` also counts weight files that are only mapped, so it refuses large models that fit.
macOS accepts the call and does not enforce it; Windows has no such call.
"""

from __future__ import annotations

import sys
from pathlib import Path

import psutil

from explorer.errors import InputError

_SHARE_OF_MACHINE = 0.8
_CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def can_limit_memory() -> bool:
    """Whether this system enforces a limit per process."""
    return sys.platform == "linux"


def limit_memory(limit_bytes: int) -> None:
    """Let allocations of this process fail beyond a limit, instead of the whole machine.

    Raises:
        InputError: this system has no such limit.
    """
    if not can_limit_memory():
        raise InputError("A memory limit for workers is possible on Linux only; leave it out.")
    import resource

    _soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    allowed = limit_bytes if hard == resource.RLIM_INFINITY else min(limit_bytes, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (allowed, hard))


def default_limit_bytes() -> int | None:
    """Four fifths of the memory this machine or container has; None where limits do not work."""
    if not can_limit_memory():
        return None
    return int(_SHARE_OF_MACHINE * min([psutil.virtual_memory().total, *_container_limits()]))


def _container_limits() -> list[int]:
    limits = []
    for path in _CGROUP_LIMITS:
        try:
            text = path.read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdigit():
            limits.append(int(text))
    return limits


def format_bytes(count: int) -> str:
    """A number of bytes for people: "1.5 GB"."""
    value = float(count)
    for unit in ("bytes", "KB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} GB"
