"""The app: panels around one session. It renders snapshots and calls the session; it decides nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from explorer.errors import ExplorerError
from explorer.runtime import Mode
from explorer.search import Answer
from explorer.session import Job, JobState, OptimiseEvent, Session, Snapshot, Stepper
from explorer.ui.panels.candidates import CandidateActions, CandidatePanel
from explorer.ui.panels.graph import GraphPanel
from explorer.ui.panels.history import HistoryPanel
from explorer.ui.panels.opening import OpeningPanel
from explorer.ui.panels.optimise import OptimisePanel
from explorer.ui.pump import Pump
from explorer.ui.strip import Strip

_STYLE = (Path(__file__).parent / "app.css").read_text(encoding="utf-8")
_TABS = ("Candidates", "Optimise", "History")


class App(widgets.VBox):  # type: ignore[misc]  # ipywidgets is not typed
    """Everything on one screen.

    Args:
        session: what to show; None starts with the model picker.
        target: target for models that are opened in the app.

    Attributes:
        session: the session on screen, or None.
    """

    def __init__(self, session: Session | None = None, *, target: str | None = None) -> None:
        self.session: Session | None = None
        self._snapshot: Snapshot | None = None
        self._unsubscribe: Callable[[], None] = lambda: None
        self._jobs: list[Job[Any]] = []
        self._events: deque[OptimiseEvent] = deque()
        self._notices: deque[str] = deque()
        self._initial_target = target
        self._stepper: Stepper | None = None
        self._pump = Pump(self._render)
        self.strip = Strip(self.cancel)
        guard = self.strip.guard
        self.opening = OpeningPanel(guard(self.open_model), guard(self._set_target), guard(self._set_opt_in))
        self.graph = GraphPanel(guard(self._nodes_selected))
        self.candidates = CandidatePanel(
            CandidateActions(
                select=guard(self._select),
                compare=guard(self._compare),
                measure=guard(self.measure),
                measure_all=guard(self.measure_all),
                accept=guard(self.accept),
                reject=guard(self._toggle_rejection),
                undo=guard(self.undo),
                redo=guard(self.redo),
            )
        )
        self.optimise = OptimisePanel(guard(self.step), guard(self.skip), guard(self.run), guard(self.cancel))
        self.history = HistoryPanel(guard(self.measure_total), guard(self.export), guard(self.save))
        self.tabs = widgets.Tab([self.candidates.box, self.optimise.box, self.history.box], titles=_TABS)
        super().__init__(
            [widgets.HTML(f"<style>{_STYLE}</style>"), self.opening.box, self.strip.box, self._main()]
        )
        self.add_class("explorer-app")
        if session is not None:
            self._show(session)
        self._disable()

    def __repr__(self) -> str:
        return f"App({self.session!r})"

    def _main(self) -> widgets.Widget:
        graph, side = self.graph.box, self.tabs
        graph.layout = widgets.Layout(flex="1 1 520px", min_width="360px", width="auto")
        side.layout = widgets.Layout(flex="0 1 540px", min_width="420px")
        layout = widgets.Layout(flex_flow="row wrap", align_items="stretch", width="100%")
        return widgets.HBox([graph, side], layout=layout)

    # What the panels ask for

    def open_model(self, model: str | bytes, name: str | None = None) -> None:
        """Open a model instead of the one on screen."""
        target, self._initial_target = self._initial_target or self.opening.target, None
        self._show(Session(model, target=target, name=name, opt_in=self.opening.opt_in.value))
        self.strip.clear()

    def cancel(self) -> None:
        """Stop everything that runs or waits."""
        for job in self._jobs:
            job.cancel()

    def measure(self, identifier: str) -> None:
        """Time a candidate, in the background."""
        session = self._need_session()
        place = session.find(identifier).place
        self._start(
            f"Measuring {place}",
            lambda job: session.measure(identifier, Mode.VALIDATED, job.report, job.token),
        )

    def measure_all(self) -> None:
        """Screen all candidates that are not rejected, in the background."""
        session = self._need_session()
        self._start("Measuring all", lambda job: session.measure_all(job=job))

    def measure_total(self) -> None:
        """Time the current graph against the original, in the background."""
        session = self._need_session()
        self._start(
            "Measuring the total", lambda job: session.measure_total(Mode.VALIDATED, job.report, job.token)
        )

    def accept(self, identifier: str) -> None:
        """Check and accept a candidate, in the background."""
        session = self._need_session()
        place = session.find(identifier).place
        self._start(f"Checking {place}", lambda _job: session.accept(identifier))

    def undo(self) -> None:
        """Take back the last acceptance."""
        self._need_session().undo()

    def redo(self) -> None:
        """Accept again what was undone."""
        self._need_session().redo()

    def step(self) -> None:
        """Take the proposal on screen, if any, and find the next, in the background."""
        self._search("Searching for the next choice", lambda stepper, job: stepper.step(job))

    def skip(self) -> None:
        """Refuse the proposal on screen and find the next, in the background."""
        self._search("Searching for another choice", lambda stepper, job: stepper.step(job, Answer.SKIP))

    def run(self) -> None:
        """Search to the end, in the background."""
        self._search("Optimising", lambda stepper, job: stepper.run(job))

    def export(self, path: str) -> None:
        """Write the current graph as ONNX, in the background."""
        session, place = self._need_session(), self._need_path(path)

        def export(_job: Job[None]) -> None:
            result = session.export(place)
            self._say_later(f"Wrote {result.path.resolve()}: {result.report.sentence()}.")

        self._start(f"Exporting to {place}", export)

    def save(self, path: str) -> None:
        """Write the session as JSON."""
        written = self._need_session().save(self._need_path(path))
        self.strip.notice(f"Wrote {written.resolve()}; explorer.open(session='{written}') brings it back.")

    def close(self) -> None:
        """Stop what runs and end the session's worker; the widgets go too."""
        self._drop_session()
        super().close()

    def _set_target(self, spec: str) -> None:
        if self.session is not None:
            self._drop_search()
            self.session.target = spec

    def _set_opt_in(self, is_on: bool) -> None:
        if self.session is not None:
            self._drop_search()
            self.session.opt_in = is_on

    def _toggle_rejection(self, identifier: str) -> None:
        session = self._need_session()
        is_rejected = session.find(identifier).place in session.rejected
        session.restore(identifier) if is_rejected else session.reject(identifier)

    def _select(self, identifier: str) -> None:
        if not identifier or self.session is None:
            self.graph.view.clear_highlight()
        else:
            found = self.session.find(identifier)
            self.graph.show_site(found.nodes, found.rule)
        self._disable()

    def _compare(self, identifier: str, is_on: bool) -> None:
        session = self._need_session()
        found = session.find(identifier)
        if is_on:
            after, difference = session.preview(identifier)
            self.graph.show_comparison(after, difference, found.rule)
        else:
            self.graph.show_current()
            self.graph.show_site(found.nodes, found.rule)

    def _nodes_selected(self, nodes: tuple[str, ...]) -> None:
        self.candidates.focus(nodes)

    # Sessions, jobs and rendering

    def _show(self, session: Session) -> None:
        self._drop_session()
        self.session, self._snapshot = session, None
        self._unsubscribe = session.subscribe(self._pump.notify)
        self._pump.notify()
        self._pump.flush()

    def _drop_session(self) -> None:
        self._drop_search()
        self._unsubscribe()
        self.cancel()
        if self.session is not None:
            self.session.close()
            self.session = None

    def _drop_search(self) -> None:
        if self._stepper is not None:
            self._stepper = None
            self.optimise.reset()

    def _search(self, label: str, function: Callable[[Stepper, Job[None]], None]) -> None:
        session = self._need_session()
        if self._stepper is None or self._stepper.is_over:
            self.optimise.reset()
            self._stepper = Stepper(session, self.optimise.budget.value, self._note)
        stepper = self._stepper
        self._start(label, lambda job: function(stepper, job))

    def _note(self, event: OptimiseEvent) -> None:
        self._events.append(event)
        self._pump.notify()

    def _say_later(self, text: str) -> None:
        self._notices.append(text)
        self._pump.notify()

    def _start(self, label: str, function: Callable[[Job[Any]], Any]) -> None:
        self.strip.clear()
        self._jobs.append(self._need_session().start(label, function))
        self._render_jobs()

    def _need_session(self) -> Session:
        if self.session is None:
            raise ExplorerError("Open a model first: choose a sample, give a path, or upload a file.")
        return self.session

    def _need_path(self, path: str) -> str:
        if not path.strip():
            raise ExplorerError("Give the name of the file to write.")
        return path.strip()

    def _render(self) -> None:
        """Bring the screen up to date; runs in the kernel's thread."""
        if self.session is None:
            return
        if self._is_stale():
            self._snapshot = self.session.snapshot()
            for panel in (self.opening, self.graph, self.candidates, self.optimise, self.history):
                panel.render(self._snapshot)
        while self._events:
            self.optimise.show_event(self._events.popleft())
        while self._notices:
            self.strip.notice(self._notices.popleft())
        self._render_jobs()

    def _is_stale(self) -> bool:
        return self._snapshot is None or self.session is None or self._snapshot.number != self.session.number

    def _render_jobs(self) -> None:
        for job in [job for job in self._jobs if job.is_over]:
            self._jobs.remove(job)
            if job.state is not JobState.DONE and job.error is not None:
                self.strip.error(job.error)
        self.strip.show_job(self._jobs[0] if self._jobs else None)
        self._disable()

    def _disable(self) -> None:
        for panel in (self.opening, self.candidates, self.optimise, self.history):
            panel.disable(bool(self._jobs))

    def flush(self) -> None:
        """Render what is pending now; for scripts and tests without an event loop."""
        self._pump.flush()
