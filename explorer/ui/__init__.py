"""The app and its parts; everything heavy is imported when the app is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from explorer.ui.app import App


def open_app(
    model: str | Path | bytes | None = None,
    *,
    target: str | None = None,
    session: str | Path | None = None,
    fill_weights: int | None = None,
) -> App:
    """Show the app in a notebook.

    Args:
        model: path, sample name or bytes; None starts with the model picker.
        target: target spec, e.g. ``"ort:level=disable,threads=1"``.
        session: a session saved earlier, instead of a model.
        fill_weights: seed for structures without weights.

    A model that cannot be opened is explained in the app, which stays usable.
    """
    from explorer.errors import ExplorerError
    from explorer.session import Session
    from explorer.session.session import DEFAULT_TARGET
    from explorer.ui.app import App

    opened, problem = None, None
    try:
        if session is not None:
            opened = Session.reopen(session)
        elif model is not None:
            opened = Session(model, target=target or DEFAULT_TARGET, fill_weights=fill_weights)
    except ExplorerError as error:
        problem = error
    app = App(opened, target=target)
    if problem is not None:
        app.strip.error(problem)
    return app


__all__ = ["open_app"]
