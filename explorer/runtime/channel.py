"""Length-prefixed messages over a pair of pipes."""

from __future__ import annotations

import pickle
import struct
import threading
from enum import StrEnum
from typing import Any, BinaryIO

_HEADER = struct.Struct(">Q")


class Reply(StrEnum):
    """Kinds of messages a worker sends: ``(kind, content)``."""

    PROGRESS = "progress"
    RESULT = "result"
    ERROR = "error"
    UNEXPECTED = "unexpected"  # an exception that is no ExplorerError
    EXHAUSTED = "exhausted"  # out of memory: the process should be replaced


class Channel:
    """Sends and receives byte messages; sending is safe from several threads.

    Args:
        reader: where messages come from.
        writer: where they go.
    """

    def __init__(self, reader: BinaryIO, writer: BinaryIO) -> None:
        self._reader, self._writer = reader, writer
        self._lock = threading.Lock()

    def send(self, payload: bytes) -> None:
        """Write one message; raises OSError if the other side is gone."""
        with self._lock:
            self._writer.write(_HEADER.pack(len(payload)))
            self._writer.write(payload)
            self._writer.flush()

    def receive(self) -> bytes:
        """Read one message; raises EOFError if the other side is gone."""
        (length,) = _HEADER.unpack(self._exactly(_HEADER.size))
        return self._exactly(length)

    def close(self) -> None:
        """Close both pipes."""
        for pipe in (self._writer, self._reader):
            try:
                pipe.close()
            except OSError:  # flushing to a process that is gone
                continue

    def _exactly(self, length: int) -> bytes:
        data = self._reader.read(length)
        if len(data) != length:
            raise EOFError
        return data


def pack(message: object) -> bytes:
    """Pickle a message for ``unpack`` on the other side; both sides are this package."""
    return pickle.dumps(message, protocol=5)


def unpack(payload: bytes) -> Any:  # noqa: ANN401 (a message can be anything)
    """The message in ``payload``, which must come from a worker process or from its parent."""
    return pickle.loads(payload)  # noqa: S301 (never a file or the network: our own pipe only)
