"""The whole app without a browser: presses, selections and keys, compared with the session's state."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import ipywidgets as widgets
import onnx
import pytest

import explorer
from explorer.errors import Cancelled, InputError, RuntimeFailure
from explorer.runtime import Protocol, Verdict
from explorer.runtime.dummy import PlantedMeasurer
from explorer.session import Session, recent
from explorer.ui.app import CANDIDATES, HISTORY, NEAR_MISSES, NODE, OPTIMISE, App
from tests.models import CASES
from tests.session.planted import (
    FOLD,
    EndlessMeasurer,
    folds,
    planted_ns,
    planted_session,
    saved_model,
)
from tests.ui.loop import run_in_loop
from tests.ui.planted_app import Driver, planted_app


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("EXPLORER_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def driver():
    made = planted_app()
    yield made
    made.check()
    made.app.close()


@pytest.fixture
def empty():
    made = Driver(None)
    yield made
    made.check()
    made.app.close()


def site(driver: Driver) -> list[str]:
    """The nodes outlined in the graph."""
    return list(driver.app.graph.view.highlighted.get("nodes", []))


# Opening


def test_the_graph_is_shown_before_the_candidates_are_known(monkeypatch: pytest.MonkeyPatch):
    gate, prepare = threading.Event(), Session.prepare
    monkeypatch.setattr(Session, "prepare", lambda self, **given: (gate.wait(60), prepare(self, **given)))
    app = App(planted_session())
    assert len(app.graph.view.scene.nodes) == 8
    assert (app.candidates.table.state, app.candidates.table.rows) == ("loading", [])
    (job,) = app.controller.jobs
    assert job.label == "Looking for rewrites"
    gate.set()
    job.result(60)
    app.flush()
    assert len(app.candidates.table.rows) == len(app.session.candidates()) > 0
    app.close()


def test_without_a_model_the_app_asks_for_one(empty: Driver):
    app = empty.app
    assert "Choose a sample" in app.strip._facts.value
    assert app.candidates.table.state == "closed"
    for button in (app.candidates.measure_all, app.optimise.run, app.history.export, app.history.undo):
        assert button.disabled


def test_a_sample_is_opened_from_the_list(empty: Driver):
    empty.choose(empty.app.opening.sample, "squeezenet1_1")
    assert empty.session.original.name == "squeezenet1_1"
    assert len(empty.app.candidates.table.rows) == len(empty.session.candidates()) > 0
    assert "squeezenet1_1" in empty.app.strip._facts.value


def test_settings_made_before_a_model_count_for_it(empty: Driver):
    opening = empty.app.opening
    empty.choose(opening.threads, 2)
    empty.choose(opening.runtime, "ort:level=basic,threads=1")
    empty.choose(opening.opt_in, True)
    empty.choose(opening.sample, "squeezenet1_1")
    assert str(empty.session.target) == "ort:level=basic,threads=2"
    assert empty.session.opt_in


def test_a_path_is_opened(empty: Driver, tmp_path: Path):
    empty.app.opening.path.value = str(saved_model(tmp_path))
    empty.press(empty.app.opening.open)
    assert empty.session.original.name == "blocks"
    assert empty.app.opening.sample.label == "blocks"


def test_a_bad_path_is_explained_and_what_is_open_stays(driver: Driver):
    before = driver.session
    driver.app.opening.path.value = "/nowhere/model.onnx"
    driver.press(driver.app.opening.open)
    assert driver.app.strip.text.startswith("'/nowhere/model.onnx' is neither a file nor a sample model")
    assert driver.session is before
    assert not driver.app.candidates.measure_all.disabled


def test_a_failed_choice_does_not_stay_in_the_list(driver: Driver, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_arguments: object, **_settings: object) -> Session:
        raise InputError("'resnet18' is broken.")

    monkeypatch.setattr("explorer.ui.controller.Session", refuse)
    driver.choose(driver.app.opening.sample, "resnet18")
    assert driver.app.strip.text == "'resnet18' is broken."
    assert driver.app.opening.sample.label == "blocks"


def upload(driver: Driver, content: bytes, name: str) -> None:
    widget = driver.app.opening.upload
    widget._handle_custom_msg({"kind": "start", "name": name, "size": len(content)}, [])
    widget._handle_custom_msg({"kind": "piece", "offset": 0}, [memoryview(content)])
    driver.settle()


def test_an_uploaded_model_is_opened_under_its_stem(empty: Driver):
    upload(empty, (CASES / "odd_names.onnx").read_bytes(), "odd_names.onnx")
    assert empty.session.original.name == "odd_names"
    assert len(empty.app.graph.view.scene.edges) == 7


def test_a_corrupt_upload_is_explained_and_what_is_open_stays(driver: Driver):
    before = driver.session
    upload(driver, b"\x08\x07 this is no model", "broken.onnx")
    assert driver.app.strip.text.startswith("'broken.onnx' is not an ONNX model")
    assert driver.session is before


def test_open_explains_what_cannot_be_opened_in_the_app(tmp_path: Path):
    app = explorer.open(tmp_path / "missing.onnx")
    assert "missing.onnx' is neither a file nor" in app.strip.text
    assert app.session is None
    app.close()


def test_open_takes_a_target_and_a_saved_session(tmp_path: Path):
    app = explorer.open(saved_model(tmp_path), target="ort:level=basic,threads=2")
    assert str(app.session.target) == "ort:level=basic,threads=2"
    app.session.accept(folds(app.session)[0].id)
    path = app.session.save(tmp_path / "work.json")
    app.close()
    again = explorer.open(session=path)
    assert len(again.session.steps) == 1
    again.close()


# Candidates


def test_selecting_a_row_outlines_its_site(driver: Driver):
    identifier = driver.select_fold()
    assert site(driver) == ["n0", "n1"]
    assert driver.app.graph.view.highlighted["label"] == FOLD
    assert "Fold BatchNormalization into Conv" in driver.app.candidates.chosen.value
    assert not driver.app.candidates.accept.disabled
    assert identifier == driver.app.candidates.selected.id


def test_measure_shows_delta_interval_verdict_and_protocol(driver: Driver):
    identifier = driver.select_fold()
    driver.press(driver.app.candidates.measure)
    (row,) = [row for row in driver.app.candidates.table.rows if row["id"] == identifier]
    assert (row["measured"]["text"], row["measured"]["verdict_text"]) == ("−4.2 %", "faster")
    assert "−4.2 … −4.2 %" in row["measured"]["interval"]
    assert "validated: 10 rounds" in driver.app.candidates.chosen.value


def test_the_timing_in_the_bar_decides_how_is_measured(driver: Driver):
    driver.choose(driver.app.opening.timing, "screening")
    driver.select_fold()
    driver.press(driver.app.candidates.measure)
    (row,) = [row for row in driver.app.candidates.table.rows if row["measured"]]
    assert row["measured"]["mark"] == "screening"


def test_measure_all_measures_all_but_the_rejected(driver: Driver):
    rejected = driver.select_fold()
    driver.press(driver.app.candidates.reject)
    assert driver.app.candidates.reject.description == "Allow again"
    driver.press(driver.app.candidates.measure_all)
    measured = {row["id"]: row["measured"] for row in driver.app.candidates.table.rows}
    assert measured.pop(rejected) is None
    assert all(measured.values())
    driver.press(driver.app.candidates.reject)
    assert driver.session.rejected == frozenset()


def test_predict_fills_the_column_for_one_and_for_all(driver: Driver):
    panel = driver.app.candidates
    identifier = driver.select_fold()
    driver.press(panel.predict)
    predicted = [row["id"] for row in panel.table.rows if row["predicted"]]
    assert predicted == [identifier]
    assert "sum of isolated operator times" in panel.chosen.value
    assert "not measured" in panel.chosen.value
    driver.press(panel.predict_all)
    rows = panel.table.rows
    assert all(row["predicted"] for row in rows)
    assert {row["predicted"]["mark"] for row in rows} == {"operator sum"}
    ratios = [row["predicted"]["ratio"] for row in rows if row["predicted"]["verdict"] != "SLOWER"]
    assert ratios == sorted(ratios)
    assert [row["predicted"]["ratio"] for row in rows] == [
        *ratios,
        *[row["predicted"]["ratio"] for row in rows if row["predicted"]["verdict"] == "SLOWER"],
    ]


def test_predictions_can_be_stopped(driver: Driver, monkeypatch: pytest.MonkeyPatch):
    def predict(_session, progress, cancel, *, only):
        assert only is None
        cancel.wait(60)
        raise Cancelled("stopped")

    monkeypatch.setattr(Session, "predict", predict)
    driver.press(driver.app.candidates.predict_all, settle=False)
    driver.app.strip.cancel.click()
    driver.settle()
    assert driver.app.strip.text == "Predicting all: stopped."


def test_predictions_survive_undo_and_redo(driver: Driver):
    panel = driver.app.candidates
    driver.press(panel.predict_all)
    before = {row["id"]: row["predicted"] for row in panel.table.rows}
    driver.select_fold()
    driver.press(panel.accept)
    driver.press(driver.app.history.undo)
    assert {row["id"]: row["predicted"] for row in panel.table.rows} == before


def test_accept_undo_redo(driver: Driver):
    app = driver.app
    driver.select_fold()
    driver.press(app.candidates.accept)
    assert len(driver.session.steps) == 1
    assert "1 accepted" in app.strip._facts.value
    assert len(app.graph.view.scene.nodes) == 7
    assert "fold" not in app.candidates.chosen.value.lower() or app.candidates.selected is None
    driver.press(app.history.undo)
    assert driver.session.graph is driver.session.original
    assert len(app.graph.view.scene.nodes) == 8
    driver.press(app.history.redo)
    assert len(driver.session.steps) == 1
    assert app.history.redo.disabled


def test_before_and_after_side_by_side_and_back(driver: Driver):
    view = driver.app.graph.view
    driver.select_fold()
    driver.app.candidates.compare.set_state({"value": True})
    driver.settle()
    assert (view.comparison["before"], view.comparison["after"]) == ("Now", "After")
    statuses = [str(node.status) for node in view.scene.nodes]
    assert statuses.count("removed") == 2
    assert statuses.count("added") == 1
    driver.app.candidates.compare.set_state({"value": False})
    driver.settle()
    assert view.comparison == {}
    assert site(driver) == ["n0", "n1"]


def test_another_row_is_compared_while_comparing(driver: Driver):
    driver.select_fold()
    driver.app.candidates.compare.set_state({"value": True})
    driver.settle()
    driver.select_fold(1)
    removed = [n.id for n in driver.app.graph.view.scene.nodes if str(n.status) == "removed"]
    assert removed == ["n3", "n4"]


def test_accepting_ends_the_comparison(driver: Driver):
    driver.select_fold()
    driver.app.candidates.compare.set_state({"value": True})
    driver.settle()
    driver.press(driver.app.candidates.accept)
    assert driver.app.graph.view.comparison == {}
    assert not driver.app.candidates.compare.value


def test_a_selection_that_outlives_a_change_keeps_its_outline(driver: Driver):
    driver.select_fold(1)
    driver.session.accept(folds(driver.session)[0].id)
    driver.settle()
    place = f"{FOLD}:n3+n4"
    driver.select(driver.session.find(place).id)
    driver.press(driver.app.history.undo)
    assert driver.app.candidates.table.selected == ""
    assert site(driver) == []


def test_a_stale_row_is_refused_in_words(driver: Driver):
    identifier = driver.select_fold()
    driver.session.accept(identifier)
    driver.app.candidates.accept.click()  # the app has not rendered yet: the row is still there
    assert "No candidate" in driver.app.strip.text
    driver.settle()
    assert len(driver.session.steps) == 1


def test_the_filter_at_selected_nodes_is_one_click_from_a_node(driver: Driver):
    app = driver.app
    driver.click_nodes("n1")
    assert app.tabs.selected_index == NODE
    assert "BatchNormalization" in app.node.details.value
    driver.press(app.node.candidates)
    assert app.tabs.selected_index == CANDIDATES
    assert app.candidates.table.only_here
    driver.click_nodes("n4")
    assert app.tabs.selected_index == CANDIDATES
    assert app.candidates.table.focus == ["n4"]


def test_near_misses_are_listed_and_outlined(tmp_path: Path):
    driver = Driver(planted_session(str(CASES / "conv_add_broadcasts_on_width.onnx"), measurer=None))
    app = driver.app
    assert app.near_misses.table.rows
    driver.select(driver.session.candidates()[0].id)
    row = app.near_misses.table.rows[0]
    app.near_misses.table.set_state({"selected": row["id"]})
    driver.settle()
    assert site(driver) == row["nodes"]
    assert app.candidates.table.selected == ""
    driver.select(driver.session.candidates()[0].id)
    assert app.near_misses.table.selected == ""
    driver.click_nodes(*row["nodes"])
    driver.press(app.node.misses)
    assert app.tabs.selected_index == NEAR_MISSES
    driver.check()
    app.close()


# Keys


def test_keys_do_what_the_buttons_do(driver: Driver):
    identifier = driver.select_fold()
    driver.key("measure")
    assert driver.session.measured(driver.session.find(identifier).place) is not None
    driver.key("reject")
    assert len(driver.session.rejected) == 1
    driver.key("reject")
    driver.key("compare")
    assert driver.app.graph.is_comparing
    driver.key("accept")
    assert len(driver.session.steps) == 1
    driver.key("undo")
    driver.key("undo")
    assert driver.session.graph is driver.session.original
    driver.key("redo")
    assert len(driver.session.steps) == 1
    driver.key("step")
    assert driver.app.tabs.selected_index == OPTIMISE
    assert driver.app.optimise.proposal is not None


def test_keys_without_a_selection_do_nothing(driver: Driver):
    for command in ("measure", "accept", "reject", "compare", "nonsense"):
        driver.key(command)
    assert driver.app.strip.text == ""
    assert driver.session.number == 2  # the candidates were found and ordered, nothing else


# Jobs


def test_cancel_while_measuring():
    driver = planted_app(measurer=EndlessMeasurer())
    app = driver.app
    driver.select_fold()
    driver.press(app.candidates.measure, settle=False)
    driver.until(lambda: "round" in app.strip.status)
    assert app.candidates.accept.disabled
    assert app.candidates.table.busy
    app.candidates.table.set_state({"selected": folds(driver.session)[1].id})
    assert site(driver) == ["n3", "n4"]  # looking is possible all the time
    driver.press(app.strip.cancel)
    assert app.strip.text == f"Measuring {FOLD}:n0+n1: stopped."
    assert not app.candidates.accept.disabled
    driver.check()
    app.close()


def test_cancel_while_measuring_all_keeps_what_was_measured():
    class OneThenEndless(EndlessMeasurer):
        done = 0

        def _time_pair(self, a, b, request):
            if self.done:
                return super()._time_pair(a, b, request)
            self.done = 1
            return PlantedMeasurer._time_pair(self, a, b, request)

    driver = planted_app(measurer=OneThenEndless())
    app = driver.app
    driver.press(app.candidates.measure_all, settle=False)
    driver.until(lambda: "2 of" in app.strip.status)
    driver.press(app.strip.cancel)
    assert [bool(row["measured"]) for row in app.candidates.table.rows].count(True) == 1
    assert app.strip.text == "Measuring all: stopped."
    app.close()


def test_a_runtime_that_refuses_is_explained(tmp_path: Path):
    driver = Driver(Session(CASES / "unknown_custom_op.onnx"))
    driver.select_fold()
    driver.press(driver.app.candidates.measure)
    assert "no operator vendor.ops::FancyGate, used by node 'fancy'" in driver.app.strip.text
    driver.press(driver.app.candidates.accept)
    assert "FancyGate" in driver.app.strip.text
    assert driver.session.graph is driver.session.original
    driver.check()
    driver.app.close()


def test_a_failed_verification_is_explained_and_changes_nothing(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
):
    rule = driver.session.rules[FOLD]
    genuine = type(rule).rewrite

    def square(self, match, build):
        (value,) = genuine(self, match, build)
        return [build.op("Mul", [value, value])]

    driver.select_fold()
    monkeypatch.setattr(type(rule), "rewrite", square)
    driver.press(driver.app.candidates.accept)
    assert "was not accepted: output 'y' differs" in driver.app.strip.text
    assert driver.session.graph is driver.session.original


# History, export, saving


def test_measure_total_shows_in_history_and_on_top(driver: Driver):
    driver.select_fold()
    driver.press(driver.app.candidates.accept)
    driver.press(driver.app.history.measure_total)
    assert "▼ −4.2 % faster" in driver.app.history.total.value
    assert "▼ −4.2 % faster" in driver.app.strip._facts.value
    assert driver.session.total().delta.verdict is Verdict.FASTER


def test_export_writes_checks_and_tells_where(driver: Driver, tmp_path: Path):
    driver.select_fold()
    driver.press(driver.app.candidates.accept)
    driver.app.history.export_path.value = str(tmp_path / "out" / "model.onnx")
    driver.press(driver.app.history.export)
    assert driver.app.strip.text.startswith(f"Wrote {tmp_path / 'out' / 'model.onnx'}: equal on")
    assert len(onnx.load(tmp_path / "out" / "model.onnx").graph.node) == 5


@pytest.mark.parametrize("button", ["export", "save", "reopen"])
def test_a_path_is_needed(driver: Driver, button: str):
    driver.app.history.export_path.value = driver.app.history.save_path.value = "  "
    driver.press(getattr(driver.app.history, button))
    assert driver.app.strip.text == "Give the name of the file."


def test_a_place_that_cannot_be_written_is_explained(driver: Driver):
    driver.app.history.export_path.value = "/proc/nothing/model.onnx"
    driver.press(driver.app.history.export)
    assert "'/proc/nothing/model.onnx' cannot be written" in driver.app.strip.text


def test_save_and_reopen_in_the_app(driver: Driver, tmp_path: Path):
    app = driver.app
    driver.select_fold()
    driver.press(app.candidates.accept)
    accepted = driver.session.graph.fingerprint()
    app.history.save_path.value = str(tmp_path / "work.json")
    driver.press(app.history.save)
    assert str(tmp_path / "work.json") in app.strip.text
    driver.press(app.history.undo)
    driver.press(app.history.reopen)
    assert driver.session.graph.fingerprint() == accepted
    assert app.history.list.value.count("<li") == 1
    app.opening.path.value = str(tmp_path / "work.json")
    driver.press(app.opening.open)
    assert len(driver.session.steps) == 1


def test_another_model_keeps_the_session_that_is_left(driver: Driver):
    app = driver.app
    driver.select_fold()
    driver.press(app.candidates.accept)
    driver.choose(app.opening.sample, "squeezenet1_1")
    assert app.strip.text == "The session with 'blocks' was kept; choose it under Model."
    (kept,) = recent()
    driver.choose(app.opening.sample, str(kept.path))
    assert driver.session.original.name == "blocks"
    assert len(driver.session.steps) == 1


def test_what_was_decided_is_on_disk_at_once(driver: Driver):
    assert recent() == ()
    driver.select_fold()
    driver.press(driver.app.candidates.accept)
    (kept,) = recent()
    with Session.reopen(kept.path, PlantedMeasurer(planted_ns)) as again:
        assert len(again.steps) == 1
    driver.press(driver.app.history.undo)
    with Session.reopen(kept.path, PlantedMeasurer(planted_ns)) as again:
        assert again.snapshot().can_redo


# Optimise


def test_step_shows_the_choice_in_words_and_in_the_graph_before_it_is_taken(driver: Driver):
    app = driver.app
    driver.press(app.optimise.step)
    proposal = app.optimise.proposal
    assert "Next choice" in app.optimise.next.value
    assert driver.session.graph is driver.session.original
    nodes = {node for place in proposal.move.places for node in driver.session.find(place).nodes}
    assert set(site(driver)) == nodes
    driver.press(app.optimise.step)
    assert "✓ took" in app.optimise.log.value
    assert len(driver.session.steps) == len(proposal.move.places)


def test_skip_takes_nothing_and_shows_another_choice_or_the_end(driver: Driver):
    app = driver.app
    driver.press(app.optimise.step)
    skipped = app.optimise.proposal.move
    driver.press(app.optimise.skip)
    assert driver.session.graph is driver.session.original
    if app.optimise.proposal is None:
        assert "the model is unchanged" in app.optimise.next.value
    else:
        assert app.optimise.proposal.move != skipped


def test_run_draws_the_growing_curve(driver: Driver):
    driver.app.tabs.selected_index = OPTIMISE
    driver.press(driver.app.optimise.run)
    (trace,) = driver.app.optimise.chart.traces
    assert trace["x"] == list(range(len(driver.session.history.past) + 1))
    assert trace["y"][-1] < trace["y"][0] == 100


def test_accepting_by_hand_starts_the_search_anew(driver: Driver):
    app = driver.app
    driver.press(app.optimise.step)
    driver.select_fold()
    driver.press(app.candidates.accept)
    driver.press(app.optimise.run)
    assert driver.session.steps[0].rule == FOLD
    assert driver.session.history.past[0].steps[0].place == f"{FOLD}:n0+n1"


def test_stop_ends_a_search_and_says_so():
    driver = planted_app(measurer=EndlessMeasurer())
    app = driver.app
    driver.press(app.optimise.run, settle=False)
    driver.until(lambda: "round" in app.strip.status)
    driver.press(app.optimise.stop)
    assert "Stopped" in app.optimise.next.value
    assert not app.optimise.run.disabled
    app.close()


# The app as a widget


def test_twenty_renders_leave_no_widgets_behind(driver: Driver):
    app = driver.app
    app.tabs.selected_index = OPTIMISE
    driver.select_fold()
    driver.press(app.candidates.accept)
    before = len(widgets.widget._instances)
    for _ in range(10):
        driver.press(app.history.undo)
        driver.select_fold()
        driver.press(app.history.redo)
        driver.click_nodes("n2")
        driver.session.target = driver.session.target
        driver.settle()
    assert len(widgets.widget._instances) == before


def test_a_closed_app_hears_nothing_and_leaves_no_widgets():
    session = planted_session()
    driver = Driver(session)
    driver.app.tabs.selected_index = OPTIMISE
    models = {widget.model_id for widget in _all(driver.app)}
    assert len(models) > 50
    driver.app.close()
    assert models.isdisjoint(widgets.widget._instances)
    rows = driver.app.candidates.table.rows
    session.reject(folds(session)[0].id)
    driver.app.flush()
    assert driver.app.candidates.table.rows == rows
    assert driver.app.session is None
    assert session._listeners == []


def _all(widget: widgets.Widget) -> list[widgets.Widget]:
    return [widget, *(w for child in getattr(widget, "children", ()) for w in _all(child))]


def test_two_apps_in_one_kernel():
    one, other = planted_app(), planted_app()
    one.select_fold()
    one.press(one.app.candidates.accept)
    other.select_fold(1)
    assert (len(one.session.steps), len(other.session.steps)) == (1, 0)
    assert site(other) == ["n3", "n4"]
    one.app.close()
    other.press(other.app.candidates.measure)
    assert other.session.measured(f"{FOLD}:n3+n4") is not None
    other.app.close()


def test_in_a_running_loop_nothing_needs_to_flush():
    async def main() -> int:
        app = App(planted_session())
        for _ in range(1000):
            await asyncio.sleep(0.01)
            if app.candidates.table.rows and not app.controller.is_busy:
                break
        count = len(app.candidates.table.rows)
        app.close()
        return count

    assert run_in_loop(main()) > 0


def test_settings_change_the_session(driver: Driver):
    opening = driver.app.opening
    driver.choose(opening.runtime, "ort:level=all,threads=1")
    driver.choose(opening.threads, 2)
    assert str(driver.session.target) == "ort:level=all,threads=2"
    driver.choose(opening.timing, "screening")
    assert driver.session.protocol == Protocol.screening()
    few = len(driver.app.candidates.table.rows)
    driver.choose(opening.opt_in, True)
    assert driver.session.opt_in
    assert len(driver.app.candidates.table.rows) >= few


def test_the_tabs_are_where_the_constants_say(driver: Driver):
    titles = driver.app.tabs.titles
    named = {CANDIDATES: "Candidates", NEAR_MISSES: "Why not here?", NODE: "Node", OPTIMISE: "Optimise"}
    assert all(titles[index] == title for index, title in {**named, HISTORY: "History"}.items())
    assert driver.app.tabs.children[HISTORY] is driver.app.history.box


def test_time_per_node_colours_the_graph_and_lists_what_costs_most(tmp_path: Path):
    driver = Driver(Session(saved_model(tmp_path), target="ort:level=disable,threads=1"))
    app = driver.app
    driver.press(app.node.profile)
    driver.check()
    assert app.graph.view.colour_by == "time"
    assert "per run on ort:level=disable,threads=1" in app.node.details.value
    driver.click_nodes("n0")
    assert "% of the model" in app.node.details.value
    app.graph.view.colour("op")
    driver.choose(app.opening.threads, 2)
    assert [one.key for one in app.graph.view.offered] == ["bytes", "flops"]
    driver.choose(app.opening.threads, 1)
    assert [one.key for one in app.graph.view.offered] == ["bytes", "flops", "time"]
    assert app.graph.view.colour_by == "op"
    app.close()


def test_a_target_without_a_profiler_is_explained(driver: Driver, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_arguments: object, **_settings: object) -> None:
        raise RuntimeFailure("This target has no profiler.")

    monkeypatch.setattr(driver.session, "profile", refuse)
    driver.press(driver.app.node.profile)
    assert driver.app.strip.text == "This target has no profiler."
    assert driver.app.graph.view.colour_by == "op"
