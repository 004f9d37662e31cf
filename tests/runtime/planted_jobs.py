"""Jobs that behave badly, for workers to survive. Importable, as job functions must be."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from pathlib import Path

from explorer.errors import RuntimeFailure


def double(value):
    return 2 * value


def process_id():
    return os.getpid()


def import_path():
    return sys.path


def crash():
    os.kill(os.getpid(), signal.SIGSEGV)


def crash_in_native_code():
    ctypes.string_at(1)


def leave():
    sys.stderr.write("library says goodbye\n")
    sys.stderr.flush()
    os._exit(3)


def hang():
    time.sleep(600)


def write_then_hang(path):
    path.write_text(str(os.getpid()), encoding="ascii")
    time.sleep(600)


def allocate_for_ever():
    kept = []
    while True:
        kept.append(bytearray(32 * 1024 * 1024))


def print_everywhere():
    sys.stdout.write("python print\n")
    sys.stdout.flush()
    os.write(1, b"native print to file descriptor 1\n")
    return "clean"


def read_stdin():
    return sys.stdin.read()


def refuse():
    raise RuntimeFailure("'net.onnx' cannot be loaded.")


def stumble():
    raise KeyError("weight")


def count_to(limit, progress):
    for step in range(limit):
        progress(step)
    return limit


def give_a_lambda():
    return lambda: None


def kill_the_parent_once(marker):
    """Take the worker that started this process down, unless that happened before."""
    if not Path(marker).exists():
        Path(marker).touch()
        kill_the_parent()
    return "second attempt"


def kill_the_parent():
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(30)


def device():
    return os.environ.get("EXPLORER_DEVICE", "")


def crash_on(*_arguments):
    crash_in_native_code()


def hang_on(*_arguments):
    hang()


def allocate_on(*_arguments):
    allocate_for_ever()
