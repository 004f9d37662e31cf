"""Searches on a session: watched, stepped, overridden, stopped; and what they leave behind."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from explorer.errors import Cancelled, InputError
from explorer.graph import Graph
from explorer.runtime import Source, Target, Verdict
from explorer.runtime.dummy import PlantedMeasurer
from explorer.search import Answer, Evaluated, Finished, Proposed, Scouted, Taken
from explorer.session import Confirmed, OptimiseEvent, Session, Stepper
from tests.session.planted import EndlessMeasurer, alone_and_whole_ns, folds, only_alone_ns, planted_session

WAIT_S = 60


@pytest.fixture
def session() -> Iterator[Session]:
    with planted_session() as opened:
        yield opened


class Watched:
    """A stepper, its events, and commands that wait for their job."""

    def __init__(self, session: Session, budget: int = 30) -> None:
        self.session = session
        self.events: list[OptimiseEvent] = []
        self.stepper = Stepper(session, budget, self.events.append)

    def step(self, answer: Answer = Answer.TAKE) -> OptimiseEvent:
        self.session.start("step", lambda job: self.stepper.step(job, answer)).result(WAIT_S)
        return self.events[-1]

    def run(self) -> OptimiseEvent:
        self.session.start("run", self.stepper.run).result(WAIT_S)
        return self.events[-1]


def test_optimise_ends_faster_and_says_so(session: Session):
    events = list(session.optimise(budget=30))
    last = events[-1]
    assert isinstance(last, Confirmed)
    assert (last.is_kept, last.delta.verdict) == (True, Verdict.FASTER)
    assert "less time than at the start, confirmed" in last.sentence
    assert {node.op_type for node in session.graph.nodes} == {"FusedConv"}
    assert last.delta.ratio == pytest.approx(20 / 24)


def test_each_move_is_in_the_history_at_once(session: Session):
    for event in session.optimise(budget=30):
        if isinstance(event, Taken):
            assert session.graph is event.graph
            assert session.snapshot(wait=False).is_ready


def test_rewrites_that_do_not_pay_are_not_kept():
    with planted_session(measurer=PlantedMeasurer(lambda _graph, _target: 1e6)) as session:
        last = list(session.optimise(budget=30))[-1]
        assert isinstance(last, Confirmed)
        assert not last.is_kept
        assert last.sentence == "No rewrite is measurably faster here; the model is unchanged."
        assert session.graph is session.original


def test_what_the_confirmation_does_not_confirm_is_undone():
    """Each step seems to gain against the one before, but the end is no faster than the start."""

    def relative_ns(graph: Graph, _target: Target) -> float:
        return next(times)

    with planted_session() as session:
        events = session.optimise(budget=1)
        for event in events:
            if isinstance(event, Finished):
                times = iter([1e6, 1e6])
                session.measurer._run_ns = relative_ns
            last = event
        assert isinstance(last, Confirmed)
        assert not last.is_kept
        assert "were taken back" in last.sentence
        assert session.graph is session.original
        assert session.snapshot().can_redo


def test_a_prediction_that_measuring_does_not_bear_out_is_told_and_undone():
    with planted_session(measurer=PlantedMeasurer(only_alone_ns)) as session:
        events = list(session.optimise(budget=30, cost="operator-sum"))
        taken = [event for event in events if isinstance(event, Taken)]
        assert taken
        assert all(event.delta.source is Source.PREDICTED for event in taken)
        last = events[-1]
        assert isinstance(last, Confirmed)
        assert not last.is_kept
        assert last.measurement.delta.source is Source.MEASURED
        pattern = (
            r"\d+\.\d % less time was predicted \(sum of isolated .*\), but the result was .* taken back\."
        )
        assert re.fullmatch(pattern, last.sentence)
        assert session.graph is session.original


def test_a_cost_model_that_is_not_there_is_refused_with_those_that_are(session: Session):
    with pytest.raises(InputError, match=r"no cost model 'oracle'; use one of: measured, operator-sum\."):
        next(iter(session.optimise(cost="oracle")))


def test_rejected_places_are_left_alone(session: Session):
    kept = folds(session)[0]
    session.reject(kept.id)
    events = list(session.optimise(budget=30))
    places = {place for event in events if isinstance(event, Evaluated) for place in event.move.places}
    assert kept.place not in places
    assert "BatchNormalization" in {node.op_type for node in session.graph.nodes}


def test_a_step_stops_at_the_proposal_before_anything_is_taken(session: Session):
    watched = Watched(session)
    event = watched.step()
    assert isinstance(event, Proposed)
    assert session.graph is session.original
    assert watched.stepper.is_usable


def test_the_next_step_takes_what_was_proposed(session: Session):
    watched = Watched(session)
    proposed = watched.step()
    watched.step()
    (taken,) = [event for event in watched.events if isinstance(event, Taken)]
    assert taken.move == proposed.move
    assert session.graph is taken.graph


def test_skip_takes_something_else_or_nothing(session: Session):
    watched = Watched(session)
    proposed = watched.step()
    other = watched.step(Answer.SKIP)
    assert session.graph is session.original
    assert not isinstance(other, Proposed) or other.move != proposed.move


def test_run_goes_on_from_a_step_to_the_end(session: Session):
    watched = Watched(session)
    watched.step()
    assert isinstance(watched.run(), Confirmed)
    assert watched.stepper.is_over
    assert not watched.stepper.is_usable


def test_steps_to_the_end_do_what_run_does(session: Session):
    watched = Watched(session)
    while not watched.stepper.is_over:
        watched.step()
    with planted_session() as other:
        Watched(other).run()
        assert session.graph.fingerprint() == other.graph.fingerprint()


@pytest.mark.parametrize("change", ["accept", "reject", "undo"])
def test_what_others_change_makes_a_search_unusable(session: Session, change: str):
    session.accept(folds(session)[0].id)
    watched = Watched(session)
    watched.step()
    assert watched.stepper.is_usable
    if change == "accept":
        session.accept(folds(session)[0].id)
    elif change == "reject":
        session.reject(folds(session)[0].id)
    else:
        session.undo()
    assert not watched.stepper.is_usable


def test_a_search_never_overwrites_what_was_accepted_meanwhile(session: Session):
    watched = Watched(session)
    watched.step()
    session.accept(folds(session)[0].id)
    accepted = session.graph
    with pytest.raises(Exception, match="changed while"):
        watched.step()
    assert session.graph is accepted


def test_stopping_keeps_what_was_taken():
    with planted_session() as session:
        watched = Watched(session)
        watched.step()
        session.measurer._time_pair = EndlessMeasurer()._time_pair
        job = session.start("step", watched.stepper.step)
        while not any(isinstance(event, Taken) for event in watched.events):
            assert not job.is_over, job.error
        while job.progress is None:
            assert not job.is_over, job.error
        job.cancel()
        with pytest.raises(Cancelled):
            job.result(WAIT_S)
        assert watched.stepper.is_over
        (taken,) = [event for event in watched.events if isinstance(event, Taken)]
        assert session.graph is taken.graph
        assert len(session.history.past) == 1


@pytest.mark.parametrize(
    ("cost", "scout", "message"),
    [
        ("measured", "oracle", r"no cost model 'oracle'"),
        ("measured", "measured", r"looks ahead with a cost that predicts, not with 'measured'"),
        ("operator-sum", "operator-sum", r"cannot look ahead with the same"),
    ],
)
def test_what_cannot_look_ahead_is_refused(session: Session, cost: str, scout: str, message: str):
    with pytest.raises(InputError, match=message):
        session.optimise(cost=cost, scout=scout)


@pytest.mark.parametrize("faster", [True, False])
def test_what_is_found_by_looking_ahead_is_taken_only_if_it_is_measured_to_gain(faster: bool):
    """Folding is predicted to gain; inside the whole it does, or makes no difference."""
    run_ns = alone_and_whole_ns if faster else only_alone_ns
    with planted_session(measurer=PlantedMeasurer(run_ns)) as session:
        events = list(session.optimise(budget=10, scout="operator-sum"))
        (scouted,) = [event for event in events if isinstance(event, Scouted)]
        assert scouted.delta is not None
        assert scouted.delta.source is Source.PREDICTED
        assert scouted.delta.verdict is Verdict.FASTER
        taken = [event for event in events if isinstance(event, Taken)]
        assert bool(taken) is faster
        assert all(event.delta.source is Source.MEASURED for event in taken)
        assert all(step.measured is not None and step.predicted is None for step in session.steps)
        last = events[-1]
        assert isinstance(last, Confirmed)
        assert last.is_kept is faster
