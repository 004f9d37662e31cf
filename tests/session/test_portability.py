from __future__ import annotations

import json
from threading import Event

import numpy as np
import onnx
import pytest

from explorer.errors import Cancelled, InputError
from explorer.runtime import Protocol, Target
from explorer.runtime.dummy import PlantedMeasurer
from explorer.session import Session
from explorer.session.portability import Plan, describe, portability, read_matrix, write_matrix
from tests.models import model

FAST, SLOW = Target.parse("ort:level=all"), Target.parse("ort:level=disable")
MS = 1_000_000.0
W = np.random.default_rng(3).standard_normal((4, 3, 3, 3)).astype("f4")
V = np.linspace(0.5, 2, 4, dtype="f4")
NET = """(float[1,3,8,8] x) => (float[1,4,8,8] y) {
    c = Conv<pads=[1,1,1,1]>(x, w)
    y = BatchNormalization(c, v, v, v, v)
}"""


def planted(graph, target):
    """A BatchNormalization costs time on one target and, oddly, saves time on the other."""
    has_norm = any(node.op_type == "BatchNormalization" for node in graph.nodes)
    if target == FAST:
        return 10 * MS if has_norm else 8 * MS
    return 8 * MS if has_norm else 10 * MS


@pytest.fixture
def path(tmp_path):
    onnx.save(model(NET, w=W, v=V), tmp_path / "net.onnx")
    return str(tmp_path / "net.onnx")


def test_what_helps_one_target_may_cost_the_other(path):
    texts = []
    plan = Plan((path,), (FAST, SLOW), budget=6, sums=(FAST,), protocol=Protocol.screening())
    with PlantedMeasurer(planted, noise=0.001) as measurer:
        matrix = portability(plan, measurer, lambda progress: texts.append(progress.text))
    own, lost = (matrix.cell("net", str(FAST), str(column)).delta for column in (FAST, SLOW))
    assert own.ratio == pytest.approx(0.8, rel=0.02)
    assert lost.ratio == pytest.approx(1.25, rel=0.02)
    assert (str(FAST), str(SLOW)) in [(cell.row, cell.column) for cell in matrix.slower()]
    assert matrix.optimised[0].steps[0].measured.ratio == pytest.approx(0.8, rel=0.02)
    assert matrix.rows == (str(FAST), str(SLOW), f"operator-sum@{FAST}")
    assert len(matrix.cells) == 6
    assert any(text.startswith("net optimised by ort:level=all") for text in texts)


def test_steps_found_by_prediction_are_called_predicted(path):
    plan = Plan((path,), (FAST,), budget=6, sums=(FAST,), protocol=Protocol.screening())
    with PlantedMeasurer(
        lambda graph, _: MS * (1 + 5 * sum(n.op_type == "BatchNormalization" for n in graph.nodes))
    ) as m:
        matrix = portability(plan, m)
    steps = matrix.optimised[1].steps
    assert steps
    assert all(step.measured is None and step.predicted is not None for step in steps)


def test_searches_by_a_sum_have_a_budget_of_their_own(path):
    plan = Plan((path,), (FAST,), budget=1, sums=(FAST,), protocol=Protocol.screening(), sum_budget=5)
    with PlantedMeasurer(lambda graph, _: MS * (1 + len(graph.nodes))) as measurer:
        matrix = portability(plan, measurer)
    own, by_sum = matrix.optimised
    assert own.spent <= 1 < by_sum.spent <= 5
    assert matrix.settings["budget"] == "1"
    assert matrix.settings["budget by operator sums"] == "5"


def test_a_plan_names_each_thing_once():
    with pytest.raises(InputError, match="at least one model"):
        Plan((), (FAST,))
    with pytest.raises(InputError, match="one column"):
        Plan(("a",), ())
    with pytest.raises(InputError, match="once"):
        Plan(("a",), (FAST, Target.parse("ort")))
    with pytest.raises(InputError, match="once"):
        Plan(("a",), (FAST,), on=(SLOW, SLOW))


