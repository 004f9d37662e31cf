"""The app: panels around one session. It renders snapshots and passes on what people do; it decides nothing."""

from __future__ import annotations

import html
from functools import partial
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from explorer.errors import CandidateError
from explorer.graph import Graph, GraphDiff
from explorer.search import SWITCH, Proposed
from explorer.session import JobState, OptimiseEvent, Session, Snapshot
from explorer.ui.controller import Controller
from explorer.ui.desk import Desk
from explorer.ui.fuse_desk import FuseDesk
from explorer.ui.graphview.units import count_text
from explorer.ui.panels.candidates import CandidateActions, CandidatePanel
from explorer.ui.panels.graph import GraphPanel
from explorer.ui.panels.history import HistoryActions, HistoryPanel
from explorer.ui.panels.near_misses import NearMissPanel
from explorer.ui.panels.node import NodePanel
from explorer.ui.panels.opening import OpeningActions, OpeningPanel
from explorer.ui.panels.optimise import OptimiseActions, OptimisePanel
from explorer.ui.panels.parts import marked, short_delta_html
from explorer.ui.pump import Pump
from explorer.ui.runtime_desk import RuntimeDesk
from explorer.ui.strip import Strip

_STYLE = (Path(__file__).parent / "app.css").read_text(encoding="utf-8")
_TABS = ("Candidates", "Why not here?", "Node", "Optimise", "Fuse", "Runtime", "History")
CANDIDATES, NEAR_MISSES, NODE, OPTIMISE, FUSE, RUNTIME, HISTORY = range(7)
_EMPTY = "<b>explorer</b> Choose a sample, give a path, or upload a file to begin."


