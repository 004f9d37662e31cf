"""Switches of the runtime beside rewrites: planted times, real checks, real answers of ONNX Runtime."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from explorer.errors import CandidateError, InputError, VerificationError
from explorer.graph import Graph, load
from explorer.rewrite import NumericClass, all_rules
from explorer.runtime import Target, Verdict
from explorer.runtime.dummy import PlantedMeasurer
from explorer.search import Trajectory, replay
from explorer.session import Session, Stepper
from tests.models import model, run

DISABLE, ALL = "ort:level=disable,threads=1", "ort:level=all,threads=1"
FREEZE, EXTENDED = "switch:freeze-weights", "switch:level=extended"
FACTORS = {"disable": 1.0, "basic": 0.9, "extended": 0.8, "all": 0.5}


def conv_bn_relu(listed: bool = False) -> onnx.ModelProto:
    """Conv, BatchNormalization, Relu; the Conv's weight may be an input with a default."""
    rng = np.random.default_rng(11)
    inputs = "float[1,8,10,10] x" + (", float[8,8,3,3] w" if listed else "")
    statistics = {name: rng.uniform(0.5, 1.5, 8).astype("f4") for name in ("s", "b", "m", "v")}
    return model(
        f"({inputs}) => (float[1,8,8,8] y) {{ c = Conv(x, w) n = BatchNormalization(c, s, b, m, v) y = Relu(n) }}",
        w=(rng.standard_normal((8, 8, 3, 3)) / 5).astype("f4"),
        **statistics,
    )


def run_ns(graph: Graph, target: Target) -> float:
    """Faster with every level, with every node less, without the layout optimiser, and with frozen weights."""
    time_ns = 1e6 * len(graph.nodes) * FACTORS[target.level]
    return time_ns * (0.7 if target.disabled else 1.0) * (1.5 if graph.overridable else 1.0)


def session_on(target: str = ALL, *, listed: bool = False, source: object = None) -> Session:
    graph = load(conv_bn_relu(listed), name="net") if source is None else source
    return Session(graph, target=target, measurer=PlantedMeasurer(run_ns))  # type: ignore[arg-type]


def places(session: Session) -> list[str]:
    return [row.candidate.place for row in session.snapshot().switches]


def test_levels_and_acting_optimisers_are_listed_once_the_runtime_was_asked():
    with session_on() as session:
        levels = [f"switch:level={level}" for level in ("disable", "basic", "extended")]
        assert places(session) == levels
        assert not session.snapshot().are_switches_complete
        session.switches.find()
        assert places(session)[:3] == levels
        assert "switch:disabled+=NchwcTransformer" in places(session)[3:]
        assert all(place.startswith("switch:disabled+=") for place in places(session)[3:])
        assert session.snapshot().are_switches_complete


def test_what_the_target_has_switched_off_can_be_switched_on_again():
    with session_on("ort:level=all,disabled=NchwcTransformer") as session:
        (again,) = [s for s in session.switches.find() if s.place.startswith("switch:disabled-=")]
        assert again.place == "switch:disabled-=NchwcTransformer"
        assert again.target == Target.parse(ALL)
        assert "switch:disabled+=NchwcTransformer" not in places(session)


def test_nothing_acts_where_the_optimiser_is_off():
    with session_on(DISABLE) as session:
        assert [s.place for s in session.switches.find()] == [
            "switch:level=basic", "switch:level=extended", "switch:level=all"
        ]  # fmt: skip


@pytest.mark.parametrize("runtime", ["openvino", "tvm"])
def test_other_runtimes_offer_freezing_only(runtime):
    with session_on(f"{runtime}:threads=1", listed=True) as session:
        assert [s.place for s in session.switches.find()] == [FREEZE]
    with session_on(f"{runtime}:threads=1") as session:
        assert session.switches.find() == ()


