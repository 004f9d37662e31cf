"""Fusion in the app: the panel, the session's bench behind it, and what is drawn on the graph."""

from __future__ import annotations

from typing import Any

from explorer.errors import ExplorerError
from explorer.fusion.dims import read_dims
from explorer.graph import GraphSummary
from explorer.session import Job, Session, Snapshot
from explorer.session.fusion_traffic import PlanDifference, plan_difference
from explorer.session.fusion_values import FusionView
from explorer.ui import fuse_overlays as overlays
from explorer.ui.controller import Controller, need_path
from explorer.ui.desk import Desk, names_of
from explorer.ui.graphview import ScaleColouring
from explorer.ui.panels.fuse import GROUP, FuseActions, FusePanel
from explorer.ui.panels.graph import GraphPanel
from explorer.ui.pump import Pump
from explorer.ui.strip import Strip


class FuseDesk(Desk):
    """Works while its tab is on screen; leaving it takes every overlay off the graph.

    Args:
        controller: has the session and the jobs.
        graph: where groups are drawn, and chosen.
        pump: brings news of searches to the kernel's thread.
        strip: shows errors.
    """

    def __init__(self, controller: Controller, graph: GraphPanel, pump: Pump, strip: Strip) -> None:
        super().__init__(controller, graph, strip)
        self._pump = pump
        self._session: Session | None = None
        self._view: FusionView | None = None
        self._colour_before = "op"
        self._is_pending = False
        guard = strip.guard
        self.panel = FusePanel(
            FuseActions(
                configure=guard(self._configure),
                choose_group_of=guard(self._choose_group_of),
                whole_group=guard(self._whole_group),
                clear=guard(lambda: self._select(())),
                point_at=guard(self._point_at),
                run=guard(self._run),
                stop=guard(controller.cancel),
                use=guard(self._use),
                compare=guard(self._compare),
                redraw=guard(self.refresh),
                export=guard(self._export),
                load=guard(self._load),
            )
        )
        self.box = self.panel.box

    # What the app says

    def render(self, snapshot: Snapshot) -> None:  # noqa: ARG002 (the bench has its own view)
        """The session or its graph changed."""
        session = self._controller.session
        if session is not self._session and session is not None:
            if self._session is not None:
                old = self._session.fusion.settings
                session.fusion.configure(
                    scheme=old.scheme, buffer_bytes=old.buffer_bytes, element_bytes=old.element_bytes
                )
            self._session, self._view = session, None
        self._strip.guard(self.refresh)()

    def nodes_selected(self, nodes: tuple[str, ...]) -> None:
        """Nodes were selected in the graph."""
        if self.is_shown and self._session is not None:
            self._session.fusion.choose(nodes)
            self._strip.guard(self.refresh)()

    def disable(self, is_busy: bool) -> None:
        """Searches wait for what runs."""
        self.panel.disable(is_busy=is_busy, is_open=self._session is not None)

    def refresh(self) -> None:
        """Bring panel and graph up to date; nothing while the tab is not on screen."""
        self._is_pending = False
        session, summary = self._session, self._graph.summary
        if not self.is_shown or session is None or summary is None:
            return
        self._view = session.fusion.view()
        self.panel.render(self._view, names_of(summary), session.original.name)
        self.disable(self._controller.is_busy)
        self._draw(self._view, summary)

    # What people do

    def _configure(self, dims_text: str | None = None, **changes: Any) -> None:  # noqa: ANN401 (settings of several types)
        dims = None if dims_text is None else read_dims(dims_text)
        self._need().fusion.configure(dims=dims, **changes)
        self.refresh()

    def _choose_group_of(self, node: str) -> None:
        facts = self.panel.drawn_plan
        group = None if facts is None else facts.found.plan.group_of(node)
        if group is None:
            raise ExplorerError(f"Node '{node}' is in no group of this plan: it does not fit the buffer.")
        self._select(group.nodes)

    def _whole_group(self) -> None:
        view = self._view
        if view is not None and view.choice is not None:
            self._choose_group_of(view.choice.nodes[0])

    def _select(self, nodes: tuple[str, ...]) -> None:
        """Choose in the graph, which chooses here."""
        self._need().fusion.choose(nodes)
        self._graph.view.select(nodes)
        self.refresh()

    def _point_at(self, nodes: tuple[str, ...], label: str) -> None:
        self._graph.view.highlight(nodes, label, dim=False)

    def _run(self, name: str, budget: int, seed: int) -> None:
        bench = self._need().fusion

        def search(job: Job[Any]) -> None:
            try:
                bench.search(
                    name, budget=budget, seed=seed, progress=job.report, cancel=job.token, note=self._note
                )
            finally:
                self._note()

        self._controller.start(f"Searching plans ({name.upper()})", search)

    def _note(self) -> None:
        """Something is new; callable from any thread."""
        if not self._is_pending:
            self._is_pending = True
            self._pump.post(self._strip.guard(self.refresh))

    def _use(self, label: str) -> None:
        if label:
            self._need().fusion.use(label)
            self.refresh()

    def _compare(self, label: str) -> None:
        self._need().fusion.compare(label)
        self.refresh()

    def _export(self, path: str) -> None:
        written = self._need().fusion.export(need_path(path))
        self._strip.notice(f"Wrote the plan to {written.resolve()}.")

    def _load(self, path: str) -> None:
        found = self._need().fusion.load_plan(need_path(path))
        self.refresh()
        self._strip.notice(f"Plan A is now {found.label}.")

    # Drawing

    def _draw(self, view: FusionView, summary: GraphSummary) -> None:
        canvas, facts = self._graph.view, self.panel.drawn_plan
        found = self._difference(view, summary)
        self.panel.show_difference(found, names_of(summary))
        plan = None if facts is None else facts.found.plan
        choice = view.choice if self.panel.mode.value == GROUP else None
        is_refused = choice is not None and choice.problem is not None
        is_group = choice is not None and choice.report is not None
        is_beside = self.panel.is_beside and found is not None
        canvas.set_groups(() if is_refused or is_beside else overlays.hulls(plan, choice))
        if plan is None or is_refused:
            canvas.set_edge_values(None)
        elif is_beside and found is not None:
            canvas.set_edge_values(overlays.difference(found, summary))
        elif is_group and choice is not None and choice.operations > 1:
            canvas.set_edge_values(overlays.edge_blame(choice, plan, summary))
        else:
            canvas.set_edge_values(overlays.traffic(plan, summary))
        self._colour(overlays.node_blame(choice) if is_group and choice is not None else None)
        if choice is not None and choice.path:
            network = self._need().fusion.network()
            canvas.highlight(network.ids(network.mask(choice.path)), "in the way", dim=False)
        elif canvas.highlighted:
            canvas.clear_highlight()

    def _difference(self, view: FusionView, summary: GraphSummary) -> PlanDifference | None:
        if view.current is None or view.compared is None:
            return None
        return plan_difference(view.current.found.plan, view.compared.found.plan, summary)

    def _colour(self, blame: ScaleColouring | None) -> None:
        canvas = self._graph.view
        others = [one for one in canvas.offered if one.key != overlays.BLAME]
        if blame is not None:
            canvas.offer(*others, blame)
            if canvas.colour_by != overlays.BLAME:
                self._colour_before = canvas.colour_by
            canvas.colour(overlays.BLAME)
        elif len(others) < len(canvas.offered):
            back = self._colour_before
            canvas.offer(*others)
            canvas.colour(back if back in {"op", *(one.key for one in others)} else "op")

    def _entered(self) -> None:
        self._colour_before = self._graph.view.colour_by
        self._graph.clear_site()
        self.nodes_selected(tuple(self._graph.view.selection))

    def _left(self) -> None:
        canvas = self._graph.view
        canvas.set_groups(())
        canvas.set_edge_values(None)
        canvas.clear_highlight()
        self._colour(None)
