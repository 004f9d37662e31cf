from __future__ import annotations

import os
from pathlib import Path

import pytest

from explorer.runtime import Protocol
from explorer.runtime.dummy import PlantedMeasurer
from explorer.session import Session, keep, keeping, recent
from explorer.session.portability import Plan
from tests.session.planted import folds, planted_ns, planted_session, saved_model


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EXPLORER_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "sessions"


def test_nothing_is_kept_where_nothing_was_decided(tmp_path: Path):
    with planted_session(saved_model(tmp_path)) as session:
        session.measure(folds(session)[0].id)
        assert keep(session) is None
    assert recent() == ()


def test_decisions_are_kept_and_come_back(tmp_path: Path, own_folder: Path):
    with planted_session(saved_model(tmp_path)) as session:
        session.accept(folds(session)[0].id)
        path = keep(session)
        assert path is not None
        assert path.parent == own_folder
        (kept,) = recent()
        assert (kept.path, kept.name) == (path, "blocks")
        with Session.reopen(path, PlantedMeasurer(planted_ns)) as again:
            assert again.graph.fingerprint() == session.graph.fingerprint()


def test_a_rejection_alone_is_worth_keeping(tmp_path: Path):
    with planted_session(saved_model(tmp_path)) as session:
        session.reject(folds(session)[0].id)
        assert keep(session) is not None


def test_a_portability_matrix_alone_is_worth_keeping(tmp_path: Path):
    with planted_session(saved_model(tmp_path)) as session:
        plan = Plan(("net",), (session.target,), budget=1, protocol=Protocol.screening())
        matrix = session.portability(plan)
        path = keep(session)
        assert path is not None
        with Session.reopen(path, PlantedMeasurer(planted_ns)) as again:
            assert again.snapshot().matrix == matrix


def test_the_same_model_has_one_file_and_another_one_its_own(tmp_path: Path):
    with planted_session(saved_model(tmp_path)) as one, planted_session("squeezenet1_1") as other:
        for session in (one, other):
            session.reject(session.candidates()[0].id)
            keep(session)
        one.reject(one.candidates()[1].id)
        keep(one)
    assert sorted(kept.name for kept in recent()) == ["blocks", "squeezenet1_1"]


def test_the_latest_comes_first(tmp_path: Path):
    for number, name in enumerate(["a.onnx", "b.onnx", "c.onnx"]):
        with planted_session(saved_model(tmp_path, name)) as session:
            session.reject(folds(session)[0].id)
            path = keep(session)
            os.utime(path, (number, number))
    assert [kept.name for kept in recent()] == ["c", "b", "a"]


def test_names_cannot_leave_the_folder(tmp_path: Path, own_folder: Path):
    with planted_session() as session:
        session.original.name = "../../etc/<passwd>"
        session.reject(folds(session)[0].id)
        path = keep(session)
        assert path.parent == own_folder
        assert path.exists()


def test_old_ones_are_forgotten_with_their_models(monkeypatch: pytest.MonkeyPatch, own_folder: Path):
    monkeypatch.setattr(keeping, "_MOST", 2)
    for number in range(4):
        with planted_session() as session:
            session.original.name = f"m{number}"
            session.reject(folds(session)[0].id)
            path = keep(session)
            os.utime(path, (number + 1, number + 1))
    with planted_session() as session:
        session.original.name = "last"
        session.reject(folds(session)[0].id)
        keep(session)
    assert [kept.name for kept in recent()] == ["last", "m3"]
    assert len(list(own_folder.glob("*.onnx"))) == 2


def test_a_kept_session_that_is_saved_elsewhere_takes_its_model_along(tmp_path: Path, own_folder: Path):
    with planted_session() as session:
        session.reject(folds(session)[0].id)
        kept = keep(session)
    with Session.reopen(kept, PlantedMeasurer(planted_ns)) as again:
        assert again.original.name == "blocks"
        again.reject(folds(again)[1].id)
        assert keep(again) == kept
        saved = again.save(tmp_path / "mine.json")
    for path in own_folder.iterdir():
        path.unlink()
    with Session.reopen(saved, PlantedMeasurer(planted_ns)) as last:
        assert len(last.rejected) == 2
