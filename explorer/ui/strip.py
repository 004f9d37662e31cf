"""The strip: what is open, errors and notices in words, and what is running, with Cancel.

It has one height, whatever it shows, so that nothing below it moves.
"""

from __future__ import annotations

import html
import os
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

import ipywidgets as widgets

from explorer.errors import Cancelled, ExplorerError
from explorer.session import Job, JobState
from explorer.ui.panels.parts import button, marked

P = ParamSpec("P")


class Strip:
    """Messages and the state of the running job. ``box`` is the widget.

    Args:
        cancel: stops what is running.

    Attributes:
        last_error: what was shown last as an error, for tests.
    """

    def __init__(self, cancel: Callable[[], None]) -> None:
        self._facts = marked(widgets.HTML(), "facts")
        self._message = marked(widgets.HTML(), "message")
        self._dismiss = marked(button("Dismiss", "Hide this message", self.clear), "dismiss")
        self._status = marked(widgets.HTML(), "status")
        self._bar = marked(widgets.FloatProgress(min=0, max=1), "progress")
        self.cancel = marked(button("Cancel", "Stop what is running", cancel), "cancel")
        self._job = marked(widgets.HBox([self._status, self._bar, self.cancel]), "job")
        self.box = marked(widgets.HBox([self._facts, self._message, self._dismiss, self._job]), "strip")
        self._text = ""
        self.last_error: BaseException | None = None
        self.clear()
        self.show_job(None)

    @property
    def text(self) -> str:
        """The message shown, or ""."""
        return self._text

    @property
    def status(self) -> str:
        """What the running job says, as HTML, or ""."""
        return "" if self._job.layout.display == "none" else str(self._status.value)

    def show_facts(self, text: str) -> None:
        """Show what is open; safe HTML. A message hides it until it is dismissed."""
        self._facts.value = text

    def error(self, error: BaseException) -> None:
        """Show what went wrong; a user's own Cancel is no error."""
        if isinstance(error, Cancelled):
            self.notice(str(error))
            return
        self.last_error = error
        known = isinstance(error, ExplorerError)
        self._show(str(error) if known else f"Unexpected {type(error).__name__}: {error}", is_error=True)

    def notice(self, text: str) -> None:
        """Show a sentence that is no error."""
        self._show(text, is_error=False)

    def clear(self) -> None:
        """Hide the message."""
        self._text = self._message.value = ""
        self._arrange()

    def show_job(self, job: Job[Any] | None) -> None:
        """Show the running job and its progress, or nothing."""
        self._job.layout.display = "none" if job is None else ""
        if job is None:
            return
        progress = job.progress
        self._bar.value = 0.0 if progress is None else progress.done / max(progress.total, 1)
        text = job.label if progress is None else f"{job.label}: {progress.text}"
        if job.token.is_set():
            text = f"Stopping: {job.label}"
        elif job.state is JobState.WAITING:
            text = f"{text} (waiting)"
        safe = html.escape(text)
        self._status.value = f'<span role="status" title="{safe}">{safe}</span>'

    def guard(self, handler: Callable[P, None]) -> Callable[P, None]:
        """A handler that shows its errors here; re-raises unexpected ones too under ``EXPLORER_STRICT=1``."""

        @wraps(handler)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
            try:
                handler(*args, **kwargs)
            except Exception as error:
                self.error(error)
                if os.environ.get("EXPLORER_STRICT") and not isinstance(error, ExplorerError):
                    raise

        return guarded

    def _show(self, text: str, *, is_error: bool) -> None:
        self._text = text
        kind, role = ("error", "alert") if is_error else ("notice", "status")
        safe = html.escape(text)
        self._message.value = f'<div class="explorer-{kind}" role="{role}" title="{safe}">{safe}</div>'
        self._arrange()

    def _arrange(self) -> None:
        has_message = "" if self._text else "none"
        self._message.layout.display = self._dismiss.layout.display = has_message
        self._facts.layout.display = "none" if self._text else ""
