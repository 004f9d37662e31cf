"""Fusion: scheme and buffer, the bill of a chosen group, plans and their searches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from explorer.fusion import KB
from explorer.fusion.dims import dims_text
from explorer.session.fusion_traffic import PlanDifference
from explorer.session.fusion_values import FusionView, PlanFacts
from explorer.ui.bill import Bill
from explorer.ui.bill.wire import Names, kb_text
from explorer.ui.chart import Chart
from explorer.ui.chart.plans import plans_figure
from explorer.ui.panels.fuse_text import (
    choice_html,
    comparison_html,
    difference_html,
    differing_edges,
    totals_html,
)
from explorer.ui.panels.parts import button, column, field, marked, row

_STYLE = (Path(__file__).parent / "fuse.css").read_text(encoding="utf-8")
_SCHEMES = (("LBDF, line buffers", "lbdf"), ("BRR, branch requirement", "brr"))
# Four sizes per doubling: as good as a logarithmic scale, in round numbers.
_BUFFERS_KB = (128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024, 1280, 1536, 1792, 2048)
_ELEMENTS = (("1 byte", 1), ("2 bytes", 2), ("4 bytes", 4))
_SEARCHES = (
    ("EXACT, the optimum", "exact"),
    ("LS, local search", "ls"),
    ("NSGA-II", "nsga2"),
    ("RS, random plans", "rs"),
    ("GREEDY, until full", "greedy"),
)
GROUP, PLANS = "Group", "Plans"
BESIDE = "a|b"
_NO_GROUP = ("chosen in the graph", "")
_NO_EDGE: tuple[str, tuple[str, ...]] = ("none", ())


@dataclass(frozen=True)
class FuseActions:
    """What the panel asks for.

    Attributes:
        configure: change settings (scheme, buffer_bytes, element_bytes, dims).
        choose_group_of: choose the group of the current plan that a node is in.
        whole_group: choose the plan's group around what is chosen.
        clear: choose nothing.
        point_at: show nodes in the graph, with a label.
        run: search with name, budget and seed.
        stop: stop the search.
        use: work with a plan.
        compare: put a plan beside it, "" for none.
        redraw: what should be drawn has changed (mode, plan A or B).
        export: write the current plan to a path.
        load: take a plan from a path and work with it.
    """

    configure: Callable[..., None]
    choose_group_of: Callable[[str], None]
    whole_group: Callable[[], None]
    clear: Callable[[], None]
    point_at: Callable[[tuple[str, ...], str], None]
    run: Callable[[str, int, int], None]
    stop: Callable[[], None]
    use: Callable[[str], None]
    compare: Callable[[str], None]
    redraw: Callable[[], None]
    export: Callable[[str], None]
    load: Callable[[str], None]


class FusePanel:
    """The tab; ``box`` is its frame. The chart is made when there is a curve: plotly.js is 5 MB."""

    def __init__(self, actions: FuseActions) -> None:
        self._actions = actions
        self._muted = False
        self._suggested = ""
        self._view: FusionView | None = None
        self.chart: Chart | None = None
        self._make_settings()
        self._make_group()
        self._make_plans()
        self.totals = marked(widgets.HTML(), "fuse-card")
        self.mode = marked(widgets.ToggleButtons(options=(GROUP, PLANS)), "fuse-mode")
        self.mode.observe(self._unless_muted(self._mode_changed), "value")
        style = widgets.HTML(f"<style>{_STYLE}</style>")
        style.layout.display = "none"
        self.box = marked(
            column(style, self.settings, self.totals, self.mode, self.group_box, self.plans_box), "fuse"
        )
        self._show_mode()
        self.disable(is_busy=False, is_open=False)

    def _make_settings(self) -> None:
        act = self._actions.configure
        self.scheme = field(widgets.Dropdown(options=_SCHEMES, description="Scheme"))
        self.buffer = field(
            widgets.SelectionSlider(
                options=[(f"{kb} KB", kb * KB) for kb in _BUFFERS_KB],
                description="Buffer (KB = 1024 bytes)",
                continuous_update=True,
            ),
            grow=True,
        )
        self.element = field(widgets.Dropdown(options=_ELEMENTS, value=2, description="Element"))
        self.dims = field(
            widgets.Text(
                placeholder="N=1, S=128; a whole shape: f=1x8x8", description="Sizes of unknown dimensions"
            ),
            grow=True,
        )
        self.dims.continuous_update = False
        for widget, change in (
            (self.scheme, lambda: act(scheme=self.scheme.value)),
            (self.buffer, lambda: act(buffer_bytes=self.buffer.value)),
            (self.element, lambda: act(element_bytes=self.element.value)),
            (self.dims, lambda: act(dims_text=self.dims.value)),
        ):
            widget.observe(self._unless_muted(change), "value")
        self.settings = row(self.scheme, self.buffer, self.element, self.dims)

    def _make_group(self) -> None:
        act = self._actions
        self.groups = field(widgets.Dropdown(options=[_NO_GROUP], description="Group of the plan"), grow=True)
        self.groups.observe(self._unless_muted(self._group_picked), "value")
        self.whole = button("Whole group", "Choose the plan's group around what is chosen", act.whole_group)
        self.clear = button("Clear", "Choose nothing", act.clear)
        self.choice = marked(widgets.HTML(), "fuse-choice")
        self.bill = Bill()
        self.bill.on_click(act.point_at)
        self.group_box = marked(
            widgets.VBox([row(self.groups, self.whole, self.clear), self.choice, self.bill]), "fuse-part"
        )

    def _make_plans(self) -> None:
        act = self._actions
        self.search = field(widgets.Dropdown(options=_SEARCHES, description="Search"), grow=True)
        self.budget = field(widgets.BoundedIntText(value=1000, min=1, max=1_000_000, description="Plans"))
        self.seed = field(widgets.BoundedIntText(value=0, min=0, max=2**31 - 1, description="Seed"))
        self.run = button("Search", "Search for a plan under these settings", self._run, style="primary")
        self.stop = button("Stop", "Stop; the best plan so far stays", act.stop)
        self.chart_box = marked(widgets.Box(), "chart")
        self.plan_a = field(widgets.Dropdown(options=[("none", "")], description="Plan A"), grow=True)
        self.plan_b = field(widgets.Dropdown(options=[("none", "")], description="Plan B"), grow=True)
        self.plan_a.observe(self._unless_muted(lambda: act.use(self.plan_a.value)), "value")
        self.plan_b.observe(self._unless_muted(self._plan_b_picked), "value")
        self.drawn = marked(
            widgets.ToggleButtons(options=(("Draw A", "a"), ("Draw B", "b"), ("A against B", BESIDE))),
            "fuse-mode",
            "fuse-drawn",
        )
        self.drawn.observe(self._unless_muted(act.redraw), "value")
        self.table = marked(widgets.HTML(), "fuse-numbers")
        self.difference = marked(widgets.HTML(), "fuse-choice")
        self.differing = field(
            widgets.Dropdown(options=[_NO_EDGE], description="Show an edge that differs"), grow=True
        )
        self.differing.observe(self._unless_muted(self._edge_picked), "value")
        self.path = field(widgets.Text(description="Plan A as JSON"), grow=True)
        self.export = button("Export", "Write plan A to this path", lambda: act.export(self.path.value))
        self.load = button("Load", "Take the plan at this path as plan A", lambda: act.load(self.path.value))
        self.plans_box = marked(
            widgets.VBox(
                [
                    row(self.search, self.budget, self.seed, self.run, self.stop),
                    self.chart_box,
                    row(self.plan_a, self.plan_b, self.drawn),
                    self.difference,
                    self.differing,
                    self.table,
                    row(self.path, self.export, self.load),
                ]
            ),
            "fuse-part",
        )

    @property
    def drawn_plan(self) -> PlanFacts | None:
        """The plan that the graph shows: A, or B if that was asked for."""
        view = self._view
        if view is None:
            return None
        return view.compared if self.drawn.value == "b" and view.compared is not None else view.current

    @property
    def is_beside(self) -> bool:
        """Whether the graph shows what two plans do differently."""
        has_two = self._view is not None and self._view.current and self._view.compared
        return bool(has_two) and self.mode.value == PLANS and self.drawn.value == BESIDE

    def show_difference(self, found: PlanDifference | None, names: Names) -> None:
        """Say what the two plans do differently, and where; None if there are no two."""
        view = self._view
        two = None if view is None or not view.current or not view.compared else (view.current, view.compared)
        self.difference.layout.display = self.differing.layout.display = "none" if two is None else ""
        if found is None or two is None:
            return
        self.difference.value = difference_html(found, *two)
        places = differing_edges(found, names)
        with self._mute():
            if tuple(self.differing.options) != (_NO_EDGE, *places):
                self.differing.options = (_NO_EDGE, *places)
        if not places:
            self.differing.layout.display = "none"

    def render(self, view: FusionView, names: Names, name: str) -> None:
        """Show a view of the bench; ``names`` turns ids into what people read, ``name`` is the model's."""
        with self._mute():
            self._view = view
            self._render_settings(view)
            self.totals.value = totals_html(view)
            self.choice.value = choice_html(view.choice)
            self.bill.show(view.choice, names)
            self._render_plans(view, name)
            self._render_groups(view)
            self._render_chart(view)

    def disable(self, *, is_busy: bool, is_open: bool = True) -> None:
        """No search while another runs; looking at groups goes on."""
        for widget in (
            self.scheme,
            self.buffer,
            self.element,
            self.dims,
            self.groups,
            self.export,
            self.load,
        ):
            widget.disabled = not is_open
        nothing = self._view is None or self._view.problem is not None
        for widget in (self.search, self.budget, self.seed, self.run):
            widget.disabled = is_busy or nothing or not is_open
        self.stop.disabled = not is_busy
        has_choice = self._view is not None and self._view.choice is not None
        self.whole.disabled = self.clear.disabled = not has_choice

    def _render_settings(self, view: FusionView) -> None:
        settings = view.settings
        self.scheme.value, self.element.value = settings.scheme, settings.element_bytes
        known = [value for _, value in self.buffer.options]
        if settings.buffer_bytes not in known:
            sizes = sorted([*known, settings.buffer_bytes])
            self.buffer.options = [(f"{size / KB:g} KB", size) for size in sizes]
        self.buffer.value = settings.buffer_bytes
        self.dims.value = dims_text(dict(settings.dims))
        asks = view.problem is not None and "dims=" in view.problem
        self.dims.layout.display = "" if asks or settings.dims else "none"

    def _render_plans(self, view: FusionView, name: str) -> None:
        options = [
            (f"{kb_text(facts.dram_bytes)} · {facts.found.label}", facts.found.label) for facts in view.plans
        ]
        none = [("none", "")]
        current, compared = view.current, view.compared
        if current is None:
            _set_options(self.plan_a, [*none, *options], "")
        else:
            _set_options(self.plan_a, options, current.found.label)
        _set_options(self.plan_b, [*none, *options], "" if compared is None else compared.found.label)
        for widget in (self.plan_a, self.plan_b):
            widget.tooltip = widget.value or "none"
        self.drawn.layout.display = "none" if view.compared is None else ""
        if view.compared is None:
            self.drawn.value = "a"
        self.table.value = comparison_html(view.current, view.compared)
        settings = view.settings
        suggested = f"{name}-{settings.scheme}-{settings.buffer_bytes / KB:g}kb.plan.json"
        if suggested != self._suggested:  # what somebody typed stays
            self._suggested = self.path.value = suggested

    def _render_groups(self, view: FusionView) -> None:
        facts = self.drawn_plan
        options, chosen = [_NO_GROUP], ""
        if facts is not None:
            plan = facts.found.plan
            for number, mask in enumerate(plan.masks, start=1):
                nodes = plan.scheme.network.ids(mask)
                size = kb_text(plan.scheme.cost(mask).demand_bytes)
                count = f"{mask.bit_count()} operation{'s' if mask & (mask - 1) else ''}"
                options.append((f"{number}: {count}, {size}, {' '.join(nodes[:6])}", nodes[0]))
                if view.choice is not None and view.choice.nodes == nodes:
                    chosen = nodes[0]
        _set_options(self.groups, options, chosen)

    def _render_chart(self, view: FusionView) -> None:
        if view.curves and self.chart is None:
            self.chart = Chart("Best DRAM traffic over proposed plans, and the optimum", height=190)
            self.chart_box.children = (self.chart,)
        self.chart_box.layout.display = "" if view.curves else "none"
        self.chart_box.layout.order = "0" if view.compared is None else "1"  # comparing, it comes last
        if self.chart is not None and view.curves:
            self.chart.show(plans_figure(view.curves, view.optimum))

    def _mode_changed(self) -> None:
        self._show_mode()
        self._actions.redraw()

    def _show_mode(self) -> None:
        is_group = self.mode.value == GROUP
        self.group_box.layout.display = "" if is_group else "none"
        self.plans_box.layout.display = "none" if is_group else ""

    def _plan_b_picked(self) -> None:
        """Who picks a plan to compare with wants to see what differs."""
        with self._mute():
            self.drawn.value = BESIDE if self.plan_b.value else "a"
        self._actions.compare(self.plan_b.value)

    def _edge_picked(self) -> None:
        if self.differing.value:
            text = next(text for text, value in self.differing.options if value == self.differing.value)
            self._actions.point_at(self.differing.value, text.partition(":")[0])

    def _group_picked(self) -> None:
        if self.groups.value:
            self._actions.choose_group_of(self.groups.value)

    def _run(self) -> None:
        self._actions.run(self.search.value, int(self.budget.value), int(self.seed.value))

    def _unless_muted(self, action: Callable[[], None]) -> Callable[[object], None]:
        return lambda _change: None if self._muted else action()

    @contextmanager
    def _mute(self) -> Iterator[None]:
        before, self._muted = self._muted, True
        try:
            yield
        finally:
            self._muted = before


def _set_options(widget: Any, options: list[tuple[str, str]], value: str) -> None:  # noqa: ANN401 (ipywidgets is untyped)
    """Replace options only where they changed, so that an open list stays open."""
    if tuple(widget.options) != tuple(options):
        widget.options = options
    widget.value = value
