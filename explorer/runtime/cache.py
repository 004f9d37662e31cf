"""``ResultCache``: results on disk, shared by all sessions of a user.

SQLite of the standard library: it is safe with several processes and needs nothing installed, and the
values are JSON, so that reading a file somebody tampered with cannot run code (diskcache would do as
well, but stores pickles unless told otherwise and has had no release since 2023).
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import platformdirs

_log = logging.getLogger(__name__)
_FILE = "results.sqlite3"
_WAIT_S = 30.0
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_TABLE = """
CREATE TABLE IF NOT EXISTS results (
    hash TEXT PRIMARY KEY, key TEXT NOT NULL, value TEXT NOT NULL, stored_at TEXT NOT NULL
)
"""


def default_cache_folder() -> Path:
    """``EXPLORER_CACHE_DIR`` if set, else the user's cache folder for explorer."""
    chosen = os.environ.get("EXPLORER_CACHE_DIR")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("explorer"))


class Cache(Protocol):
    """A map from JSON keys to JSON values that may forget."""

    def get(self, key: Mapping[str, Any]) -> Any | None:  # noqa: ANN401 (any JSON value)
        """The value stored under a key, or None."""

    def put(self, key: Mapping[str, Any], value: Any) -> None:  # noqa: ANN401 (any JSON value)
        """Store a value, replacing an earlier one."""

    def remove(self, key: Mapping[str, Any]) -> None:
        """Forget a value."""


class NoCache:
    """A cache that keeps nothing, for measuring afresh."""

    def get(self, key: Mapping[str, Any]) -> None:
        """None."""

    def put(self, key: Mapping[str, Any], value: object) -> None:
        """Nothing."""

    def remove(self, key: Mapping[str, Any]) -> None:
        """Nothing."""


class ResultCache:
    """A map from JSON keys to JSON values in one file. Its failures cost time, never a result.

    Args:
        folder: where the file is kept; ``default_cache_folder()`` by default.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._path = (folder or default_cache_folder()) / _FILE

    def get(self, key: Mapping[str, Any]) -> Any | None:  # noqa: ANN401 (any JSON value)
        """The value stored under a key; None if there is none or it cannot be read."""
        try:
            with self._connection() as connection:
                row = connection.execute("SELECT value FROM results WHERE hash = ?", (_hash(key),)).fetchone()
            return None if row is None else json.loads(row[0])
        except (sqlite3.Error, OSError, ValueError) as error:
            self._note(error)
            return None

    def put(self, key: Mapping[str, Any], value: Any) -> None:  # noqa: ANN401 (any JSON value)
        """Store a value, replacing an earlier one."""
        row = (_hash(key), _text(key), json.dumps(value), datetime.now(UTC).isoformat())
        try:
            with self._connection() as connection:
                connection.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?)", row)
        except (sqlite3.Error, OSError) as error:
            self._note(error)

    def remove(self, key: Mapping[str, Any]) -> None:
        """Forget a value, for instance one that turned out not to be readable."""
        try:
            with self._connection() as connection:
                connection.execute("DELETE FROM results WHERE hash = ?", (_hash(key),))
        except (sqlite3.Error, OSError) as error:
            self._note(error)

    def items(self) -> Iterator[tuple[dict[str, Any], Any]]:
        """Every key with its value, oldest first; those that cannot be read are left out."""
        try:
            with self._connection() as connection:
                rows = connection.execute("SELECT key, value FROM results ORDER BY stored_at").fetchall()
        except (sqlite3.Error, OSError) as error:
            self._note(error)
            return
        for key, value in rows:
            try:
                yield json.loads(key), json.loads(value)
            except ValueError as error:
                self._note(error)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """A connection for one operation: nothing is shared between threads or with a fork."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self._path, timeout=_WAIT_S)) as connection, connection:
            connection.execute(_TABLE)
            yield connection

    def _note(self, error: Exception) -> None:
        _log.warning("the result cache '%s' was not used: %s", self._path, error)
        if getattr(error, "sqlite_errorcode", None) in _DAMAGED:
            self._path.unlink(missing_ok=True)


def _text(key: Mapping[str, Any]) -> str:
    return json.dumps(key, sort_keys=True, separators=(",", ":"))


def _hash(key: Mapping[str, Any]) -> str:
    return hashlib.sha256(_text(key).encode()).hexdigest()
