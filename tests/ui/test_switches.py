"""Switches of the runtime in the app: listed, measured, accepted, undone, without a browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.errors import RuntimeFailure
from explorer.runtime import Target
from explorer.runtime.dummy import PlantedMeasurer
from explorer.session import Session
from tests.session.test_switches import FREEZE, run_ns, session_on
from tests.ui.planted_app import Driver

DISABLE = "ort:level=disable,threads=1"
EXTENDED = "switch:level=extended"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("EXPLORER_CACHE_DIR", str(tmp_path / "cache"))


def opened(target: str = DISABLE, *, listed: bool = False, shown: bool = True) -> Driver:
    driver = Driver(session_on(target, listed=listed))
    driver.choose(driver.app.candidates.switches, shown)
    return driver


def places(driver: Driver) -> list[str]:
    return [row["place"] for row in driver.app.candidates.table.rows if row["place"]]


def choose(driver: Driver, place: str) -> None:
    driver.select(driver.session.find(place).id)


def test_switches_are_listed_above_the_candidates_when_asked_for():
    driver = opened("ort:level=all,threads=1", shown=False)
    assert places(driver) == []
    rules = [row["rule"] for row in driver.app.candidates.table.rows]
    driver.choose(driver.app.candidates.switches, True)
    assert "switch:disabled+=NchwcTransformer" in places(driver)
    rows = driver.app.candidates.table.rows
    assert [row["rule"] for row in rows] == ["switch"] * len(places(driver)) + rules
    assert [row["kind"] for row in rows[: len(places(driver))]] == ["R"] * len(places(driver))
    driver.check()
    driver.app.close()


def test_a_switch_is_measured_accepted_and_undone_with_the_target_on_screen():
    driver = opened()
    app = driver.app
    choose(driver, EXTENDED)
    assert (app.candidates.predict.disabled, app.candidates.compare.disabled) == (True, True)
    assert "can only be measured" in app.candidates.chosen.value
    driver.press(app.candidates.measure)
    assert "−20.0 %" in app.candidates.chosen.value
    driver.press(app.candidates.accept)
    assert app.opening.target == "ort:level=extended,threads=1"
    assert EXTENDED not in places(driver)
    assert "switch:level=disable" in places(driver)
    driver.press(app.history.undo)
    assert app.opening.target == DISABLE
    assert driver.session.target == Target.parse(DISABLE)
    assert EXTENDED in places(driver)
    driver.check()
    app.close()


def test_freezing_removes_its_own_row_and_says_what_callers_lose():
    driver = opened(listed=True)
    choose(driver, FREEZE)
    assert "callers can no longer override" in driver.app.candidates.chosen.value
    driver.press(driver.app.candidates.accept)
    assert FREEZE not in places(driver)
    assert driver.session.graph.overridable == ()
    driver.check()
    driver.app.close()


def test_measure_all_includes_the_switches_only_while_they_are_shown():
    driver = opened(shown=False)
    driver.press(driver.app.candidates.measure_all)
    assert all(row.measured is None for row in driver.session.snapshot().switches)
    driver.choose(driver.app.candidates.switches, True)
    driver.press(driver.app.candidates.measure_all)
    assert all(row.measured is not None for row in driver.session.snapshot().switches)
    driver.check()
    driver.app.close()


def test_an_answer_that_cannot_be_had_is_explained_once():
    class Refusing(PlantedMeasurer):
        asked = 0

        def acting_optimizers(self, *_arguments: object) -> tuple[str, ...]:
            self.asked += 1
            raise RuntimeFailure("This target cannot load the model.")

    measurer = Refusing(run_ns)
    driver = Driver(Session(session_on().original, target=DISABLE, measurer=measurer))
    driver.choose(driver.app.candidates.switches, True)
    assert driver.app.strip.text == "This target cannot load the model."
    assert places(driver) == ["switch:level=basic", EXTENDED, "switch:level=all"]
    driver.settle()
    assert measurer.asked == 1
    driver.app.close()


def test_an_export_says_what_it_is_meant_for(tmp_path: Path):
    driver = opened()
    choose(driver, EXTENDED)
    driver.press(driver.app.candidates.accept)
    driver.app.controller.export(str(tmp_path / "out.onnx"))
    driver.settle()
    assert "graph_optimization_level=ORT_ENABLE_EXTENDED" in driver.app.strip.text
    driver.check()
    driver.app.close()