def test_events_in_words(path):
    plan = Plan((path,), (FAST,), budget=2, protocol=Protocol.screening())
    with PlantedMeasurer(planted) as measurer:
        matrix = portability(plan, measurer)
    assert describe(matrix.cells[0]).startswith(f"net, {FAST} on {FAST}: ")
    assert "comparisons" in describe(matrix.optimised[0])


def test_columns_may_be_others_than_the_rows(path):
    plan = Plan((path,), (FAST,), budget=6, on=(SLOW,), protocol=Protocol.screening())
    with PlantedMeasurer(planted) as measurer:
        matrix = portability(plan, measurer)
    assert (matrix.rows, matrix.columns) == ((str(FAST),), (str(SLOW),))
    assert [cell.delta.ratio for cell in matrix.cells] == [pytest.approx(1.25, rel=0.02)]
    only_sums = Plan((path,), (), sums=(FAST,), on=(SLOW,))
    assert only_sums.rows == (f"operator-sum@{FAST}",)


def test_the_most_it_can_take_counts_searches_and_cells():
    plan = Plan(("a", "b"), (FAST, SLOW), budget=5, sums=(FAST,), protocol=Protocol.validated(budget_s=60))
    search_s = Protocol.screening().budget_ns / 1e9
    assert plan.most_seconds == pytest.approx(2 * (2 * 5 * search_s + 3 * 2 * 60))


@pytest.fixture
def session():
    with Session(
        model(NET, w=W, v=V).SerializeToString(), name="net", measurer=PlantedMeasurer(planted), target=FAST
    ) as one:
        yield one


PLAN = Plan(("net",), (FAST, SLOW), budget=6, protocol=Protocol.screening())


def test_a_session_fills_its_matrix_from_the_original_and_stays_as_it_is(session):
    fold = next(c for c in session.candidates() if c.rule == "fold-batchnorm-into-conv")
    session.accept(fold.id)
    before = session.graph
    progress = []
    matrix = session.portability(PLAN, progress.append)
    assert matrix.cell("net", str(FAST), str(SLOW)).delta.ratio == pytest.approx(1.25, rel=0.02)
    assert matrix.settings["machine"] == "planted, planted"
    assert session.snapshot().matrix == matrix
    assert session.graph is before
    assert len(session.steps) == 1
    assert max(one.done / one.total for one in progress) == 1


def test_what_was_measured_before_a_stop_stays(session):
    token = Event()

    def stop_in_the_second_cell(_progress):
        matrix = session.known.matrix
        if matrix is not None and len(matrix.cells) == 1:
            token.set()

    with pytest.raises(Cancelled):
        session.portability(PLAN, stop_in_the_second_cell, token)
    matrix = session.snapshot().matrix
    assert len(matrix.optimised) == 2
    assert len(matrix.cells) == 2


def test_a_matrix_is_written_as_json_or_as_a_page_and_read_again(session, tmp_path):
    with pytest.raises(InputError, match="no portability matrix yet"):
        session.write_matrix(tmp_path / "m.json")
    matrix = session.portability(PLAN)
    written = session.write_matrix(tmp_path / "m.json")
    assert read_matrix(written) == matrix
    page = session.write_matrix(tmp_path / "m.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "▲ 1.250</div>" in page
    session.known.matrix = None
    assert session.read_matrix(written) == matrix
    assert session.snapshot().matrix == matrix


def test_what_is_no_matrix_is_refused_in_words(tmp_path):
    (tmp_path / "m.json").write_text(json.dumps({"format": 1, "rows": []}))
    with pytest.raises(InputError, match="portability matrix needs a list as 'columns'"):
        read_matrix(tmp_path / "m.json")
    with pytest.raises(InputError, match="cannot be written"):
        write_matrix(read_empty(), "/proc/nowhere/m.html")


def read_empty():
    from explorer.search.portability import Matrix

    return Matrix((), (), (), (), (), {})
