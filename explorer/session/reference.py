"""Outputs of the original, computed once per set of inputs and kept for all later checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from explorer.graph import Graph
from explorer.runtime import CancelToken, Measurer
from explorer.runtime.request import feeds_digest

Inputs = dict[str, np.ndarray]


class Reference:
    """Runs graphs where the runtime's optimiser is off; remembers what the original gave."""

    def __init__(self, original: Graph, measurer: Measurer) -> None:
        self._original = original
        self._measurer = measurer
        self._known: dict[tuple[str, ...], list[dict[str, Any]]] = {}

    def run(
        self, graph: Graph, feeds: Sequence[Inputs], cancel: CancelToken | None = None
    ) -> list[dict[str, Any]]:
        """Outputs by name for each set of inputs; errors as ``Measurer.run``."""
        if graph is not self._original:
            return self._measurer.run(graph, feeds, cancel=cancel)
        key = tuple(feeds_digest(item) for item in feeds)
        if key not in self._known:
            self._known[key] = self._measurer.run(graph, feeds, cancel=cancel)
        return self._known[key]
