"""Where a number was measured: processor, versions, threads, settings, clock."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from explorer.records import Record

DEVICE_VARIABLE = "EXPLORER_DEVICE"


@dataclass(frozen=True)
class Environment:
    """Everything outside the model that a timing depends on.

    Attributes:
        cpu_model: the processor's name.
        system: operating system and machine architecture.
        versions: library -> version (the runtime's, numpy's, Python's).
        threads: threads a session may use.
        timer: the clock of module ``time`` that timed the runs.
        settings: session settings of the runtime.
        device: name of the machine, if it was given one (``EXPLORER_DEVICE``).
    """

    cpu_model: str
    system: str
    versions: dict[str, str]
    threads: int
    timer: str
    settings: dict[str, str]
    device: str = ""

    @property
    def machine(self) -> str:
        """Where, in a few words: the machine's name if it has one, its processor and its system."""
        return ", ".join(filter(None, (self.device, self.cpu_model, self.system)))

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: object) -> Environment:
        """Read what ``to_json`` wrote; raises InputError naming the key at fault."""
        record = Record(data, "environment")
        return cls(
            cpu_model=record.text("cpu_model"),
            system=record.text("system"),
            versions=record.text_map("versions"),
            threads=record.integer("threads", minimum=1),
            timer=record.text("timer"),
            settings=record.text_map("settings"),
            device=record.text("device") if "device" in record else "",
        )


def device_name() -> str:
    """The name that whoever set up this machine gave it in ``EXPLORER_DEVICE``; "" if none."""
    return os.environ.get(DEVICE_VARIABLE, "")


@cache
def cpu_model() -> str:
    """The processor's name, such as "AMD EPYC (family 25, model 1)"."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or platform.machine() or "unknown"
    lines = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    fields = {name.strip(): value.strip() for name, _, value in lines}
    name = fields.get("model name") or platform.machine()
    if "cpu family" not in fields:
        return name
    return f"{name} (family {fields['cpu family']}, model {fields.get('model', '?')})"


def system_name() -> str:
    """Operating system and architecture, such as "Linux x86_64"."""
    return f"{platform.system()} {platform.machine()}"
