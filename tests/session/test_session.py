"""What the app can do, without a screen: planted times, real rewrites and real numerical checks."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from explorer.errors import CandidateError, RuntimeFailure, TargetError, VerificationError
from explorer.graph import Graph
from explorer.rewrite import Rule
from explorer.runtime import Mode, Protocol, Source, Verdict
from explorer.runtime.dummy import PlantedMeasurer
from explorer.session import JobState, Session
from explorer.session.history import Entry
from tests.models import CASES, run
from tests.session.planted import (
    FOLD,
    TARGET,
    EndlessMeasurer,
    folds,
    only_alone_ns,
    planted_ns,
    planted_session,
    saved_model,
    two_blocks,
)

WAIT_S = 60


@pytest.fixture
def session():
    with planted_session() as opened:
        yield opened


def ops(graph: Graph) -> list[str]:
    return [node.op_type for node in graph.nodes]


def test_opens_with_candidates_and_nothing_decided(session: Session):
    snapshot = session.snapshot()
    assert [row.candidate.place for row in snapshot.rows if row.candidate.rule == FOLD] == [
        f"{FOLD}:n0+n1",
        f"{FOLD}:n3+n4",
    ]
    assert (snapshot.history, snapshot.position, snapshot.total) == ((), 0, None)
    assert (snapshot.can_undo, snapshot.can_redo) == (False, False)
    assert (snapshot.name, snapshot.target, snapshot.is_opt_in) == ("blocks", TARGET, False)
    assert snapshot.protocol == Protocol.validated()


def test_a_screen_need_not_wait_for_the_candidates(session: Session):
    early = session.snapshot(wait=False)
    assert (early.is_ready, early.rows, early.fingerprint) == (False, (), "")
    assert [node.op_type for node in early.summary.nodes] == ops(session.graph)
    session.prepare()
    late = session.snapshot(wait=False)
    assert late.is_ready
    assert len(late.rows) == len(session.candidates())
    assert late.number > early.number


def test_unknown_targets_are_refused_and_change_nothing(session: Session):
    with pytest.raises(TargetError, match="ort"):
        session.target = "abacus:beads=7"
    assert str(session.target) == TARGET


def test_measuring_puts_the_delta_into_the_row(session: Session):
    chosen = folds(session)[0]
    measurement = session.measure(chosen.id)
    assert measurement.delta.verdict is Verdict.FASTER
    assert measurement.delta.ratio == pytest.approx(23 / 24)
    (row,) = [row for row in session.snapshot().rows if row.id == chosen.id]
    assert row.measured == measurement.delta


def test_a_measurement_counts_for_its_target_only(session: Session):
    chosen = folds(session)[0]
    session.measure(chosen.id)
    session.target = "ort:level=all,threads=1"
    assert session.measured(chosen.place) is None
    session.target = TARGET
    assert session.measured(chosen.place) is not None


def test_the_protocol_is_a_setting_of_the_session(session: Session):
    session.protocol = Mode.SCREENING
    assert session.measure(folds(session)[0].id).protocol == Protocol.screening()
    session.protocol = Protocol.validated(budget_s=3)
    assert session.measure(folds(session)[1].id).protocol.budget_ns == 3_000_000_000
    assert session.measure(folds(session)[1].id, "screening").protocol == Protocol.screening()


def test_accept_rewrites_and_notes_check_and_delta(session: Session):
    chosen = folds(session)[0]
    session.measure(chosen.id)
    report = session.accept(chosen.id)
    assert report.passed
    assert ops(session.graph) == ["Conv", "Relu", "Conv", "BatchNormalization", "Relu"]
    (row,) = session.snapshot().history
    assert row.places == (chosen.place,)
    assert row.delta.ratio == pytest.approx(23 / 24)
    assert row.check == report.sentence()
    assert not row.is_undone


def test_accepted_graphs_compute_what_the_original_computes(session: Session):
    for _ in range(2):
        session.accept(folds(session)[0].id)
    feeds = {"x": np.random.default_rng(3).standard_normal((1, 4, 8, 8)).astype("f4")}
    (before,), (after,) = run(session.original, feeds), run(session.graph, feeds)
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-4)


def test_undo_and_redo(session: Session):
    chosen = folds(session)[0]
    session.accept(chosen.id)
    accepted = session.graph
    session.undo()
    assert session.graph is session.original
    assert session.snapshot().can_redo
    assert session.snapshot().history[0].is_undone
    session.redo()
    assert session.graph is accepted
    session.undo(5)
    session.redo(5)
    assert session.graph is accepted
    assert len(session.steps) == 1


def test_candidates_of_an_undone_graph_are_known_at_once(session: Session):
    session.accept(folds(session)[0].id)
    session.undo()
    assert session.snapshot(wait=False).is_ready
    session.redo()
    assert session.snapshot(wait=False).is_ready


def test_a_stale_candidate_is_refused_and_nothing_changes(session: Session):
    chosen = folds(session)[0]
    session.accept(chosen.id)
    before = session.graph
    for command in (session.accept, session.measure, session.preview, session.reject):
        with pytest.raises(CandidateError, match="No candidate"):
            command(chosen.id)
    assert session.graph is before
    assert session.rejected == frozenset()


def test_a_place_outlives_the_graph_it_was_found_on(session: Session):
    first, second = folds(session)
    session.accept(first.id)
    assert session.find(second.id).place == second.place
    session.accept(second.id)
    assert "BatchNormalization" not in ops(session.graph)


def test_an_acceptance_checked_on_another_graph_is_refused(session: Session):
    base = session.graph
    session.accept(folds(session)[0].id)
    with pytest.raises(CandidateError, match="changed while"):
        session.extend(Entry(base, (), "late"), base)
    assert len(session.steps) == 1


def test_a_failed_verification_changes_nothing(session: Session, monkeypatch: pytest.MonkeyPatch):
    chosen = folds(session)[0]
    rule = session.rules[FOLD]
    genuine = type(rule).rewrite

    def forget_the_shift(self: Rule, match, build):
        values = genuine(self, match, build)
        (wrong,) = [build.op("Mul", [values[0], values[0]])]
        return [wrong]

    monkeypatch.setattr(type(rule), "rewrite", forget_the_shift)
    with pytest.raises(VerificationError, match="was not accepted: output 'y' differs"):
        session.accept(chosen.id)
    assert session.graph is session.original
    assert session.snapshot().history == ()


def test_export_refuses_what_is_not_equal(session: Session, tmp_path, monkeypatch: pytest.MonkeyPatch):
    other = planted_session(two_blocks_with_other_weights())
    monkeypatch.setattr(session, "_history", session.history.push(Entry(other.graph)))
    with pytest.raises(VerificationError, match="was not exported"):
        session.export(tmp_path / "out.onnx")
    assert not (tmp_path / "out.onnx").exists()


def two_blocks_with_other_weights() -> bytes:
    proto = two_blocks()
    weight = proto.graph.initializer[0]
    weight.raw_data = np.full((4, 4, 3, 3), 3, "f4").tobytes()
    return proto.SerializeToString()


def test_export_writes_a_model_that_runs_with_equal_outputs(session: Session, tmp_path):
    session.accept(folds(session)[0].id)
    result = session.export(tmp_path / "out.onnx")
    assert result.report.passed
    feeds = {"x": np.random.default_rng(5).standard_normal((1, 4, 8, 8)).astype("f4")}
    (before,), (after,) = run(session.original, feeds), run(result.path, feeds)
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-4)


def test_rejected_places_are_left_out_of_measure_all(session: Session):
    first, second = folds(session)
    session.reject(first.id)
    session.start("all", lambda job: session.measure_all(job=job)).result(WAIT_S)
    measured = {row.candidate.place for row in session.snapshot().rows if row.measured is not None}
    assert measured == {c.place for c in session.candidates()} - {first.place}
    assert second.place in measured
    session.restore(first.id)
    assert session.rejected == frozenset()


def test_a_failing_candidate_does_not_end_measure_all():
    bad = f"{FOLD}:n3+n4"

    def run_ns(graph: Graph, target) -> float:
        if "BatchNormalization" in ops(graph)[:2] and len(ops(graph)) == 5 and "Mul" not in ops(graph):
            raise RuntimeFailure("the runtime cannot run this one")
        return planted_ns(graph, target)

    with planted_session(measurer=PlantedMeasurer(run_ns)) as session:
        job = session.start("all", lambda own: session.measure_all(job=own))
        with pytest.raises(RuntimeFailure, match=f"could not be measured; the first is {FOLD}"):
            job.result(WAIT_S)
        assert job.state is JobState.FAILED
        rows = {row.candidate.place: row.measured for row in session.snapshot().rows}
        assert rows[bad] is None
        assert rows[f"{FOLD}:n0+n1"] is not None


def test_measuring_can_be_cancelled():
    with planted_session(measurer=EndlessMeasurer()) as session:
        progress = threading.Event()
        session.subscribe(lambda: progress.set() if job and job.progress else None)
        job = None
        chosen = folds(session)[0].id
        job = session.start("endless", lambda own: session.measure(chosen, None, own.report, own.token))
        assert progress.wait(WAIT_S)
        job.cancel()
        assert isinstance(job._future.exception(WAIT_S), Exception)
        assert job.state is JobState.CANCELLED
        assert session.measured(folds(session)[0].place) is None
        session.accept(chosen)  # the session still works


def test_measure_all_can_be_cancelled():
    with planted_session(measurer=EndlessMeasurer()) as session:
        job = session.start("all", lambda own: session.measure_all(job=own))
        while job.progress is None:
            assert not job.is_over, job.error
        job.cancel()
        assert isinstance(job._future.exception(WAIT_S), Exception)
        assert job.state is JobState.CANCELLED


def test_the_total_compares_with_the_original(session: Session):
    for _ in range(2):
        session.accept(folds(session)[0].id)
    assert session.measure_total().delta.ratio == pytest.approx(22 / 24)
    assert session.snapshot().total.ratio == pytest.approx(22 / 24)
    session.undo()
    assert session.snapshot().total is None


def test_the_curve_multiplies_measured_steps(session: Session):
    for _ in range(2):
        chosen = folds(session)[0].id
        session.measure(chosen)
        session.accept(chosen)
    points = session.snapshot().curve
    assert [point.ratio for point in points] == pytest.approx([1, 23 / 24, 22 / 24])
    assert all(point.low <= point.ratio <= point.high for point in points)


def test_the_curve_goes_on_with_what_a_search_predicted_and_says_so():
    with planted_session(measurer=PlantedMeasurer(only_alone_ns)) as session:
        chosen = folds(session)[0].id
        session.measure(chosen)
        session.accept(chosen)
        list(session.optimise(cost="operator-sum", confirm=False))
        points = session.snapshot().curve
        delta = session.snapshot().history[-1].delta
    assert [point.source for point in points] == [Source.MEASURED, Source.MEASURED, Source.PREDICTED]
    assert [point.ratio for point in points] == pytest.approx([1, 1, delta.ratio])
    assert delta.ratio < 0.9
    assert delta.source is Source.PREDICTED


def test_the_curve_is_unknown_from_the_first_unmeasured_step_on(session: Session):
    first = folds(session)[0].id
    session.accept(first)
    second = folds(session)[0].id
    session.measure(second)
    session.accept(second)
    assert [point.ratio for point in session.snapshot().curve] == [1.0, None, None]


def test_preview_shows_what_would_change_and_changes_nothing(session: Session):
    after, difference = session.preview(folds(session)[0].id)
    assert len(after.nodes) == len(session.graph.nodes) - 1
    assert set(difference.removed) == {"n0", "n1"}
    assert session.snapshot().history == ()


def test_opt_in_offers_more_rules(session: Session):
    few = {rule.name for rule in session.rules}
    session.prepare(opt_in=True)
    assert session.opt_in
    assert {rule.name for rule in session.rules} > few
    assert session.snapshot(wait=False).is_opt_in


def test_listeners_hear_changes_until_they_leave(session: Session):
    heard: list[int] = []
    leave = session.subscribe(lambda: heard.append(session.number))
    session.reject(folds(session)[0].id)
    leave()
    leave()
    session.undo()
    assert heard == [1]


def test_two_sessions_at_once(tmp_path):
    with planted_session(saved_model(tmp_path)) as one, planted_session() as other:
        one.accept(folds(one)[0].id)
        other.reject(folds(other)[1].id)
        assert (len(one.steps), len(other.steps)) == (1, 0)
        assert (len(one.rejected), len(other.rejected)) == (0, 1)
        assert one.candidates() != other.candidates()


def test_an_unknown_operator_can_be_looked_at_but_not_measured():
    with Session(CASES / "unknown_custom_op.onnx", target=TARGET) as session:
        chosen = folds(session)[0].id
        with pytest.raises(RuntimeFailure, match="FancyGate"):
            session.measure(chosen, "screening")
        with pytest.raises(RuntimeFailure, match="FancyGate"):
            session.accept(chosen)
        assert session.graph is session.original


def test_close_ends_the_worker_and_is_harmless_twice(tmp_path):
    import psutil

    session = Session(saved_model(tmp_path), target=TARGET)
    session.check()
    children = psutil.Process().children()
    pid = session.measurer._own_executor.worker_pid
    assert pid in {child.pid for child in children}
    session.close()
    session.close()
    psutil.wait_procs([child for child in children if child.pid == pid], timeout=WAIT_S)
    assert not psutil.pid_exists(pid)
    assert not any(thread.name.startswith("explorer-job") for thread in threading.enumerate())


def test_close_leaves_a_measurer_it_was_given_alone():
    measurer = PlantedMeasurer(planted_ns)
    planted_session(measurer=measurer).close()
    with planted_session(measurer=measurer) as session:
        assert session.measure(folds(session)[0].id).delta.verdict is Verdict.FASTER
