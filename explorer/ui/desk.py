"""What the desks share: a desk is a tab that draws on the graph while it is on screen, and only then."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import ipywidgets as widgets

from explorer.graph import GraphSummary
from explorer.session import Session, Snapshot
from explorer.ui.controller import Controller
from explorer.ui.panels.graph import GraphPanel
from explorer.ui.strip import Strip


class Desk(ABC):
    """A tab with commands of its own; leaving it takes off the graph what it has drawn there.

    Args:
        controller: has the session and the jobs.
        graph: what is drawn on.
        strip: shows errors and notices.

    Attributes:
        box: the tab's content, set by each desk.
    """

    box: widgets.Widget

    def __init__(self, controller: Controller, graph: GraphPanel, strip: Strip) -> None:
        self._controller, self._graph, self._strip = controller, graph, strip
        self._is_shown = False

    @property
    def is_shown(self) -> bool:
        """Whether the tab is on screen."""
        return self._is_shown

    def show(self, is_shown: bool) -> None:
        """The tab was opened or left; saying so twice is harmless."""
        if is_shown != self._is_shown:
            self._is_shown = is_shown
            self._entered() if is_shown else self._left()

    @abstractmethod
    def render(self, snapshot: Snapshot) -> None:
        """The session or its graph has changed."""

    @abstractmethod
    def nodes_selected(self, nodes: tuple[str, ...]) -> None:
        """Nodes were selected in the graph."""

    @abstractmethod
    def disable(self, is_busy: bool) -> None:
        """Whether something runs has changed."""

    @abstractmethod
    def _entered(self) -> None:
        """Draw what this tab shows."""

    @abstractmethod
    def _left(self) -> None:
        """Take off the graph what this tab has drawn."""

    def _need(self) -> Session:
        return self._controller.need_session()


def names_of(summary: GraphSummary) -> Callable[[str], str]:
    """Turns a node's id into what people read: the id and its operator."""
    operators = {node.id: node.operator for node in summary.nodes}
    return lambda identifier: f"{identifier} {operators.get(identifier, '')}".strip()