def test_classes_are_honest_and_the_interface_change_is_in_words():
    with session_on(listed=True) as session:
        freeze, level = session.switches.get(FREEZE), session.switches.get(EXTENDED)
        assert (freeze.numeric_class, freeze.target) == (NumericClass.EXACT, None)
        assert freeze.summary.endswith("callers can no longer override 'w'")
        assert level.numeric_class is NumericClass.REASSOCIATED
        assert not level.portable


def test_a_switch_of_the_target_is_timed_between_both_targets():
    with session_on(DISABLE) as session:
        found = session.measure(EXTENDED)
        assert found.delta.ratio == pytest.approx(0.8, rel=0.02)
        assert found.delta.target == f"ort:level=extended,threads=1 against {DISABLE}"
        assert found.a == found.b == session.graph.fingerprint()
        (row,) = [r for r in session.snapshot().switches if r.candidate.place == EXTENDED]
        assert row.measured == found.delta
        assert session.target == Target.parse(DISABLE)


def test_accepting_a_switch_changes_the_target_and_undo_brings_it_back():
    with session_on(DISABLE) as session:
        delta = session.measure(EXTENDED).delta
        report = session.accept(EXTENDED)
        assert report.passed
        assert session.target.level == "extended"
        assert session.graph is session.original
        (entry,) = session.snapshot().history
        assert entry.places == (EXTENDED,)
        assert entry.delta == delta
        assert "equal on 5 inputs" in entry.check
        session.undo()
        assert session.target == Target.parse(DISABLE)
        assert session.snapshot().history[0].is_undone
        session.redo()
        assert session.target.level == "extended"


def test_undo_and_redo_leave_a_target_that_was_chosen_by_hand():
    with session_on() as session:
        session.accept(EXTENDED)
        session.target = Target.parse(DISABLE)
        session.undo()
        assert str(session.target) == DISABLE
        session.redo()
        assert str(session.target) == DISABLE
        session.undo()
        session.target = Target.parse(ALL)
        session.redo()
        assert session.target.level == "extended"


def test_undo_over_several_switches_returns_to_the_first_target():
    with session_on(DISABLE) as session:
        session.accept(EXTENDED)
        session.accept(next(c.id for c in session.candidates() if c.rule == "fold-batchnorm-into-conv"))
        session.accept("switch:level=all")
        session.undo(2)
        assert (session.target.level, len(session.graph.nodes)) == ("extended", 3)
        session.redo(2)
        assert (session.target.level, len(session.graph.nodes)) == ("all", 2)
        session.undo(9)
        assert (session.target.level, session.graph) == ("disable", session.original)


def test_the_total_counts_from_the_target_before_the_switches():
    with session_on(DISABLE) as session:
        session.accept(EXTENDED)
        session.accept(next(c.id for c in session.candidates() if c.rule == "fold-batchnorm-into-conv"))
        total = session.measure_total()
        assert total.delta.ratio == pytest.approx(0.8 * 2 / 3, rel=0.02)
        assert (total.target, total.b_target) == (DISABLE, "ort:level=extended,threads=1")
        assert session.snapshot().total == total.delta
        session.target = ALL  # chosen by hand: the switch no longer leads here
        assert session.snapshot().total is None
        assert session.measure_total().b_target == ""


def test_a_switch_whose_outputs_differ_is_refused_and_changes_nothing(monkeypatch):
    with session_on(DISABLE) as session:
        real = PlantedMeasurer.run

        def wrong_when_optimised(self, graph, feeds, target=DISABLE, cancel=None):
            outputs = real(self, graph, feeds, target, cancel)
            is_off = Target.parse(target).level == "disable"
            return outputs if is_off else [{k: v + 1 for k, v in o.items()} for o in outputs]

        monkeypatch.setattr(PlantedMeasurer, "run", wrong_when_optimised)
        with pytest.raises(VerificationError, match=r"'switch:level=extended' was not accepted: output 'y'"):
            session.accept(EXTENDED)
        assert session.target == Target.parse(DISABLE)
        assert session.steps == ()


