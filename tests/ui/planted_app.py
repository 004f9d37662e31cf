"""Apps with planted times, driven without a browser: ``set_state`` is what a click sends."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from explorer.errors import ExplorerError
from explorer.session import Session
from explorer.ui.app import App
from tests.session.planted import folds, planted_session

WAIT_S = 60


class Driver:
    """An app and what a person does with it."""

    def __init__(self, session: Session | None) -> None:
        self.app = App(session)
        self.settle()

    @property
    def session(self) -> Session:
        """The session on screen."""
        session = self.app.session
        assert session is not None
        return session

    def settle(self) -> None:
        """Render until nothing runs, waits or has changed."""
        deadline = time.monotonic() + WAIT_S
        while True:
            self.app.flush()
            controller = self.app.controller
            current = controller.jobs[0] if controller.jobs else controller._own_runner.current
            if current is None and not self.app._pump._waiting:
                return
            assert time.monotonic() < deadline, current
            time.sleep(0.005)

    def until(self, condition: Callable[[], object]) -> None:
        """Render until something is true, while jobs run."""
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < deadline
            self.app.flush()
            time.sleep(0.005)

    def press(self, button: widgets.Button, *, settle: bool = True) -> None:
        """Press a button, as the browser would report it."""
        assert not button.disabled, f"'{button.description}' cannot be pressed"
        button.click()
        if settle:
            self.settle()

    def choose(self, widget: widgets.Widget, value: Any) -> None:
        """Set a control, as the browser would report it."""
        widget.set_state({"value": value} if not isinstance(widget, widgets.Dropdown) else
                         {"index": [v for _, v in widget.options].index(value)})  # fmt: skip
        self.settle()

    def select(self, identifier: str) -> None:
        """Click a row of the candidate table."""
        self.app.candidates.table.set_state({"selected": identifier})
        self.settle()

    def select_fold(self, number: int = 0) -> str:
        """Click the row of a BatchNormalization fold; its id."""
        identifier = folds(self.session)[number].id
        self.select(identifier)
        return identifier

    def key(self, command: str) -> None:
        """Press a key in the app; the table translates keys into commands."""
        table = self.app.candidates.table
        if not table.busy:
            table._handle_custom_msg({"command": command}, [])
        self.settle()

    def click_nodes(self, *nodes: str) -> None:
        """Click nodes in the graph."""
        self.app.graph.view.set_state({"selection": list(nodes)})
        self.settle()

    def check(self) -> None:
        """Fail if a callback or a job raised what it should not have."""
        error = self.app.strip.last_error
        if error is not None and not isinstance(error, ExplorerError):
            raise error


def planted_app(**settings: Any) -> Driver:
    """An app on the two blocks of ``tests.session.planted``."""
    return Driver(planted_session(**settings))
