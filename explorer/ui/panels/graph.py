"""The graph, the site of a candidate, before and after."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import ipywidgets as widgets

from explorer.graph import Graph, GraphDiff, GraphSummary, describe
from explorer.runtime.profile import Profile
from explorer.session import Snapshot
from explorer.ui.graphview import GraphView, ScaleColouring, by_bytes, by_flops, by_time, scene_of
from explorer.ui.graphview.scene import Scene
from explorer.ui.panels.parts import marked


class GraphPanel:
    """The graph view; ``box`` is its frame.

    Args:
        on_select: called with the ids of the selected nodes.
    """

    def __init__(self, on_select: Callable[[tuple[str, ...]], None]) -> None:
        self.view = GraphView(height=600)
        self._summary: GraphSummary | None = None
        self._profile: Profile | None = None
        self._profiles_shown: list[Profile] = []
        self.view.on_select(on_select)
        self.box = marked(widgets.Box([self.view]), "graph-panel")

    @property
    def summary(self) -> GraphSummary | None:
        """The graph on screen."""
        return self._summary

    @property
    def is_comparing(self) -> bool:
        """Whether two graphs are shown."""
        return bool(self.view.comparison)

    def render(self, snapshot: Snapshot) -> bool:
        """Show the current graph; redraws only if it changed, and says whether it did."""
        is_changed = snapshot.summary is not self._summary
        has_times = snapshot.profile is not self._profile
        self._profile = snapshot.profile
        if is_changed:
            is_new = self._summary is None or self._summary.name != snapshot.summary.name
            self._summary = snapshot.summary
            self.show_current(keep_open=not is_new)
        elif has_times:
            self._offer()
        self._show_new_times()
        return is_changed

    def _show_new_times(self) -> None:
        """Colour by time when somebody has just asked for it; later it is one of the choices."""
        profile = self._profile
        if profile is not None and not any(profile is shown for shown in self._profiles_shown):
            self._profiles_shown.append(profile)
            self.view.colour("time")

    def _offer(self) -> None:
        if self._summary is not None:
            times = () if self._profile is None else (time_colouring(self._profile),)
            self.view.offer(by_bytes(self._summary), by_flops(self._summary), *times)

    def show_current(self, *, keep_open: bool = True) -> None:
        """The current graph, without comparison."""
        if self._summary is None:
            return
        self.view.show(scene_of(self._summary), keep_open=keep_open)
        self._offer()

    def show_site(self, nodes: Iterable[str], label: str) -> None:
        """Outline nodes: of a candidate, a near miss or a proposal."""
        if self.is_comparing:
            self.show_current()
        self.view.highlight(nodes, label)

    def clear_site(self) -> None:
        """Outline nothing."""
        if self.is_comparing:
            self.show_current()
        self.view.clear_highlight()

    def show_comparison(self, after: Graph, difference: GraphDiff) -> None:
        """The current graph and what a candidate would make of it, side by side."""
        self.show_scenes(scene_of(describe(after)), difference.changed, ("Now", "After"))

    def show_scenes(self, other: Scene, changed: Collection[str], titles: tuple[str, str]) -> None:
        """The current graph and another one, side by side; ``changed`` nodes stay but are not the same."""
        if self._summary is not None:
            self.view.compare(scene_of(self._summary), other, changed=changed, titles=titles)


def time_colouring(profile: Profile) -> ScaleColouring:
    """Measured time per node; nodes that the runtime fused share their kernel's time equally."""
    times = {time.node: time.ns / len(time.group) for time in profile.by_node().values()}
    return by_time(times, f"measured on {profile.target} by its profiler; fused nodes share equally")