@pytest.mark.parametrize(("factor", "is_accepted"), [(1.5, True), (3.0, False), (np.nan, False)])
def test_a_target_that_is_off_already_may_be_left_for_one_that_is_no_worse(monkeypatch, factor, is_accepted):
    errors = {"disable": 0.0, "basic": 0.01, "extended": 0.01 * factor}
    real = PlantedMeasurer.run

    def imprecise(self, graph, feeds, target=DISABLE, cancel=None):
        error = errors[Target.parse(target).level]
        return [{k: v + error * np.abs(v).max() for k, v in o.items()} for o in real(self, graph, feeds)]

    with session_on("ort:level=basic") as session:
        monkeypatch.setattr(PlantedMeasurer, "run", imprecise)
        if not is_accepted:
            with pytest.raises(VerificationError, match=r"was not accepted: output 'y' differs"):
                session.accept(EXTENDED)
            return
        text = session.accept(EXTENDED).sentence()
        assert text.startswith("not equal to the original, but no worse than ort:level=basic,threads=1")
        assert "which itself differs by 1.0e-02 (largest relative error 1.5e-02 in 'y')" in text
        assert session.snapshot().history[0].check == text


def test_freezing_is_a_change_of_the_graph_that_later_checks_know_of():
    with session_on(listed=True) as session:
        assert session.measure(FREEZE).delta.ratio == pytest.approx(1 / 1.5, rel=0.02)
        session.accept(FREEZE)
        assert session.graph.overridable == ()
        assert places(session).count(FREEZE) == 0
        assert session.target == Target.parse(ALL)
        fold = next(c for c in session.candidates() if c.rule == "fold-batchnorm-into-conv")
        assert session.accept(fold.id).passed
        assert "overridden default weights" not in session.check().inputs
        session.undo(2)
        assert "overridden default weights" in session.check().inputs
        assert [v.name for v in session.graph.overridable] == ["w"]
        assert not any(c.rule == "fold-batchnorm-into-conv" for c in session.candidates())


def test_freezing_lets_the_layout_optimiser_act():
    with session_on(listed=True) as session:
        nchwc = "switch:disabled+=NchwcTransformer"
        assert nchwc not in [s.place for s in session.switches.find()]
        session.accept(FREEZE)
        assert nchwc in [s.place for s in session.switches.find()]


def test_a_switch_may_be_rejected_and_allowed_again():
    with session_on() as session:
        session.reject(EXTENDED)
        assert [r.candidate.place for r in session.snapshot().switches if r.is_rejected] == [EXTENDED]
        session.restore(EXTENDED)
        assert session.rejected == frozenset()


def test_a_switch_that_is_not_there_is_refused_in_words():
    with session_on() as session:
        with pytest.raises(CandidateError, match=r"no 'switch:level=turbo' for 'net'.*--switches"):
            session.measure("switch:level=turbo")
        with pytest.raises(CandidateError, match="no 'switch:freeze-weights'"):
            session.accept(FREEZE)
        with pytest.raises(CandidateError, match=r"no 'switch:disabled\+=BiasGeluFusion'"):
            session.accept("switch:disabled+=BiasGeluFusion")


def test_switching_ends_a_search_that_compares_on_the_old_target():
    with session_on(DISABLE) as session:
        stepper = Stepper(session, 5, lambda _event: None)
        assert stepper.is_usable
        session.accept(EXTENDED)
        assert not stepper.is_usable


def test_a_saved_session_brings_switches_and_targets_back(tmp_path: Path):
    onnx.save(conv_bn_relu(listed=True), tmp_path / "net.onnx")
    with session_on(DISABLE, source=tmp_path / "net.onnx") as before:
        before.measure(FREEZE)
        before.accept(FREEZE)
        before.measure(EXTENDED)
        before.accept(EXTENDED)
        before.measure_total()
        path = before.save(tmp_path / "work.json")
        expected = before.snapshot()
    with Session.reopen(path, PlantedMeasurer(run_ns)) as after:
        found = after.snapshot()
        assert (found.target, found.fingerprint, found.total) == (
            expected.target, expected.fingerprint, expected.total
        )  # fmt: skip
        assert [h.delta for h in found.history] == [h.delta for h in expected.history]
        assert found.total is not None
        after.undo(2)
        assert after.target == Target.parse(DISABLE)
        (row,) = [r for r in after.snapshot().switches if r.candidate.place == FREEZE]
        assert row.measured is not None
        after.redo(2)
        assert after.target.level == "extended"
        assert after.graph.overridable == ()


