"""Each panel alone: what it shows of a snapshot, what it asks for when its controls are used."""

from __future__ import annotations

import ipywidgets as widgets
import pytest

from explorer.errors import Cancelled, InputError
from explorer.graph import load
from explorer.runtime import Delta, Mode, Protocol, Source, Verdict
from explorer.runtime.dummy import PlantedMeasurer
from explorer.runtime.progress import Progress
from explorer.search import LeftOut
from explorer.search.moves import Move
from explorer.session import Job, Session
from explorer.session.costs import Way
from explorer.session.view import summary_of
from explorer.ui.panels.candidates import chosen_html
from explorer.ui.panels.history import HistoryActions, HistoryPanel
from explorer.ui.panels.node import NodePanel, node_html
from explorer.ui.panels.opening import OpeningActions, OpeningPanel
from explorer.ui.panels.optimise import OptimiseActions, OptimisePanel
from explorer.ui.strip import Strip
from tests.models import CASES
from tests.session.planted import folds, planted_ns, planted_session


class Recorder:
    """Stands for every action of a panel; remembers calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def action(self, name: str):
        return lambda *arguments: self.calls.append((name, *arguments))

    def actions(self, kind: type):
        return kind(**{name: self.action(name) for name in kind.__dataclass_fields__})


@pytest.fixture
def session():
    with planted_session() as opened:
        yield opened


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


# Opening


@pytest.fixture
def opening(recorder: Recorder) -> OpeningPanel:
    return OpeningPanel(recorder.actions(OpeningActions))


def test_choosing_a_sample_opens_it(opening: OpeningPanel, recorder: Recorder):
    opening.sample.value = "resnet18"
    assert recorder.calls == [("open_model", "resnet18", None)]


def test_a_path_opens_with_the_button_and_with_enter(opening: OpeningPanel, recorder: Recorder):
    opening.open.click()
    opening.path.value = "  models/a.onnx "
    opening.open.click()
    opening.path._handle_custom_msg({"event": "submit"}, [])
    assert recorder.calls == [("open_model", "models/a.onnx", None)] * 2


def test_an_uploaded_file_is_opened_with_its_name(opening: OpeningPanel, recorder: Recorder):
    opening.upload._handle_custom_msg({"kind": "start", "name": "a.onnx", "size": 3}, [])
    opening.upload._handle_custom_msg({"kind": "piece", "offset": 0}, [memoryview(b"abc")])
    assert recorder.calls == [("open_model", b"abc", "a.onnx")]


def test_target_timing_and_rules_are_passed_on(opening: OpeningPanel, recorder: Recorder):
    opening.runtime.value = "ort:level=disable,threads=1"
    opening.threads.value = 3
    opening.timing.value = Mode.SCREENING
    opening.opt_in.value = True
    assert recorder.calls == [
        ("set_target", "ort:level=disable,threads=1"),
        ("set_target", "ort:level=disable,threads=3"),
        ("set_protocol", Protocol.screening()),
        ("set_opt_in", True),
    ]


def test_rendering_shows_the_session_and_asks_for_nothing(
    opening: OpeningPanel, recorder: Recorder, session: Session
):
    session.target = "ort:level=extended,threads=4"
    session.protocol = Protocol.validated(budget_s=5)
    session.prepare(opt_in=True)
    opening.render(session.snapshot())
    assert recorder.calls == []
    assert opening.target == "ort:level=extended,threads=4"
    assert opening.protocol == Protocol.validated(budget_s=5)
    assert opening.timing.label == "validated, up to 5 s"
    assert opening.opt_in.value
    assert opening.sample.label == "blocks"


def test_a_target_that_is_not_on_the_list_is_added(opening: OpeningPanel, session: Session):
    session.target = "ort:level=all,threads=2,disabled=ConstantFolding"
    opening.render(session.snapshot())
    assert opening.target == str(session.target)
    assert opening.runtime.label == "ONNX Runtime, all, 1 switched off"
    assert opening.runtime.tooltip == session.target.label


def test_the_path_of_a_file_that_is_not_open_goes_when_another_model_comes(
    opening: OpeningPanel, session: Session
):
    opening.path.value = "broken.onnx"
    opening.render(None)
    assert opening.path.value == "broken.onnx"  # to be corrected
    opening.render(session.snapshot())
    assert opening.path.value == ""
    opening.path.value = "next.onnx"
    opening.render(session.snapshot())
    assert opening.path.value == "next.onnx"


def test_after_a_failed_opening_the_list_shows_what_is_open(opening: OpeningPanel, session: Session):
    opening.sample.value = "resnet18"
    opening.render(session.snapshot())
    assert opening.sample.label == "blocks"
    opening.render(None)
    assert opening.sample.value == ""


# Strip


def test_messages_and_facts_take_turns():
    strip = Strip(lambda: None)
    strip.show_facts("<b>model</b>")
    assert (strip._facts.layout.display, strip._message.layout.display) == ("", "none")
    strip.error(InputError("'a.onnx' is not a model."))
    assert (strip._facts.layout.display, strip._message.layout.display) == ("none", "")
    assert 'role="alert"' in strip._message.value
    strip._dismiss.click()
    assert (strip.text, strip._facts.layout.display) == ("", "")


def test_messages_are_text_not_mark_up():
    strip = Strip(lambda: None)
    strip.error(InputError("node '<img src=x onerror=alert(1)>' is odd"))
    assert "<img" not in strip._message.value
    assert strip.text == "node '<img src=x onerror=alert(1)>' is odd"


def test_unexpected_errors_are_named_and_cancelled_jobs_are_no_errors():
    strip = Strip(lambda: None)
    strip.error(KeyError("x"))
    assert strip.text == "Unexpected KeyError: 'x'"
    strip.last_error = None
    strip.error(Cancelled("stopped."))
    assert (strip.text, strip.last_error) == ("stopped.", None)
    assert 'role="status"' in strip._message.value


def test_a_job_shows_label_progress_and_cancel():
    pressed: list[int] = []
    strip = Strip(lambda: pressed.append(1))
    job: Job[None] = Job("Measuring <x>", lambda: None)
    strip.show_job(job)
    assert "Measuring &lt;x&gt; (waiting)" in strip.status
    job.run(lambda own: own.report(Progress(3, 4, "round 3 of 4")))
    strip.show_job(job)
    assert "round 3 of 4" in strip.status
    assert strip._bar.value == 0.75
    strip.cancel.click()
    assert pressed == [1]
    strip.show_job(None)
    assert strip.status == ""


def test_guarded_handlers_show_errors_and_raise_what_is_unexpected():
    strip = Strip(lambda: None)

    def fail(error: Exception) -> None:
        raise error

    strip.guard(fail)(InputError("no"))
    assert strip.text == "no"
    with pytest.raises(ZeroDivisionError):
        strip.guard(fail)(ZeroDivisionError("oh"))
    assert strip.text == "Unexpected ZeroDivisionError: oh"


# Candidates, nodes, history


def test_the_chosen_candidate_is_described_in_text(session: Session):
    chosen = folds(session)[0]
    session.measure(chosen.id)
    row = next(row for row in session.snapshot().rows if row.id == chosen.id)
    shown = chosen_html(row)
    assert "class R, re-associated" in shown
    assert "▼ −4.2 % faster" in shown
    assert "validated: 10 rounds of" in shown


def test_node_details_name_everything_and_escape_names():
    graph = load(CASES / "odd_names.onnx")
    summary = summary_of(graph)
    for node in summary.nodes:
        shown = node_html(node)
        assert f"<h4>{node.op_type}</h4>" in shown
        assert node.id in shown
        assert "<img" not in shown
        assert "<script" not in shown


def test_node_details_of_none_one_and_several(session: Session):
    panel = NodePanel(lambda: None, lambda: None, lambda: None)
    summary = summary_of(session.graph)
    assert "Click a node" in panel.details.value
    panel.show(summary, ["n0"], 2, 0)
    assert "kernel_shape" not in panel.details.value
    assert "Conv" in panel.details.value
    assert (panel.candidates.description, panel.candidates.disabled) == ("Rewrites here (2)", False)
    assert (panel.misses.description, panel.misses.disabled) == ("Why not here? (0)", True)
    panel.show(summary, ["n0", "n1"], 0, 0)
    assert "2 nodes" in panel.details.value
    panel.show(summary, ["in0"], 0, 0)
    assert "Graph input" in panel.details.value


def test_history_lists_accepted_and_undone(session: Session, recorder: Recorder):
    panel = HistoryPanel(recorder.actions(HistoryActions))
    panel.render(session.snapshot())
    panel.disable(False)
    assert "Nothing accepted yet" in panel.list.value
    assert (panel.undo.disabled, panel.redo.disabled) == (True, True)
    session.accept(folds(session)[0].id)
    session.accept(folds(session)[0].id)
    session.undo()
    panel.render(session.snapshot())
    panel.disable(False)
    assert panel.list.value.count("<li") == 2
    assert panel.list.value.count("(undone) <b>") == 1  # before a label that may be cut
    assert "numerically equal on" in panel.list.value
    assert (panel.undo.disabled, panel.redo.disabled) == (False, False)
    panel.disable(True)
    assert all(b.disabled for b in (panel.undo, panel.redo, panel.export, panel.save, panel.measure_total))


def test_history_buttons_pass_their_paths_on(session: Session, recorder: Recorder):
    panel = HistoryPanel(recorder.actions(HistoryActions))
    panel.render(session.snapshot())
    panel.export_path.value = "out.onnx"
    for button in (panel.export, panel.save, panel.reopen, panel.measure_total):
        button.click()
    assert recorder.calls == [
        ("export", "out.onnx"),
        ("save", "blocks.session.json"),
        ("reopen", "blocks.session.json"),
        ("measure_total",),
    ]


def test_a_path_that_was_typed_survives_other_changes(session: Session, recorder: Recorder):
    panel = HistoryPanel(recorder.actions(HistoryActions))
    panel.render(session.snapshot())
    assert panel.export_path.value == "blocks-rewritten.onnx"
    panel.export_path.value = "mine.onnx"
    session.accept(folds(session)[0].id)
    panel.render(session.snapshot())
    assert panel.export_path.value == "mine.onnx"


# Optimise


@pytest.fixture
def optimise(recorder: Recorder) -> OptimisePanel:
    return OptimisePanel(recorder.actions(OptimiseActions))


def test_budget_and_way_go_with_every_command(optimise: OptimisePanel, recorder: Recorder):
    assert optimise.way.value == Way("measured")
    scouted = Way("measured", "operator-sum")
    assert [way for _, way in optimise.way.options] == [Way("measured"), scouted, Way("operator-sum")]
    optimise.budget.value, optimise.way.value = 12, scouted
    for button in (optimise.step, optimise.skip, optimise.run, optimise.stop):
        button.click()
    assert recorder.calls == [("step", 12, scouted), ("skip", 12, scouted), ("run", 12, scouted), ("stop",)]


def test_looking_ahead_is_told_as_predicted(optimise: OptimisePanel, session: Session):
    shown = []
    for event in session.optimise(budget=30, scout="operator-sum"):
        optimise.show_event(event)
        shown.append((type(event).__name__, optimise.next.value))
    assert shown[0][0] == "Scouting"
    assert "Looking ahead" in shown[0][1]
    assert "0 of at most 60 predictions made" in shown[0][1]
    assert shown[-1][0] == "Confirmed"
    line = next(line for line in optimise.log.value.split("<li>") if "Looked ahead" in line)
    assert "predicted" in line


def test_a_search_is_told_from_first_measurement_to_result(optimise: OptimisePanel, session: Session):
    shown = []
    for event in session.optimise(budget=30):
        optimise.show_event(event)
        shown.append((type(event).__name__, optimise.next.value, optimise.proposal is not None))
    kinds = [kind for kind, _, _ in shown]
    assert kinds[0] == "Evaluating"
    assert kinds[-1] == "Confirmed"
    assert all(has == (kind == "Proposed") for kind, _, has in shown)
    assert any("Next choice" in text for kind, text, _ in shown if kind == "Proposed")
    assert "less time than at the start, confirmed" in optimise.next.value
    assert optimise.log.value.count("✓ took") == len(session.history.past)
    assert optimise.log.value.index("Result") < optimise.log.value.index("✓ took")
    assert "against itself" not in optimise.next.value


def test_an_unchanged_model_is_said_to_be_timed_against_itself(optimise: OptimisePanel):
    with planted_session(measurer=PlantedMeasurer(lambda _graph, _target: 1e6)) as session:
        for event in session.optimise(budget=3):
            optimise.show_event(event)
    assert "the model is unchanged" in optimise.next.value
    assert "against itself <b" in optimise.next.value


@pytest.mark.parametrize(("ratio", "fate"), [(0.98, "they stay out"), (1.03, "they stay in")])
def test_sites_left_out_of_a_set_are_told(optimise: OptimisePanel, ratio: float, fate: str):
    verdict = Verdict.FASTER if ratio < 1 else Verdict.SLOWER
    delta = Delta(ratio, ratio, ratio, verdict, Source.MEASURED, "ort", "screening")
    move = Move("winograd-conv", ("winograd-conv:n0", "winograd-conv:n1", "winograd-conv:n2"))
    optimise.show_event(LeftOut(move, move.places[2:], delta, ratio < 1, 2, 30))
    assert f"winograd-conv at 3 places, without 1 of them: {fate}" in optimise.log.value


def test_buttons_of_a_search_depend_on_what_runs(optimise: OptimisePanel, session: Session):
    optimise.disable(False)
    assert optimise.step.disabled
    optimise.render(session.snapshot())
    optimise.disable(False)
    assert [b.disabled for b in (optimise.step, optimise.run, optimise.skip, optimise.stop)] == [
        False, False, True, True,
    ]  # fmt: skip
    optimise.disable(True)
    assert [b.disabled for b in (optimise.step, optimise.run, optimise.skip, optimise.stop)] == [
        True, True, True, False,
    ]  # fmt: skip


def test_the_chart_is_made_when_it_is_first_shown_and_then_kept(optimise: OptimisePanel, session: Session):
    optimise.render(session.snapshot())
    assert optimise.chart is None
    optimise.show_chart()
    chart = optimise.chart
    assert chart.traces[0]["x"] == [0]
    for _ in range(2):
        chosen = folds(session)[0].id
        session.measure(chosen)
        session.accept(chosen)
        optimise.render(session.snapshot())
        optimise.show_chart()
    assert optimise.chart is chart
    assert chart.traces[0]["y"] == pytest.approx([100, 100 * 23 / 24, 100 * 22 / 24])


def test_a_stopped_search_says_so(optimise: OptimisePanel):
    optimise.show_stopped()
    assert "Stopped" in optimise.next.value
    optimise.reset()
    assert "Ready" in optimise.next.value


def test_controls_have_names_for_screen_readers(recorder: Recorder, session: Session):
    panels = [
        OpeningPanel(recorder.actions(OpeningActions)),
        OptimisePanel(recorder.actions(OptimiseActions)),
        HistoryPanel(recorder.actions(HistoryActions)),
    ]
    for panel in panels:
        for widget in _controls(panel.box):
            assert widget.description, widget


def _controls(box: widgets.Box) -> list[widgets.Widget]:
    found = []
    for child in box.children:
        if isinstance(child, widgets.Box):
            found += _controls(child)
        elif isinstance(child, widgets.Button | widgets.Dropdown | widgets.Text | widgets.BoundedIntText):
            found.append(child)
    return found


def test_planted_measurer_is_what_these_tests_think(session: Session):
    assert isinstance(session.measurer, PlantedMeasurer)
    assert planted_ns(session.graph, session.target) == 24e6
