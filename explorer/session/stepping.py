"""Step through a search by hand: forward to the next proposal, override it, or run to the end."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from explorer.runtime import Progress
from explorer.search import Answer, Proposed
from explorer.session.costs import Way
from explorer.session.jobs import Job
from explorer.session.optimise import OptimiseEvent, optimise
from explorer.session.session import Session

OnEvent = Callable[[OptimiseEvent], None]
_MEASURED = Way()


class Stepper:
    """A search in progress on a session; each command is called inside a job.

    Args:
        session: where accepted moves go.
        budget: comparisons the search may make.
        on_event: called for every event, in the job's thread.
        way: what the search compares by and looks ahead with.
    """

    def __init__(self, session: Session, budget: int, on_event: OnEvent, way: Way = _MEASURED) -> None:
        self._session, self.way = session, way
        self._graph, self._rejected = session.graph, session.rejected
        self._target = session.target
        self._on_event = on_event
        self._job: Job[Any] | None = None
        self._events: Generator[OptimiseEvent, Answer | None, None] = optimise(
            session, budget=budget, confirm=True, progress=self._report, cancel=self, way=way
        )
        self._started = False
        self.is_over = False

    @property
    def is_usable(self) -> bool:
        """Whether it can go on: not at its end, and graph, target and rejected places as it left them."""
        unchanged = self._session.graph is self._graph and self._session.rejected == self._rejected
        return unchanged and self._session.target == self._target and not self.is_over

    def is_set(self) -> bool:
        """Whether the job that drives the search at the moment was asked to stop."""
        return self._job is not None and self._job.token.is_set()

    def step(self, job: Job[None], answer: Answer = Answer.TAKE) -> None:
        """Go on to the next proposal, answering the one that is open; or to the end."""
        event = self._advance(job, answer)
        while event is not None and not isinstance(event, Proposed):
            event = self._advance(job, None)

    def run(self, job: Job[None]) -> None:
        """Go on to the end, taking every proposal."""
        while self._advance(job, Answer.TAKE) is not None:
            pass

    def close(self) -> None:
        """End the search; what was taken stays in the session."""
        self._events.close()
        self.is_over = True

    def _advance(self, job: Job[None], answer: Answer | None) -> OptimiseEvent | None:
        """One event further; None at the end. A search that was stopped is over."""
        self._job = job
        try:
            job.raise_if_cancelled()
            event = self._events.send(answer if self._started else None)
        except StopIteration:
            self.is_over = True
            return None
        except BaseException:
            self.close()
            raise
        self._started = True
        self._graph = self._session.graph
        self._on_event(event)
        return event

    def _report(self, progress: Progress) -> None:
        if self._job is not None:
            self._job.report(progress)
