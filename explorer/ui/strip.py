"""The strip on top of the app: errors and notices in words, and what is running, with Cancel."""

from __future__ import annotations

import html
import os
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

import ipywidgets as widgets

from explorer.errors import Cancelled, ExplorerError
from explorer.session import Job, JobState

P = ParamSpec("P")


class Strip:
    """Messages and the state of the running job. ``box`` is the widget."""

    def __init__(self, cancel: Callable[[], None]) -> None:
        self._message = widgets.HTML()
        self._message.add_class("explorer-message")
        self._dismiss = widgets.Button(description="Dismiss", tooltip="Hide this message")
        self._dismiss.on_click(lambda _button: self.clear())
        self._status = widgets.HTML()
        self._bar = widgets.FloatProgress(min=0, max=1, layout=widgets.Layout(width="180px"))
        self._cancel = widgets.Button(description="Cancel", tooltip="Stop what is running")
        self._cancel.on_click(lambda _button: cancel())
        self._top = widgets.HBox([self._message, self._dismiss])
        self._bottom = widgets.HBox([self._bar, self._status, self._cancel])
        self.box = widgets.VBox([self._top, self._bottom])
        self.box.add_class("explorer-strip")
        self.last_error: BaseException | None = None
        self.clear()
        self.show_job(None)

    @property
    def text(self) -> str:
        """The message shown, or ""."""
        return html.unescape(self._message.value) if self._top.layout.display != "none" else ""

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
        self._top.layout.display = "none"

    def show_job(self, job: Job[Any] | None) -> None:
        """Show the running job and its progress, or nothing."""
        self._bottom.layout.display = "none" if job is None else ""
        if job is None:
            return
        progress = job.progress
        self._bar.value = 0.0 if progress is None else progress.done / max(progress.total, 1)
        waiting = job.state is JobState.WAITING
        text = job.label if progress is None else f"{job.label}: {progress.text}"
        self._status.value = (
            f'<span role="status">{html.escape(text)}{" (waiting)" if waiting else ""}</span>'
        )

    def guard(self, handler: Callable[P, None]) -> Callable[P, None]:
        """A handler that shows its errors here; re-raises them too under ``EXPLORER_STRICT=1``."""

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
        kind, role = ("error", "alert") if is_error else ("notice", "status")
        self._message.value = f'<div class="explorer-{kind}" role="{role}">{html.escape(text)}</div>'
        self._top.layout.display = ""
