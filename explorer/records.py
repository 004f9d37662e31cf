"""Reading JSON written earlier or elsewhere, with an error that names what is wrong."""

from __future__ import annotations

import json
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from explorer.errors import InputError

Member = TypeVar("Member", bound=StrEnum)


class Record:
    """A JSON object whose values are fetched with the type they must have.

    Args:
        data: what the JSON parser returned.
        what: name of the object for messages, such as ``"delta"``.

    Raises:
        InputError: ``data`` is not an object; each method raises it for a missing or wrong value.
    """

    def __init__(self, data: object, what: str) -> None:
        if not isinstance(data, dict):
            raise InputError(f"A {what} must be a JSON object, not {type(data).__name__}.")
        self._data: dict[str, Any] = data
        self._what = what

    def _fail(self, key: str, expected: str) -> InputError:
        found = self._data.get(key, "nothing")
        return InputError(f"The {self._what} needs {expected} as '{key}', not {found!r:.60}.")

    def __contains__(self, key: object) -> bool:
        """Whether there is a value under this key."""
        return key in self._data

    def number(self, key: str) -> float:
        """A number; booleans are refused."""
        value = self._data.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._fail(key, "a number")
        return float(value)

    def integer(self, key: str, *, minimum: int = 0) -> int:
        """A whole number of at least ``minimum``."""
        value = self._data.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            raise self._fail(key, f"a whole number of at least {minimum}")
        return value

    def text(self, key: str) -> str:
        """A string."""
        value = self._data.get(key)
        if not isinstance(value, str):
            raise self._fail(key, "a text")
        return value

    def member(self, key: str, kind: type[Member]) -> Member:
        """A member of an enumeration, by its value."""
        value = self._data.get(key)
        if value not in [m.value for m in kind]:
            raise self._fail(key, f"one of {', '.join(m.value for m in kind)}")
        return kind(value)

    def optional(self, key: str) -> object:
        """Any value, or None if it is missing."""
        return self._data.get(key)

    def items(self, key: str) -> list[Any]:
        """A list."""
        value = self._data.get(key)
        if not isinstance(value, list):
            raise self._fail(key, "a list")
        return value

    def items_of(self, key: str) -> list[tuple[str, Any]]:
        """The members of an object."""
        value = self._data.get(key)
        if not isinstance(value, dict):
            raise self._fail(key, "an object")
        return list(value.items())

    def integers(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers that are not negative."""
        values = self.items(key)
        if not all(isinstance(v, int) and not isinstance(v, bool) and v >= 0 for v in values):
            raise self._fail(key, "a list of whole numbers")
        return tuple(values)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings."""
        values = self.items(key)
        if not all(isinstance(v, str) for v in values):
            raise self._fail(key, "a list of texts")
        return tuple(values)

    def text_map(self, key: str) -> dict[str, str]:
        """An object whose values are strings."""
        value = self._data.get(key)
        if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
            raise self._fail(key, "an object of texts")
        return dict(value)


def read_json(path: str | Path, what: str) -> object:
    """Parse a JSON file; raises InputError that names the file and what was expected."""
    path = Path(path).expanduser()
    try:
        return json.loads(path.read_text())
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror}.") from error
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise InputError(f"'{path}' is not a {what}: it is not valid JSON.") from None


def write_json(path: str | Path, data: object) -> Path:
    """Write a JSON file, folders included; raises InputError that names the place if it cannot."""
    return write_text(path, json.dumps(data, indent=1) + "\n")


def write_text(path: str | Path, text: str) -> Path:
    """Write a text file, folders included; a file that was there stays whole until the new one is.

    Raises:
        InputError: it cannot be written; names the place.
    """
    path = Path(path).expanduser()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():  # a device or a pipe
            path.write_text(text, encoding="utf-8")
        else:
            _replace(path.resolve(), text)
    except OSError as error:
        raise InputError(f"'{path}' cannot be written: {error.strerror}.") from error
    return path


def _replace(path: Path, text: str) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".explorer-") as folder:
        partial = Path(folder) / path.name
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
