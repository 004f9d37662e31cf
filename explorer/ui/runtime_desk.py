"""The Runtime tab in the app: its panel, the commands behind it, and what it shows in the graph."""

from __future__ import annotations

from explorer.runtime import RuntimeView
from explorer.runtime.profile import Kernel
from explorer.session import Snapshot
from explorer.session.portability import Plan
from explorer.ui.controller import Controller, need_path
from explorer.ui.desk import Desk, names_of
from explorer.ui.panels.graph import GraphPanel
from explorer.ui.panels.portability import PortabilityActions
from explorer.ui.panels.runtime import ROOFLINE, VIEW, RuntimeActions, RuntimePanel
from explorer.ui.runtime_scene import executed_scene
from explorer.ui.strip import Strip


class RuntimeDesk(Desk):
    """Leaving the tab takes the comparison off the graph.

    Args:
        controller: has the session and the jobs.
        graph: where nodes are outlined and the runtime's graph is drawn.
        strip: shows errors and notices.
    """

    def __init__(self, controller: Controller, graph: GraphPanel, strip: Strip) -> None:
        super().__init__(controller, graph, strip)
        self._snapshot: Snapshot | None = None
        self._compared: RuntimeView | None = None
        self._seen: RuntimeView | None = None
        guard = strip.guard
        self.panel = RuntimePanel(
            RuntimeActions(
                profile=guard(controller.profile),
                roofline=guard(controller.roofline),
                look=guard(controller.runtime_view),
                compare=guard(self._compare),
                point_at=guard(self._point_at),
                kernel=guard(self._kernel),
                redraw=guard(self._section_shown),
                portability=PortabilityActions(
                    run=guard(self._travel),
                    stop=guard(controller.cancel),
                    save=guard(self._save),
                    load=guard(self._load),
                ),
            )
        )
        self.box = self.panel.box

    # What the app says

    def render(self, snapshot: Snapshot) -> None:
        """The session has changed; a view that has just arrived is shown beside the model."""
        self._snapshot = snapshot
        if snapshot.view is not self._compared and self._compared is not None:
            self._end_comparison()
        self._redraw()
        if snapshot.view is not None and snapshot.view is not self._seen:
            self._seen = snapshot.view
            if self.is_shown and self.panel.section.value == VIEW:
                self._compare(True)

    def nodes_selected(self, nodes: tuple[str, ...]) -> None:  # noqa: ARG002 (the graph has them)
        """Nodes were selected in the graph: their points get a ring."""
        if self.is_shown and self.panel.section.value == ROOFLINE:
            self._redraw()

    def disable(self, is_busy: bool) -> None:
        """Nothing is measured while something else is."""
        self.panel.disable(is_busy=is_busy, is_open=self._controller.session is not None)

    def _entered(self) -> None:
        self._redraw()

    def _left(self) -> None:
        self._end_comparison()

    def _section_shown(self) -> None:
        if self._compared is not None and self.panel.section.value != VIEW:
            self._end_comparison()
        self._redraw()

    def _redraw(self) -> None:
        snapshot = self._snapshot
        if snapshot is None or not self.is_shown:
            return
        self.panel.render(snapshot, names_of(snapshot.summary), tuple(self._graph.view.selection))
        self.disable(self._controller.is_busy)

    # What people do

    def _compare(self, is_on: bool) -> None:
        snapshot = self._snapshot
        if not is_on or snapshot is None or snapshot.view is None:
            self._end_comparison()
            return
        scene, altered = executed_scene(snapshot.summary, snapshot.view)
        self._graph.show_scenes(scene, altered, ("The model", "As the runtime executes it"))
        self._compared = snapshot.view
        self.panel.show_beside(True)

    def _end_comparison(self) -> None:
        if self._compared is not None and self._graph.is_comparing:
            self._graph.show_current()
        self._compared = None
        self.panel.show_beside(False)

    def _point_at(self, nodes: tuple[str, ...], label: str) -> None:
        if nodes:
            self._graph.view.highlight(nodes, label)
        else:
            self._graph.view.clear_highlight()

    def _kernel(self, name: str) -> None:
        kernels = (
            () if self._snapshot is None or self._snapshot.profile is None else self._snapshot.profile.kernels
        )
        kernel: Kernel | None = next((one for one in kernels if one.name == name), None)
        if kernel is not None:
            self._graph.show_site(kernel.nodes, f"{100 * kernel.share:.1f} % of the time")

    def _travel(self, plan: Plan) -> None:
        self._controller.portability(plan)

    def _save(self, path: str) -> None:
        session = self._need()
        self._strip.notice(f"Wrote {session.write_matrix(need_path(path)).resolve()}.")

    def _load(self, path: str) -> None:
        matrix = self._need().read_matrix(need_path(path))
        name = self._need().original.name
        if name not in matrix.models:
            self._strip.notice(f"This matrix is about {', '.join(matrix.models)}, not about {name}.")
