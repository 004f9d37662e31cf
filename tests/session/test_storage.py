"""A restarted kernel loses nothing: saved, reopened, moved, changed, damaged."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from explorer.errors import InputError
from explorer.runtime import Protocol
from explorer.runtime.dummy import PlantedMeasurer
from explorer.session import Session
from explorer.session.portability import Plan
from tests.session.planted import folds, planted_ns, planted_session, saved_model


def reopened(path: Path) -> Session:
    return Session.reopen(path, PlantedMeasurer(planted_ns))


def worked_on(model: Path | bytes | str | None = None) -> Session:
    """One fold measured and accepted, one accepted and undone, one rejected, the total measured."""
    session = planted_session(model, opt_in=True, protocol=Protocol.validated(budget_s=7))
    first = folds(session)[0].id
    session.measure(first)
    session.accept(first)
    session.measure_total()
    session.accept(folds(session)[0].id)
    session.undo()
    session.measure(folds(session)[0].id, "screening")
    session.reject(session.candidates()[-1].id)
    return session


def same_state(a: Session, b: Session) -> None:
    one, other = a.snapshot(), b.snapshot()
    assert one.rows == other.rows
    assert [(h.label, h.places, h.delta, h.is_undone) for h in one.history] == [
        (h.label, h.places, h.delta, h.is_undone) for h in other.history
    ]
    assert (one.total, one.curve, one.position, one.target, one.protocol, one.is_opt_in) == (
        other.total, other.curve, other.position, other.target, other.protocol, other.is_opt_in
    )  # fmt: skip
    assert one.fingerprint == other.fingerprint
    assert a.rejected == b.rejected


def test_everything_comes_back(tmp_path: Path):
    with worked_on(saved_model(tmp_path)) as before:
        path = before.save(tmp_path / "work.session.json")
        with reopened(path) as after:
            same_state(before, after)
            after.redo()
            assert len(after.steps) == 2


def test_what_the_numerical_checks_said_comes_back_however_often_it_is_saved(tmp_path: Path):
    with worked_on(saved_model(tmp_path)) as before:
        said = [row.check for row in before.snapshot().history]
        assert all(text.startswith("equal on ") for text in said)
        path = before.save(tmp_path / "work.session.json")
    for _ in range(2):
        with reopened(path) as after:
            assert [row.check for row in after.snapshot().history] == [
                f"{text}, when it was accepted" for text in said
            ]
            path = after.save(tmp_path / "again.session.json")


def test_predictions_and_the_runtime_s_answers_come_back(tmp_path: Path):
    with worked_on(saved_model(tmp_path)) as before:
        predicted = before.predict()
        answers = before.absorb()
        path = before.save(tmp_path / "work.session.json")
        with reopened(path) as after:
            same_state(before, after)
            assert {place: after.predicted(place) for place in predicted} == predicted
            assert {place: after.absorbed(place) for place in answers} == answers
            assert predicted
            assert answers


def test_the_portability_matrix_comes_back(tmp_path: Path):
    with worked_on(saved_model(tmp_path)) as before:
        plan = Plan(("net",), (before.target,), budget=2, protocol=Protocol.screening())
        matrix = before.portability(plan)
        path = before.save(tmp_path / "work.session.json")
        with reopened(path) as after:
            assert after.snapshot().matrix == matrix
            assert len(matrix.cells) == 1


def test_a_session_saved_by_an_earlier_version_is_read(tmp_path: Path):
    with worked_on(saved_model(tmp_path)) as before:
        path = before.save(tmp_path / "work.session.json")
        data = json.loads(path.read_text())
        del data["predicted"], data["absorbed"], data["matrix"]
        for entry in data["entries"]:
            del entry["check"]
        path.write_text(json.dumps(data))
        with reopened(path) as after:
            same_state(before, after)
            assert {row.check for row in after.snapshot().history} == {"not checked"}


def test_a_sample_is_remembered_by_name(tmp_path: Path):
    with planted_session("squeezenet1_1") as before:
        path = before.save(tmp_path / "s.json")
        assert json.loads(path.read_text())["model"] == "squeezenet1_1"
        with reopened(path) as after:
            assert after.original.fingerprint() == before.original.fingerprint()


def test_a_model_that_came_as_bytes_is_written_beside_the_session(tmp_path: Path):
    with worked_on() as before:
        path = before.save(tmp_path / "work.session.json")
        assert (tmp_path / "work.session.onnx").exists()
        with reopened(path) as after:
            same_state(before, after)


def test_such_a_model_is_written_once(tmp_path: Path):
    with worked_on() as session:
        session.save(tmp_path / "work.json")
        beside = tmp_path / "work.onnx"
        os.utime(beside, ns=(1, 1))
        session.save(tmp_path / "work.json")
        assert beside.stat().st_mtime_ns == 1
        beside.unlink()
        session.save(tmp_path / "work.json")
        assert beside.exists()


def test_a_model_that_moved_with_its_session_is_found(tmp_path: Path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    with worked_on(saved_model(old)) as before:
        before.save(old / "work.json")
        old.rename(new)
        with reopened(new / "work.json") as after:
            same_state(before, after)


def test_a_model_that_is_gone_is_named(tmp_path: Path):
    model = saved_model(tmp_path)
    with worked_on(model) as session:
        path = session.save(tmp_path / "work.json")
    model.unlink()
    with pytest.raises(InputError, match=r"blocks\.onnx' is neither a file nor"):
        reopened(path)


def test_a_model_that_changed_is_refused(tmp_path: Path):
    model = saved_model(tmp_path)
    with worked_on(model) as session:
        path = session.save(tmp_path / "work.json")
    proto = onnx.load(model)
    proto.graph.initializer[0].raw_data = np.ones((4, 4, 3, 3), "f4").tobytes()
    onnx.save(proto, model)
    with pytest.raises(InputError, match=r"was saved for another version of .*blocks\.onnx"):
        reopened(path)


def test_moves_of_a_search_come_back(tmp_path: Path):
    with planted_session(saved_model(tmp_path)) as before:
        list(before.optimise(budget=30))
        assert len(before.steps) > 2
        with reopened(before.save(tmp_path / "work.json")) as after:
            same_state(before, after)


def damaged(data: dict[str, Any], change: str) -> Any:
    match change:
        case "list":
            return [data]
        case "format":
            return {**data, "format": 99}
        case "no model":
            return {key: value for key, value in data.items() if key != "model"}
        case "step":
            data["entries"][0]["steps"][0]["place"] = "fold-batchnorm-into-conv:n1+n99"
        case "class":
            data["entries"][0]["numeric_class"] = "Z"
        case "delta":
            data["measured"][0]["measurement"]["delta"]["ratio"] = "fast"
        case "rule":
            data["entries"][0]["steps"][0]["rule"] = "no-such-rule"
        case "target":
            data["target"] = "abacus"
    return data


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("list", "A saved session must be a JSON object"),
        ("format", "has another format"),
        ("no model", "needs a text as 'model'"),
        ("step", "which this version applies differently"),
        ("class", "numeric_class"),
        ("delta", "needs a number as 'ratio'"),
        ("rule", "No rule is called 'no-such-rule'"),
        ("target", "'abacus' is not a known runtime"),
    ],
)
def test_damaged_files_are_refused_in_words(tmp_path: Path, change: str, sentence: str):
    with worked_on(saved_model(tmp_path)) as session:
        path = session.save(tmp_path / "work.json")
    path.write_text(json.dumps(damaged(json.loads(path.read_text()), change)))
    with pytest.raises(InputError, match=sentence):
        reopened(path)


@pytest.mark.parametrize("text", ["", "{", '{"format": 1', "\x00\x01", "[" * 100_000])
def test_what_is_not_json_is_refused_in_words(tmp_path: Path, text: str):
    path = tmp_path / "work.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"work\.json' is not a saved session"):
        reopened(path)


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(InputError, match=r"nothing\.json' cannot be read"):
        reopened(tmp_path / "nothing.json")
