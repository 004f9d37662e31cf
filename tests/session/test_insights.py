from __future__ import annotations

from threading import Event

import numpy as np
import pytest

from explorer.cost import OperatorSum, Source
from explorer.errors import Cancelled, RuntimeFailure
from explorer.graph import load
from explorer.runtime import InlineExecutor, Measurer, Verdict
from explorer.runtime.cache import NoCache
from explorer.runtime.dummy import PlantedMeasurer
from explorer.session import Session
from tests.models import model

W = np.random.default_rng(3).standard_normal((4, 3, 3, 3)).astype("f4")
V = np.linspace(0.5, 2, 4, dtype="f4")
NET = """(float[1,3,8,8] x) => (float[1,4,8,8] y) {
    i = Identity(x)
    c = Conv<pads=[1,1,1,1]>(i, w)
    b = BatchNormalization(c, v, v, v, v)
    y = Relu(b)
}"""


@pytest.fixture
def net():
    return load(model(NET, w=W, v=V))


@pytest.fixture
def session(net):
    with (
        Measurer(executor=InlineExecutor(), cache=NoCache()) as measurer,
        Session(net, measurer=measurer) as one,
    ):
        yield one


def test_profiles_and_views_belong_to_graph_and_target(session):
    profile = session.profile()
    assert session.known.profiles[session.graph.fingerprint(), str(session.target)] is profile
    view = session.runtime_view()
    assert view.target == profile.target == str(session.target)
    assert [node.nodes for node in view.fused] == [("n0", "n1", "n2", "n3")]


def test_absorbed_candidates_are_named(session):
    number = session.number
    answers = session.absorb()
    fold = next(place for place in answers if place.endswith("n1+n2"))
    assert answers[fold] is True
    assert session.absorbed(fold) is True
    session.target = "ort:level=disable"
    assert session.absorbed(fold) is None
    assert session.absorb()[fold] is False
    assert session.number > number


def test_predictions_fill_the_column_of_the_snapshot(net):
    def cost(graph, _target):
        return 1e6 * sum({"Conv": 10, "BatchNormalization": 5}.get(n.op_type, 1) for n in graph.nodes)

    with PlantedMeasurer(cost) as measurer, Session(net, measurer=measurer) as session:
        session.enumeration()
        assert all(row.predicted is None for row in session.snapshot().rows)
        found = session.predict()
        rows = {row.candidate.place: row.predicted for row in session.snapshot().rows}
        assert found
        assert {place: delta for place, delta in rows.items() if delta is not None} == found
        fold = next(delta for place, delta in found.items() if place.endswith("n1+n2"))
        assert (fold.source, fold.verdict) == (Source.PREDICTED, Verdict.FASTER)
        assert session.predict() == found
        session.target = "ort:level=basic"
        assert all(row.predicted is None for row in session.snapshot().rows)
        session.target = "ort:level=all"
        assert {r.candidate.place: r.predicted for r in session.snapshot().rows} == rows


def test_predicting_can_be_stopped(net):
    def stop(progress):
        raise Cancelled("stopped")

    with PlantedMeasurer(lambda *_: 1e6) as measurer, Session(net, measurer=measurer) as session:
        with pytest.raises(Cancelled):
            session.predict(stop)
        token = Event()
        first, *rest = session.candidates()
        session.predict(lambda p: token.set() if p.text.startswith("2 of") else None, only=[first.id])
        with pytest.raises(Cancelled):
            session.predict(cancel=token)
        assert session.predicted(first.place) is not None
        assert all(session.predicted(candidate.place) is None for candidate in rest)


def test_a_candidate_can_be_predicted_alone_and_progress_grows(net):
    seen = []
    with PlantedMeasurer(lambda *_: 1e6) as measurer, Session(net, measurer=measurer) as session:
        chosen = session.candidates()[1]
        found = session.predict(seen.append, only=[chosen.id])
        assert list(found) == [chosen.place]
        assert [row.id for row in session.snapshot().rows if row.predicted] == [chosen.id]
    shares = [one.done / one.total for one in seen]
    assert shares == sorted(shares)
    assert any(one.text == "1 of 2, timing Conv alone" for one in seen)


def test_what_cannot_be_predicted_says_why(net, monkeypatch):
    def refuse(*_arguments):
        raise RuntimeFailure("Conv cannot be timed alone: too odd")

    with PlantedMeasurer(lambda *_: 1e6) as measurer, Session(net, measurer=measurer) as session:
        monkeypatch.setattr(OperatorSum, "compare", refuse)
        assert session.predict() == {}
        assert {row.unpredicted for row in session.snapshot().rows} == {"Conv cannot be timed alone: too odd"}


def test_a_prediction_stays_with_its_graph_and_with_the_accepted_step(net):
    with PlantedMeasurer(lambda graph, _: 1e6 * len(graph.nodes)) as measurer:
        session = Session(net, measurer=measurer)
        fold = next(c for c in session.candidates() if c.nodes == ("n1", "n2"))
        delta = session.predict(only=[fold.id])[fold.place]
        session.accept(fold.id)
        assert session.steps[0].predicted == delta
        assert session.steps[0].measured is None
        session.undo()
        assert session.predicted(fold.place) == delta
        session.close()


def test_roofs_are_in_the_snapshot_of_their_target(net):
    with PlantedMeasurer(lambda *_: 1e6) as measurer, Session(net, measurer=measurer) as session:
        session.enumeration()
        assert session.snapshot().roofs is None
        roofs = session.roofs()
        assert roofs.gflops_per_s == pytest.approx(2 * 512**3 / 1e6)
        assert session.snapshot().roofs == roofs
        session.target = "ort:level=basic"
        assert session.snapshot().roofs is None


def test_a_candidate_can_be_timed_by_its_region(net):
    with (
        PlantedMeasurer(lambda graph, _: 1e6 * len(graph.nodes)) as measurer,
        Session(net, measurer=measurer) as session,
    ):
        fold = next(c for c in session.candidates() if c.nodes == ("n1", "n2"))
        region = session.measure_region(fold.id)
    assert region.nodes == (4, 3)
    assert region.delta.ratio == pytest.approx(3 / 4, rel=0.01)
