"""A search on a session: what it takes is in the history at once; what does not pay in the end is undone."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from explorer.rewrite import loosest
from explorer.runtime import Delta, Measurement, Mode, Verdict
from explorer.search import Answer, Event, Greedy, Scout, Step, Taken
from explorer.search.trajectory import claimed_ratio
from explorer.session.costs import Way, World, cost_model
from explorer.session.history import Entry

if TYPE_CHECKING:
    from explorer.runtime.executor import CancelToken
    from explorer.runtime.progress import OnProgress
    from explorer.session.session import Session


@dataclass(frozen=True)
class Confirmed:
    """The final measurement against the graph the search started from, by the validated protocol.

    Attributes:
        measurement: original against result, timed; the unchanged graph against itself if nothing was taken.
        delta: what is claimed: the measured one, or IDENTICAL if the graph is unchanged in the end.
        is_kept: whether the rewrites stay; False if they are not measurably faster, and were undone.
        sentence: the outcome in words.
    """

    measurement: Measurement
    delta: Delta
    is_kept: bool
    sentence: str


OptimiseEvent = Event | Confirmed


def optimise(
    session: Session,
    *,
    budget: int,
    confirm: bool,
    progress: OnProgress,
    cancel: CancelToken | None,
    way: Way,
) -> Generator[OptimiseEvent, Answer | None, None]:
    """Greedy search from the session's current graph, by default on what is measured by screening.

    Args:
        session: where to start and where accepted moves go.
        budget: comparisons the search may make; the final confirmation is not counted.
        confirm: measure the result by the validated protocol, and undo everything if it does not pay.
        progress: progress of each measurement.
        cancel: stops the search; what was taken so far stays.
        way: what the search compares by, and what it looks ahead with; the confirmation is always measured.
    """
    start, position, target, feeds = session.graph, session.history.position, session.target, session.feeds()
    world = World(session.measurer, target, feeds, progress, cancel)
    cost = cost_model(way.cost, world)
    scout = None if way.scout is None else Scout(cost_model(way.scout, world))
    greedy = Greedy(start, session.rules, cost, session.check, budget, session.rejected, scout)
    yield from _extend_history(session, greedy)
    if confirm:
        measurement = session.measurer.measure(
            start, session.graph, feeds, target, Mode.VALIDATED, progress, cancel, absorb=False
        )
        yield _conclude(session, measurement, position)


def _extend_history(session: Session, greedy: Greedy) -> Generator[Event, Answer | None, None]:
    events, answer = greedy.events(), None
    while True:
        base = greedy.position.graph
        try:
            event = events.send(answer)
        except StopIteration:
            return
        if isinstance(event, Taken):
            session.extend(entry_of(event, greedy), base)
        answer = yield event


def entry_of(taken: Taken, greedy: Greedy) -> Entry:
    """The history entry of a move: its sites were measured together."""
    batch = len(taken.candidates)
    steps = tuple(Step.of(candidate, taken.delta, batch) for candidate in taken.candidates)
    numeric_class = loosest(greedy.rules[rule].numeric_class for rule in taken.move.rules)
    return Entry(taken.graph, steps, taken.move.label, taken.report, numeric_class)


def _conclude(session: Session, measurement: Measurement, position: int) -> Confirmed:
    taken, delta = session.history.position - position, measurement.delta
    unchanged = Delta.identical(delta.target, delta.protocol)
    if not taken:
        sentence = "No rewrite is measurably faster here; the model is unchanged."
        return Confirmed(measurement, unchanged, is_kept=False, sentence=sentence)
    if delta.verdict is Verdict.FASTER:
        sentence = f"{-delta.percent:.1f} % less time than at the start, confirmed."
        return Confirmed(measurement, delta, is_kept=True, sentence=sentence)
    promise = _promise(step for entry in session.history.past[position:] for step in entry.steps)
    session.undo(taken)
    lead = f"{promise}, but the" if promise else "The"
    found = f"{delta.verdict.text} against the start ({delta.percent:+.1f} %)"
    sentence = f"{lead} result was {found}, so the rewrites were taken back."
    return Confirmed(measurement, unchanged, is_kept=False, sentence=sentence)


def _promise(steps: Iterable[Step]) -> str:
    """What a prediction had promised; "" where the search measured."""
    predicted = [step for step in steps if step.predicted is not None]
    how = {step.predicted.protocol for step in predicted if step.predicted is not None}
    if not how:
        return ""
    return f"{100 * (1 - claimed_ratio(predicted)):.1f} % less time was predicted ({', '.join(how)})"
