"""Starting, feeding and ending one worker process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import BinaryIO, cast

import explorer
from explorer.errors import WorkerError
from explorer.runtime.channel import Channel

_GRACE_S = 5.0
_TAIL_BYTES = 4000


class WorkerProcess:
    """A running ``python -m explorer.runtime.worker`` and the channel to it.

    Args:
        memory_limit_bytes: limit for its data memory, None for no limit.

    Raises:
        WorkerError: it cannot be started.
    """

    def __init__(self, memory_limit_bytes: int | None) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (closed by kill and close)
        # -P keeps the working folder out of the way: the import path is the parent's, in full.
        command = [sys.executable, "-P", "-m", "explorer.runtime.worker"]
        try:
            self._popen = subprocess.Popen(
                [*command, str(memory_limit_bytes or 0)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                env={**os.environ, "PYTHONPATH": _import_path()},
            )
        except (OSError, TypeError) as error:
            self._stderr.close()
            raise WorkerError(f"No worker process could be started: {error}.") from error
        reader, writer = self._popen.stdout, self._popen.stdin
        if reader is None or writer is None:
            raise WorkerError("No pipe to the worker process could be opened.")
        self.channel = Channel(cast("BinaryIO", reader), cast("BinaryIO", writer))
        self.jobs_done = 0

    @property
    def pid(self) -> int:
        """Process id."""
        return self._popen.pid

    def kill(self) -> None:
        """End the process at once; safe to call twice and from another thread."""
        self._popen.kill()

    def close(self) -> None:
        """Let an idle process end, and make sure that it does."""
        self.channel.close()
        self._wait()
        self._stderr.close()

    def describe_exit(self) -> str:
        """How a process that went away by itself ended, in words; ends it if it is still there."""
        code = self._wait()
        reason = _exit_in_words(code)
        tail = self._last_line()
        return f"{reason}: {tail}" if tail else reason

    def _wait(self) -> int:
        try:
            return self._popen.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            return self._popen.wait()

    def _last_line(self) -> str:
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - _TAIL_BYTES))
        text = self._stderr.read().decode(errors="replace").strip()
        return text.splitlines()[-1][:300] if text else ""


def _import_path() -> str:
    """The parent's import path, so that every function importable here is importable there."""
    home = str(Path(explorer.__file__).resolve().parent.parent)
    entries = [entry or str(Path.cwd()) for entry in sys.path]
    return os.pathsep.join(entries if home in entries else [home, *entries])


def _exit_in_words(code: int) -> str:
    if code >= 0:
        return f"it ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    if name == "SIGKILL":
        return "it was ended by SIGKILL, as the system does when memory runs out"
    return f"it crashed with {name}"
