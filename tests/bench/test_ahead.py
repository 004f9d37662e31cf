"""The benchmark of looking ahead: what it records, and the page made of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.bench import ahead
from explorer.bench.ahead_page import page
from explorer.bench.greedy import row_of
from explorer.runtime.dummy import PlantedMeasurer
from tests.session.planted import TARGET, alone_and_whole_ns, planted_session, saved_model


def row(scout: str | None) -> dict[str, object]:
    with planted_session(measurer=PlantedMeasurer(alone_and_whole_ns)) as session:
        return row_of(session, budget=10, scout=scout)


def test_a_row_tells_what_was_found_ahead_and_what_was_measured_for_it():
    found = row("operator-sum")
    (way,) = found["ahead"]
    assert way["delta"]["source"] == "PREDICTED"
    assert way["delta"]["verdict"] == "FASTER"
    assert [entry["source"] for entry in found["compared"] if entry["move"] == way["move"]] == ["MEASURED"]
    assert row(None)["ahead"] == []


def test_the_page_sets_both_searches_side_by_side():
    rows = {
        "blocks": {"plain": row(None), "scouted": row("operator-sum")},
        "gone": {"plain": {}, "scouted": {}},
    }
    text = page({"target": TARGET, "budget": 10, "scout": "operator-sum", "models": rows})
    assert "| blocks | -66.7 % (-66.7 to -66.7), faster |" in text
    assert "**Geometric mean over 1 models: plain -66.7 %, looking ahead -66.7 %.**" in text
    assert "- **blocks**, scouted: fold-batchnorm-into-conv at 2 places" in text
    assert "in favour of looking ahead on: none; of the plain search on: none." in text
    assert "in favour of looking ahead on: none; of the plain search on: none." in text
    assert "gone" not in text


def test_both_searches_run_on_a_runtime(tmp_path: Path):
    name = str(saved_model(tmp_path))
    found = ahead.run((name,), budget=1, target=TARGET)["models"][name]
    assert [len(found[way]["ahead"]) for way in ("plain", "scouted")] == [0, 1]
    assert all(found[way]["delta"]["source"] == "MEASURED" for way in found)


def test_a_model_that_is_not_there_costs_its_row_only():
    found = ahead.run(("nowhere.onnx",), budget=1, target=TARGET)["models"]["nowhere.onnx"]
    assert all("nowhere.onnx" in found[way]["failed"] for way in ("plain", "scouted"))


@pytest.mark.parametrize("name", ahead.MODELS)
def test_its_models_are_samples(name: str):
    from explorer.graph import sample_names

    assert name in sample_names()