class App(widgets.VBox):  # type: ignore[misc]  # ipywidgets is not typed
    """Everything on one screen.

    Args:
        session: what to show; None starts with the model picker.
        target: target for models that are opened in the app.

    Attributes:
        controller: what the panels call; has the session and the running jobs.
    """

    def __init__(self, session: Session | None = None, *, target: str | None = None) -> None:
        self._snapshot: Snapshot | None = None
        self._shown: Session | None = None
        self._initial_target = target
        self.strip = Strip(self._cancel)
        self._pump = Pump(self._render, self.strip.guard)
        self.controller = Controller(self._pump, self.strip, self._settings)
        self.controller.on_search_over = self._search_over
        self._make_panels()
        panels = (
            self.candidates, self.near_misses, self.node, self.optimise, self.fuse, self.runtime, self.history
        )  # fmt: skip
        self.tabs = marked(widgets.Tab([panel.box for panel in panels], titles=_TABS), "side")
        self.tabs.observe(self._tab_shown, "selected_index")
        status = marked(widgets.HBox([self.strip.box, self.history.undo, self.history.redo]), "top")
        main = marked(widgets.HBox([self.graph.box, self.tabs]), "main")
        super().__init__([widgets.HTML(f"<style>{_STYLE}</style>"), self.opening.box, status, main])
        self.add_class("explorer-app")
        self.strip.show_facts(_EMPTY)
        if session is not None:
            self.controller.show(session)
            self._pump.flush()
        self._disable()

    def __repr__(self) -> str:
        return f"App({self.session!r})"

    @property
    def session(self) -> Session | None:
        """The session on screen, or None."""
        return self.controller.session

    def _make_panels(self) -> None:
        do, guard = self.controller, self.strip.guard
        self.opening = OpeningPanel(
            OpeningActions(
                open_model=guard(do.open_model),
                set_target=guard(do.set_target),
                set_opt_in=guard(do.set_opt_in),
                set_protocol=guard(do.set_protocol),
                error=self.strip.error,
            )
        )
        self.graph = GraphPanel(guard(self._nodes_selected))
        self.candidates = CandidatePanel(
            CandidateActions(
                select=guard(self._candidate_selected),
                compare=guard(self._compare),
                measure=guard(do.measure),
                measure_all=guard(do.measure_all),
                find_switches=guard(do.find_switches),
                predict=guard(do.predict),
                accept=guard(do.accept),
                reject=guard(do.toggle_rejection),
                command=guard(self._command),
            )
        )
        self.near_misses = NearMissPanel(guard(self._near_miss_selected))
        self.node = NodePanel(
            partial(self._show_here, CANDIDATES),
            partial(self._show_here, NEAR_MISSES),
            guard(do.profile),
        )
        self.optimise = OptimisePanel(
            OptimiseActions(
                step=guard(do.step),
                skip=guard(do.skip),
                run=guard(do.run),
                stop=guard(do.cancel),
            )
        )
        do.on_search_reset = self.optimise.reset
        self.fuse = FuseDesk(do, self.graph, self._pump, self.strip)
        self.runtime = RuntimeDesk(do, self.graph, self.strip)
        self._desks: dict[int, Desk] = {FUSE: self.fuse, RUNTIME: self.runtime}
        self.history = HistoryPanel(
            HistoryActions(
                undo=guard(do.undo),
                redo=guard(do.redo),
                measure_total=guard(do.measure_total),
                export=guard(do.export),
                save=guard(do.save),
                reopen=guard(do.reopen),
            )
        )

    def close(self) -> None:
        """Stop what runs, keep what was decided, end the session's worker; the widgets go too."""
        self.strip.guard(self.controller.keep)()
        self._pump.close()
        self.controller.close()
        for widget in _below(self):
            widget.close()
        super().close()

    def flush(self) -> None:
        """Render what is pending now; for scripts and tests without an event loop."""
        self._pump.flush()

    def _settings(self) -> dict[str, Any]:
        """For models that are opened in the app."""
        target, self._initial_target = self._initial_target, None
        return {
            "target": target or self.opening.target,
            "protocol": self.opening.protocol,
            "opt_in": bool(self.opening.opt_in.value),
        }

    # What people do

    def _cancel(self) -> None:
        self.controller.cancel()

    def _command(self, command: str) -> None:
        if command == "undo" and not self.history.undo.disabled:
            self.controller.undo()
        elif command == "redo" and not self.history.redo.disabled:
            self.controller.redo()
        elif command == "step" and not self.optimise.step.disabled:
            self.tabs.selected_index = OPTIMISE
            self.optimise.step.click()

    def _candidate_selected(self, identifier: str) -> None:
        session = self.session
        if identifier and session is not None:
            self.near_misses.table.selected = ""
            found = session.find(identifier)
            if not found.nodes and found.rule == SWITCH:
                self.candidates.end_comparison()
                self.graph.clear_site()
            elif not self.candidates.compare.value:
                self.graph.show_site(found.nodes, found.rule)
        elif not self.near_misses.table.selected:
            self.graph.clear_site()
        self._disable()

    def _near_miss_selected(self, nodes: tuple[str, ...], rule: str) -> None:
        if nodes:
            self.candidates.table.selected = ""
            self.graph.show_site(nodes, rule)
        elif not self.candidates.table.selected:
            self.graph.clear_site()

    def _compare(self, identifier: str, is_on: bool) -> None:
        found = self.controller.need_session().find(identifier)
        if is_on:
            self.controller.preview(identifier, partial(self._show_comparison, identifier))
        else:
            self.graph.show_site(found.nodes, found.rule)

    def _show_comparison(self, identifier: str, after: Graph, difference: GraphDiff) -> None:
        chosen = self.candidates.selected
        if chosen is not None and chosen.id == identifier and self.candidates.compare.value:
            self.graph.show_comparison(after, difference)

    def _nodes_selected(self, nodes: tuple[str, ...]) -> None:
        for panel in (self.candidates, self.near_misses):
            panel.focus(nodes)
        counts = self.candidates.table.at_focus(), self.near_misses.table.at_focus()
        self.node.show(self.graph.summary, nodes, *counts)
        for desk in self._desks.values():
            desk.nodes_selected(nodes)
        is_at_desk = any(desk.is_shown for desk in self._desks.values())
        if nodes and not is_at_desk and not self._is_filtering() and not self.controller.is_busy:
            self.tabs.selected_index = NODE

    def _is_filtering(self) -> bool:
        """Whether the tab on screen shows what is at the selected nodes."""
        tables = {CANDIDATES: self.candidates.table, NEAR_MISSES: self.near_misses.table}
        table = tables.get(self.tabs.selected_index)
        return table is not None and table.only_here

    def _show_here(self, tab: int) -> None:
        panel = self.candidates if tab == CANDIDATES else self.near_misses
        panel.table.only_here = True
        self.tabs.selected_index = tab

    def _tab_shown(self, change: dict[str, int]) -> None:
        if change["new"] == OPTIMISE:
            self.strip.guard(self.optimise.show_chart)()
        desks = self._desks.items()
        for tab, desk in sorted(
            desks, key=lambda item: item[0] == change["new"]
        ):  # one leaves, then one comes
            self.strip.guard(desk.show)(tab == change["new"])

    # Rendering, in the kernel's thread

    def _render(self) -> None:
        """Bring the screen up to date."""
        session = self.session
        if session is not None and self._is_stale(session):
            self._shown = session
            self._show(session.snapshot(wait=False))
        while self.controller.events:
            self._show_event(self.controller.events.popleft())
        if self.controller.collect():
            self.opening.render(self._snapshot)
        self.controller.keep_soon()
        self.strip.show_job(self.controller.jobs[0] if self.controller.jobs else None)
        self._disable()

    def _show(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        if not snapshot.is_ready:
            self.controller.prepare()
        panels = (
            self.opening, self.candidates, self.near_misses, self.node, self.optimise, self.history
        )  # fmt: skip
        for panel in panels:
            panel.render(snapshot)
        if self.graph.render(snapshot):
            self.candidates.end_comparison()
            self._highlight_again()
        for desk in self._desks.values():
            self.strip.guard(desk.render)(snapshot)
        self.strip.show_facts(facts_html(snapshot))

    def _highlight_again(self) -> None:
        """A selection that outlives a change of the graph keeps its outline."""
        chosen = self.candidates.selected
        if chosen is not None and chosen.candidate.nodes:
            self.graph.show_site(chosen.candidate.nodes, chosen.candidate.rule)

    def _show_event(self, event: OptimiseEvent) -> None:
        self.optimise.show_event(event)
        session = self.session
        if not isinstance(event, Proposed) or session is None:
            return
        nodes: list[str] = []
        for place in event.move.places:
            try:
                nodes += session.find(place).nodes
            except CandidateError:  # a site that only a move before this one opens
                continue
        self.graph.show_site(nodes, event.move.rule)

    def _search_over(self, state: JobState) -> None:
        if state is not JobState.DONE:
            self.optimise.show_stopped()

    def _is_stale(self, session: Session) -> bool:
        snapshot = self._snapshot
        return snapshot is None or session is not self._shown or snapshot.number != session.number

    def _disable(self) -> None:
        for panel in (self.opening, self.candidates, self.optimise, self.fuse, self.runtime, self.history):
            panel.disable(self.controller.is_busy)
        self.node.disable(self.controller.is_busy, self.session is not None)


def facts_html(snapshot: Snapshot) -> str:
    """What is open, in two lines of safe HTML: size, opset and state; then what was assumed on opening."""
    summary = snapshot.summary
    flops = f"{count_text(summary.known_flops)} FLOPs"
    facts = [
        f"{len(summary.nodes)} nodes",
        f"{count_text(summary.parameters)} parameters",
        flops if summary.flops is not None else f"at least {flops}",
        ", ".join(f"{domain or 'opset'} {version}" for domain, version in summary.opset),
    ]
    if snapshot.position:
        facts.append(f"{snapshot.position} accepted")
    text = " · ".join(map(html.escape, facts))
    total = "" if snapshot.total is None else f" · {short_delta_html(snapshot.total)} in total"
    notices = html.escape(" ".join(summary.notices))
    return (
        f'<div class="explorer-line"><b>{html.escape(snapshot.name)}</b> {text}{total}</div>'
        f'<div class="explorer-line explorer-muted" title="{notices}">{notices}</div>'
    )


def _below(widget: widgets.Widget) -> list[widgets.Widget]:
    """All widgets inside a widget."""
    children = tuple(getattr(widget, "children", ()))
    return [*children, *(inner for child in children for inner in _below(child))]
