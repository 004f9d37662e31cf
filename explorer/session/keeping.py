"""Sessions kept without being asked, so that neither a restarted kernel nor another model costs work."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from explorer.session.storage import kept_folder, write_session

if TYPE_CHECKING:
    from explorer.session.session import Session

SUFFIX = ".session.json"
_MOST = 20


@dataclass(frozen=True)
class Kept:
    """A session that can be reopened: its file, the model's name, when it was written (local time)."""

    path: Path
    name: str
    written_at: datetime


def is_worth_keeping(session: Session) -> bool:
    """Whether something was accepted, rejected, searched for in the Fuse tab, or a portability matrix filled."""
    has_decided = len(session.history.entries) > 1 or bool(session.rejected)
    return has_decided or bool(session.fusion.work) or session.known.matrix is not None


def keep(session: Session) -> Path | None:
    """Write a session in which something was decided; None if there is nothing to keep.

    Raises:
        InputError: the folder cannot be written.
    """
    if not is_worth_keeping(session):
        return None
    mark = session.original.fingerprint()[:8]
    safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in session.original.name)[:80]
    path = write_session(session, kept_folder() / f"{safe}~{mark}{SUFFIX}")
    _forget_oldest()
    return path


def recent() -> tuple[Kept, ...]:
    """The sessions that are kept, the latest first; needs no session file to be read."""
    found = []
    for path in kept_folder().glob(f"*{SUFFIX}"):
        with suppress(OSError):  # another kernel may just have removed it
            written_at = datetime.fromtimestamp(path.stat().st_mtime, UTC).astimezone()
            found.append(Kept(path, path.name.removesuffix(SUFFIX).rpartition("~")[0], written_at))
    return tuple(sorted(found, key=lambda kept: kept.written_at, reverse=True))


def _forget_oldest() -> None:
    for kept in recent()[_MOST:]:
        for path in (kept.path, kept.path.with_suffix(".onnx")):
            with suppress(OSError):
                os.unlink(path)  # noqa: PTH108 (a missing model file is fine; so is a missing session)
