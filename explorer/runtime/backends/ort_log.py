"""Which optimisers changed a model: read from ONNX Runtime's own log while a session is made."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from explorer.runtime.backends.ort_optimizers import OPTIMIZERS

INFO_SEVERITY = 1
_STDERR = 2
_ACTED = re.compile(r"\bGraphTransformer (\S+) modified: 1\b")


class Capture:
    """What was written to standard error; complete when ``captured_stderr`` ends."""

    text = ""


@contextmanager
def captured_stderr() -> Iterator[Capture]:
    """Catch what native code writes to file descriptor 2 of this process.

    For worker processes: other threads' errors are caught as well while this lasts.
    """
    capture = Capture()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as file:
        kept = os.dup(_STDERR)
        os.dup2(file.fileno(), _STDERR)
        try:
            yield capture
        finally:
            os.dup2(kept, _STDERR)
            os.close(kept)
            file.seek(0)
            capture.text = file.read().decode(errors="replace")


def acting(log: str) -> tuple[str, ...]:
    """Optimisers that changed the graph, in the order in which they first did.

    Only those that a target can disable: ONNX Runtime ignores other names without a word.
    """
    names = dict.fromkeys(_ACTED.findall(log))
    return tuple(name for name in names if name in OPTIMIZERS)
