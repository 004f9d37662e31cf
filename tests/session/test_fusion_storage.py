"""Fusion in saved sessions: choices and plans come back, damaged ones are left out in words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from explorer.errors import InputError
from explorer.fusion import KB
from explorer.runtime import InlineExecutor, Measurer
from explorer.runtime.cache import NoCache
from explorer.session import Session
from explorer.session.keeping import is_worth_keeping
from tests.models import model

TEXT = """(float[1,4,16,16] x) => (float[1,4,16,16] y) {
    a = Conv <kernel_shape=[3,3], pads=[1,1,1,1]> (x, w)
    b = Relu(a)
    y = Add(x, b)
}"""


def measurer() -> Measurer:
    return Measurer(executor=InlineExecutor(), cache=NoCache())


@pytest.fixture
def session(tmp_path: Path):
    import numpy as np
    import onnx

    path = tmp_path / "small.onnx"
    onnx.save(model(TEXT, w=np.ones((4, 4, 3, 3), np.float32)), str(path))
    with Session(str(path), measurer=measurer()) as one:
        yield one


def reopened(path: Path) -> Session:
    return Session.reopen(path, measurer())


def worked_on(session: Session) -> None:
    bench = session.fusion
    bench.configure(buffer_bytes=1 * KB, element_bytes=4)
    bench.search("ls", budget=30, seed=4)
    bench.configure(buffer_bytes=2 * KB)
    bench.search("rs", budget=20, seed=1)
    bench.compare("LS 30 plans, seed 4 · LBDF, 1 KB, 4 B per element")
    bench.choose(["n0", "n1"])


def test_settings_plans_and_choices_come_back(session: Session, tmp_path: Path) -> None:
    worked_on(session)
    before = session.fusion.view()
    path = session.save(tmp_path / "work.session.json")
    with reopened(path) as after:
        view = after.fusion.view()
        assert view.settings == before.settings
        assert (view.settings.buffer_bytes, view.settings.element_bytes) == (2 * KB, 4)
        assert (
            view.current.found.label
            == before.current.found.label
            == "RS 20 plans, seed 1 · " + (view.settings.text)
        )
        assert view.current.found.plan.masks == before.current.found.plan.masks
        assert (view.current.found.plans, view.current.found.seed) == (20, 1)
        assert view.current.gap_ratio == before.current.gap_ratio is not None
        assert view.compared.found.label == before.compared.found.label
        assert view.compared.gap_ratio == before.compared.gap_ratio is not None
        assert view.choice == before.choice
        assert view.choice.operations == 2
        assert view.notice == ""


def test_a_rewritten_graph_keeps_its_own_plans(session: Session, tmp_path: Path) -> None:
    session.accept(session.candidates()[0].id)
    worked_on(session)
    with reopened(session.save(tmp_path / "work.session.json")) as after:
        assert after.graph.fingerprint() == session.graph.fingerprint()
        assert after.fusion.view().current.found.search == "rs"
        after.undo()
        assert [facts.found.search for facts in after.fusion.view().plans] == ["greedy", "exact"]


def test_a_session_is_worth_keeping_once_somebody_has_searched(session: Session) -> None:
    session.fusion.view()
    assert not is_worth_keeping(session)
    session.fusion.search("rs", budget=3)
    assert is_worth_keeping(session)


def test_a_plan_that_is_not_valid_is_left_out_and_named(session: Session, tmp_path: Path) -> None:
    worked_on(session)
    path = session.save(tmp_path / "work.session.json")
    data = json.loads(path.read_text())
    data["fusion"]["plans"][0]["plan"]["groups"] = [["n0", "n77"]]
    path.write_text(json.dumps(data))
    with reopened(path) as after:
        view = after.fusion.view()
        assert view.notice.startswith("1 saved plan could not be used again. Node 'n77'")
        assert view.compared is None
        assert view.current.found.search == "rs"


def test_a_claim_of_optimality_must_agree_with_its_plan(session: Session, tmp_path: Path) -> None:
    worked_on(session)
    path = session.save(tmp_path / "work.session.json")
    data = json.loads(path.read_text())
    for item in data["fusion"]["optima"]:
        item["bound_bytes"] = 1
    path.write_text(json.dumps(data))
    with reopened(path) as after:
        assert after.fusion.view().optimum.bound_bytes > 1  # found again, not believed


def test_damaged_settings_are_an_error_in_words(session: Session, tmp_path: Path) -> None:
    path = session.save(tmp_path / "work.session.json")
    data = json.loads(path.read_text())
    data["fusion"]["settings"]["buffer_bytes"] = "much"
    path.write_text(json.dumps(data))
    with pytest.raises(InputError, match="as 'buffer_bytes', not 'much'"):
        reopened(path)


def test_a_session_of_an_earlier_version_opens(session: Session, tmp_path: Path) -> None:
    path = session.save(tmp_path / "work.session.json")
    data = json.loads(path.read_text())
    del data["fusion"]
    path.write_text(json.dumps(data))
    with reopened(path) as after:
        assert after.fusion.view().current is not None
