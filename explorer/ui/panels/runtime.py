"""What the runtime does with the model: time per node, roofline, its own view of the graph, portability."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import ipywidgets as widgets

from explorer.runtime import Profile, RuntimeView
from explorer.runtime.roofs import Roofs
from explorer.session import Snapshot
from explorer.ui.chart import Chart
from explorer.ui.chart.roofline import roofline_figure
from explorer.ui.panels.node import profile_html
from explorer.ui.panels.parts import button, column, field, marked, muted, row
from explorer.ui.panels.portability import PortabilityActions, PortabilityPart
from explorer.ui.panels.runtime_text import Names, roofline_html, view_html

_STYLE = (Path(__file__).parent / "runtime.css").read_text(encoding="utf-8")
TIME, ROOFLINE, VIEW, PORTABILITY = "Time per node", "Roofline", "Runtime's view", "Portability"
_MOST_KERNELS = 60
_CHART_HEIGHT = 320
_NOTHING = ("nothing", "")
_TIME_HINT = "Which node costs what, by the runtime’s own profiler; the graph is coloured by it."
_ROOFLINE_HINT = (
    "How close each executed operator comes to what the target reaches at best. "
    "Measures the time per node first, if it is not known."
)
_VIEW_HINT = (
    "The graph after the runtime’s own optimisation beside the model: what it fuses, which candidates it does "
    "itself, and why a fusion does not happen where that can be told."
)


@dataclass(frozen=True)
class RuntimeActions:
    """What the panel asks for.

    Attributes:
        profile: measure the time per node.
        roofline: measure the roofs, and the time per node if it is not known.
        look: get the runtime's view, then ask for every candidate whether the runtime does it.
        compare: show both graphs side by side, or the model alone.
        point_at: outline nodes in the graph, with a label; no nodes outline nothing.
        kernel: a point of the roofline was clicked.
        redraw: another section is shown.
        portability: commands of the portability section.
    """

    profile: Callable[[], None]
    roofline: Callable[[], None]
    look: Callable[[], None]
    compare: Callable[[bool], None]
    point_at: Callable[[tuple[str, ...], str], None]
    kernel: Callable[[str], None]
    redraw: Callable[[], None]
    portability: PortabilityActions


class RuntimePanel:
    """The tab; ``box`` is its frame. The chart is made when it is first shown: plotly.js is 5 MB."""

    def __init__(self, actions: RuntimeActions) -> None:
        self._actions = actions
        self._muted = False
        self._drawn: tuple[object, ...] = ()
        self._told: tuple[object, ...] = ()
        self.chart: Chart | None = None
        self.section = marked(
            widgets.ToggleButtons(options=(TIME, ROOFLINE, VIEW, PORTABILITY)), "rt-sections"
        )
        self.section.observe(lambda _change: self._show_section(), "value")
        self._make_time()
        self._make_roofline()
        self._make_view()
        self.portability = PortabilityPart(actions.portability)
        self._parts = dict(
            zip(
                self.section.options,
                (self.time_box, self.roofline_box, self.view_box, self.portability.box),
                strict=True,
            )
        )
        style = widgets.HTML(f"<style>{_STYLE}</style>")
        style.layout.display = "none"
        self.box = marked(column(style, self.section, *self._parts.values()), "rt")
        self._show_section()

    def _make_time(self) -> None:
        self.profile = button(
            "Measure times",
            "Time each node with the runtime's own profiler",
            self._actions.profile,
            style="primary",
        )
        self.times = marked(widgets.HTML(muted(_TIME_HINT)), "details")
        self.time_box = marked(widgets.VBox([row(self.profile), self.times]), "rt-part")

    def _make_roofline(self) -> None:
        self.measure_roofs = button(
            "Measure roofline", "A few seconds of measuring", self._actions.roofline, style="primary"
        )
        self.chart_box = marked(widgets.Box(), "chart", "rt-chart")
        self.remarks = marked(widgets.HTML(muted(_ROOFLINE_HINT)), "rt-remarks")
        self.roofline_box = marked(
            widgets.VBox([row(self.measure_roofs), self.chart_box, self.remarks]), "rt-part"
        )

    def _make_view(self) -> None:
        self.look = button(
            "Ask the runtime",
            "Get the runtime's graph, then compare every candidate with what the runtime does itself",
            self._actions.look,
            style="primary",
        )
        self.beside = widgets.ToggleButton(
            description="Beside the model", tooltip="Show both graphs side by side"
        )
        self.beside.layout.width = "auto"
        self.beside.observe(lambda c: None if self._muted else self._actions.compare(bool(c["new"])), "value")
        self.point = field(widgets.Dropdown(options=[_NOTHING], description="Point at"), grow=True)
        self.point.observe(self._point, "value")
        self.facts = marked(widgets.HTML(muted(_VIEW_HINT)), "details")
        self.view_box = marked(widgets.VBox([row(self.look, self.beside, self.point), self.facts]), "rt-part")

    def render(self, snapshot: Snapshot, names: Names, selected: Collection[str]) -> None:
        """Show what is known of the current graph on the current target."""
        profile, roofs = snapshot.profile, snapshot.roofs
        self.times.value = muted(_TIME_HINT) if profile is None else profile_html(profile, _MOST_KERNELS)
        self._render_view(snapshot, names)
        self._render_roofline(profile, roofs, selected)
        self.portability.render(snapshot)

    def disable(self, *, is_busy: bool, is_open: bool) -> None:
        """Nothing is measured while something else is."""
        for widget in (self.profile, self.measure_roofs, self.look):
            widget.disabled = is_busy or not is_open
        self.portability.disable(is_busy=is_busy)

    def show_beside(self, is_on: bool) -> None:
        """Show the button so, without asking for anything."""
        self._muted = True
        self.beside.value = is_on
        self._muted = False

    def _show_section(self) -> None:
        for name, part in self._parts.items():
            part.layout.display = "" if name == self.section.value else "none"
        self._actions.redraw()

    def _render_roofline(
        self, profile: Profile | None, roofs: Roofs | None, selected: Collection[str]
    ) -> None:
        state = (profile, roofs, tuple(selected))
        has_both = profile is not None and roofs is not None
        self.chart_box.layout.display = "" if has_both else "none"
        if profile is None or roofs is None:
            self.remarks.value = muted(_ROOFLINE_HINT)
        elif self.section.value == ROOFLINE and state != self._drawn:
            self._drawn = state
            if self.chart is None:
                self.chart = Chart("Roofline: FLOPs per byte against achieved GFLOP/s", height=_CHART_HEIGHT)
                self.chart.on_click(lambda name: self._actions.kernel(str(name or "")))
                self.chart_box.children = (self.chart,)
            self.chart.show(roofline_figure(profile, roofs, selected))
            self.remarks.value = roofline_html(profile, roofs)

    def _render_view(self, snapshot: Snapshot, names: Names) -> None:
        view = snapshot.view
        self.beside.disabled = self.point.disabled = view is None
        self.facts.value = muted(_VIEW_HINT) if view is None else view_html(view, names, snapshot)
        if self._told != (view, snapshot.number if view is None else 0):
            self._told = (view, snapshot.number if view is None else 0)
            self._muted = True
            self.point.options = [_NOTHING, *([] if view is None else _places(view, names))]
            self.point.value = ""
            self._muted = False

    def _point(self, change: dict[str, str]) -> None:
        if not self._muted:
            nodes = tuple(change["new"].split("+")) if change["new"] else ()
            text = next((text for text, value in self.point.options if value == change["new"]), "")
            self._actions.point_at(nodes, text.partition(":")[0])


def _places(view: RuntimeView, names: Names) -> list[tuple[str, str]]:
    """Options: fusions that did not happen, then those that did; values are node ids joined by +."""
    options = [
        (f"not fused: {' + '.join(map(names, one.nodes))}", "+".join(one.nodes)) for one in view.unfused
    ]
    options += [(f"fused: {' + '.join(map(names, one.nodes))}", "+".join(one.nodes)) for one in view.fused]
    return list({value: (text, value) for text, value in options}.values())
