from __future__ import annotations

import numpy as np
import onnx
import pytest

from explorer.errors import InputError
from explorer.runtime import Protocol, Target
from explorer.runtime.dummy import PlantedMeasurer
from explorer.session.portability import Plan, describe, portability
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


def test_a_plan_names_each_thing_once():
    with pytest.raises(InputError, match="at least one model"):
        Plan((), (FAST,))
    with pytest.raises(InputError, match="once"):
        Plan(("a",), (FAST, Target.parse("ort")))


def test_events_in_words(path):
    plan = Plan((path,), (FAST,), budget=2, protocol=Protocol.screening())
    with PlantedMeasurer(planted) as measurer:
        matrix = portability(plan, measurer)
    assert describe(matrix.cells[0]).startswith(f"net, {FAST} on {FAST}: ")
    assert "comparisons" in describe(matrix.optimised[0])
