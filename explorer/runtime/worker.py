"""The child process that runs jobs: ``python -m explorer.runtime.worker``.

It is started as a program of its own, not by ``multiprocessing``, so that nothing of the user's script
or notebook is imported again. It talks over the pipes it was started with; whatever a library prints
goes to stderr. It ends when its parent does.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from explorer.errors import ExplorerError, WorkerError
from explorer.runtime.channel import Channel, Reply, pack, unpack
from explorer.runtime.memory import format_bytes, limit_memory
from explorer.runtime.progress import accepts_progress

_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of <linux/prctl.h>


def main() -> None:
    """Serve jobs until the parent closes the pipe or dies."""
    limit = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    channel = _take_over_pipes()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    _end_with_parent()
    if limit:
        limit_memory(limit)
    jobs: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read_jobs, args=(channel, jobs), daemon=True).start()
    while True:
        channel.send(_answer(jobs.get(), channel, limit))


def _take_over_pipes() -> Channel:
    """Keep stdin and stdout for messages, and point the originals where prints do no harm."""
    reader = os.fdopen(os.dup(0), "rb")
    writer = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return Channel(reader, writer)


def _end_with_parent() -> None:
    """Ask Linux for a signal when the parent dies; elsewhere the closed pipe has to do.

    Also make this process, not the notebook, the first to go if the machine runs out of memory.
    """
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _read_jobs(channel: Channel, jobs: queue.SimpleQueue[bytes]) -> None:
    with contextlib.suppress(EOFError, OSError):
        while True:
            jobs.put(channel.receive())
    os._exit(0)  # also in the middle of a job, which nobody waits for any more


def _answer(payload: bytes, channel: Channel, limit: int) -> bytes:
    try:
        function, args, kwargs = unpack(payload)
        return pack((Reply.RESULT, _call(function, args, kwargs, channel)))
    except MemoryError as error:
        return pack((Reply.EXHAUSTED, _out_of_memory(error, limit)))
    except ExplorerError as error:
        return pack((Reply.ERROR, error))
    except BaseException as error:  # noqa: BLE001 (whatever a job raises is the parent's to report)
        return pack((Reply.UNEXPECTED, _unexpected(error)))


def _call(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], channel: Channel
) -> object:
    if accepts_progress(function) and "progress" not in kwargs:
        kwargs["progress"] = partial(_report, channel)
    return function(*args, **kwargs)


def _report(channel: Channel, progress: object) -> None:
    channel.send(pack((Reply.PROGRESS, progress)))


def _out_of_memory(error: MemoryError, limit: int) -> WorkerError:
    bound = f" of {format_bytes(limit)}" if limit else ""
    reason = f" ({error})" if str(error) else ""
    return WorkerError(f"needed more memory than the worker's limit{bound}{reason}")


def _unexpected(error: BaseException) -> WorkerError:
    wrapped = WorkerError(f"failed in the worker with {type(error).__name__}: {error}")
    wrapped.add_note("".join(traceback.format_exception(error)))
    return wrapped


if __name__ == "__main__":
    main()
