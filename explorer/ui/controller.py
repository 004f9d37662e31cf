"""What the panels ask for, as calls of the session: short ones at once, long ones as jobs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from explorer.errors import ExplorerError
from explorer.graph import load
from explorer.runtime import Progress, Protocol
from explorer.search import Answer
from explorer.session import Job, JobState, OptimiseEvent, Runner, Session, Stepper, keep
from explorer.session.costs import Way
from explorer.session.keeping import is_worth_keeping
from explorer.session.portability import Plan
from explorer.ui.pump import Pump
from explorer.ui.strip import Strip

Settings = Callable[[], dict[str, Any]]


class Controller:
    """One session at a time, and the jobs that run for it.

    Args:
        pump: brings results of jobs to the kernel's thread.
        strip: shows errors and notices.
        settings: target, protocol and opt_in for models that are opened here.

    Attributes:
        session: what is open, or None.
        jobs: what runs or waits, in order.
        events: what a search has said since they were taken from here.
        on_search_over: called with its state when a search's job ends.
        on_search_reset: called when what a search has said no longer matters.
    """

    def __init__(self, pump: Pump, strip: Strip, settings: Settings) -> None:
        self.session: Session | None = None
        self.jobs: list[Job[Any]] = []
        self.events: deque[OptimiseEvent] = deque()
        self.on_search_over: Callable[[JobState], None] = lambda _state: None
        self.on_search_reset: Callable[[], None] = lambda: None
        self._pump, self._strip, self._settings = pump, strip, settings
        self._stepper: Stepper | None = None
        self._searches: list[Job[Any]] = []
        self._unsubscribe: Callable[[], None] = lambda: None
        self._kept: tuple[object, ...] = ()
        self._own_runner = Runner(pump.notify)  # for what does not need a session

    # Models and settings

    def open_model(self, model: str | bytes, name: str | None = None) -> None:
        """Open a model or a saved session, in the background; what is open stays until that has worked."""
        label = name or Path(str(model)).name
        settings = self._settings()

        def open_it(job: Job[None]) -> None:
            session = _open(model, name, settings)
            if job.token.is_set():
                session.close()
            job.raise_if_cancelled()
            self._pump.post(partial(self._take_over, session))

        self._start_on(self._own_runner, f"Opening {label}", open_it)

    def show(self, session: Session) -> None:
        """Make this session the current one."""
        self._leave()
        self.session = session
        self._unsubscribe = session.subscribe(self._pump.notify)
        self._kept = self._decisions()
        self._pump.notify()

    def _take_over(self, session: Session) -> None:
        """Show a session that was opened in the background, and say what became of the last one."""
        self.keep()
        lost = self.session
        self.show(session)
        if lost is not None and is_worth_keeping(lost):
            self._strip.notice(f"The session with '{lost.original.name}' was kept; choose it under Model.")

    def set_target(self, spec: str) -> None:
        """Measure on another target from now on."""
        if self.session is not None:
            self._drop_search()
            self.session.target = spec

    def set_protocol(self, protocol: Protocol) -> None:
        """Time in another way from now on."""
        if self.session is not None:
            self.session.protocol = protocol

    def set_opt_in(self, is_on: bool) -> None:
        """Offer rules of class D and A, or no longer."""
        session = self.session
        if session is not None:
            self._drop_search()
            self.start("Looking for rewrites", lambda job: session.prepare(opt_in=is_on, cancel=job.token))

    def prepare(self) -> None:
        """Look for rewrites of the current graph, in the background, unless that is being done."""
        session = self.need_session()
        if not any(job.label.startswith("Looking") for job in self.jobs):
            work = session.runner.start("Looking for rewrites", lambda job: session.prepare(cancel=job.token))
            self._add(work)

    # Candidates

    def measure(self, identifier: str) -> None:
        """Time a candidate, in the background."""
        session = self.need_session()
        place = session.find(identifier).place
        self.start(f"Measuring {place}", lambda job: session.measure(identifier, None, job.report, job.token))

    def measure_all(self, with_switches: bool = False) -> None:
        """Screen all candidates that are not rejected, in the background; switches first if wanted."""
        session, snapshot = self.need_session(), self.need_session().snapshot(wait=False)
        rows = (*(snapshot.switches if with_switches else ()), *snapshot.rows)
        wanted = [row.id for row in rows if not row.is_rejected]
        self.start("Measuring all", lambda job: session.measure_all(wanted, job=job))

    def find_switches(self) -> None:
        """Ask the runtime which of its own optimisers act on the graph, in the background."""
        session = self.need_session()
        label = "Asking the runtime for its optimisers"
        self._add(session.runner.start(label, lambda job: session.switches.find(job.token)))

    def predict(self, identifier: str = "") -> None:
        """Predict a candidate, or all of them for "", in the background."""
        session = self.need_session()
        only = [identifier] if identifier else None
        label = f"Predicting {session.find(identifier).place}" if identifier else "Predicting all"
        self.start(label, lambda job: session.predict(job.report, job.token, only=only))

    def profile(self) -> None:
        """Measure which node costs what, in the background."""
        session = self.need_session()
        self.start("Timing each node", lambda job: session.profile(job.token))

    def roofline(self) -> None:
        """Measure the target's roofs, and which node costs what if that is not known, in the background."""
        session = self.need_session()

        def measure(job: Job[None]) -> None:
            job.report(Progress(0, 2, "timing each node"))
            if session.snapshot().profile is None:
                session.profile(job.token)
            job.report(Progress(1, 2, "timing a matrix product and a pass over 32 MB"))
            session.roofs(job.token)

        self.start("Measuring the roofline", measure)

    def runtime_view(self) -> None:
        """Get the runtime's graph, then ask for every candidate whether it does it, in the background."""
        session = self.need_session()

        def look(job: Job[None]) -> None:
            session.runtime_view(job.token)
            session.absorb(job.report, job.token)

        self.start("Looking at what the runtime does", look)

    def portability(self, plan: Plan) -> None:
        """Fill the portability matrix, in the background."""
        session = self.need_session()
        self.start("Portability", lambda job: session.portability(plan, job.report, job.token))

    def accept(self, identifier: str) -> None:
        """Check and accept a candidate, in the background."""
        session = self.need_session()
        place = session.find(identifier).place
        self.start(f"Checking {place}", lambda job: session.accept(identifier, job.token))

    def toggle_rejection(self, identifier: str) -> None:
        """Leave a site alone, or take that back."""
        session = self.need_session()
        is_rejected = session.find(identifier).place in session.rejected
        session.restore(identifier) if is_rejected else session.reject(identifier)

    def preview(self, identifier: str, show: Callable[..., None]) -> None:
        """Call ``show(graph, difference)`` with what a candidate would make, prepared in the background."""
        session = self.need_session()

        def prepare(_job: Job[None]) -> None:
            after, difference = session.preview(identifier)
            self._pump.post(partial(show, after, difference))

        self.start("Preparing the comparison", prepare)

    # History

    def undo(self) -> None:
        """Take back the last acceptance."""
        self._strip.clear()
        self.need_session().undo()

    def redo(self) -> None:
        """Accept again what was undone."""
        self._strip.clear()
        self.need_session().redo()

    def measure_total(self) -> None:
        """Time the current graph against the original, in the background."""
        session = self.need_session()
        self.start("Measuring the total", lambda job: session.measure_total(None, job.report, job.token))

    def export(self, path: str) -> None:
        """Write the current graph as ONNX, in the background."""
        session, place = self.need_session(), need_path(path)

        def export(job: Job[None]) -> None:
            result = session.export(place, job.token)
            text = f"Wrote {result.path.resolve()}: {result.sentence()}."
            self._pump.post(partial(self._strip.notice, text))

        self.start(f"Exporting to {place}", export)

    def save(self, path: str) -> None:
        """Write the session as JSON."""
        written = self.need_session().save(need_path(path)).resolve()
        self._strip.notice(f"Wrote {written}; open it again with Reopen, or explorer.open(session=…).")

    def reopen(self, path: str) -> None:
        """Go on with a saved session, in the background."""
        self.open_model(need_path(path))

    # Searching

    def step(self, budget: int, way: Way) -> None:
        """Take the proposal on screen, if any, and find the next, in the background."""
        self._search(budget, way, "Searching for the next choice", lambda stepper, job: stepper.step(job))

    def skip(self, budget: int, way: Way) -> None:
        """Refuse the proposal on screen and find the next, in the background."""
        self._search(
            budget, way, "Searching for another choice", lambda stepper, job: stepper.step(job, Answer.SKIP)
        )

    def run(self, budget: int, way: Way) -> None:
        """Search to the end, in the background."""
        self._search(budget, way, "Optimising", lambda stepper, job: stepper.run(job))

    def _search(
        self, budget: int, way: Way, label: str, function: Callable[[Stepper, Job[None]], None]
    ) -> None:
        session = self.need_session()
        if self._stepper is None or not self._stepper.is_usable or self._stepper.way != way:
            self._drop_search()
            self._stepper = Stepper(session, budget, self._note, way)
        stepper = self._stepper
        self._searches.append(self.start(label, lambda job: function(stepper, job)))

    def _drop_search(self) -> None:
        self._stepper = None
        self.events.clear()
        self.on_search_reset()

    def _note(self, event: OptimiseEvent) -> None:
        self.events.append(event)
        self._pump.notify()

    # Jobs

    def start(self, label: str, function: Callable[[Job[Any]], Any]) -> Job[Any]:
        """Run a command of the session in the background, after those started before."""
        return self._start_on(self.need_session().runner, label, function)

    @property
    def is_busy(self) -> bool:
        """Whether something runs or waits."""
        return bool(self.jobs)

    def cancel(self) -> None:
        """Stop everything that runs or waits."""
        for job in self.jobs:
            job.cancel()
        self._pump.notify()

    def collect(self) -> bool:
        """Forget jobs that are over and show why they failed; says whether there were any."""
        over = [job for job in self.jobs if job.is_over]
        for job in over:
            self.jobs.remove(job)
            if job.state is JobState.CANCELLED:
                self._strip.notice(f"{job.label}: stopped.")
            elif job.error is not None:
                self._strip.error(job.error)
            if job in self._searches:
                self._searches.remove(job)
                self.on_search_over(job.state)
        return bool(over)

    def keep(self) -> None:
        """Write the session to the folder of kept ones if something was decided since the last time."""
        if self.session is not None and self._decisions() != self._kept:
            self._kept = self._decisions()
            keep(self.session)

    def keep_soon(self) -> None:
        """The same in the background: a model that came as bytes may be large."""
        session = self.session
        if session is None or self._decisions() == self._kept:
            return
        self._kept = self._decisions()

        def write(_job: Job[None]) -> None:
            try:
                keep(session)
            except ExplorerError as error:
                self._pump.post(partial(self._strip.error, error))

        self._own_runner.start("Keeping the session", write)

    def close(self) -> None:
        """Stop what runs, keep what was decided, and end the session's worker."""
        self._leave()
        self._own_runner.close()

    def need_session(self) -> Session:
        """The session; raises ExplorerError if no model is open."""
        if self.session is None:
            raise ExplorerError("Open a model first: choose a sample, give a path, or upload a file.")
        return self.session

    def _decisions(self) -> tuple[object, ...]:
        session = self.session
        if session is None:
            return ()
        return (session.history, session.rejected, session.fusion.work, session.known.matrix)

    def _leave(self) -> None:
        self._drop_search()
        self._unsubscribe()
        for job in self.jobs:
            job.cancel()
        if self.session is not None:
            self.session.close()
            self.session = None

    def _start_on(self, runner: Runner, label: str, function: Callable[[Job[Any]], Any]) -> Job[Any]:
        self._strip.clear()
        return self._add(runner.start(label, function))

    def _add(self, job: Job[Any]) -> Job[Any]:
        self.jobs.append(job)
        self._pump.notify()
        return job


def _open(model: str | bytes, name: str | None, settings: dict[str, Any]) -> Session:
    if isinstance(model, str) and model.lower().endswith(".json"):
        return Session.reopen(model)
    if isinstance(model, str):
        return Session(model, **settings)
    graph = load(model, name=name)  # errors name the file, the rest of the app its stem
    graph.name = Path(graph.name).stem
    return Session(graph, **settings)


def need_path(path: str) -> str:
    """The path without blanks around it; raises ExplorerError if nothing is left."""
    if not path.strip():
        raise ExplorerError("Give the name of the file.")
    return path.strip()
