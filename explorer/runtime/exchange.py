"""Measurements as files that travel: JSON lines with everything a result depends on.

One line is one result of the cache: its key (kind, graphs, target, protocol, inputs, environment with processor,
versions and device) and its value (with raw samples). A line is believed only if it reads as what it says.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from explorer.errors import ExplorerError, InputError
from explorer.records import Record
from explorer.runtime.cache import Cache, ResultCache
from explorer.runtime.environment import Environment
from explorer.runtime.measurement import Latency, Measurement
from explorer.runtime.operators import OperatorTime
from explorer.runtime.profile import Profile

FORMAT = 1
KINDS: dict[str, type[Measurement | Latency | Profile | OperatorTime]] = {
    "pair": Measurement,
    "latency": Latency,
    "profile": Profile,
    "operator": OperatorTime,
}
Kind = TypeVar("Kind", Measurement, Latency, Profile, OperatorTime)
Value = Measurement | Latency | Profile | OperatorTime


@dataclass(frozen=True)
class Entry:
    """One result and what it depends on.

    Attributes:
        key: as in the cache.
        value: what was measured.
    """

    key: dict[str, Any]
    value: Value

    @property
    def kind(self) -> str:
        """One of ``KINDS``."""
        return str(self.key["kind"])

    @property
    def environment(self) -> Environment:
        """Where it was measured."""
        return Environment.from_json(self.key["environment"])

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"format": FORMAT, "key": self.key, "value": self.value.to_json()}

    @classmethod
    def from_json(cls, data: object) -> Entry:
        """Read what ``to_json`` wrote; raises InputError naming the key at fault."""
        record = Record(data, "measurement line")
        if record.integer("format") != FORMAT:
            raise InputError(f"This version reads measurement lines of format {FORMAT} only.")
        key = Record(record.optional("key"), "key of a measurement")
        kind = key.text("kind")
        if kind not in KINDS:
            raise InputError(f"A measurement line holds one of {', '.join(KINDS)}, not '{kind:.40}'.")
        Environment.from_json(key.optional("environment"))
        value = KINDS[kind].from_json(record.optional("value"))
        _check_target(key, value)
        return cls(dict(record.items_of("key")), value)


def write_entries(path: str | Path, entries: Iterable[Entry]) -> int:
    """Write JSON lines; returns how many. Raises InputError if the place cannot be written."""
    path, count = Path(path).expanduser(), 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            for entry in entries:
                file.write(json.dumps(entry.to_json(), sort_keys=True) + "\n")
                count += 1
    except OSError as error:
        raise InputError(f"'{path}' cannot be written: {error.strerror}.") from error
    return count


def read_entries(path: str | Path) -> Iterator[Entry]:
    """Read JSON lines one by one; raises InputError that names file and line."""
    path = Path(path).expanduser()
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield _entry(line, number, path)
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError:
        raise InputError(f"'{path}' is not a file of measurements: it is not text.") from None


def export_cache(cache: ResultCache, path: str | Path) -> int:
    """Write what this machine has measured; results that cannot be read are left out. Returns the number."""
    return write_entries(path, _readable(cache))


def import_cache(path: str | Path, cache: Cache) -> int:
    """Take over what another machine has measured; nothing is stored unless every line is right.

    The results keep the environment they were measured in, so that they never stand in for this machine's.
    """
    entries = list(read_entries(path))
    for entry in entries:
        cache.put(entry.key, entry.value.to_json())
    return len(entries)


def of_kind(entries: Iterable[Entry], kind: type[Kind]) -> list[Kind]:
    """The values of one type."""
    return [entry.value for entry in entries if isinstance(entry.value, kind)]


def between(entries: Iterable[Entry], a: str, b: str) -> Sequence[Measurement]:
    """Measurements of one pair of graphs, by fingerprint, wherever they were made."""
    return [m for m in of_kind(entries, Measurement) if (m.a, m.b) == (a, b)]


def _readable(cache: ResultCache) -> Iterator[Entry]:
    for key, value in cache.items():
        try:
            yield Entry.from_json({"format": FORMAT, "key": key, "value": value})
        except InputError:
            continue


def _entry(line: str, number: int, path: Path) -> Entry:
    try:
        return Entry.from_json(json.loads(line))
    except (ValueError, RecursionError, ExplorerError) as error:
        reason = str(error) if isinstance(error, ExplorerError) else "it is not valid JSON."
        raise InputError(f"Line {number} of '{path}': {reason}") from error


def _check_target(key: Record, value: Value) -> None:
    target = key.text("target")
    if not isinstance(value, OperatorTime) and value.target != target:
        raise InputError(f"The key names the target '{target:.60}', the result '{value.target:.60}'.")