def test_a_damaged_switch_in_a_session_file_is_refused(tmp_path: Path):
    onnx.save(conv_bn_relu(), tmp_path / "net.onnx")
    with session_on(DISABLE, source=tmp_path / "net.onnx") as session:
        session.accept(EXTENDED)
        path = session.save(tmp_path / "work.json")
    data = json.loads(path.read_text())
    data["entries"][0]["switched"] = [DISABLE]
    path.write_text(json.dumps(data))
    with pytest.raises(InputError, match="the target before and the one after, not 1"):
        Session.reopen(path, PlantedMeasurer(run_ns))


def test_a_trajectory_with_switches_is_replayed():
    with session_on(DISABLE, listed=True) as session:
        session.accept(FREEZE)
        session.accept(EXTENDED)
        session.accept(next(c.id for c in session.candidates() if c.rule == "fold-batchnorm-into-conv"))
        written = Trajectory.from_json(json.loads(json.dumps(session.trajectory().to_json())))
        assert written.settings["target"] == "ort:level=extended,threads=1"
        graphs = replay(written, session.original, all_rules())
        assert [len(graph.nodes) for graph in graphs] == [3, 3, 2]
        assert graphs[-1].fingerprint() == session.graph.fingerprint()


def test_an_export_says_what_it_is_meant_for_and_how_to_load_it(tmp_path: Path):
    with session_on(ALL, listed=True) as session:
        plain = session.export(tmp_path / "plain.onnx")
        assert (str(plain.target), plain.settings) == (ALL, {})
        assert plain.sentence().endswith("; meant for ONNX Runtime, level all, 1 thread")
        session.accept(FREEZE)
        session.accept("switch:disabled+=NchwcTransformer")
        done = session.export(tmp_path / "frozen.onnx")
        assert done.settings == {"disabled_optimizers": "NchwcTransformer"}
        assert done.sentence().endswith("load it with disabled_optimizers=NchwcTransformer")
        x = {"x": np.ones((1, 8, 10, 10), "f4")}
        np.testing.assert_array_equal(run(done.path, x)[0], run(plain.path, x)[0])
        assert [i.name for i in onnx.load(done.path).graph.input] == ["x"]


def test_a_target_that_changed_during_the_check_is_noticed(monkeypatch):
    with session_on(DISABLE) as session:
        real = Session.check

        def meddling(self, *arguments, **settings):
            report = real(self, *arguments, **settings)
            self.target = ALL
            return report

        monkeypatch.setattr(Session, "check", meddling)
        with pytest.raises(CandidateError, match="Graph or target changed"):
            session.accept(EXTENDED)
        assert session.target == Target.parse(ALL)
        assert session.steps == ()


def test_measuring_all_of_them_says_identical_where_the_runtime_executes_the_same(tmp_path: Path):
    from explorer.runtime import InlineExecutor, Measurer
    from explorer.runtime.cache import NoCache

    graph = load(model("(float[2,3] x) => (float[2,3] y) { y = Neg(x) }"), name="neg")
    with (
        Measurer(executor=InlineExecutor(), cache=NoCache()) as measurer,
        Session(graph, target=ALL, measurer=measurer) as session,
    ):
        for switch in session.switches.find():
            assert session.measure(switch.id, "screening").delta.verdict is Verdict.IDENTICAL
        assert {row.measured.verdict for row in session.snapshot().switches} == {Verdict.IDENTICAL}
