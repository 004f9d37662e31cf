from __future__ import annotations

import numpy as np
import onnx
import pytest

from explorer.bench.regions import compare, summarise
from explorer.graph import load
from explorer.rewrite import apply, default_rules, find_candidates
from explorer.runtime import Protocol, Verdict
from explorer.runtime.dummy import PlantedMeasurer
from explorer.runtime.region_time import measure_region
from tests.models import model

MS = 1_000_000.0
W = np.random.default_rng(3).standard_normal((4, 3, 3, 3)).astype("f4")
V = np.linspace(0.5, 2, 4, dtype="f4")
NET = """(float[1,3,8,8] x) => (float[1,4,8,8] y) {
    a = Exp(x)
    c = Conv<pads=[1,1,1,1]>(a, w)
    b = BatchNormalization(c, v, v, v, v)
    s = Sigmoid(b)
    t = Tanh(s)
    y = Neg(t)
}"""


def cost(graph, _target):
    return MS * sum({"BatchNormalization": 5}.get(n.op_type, 1) for n in graph.nodes)


@pytest.fixture
def pair():
    net = load(model(NET, w=W, v=V))
    found = next(c for c in find_candidates(net, default_rules()).candidates if c.nodes == ("n1", "n2"))
    return net, apply(net, found, default_rules())


def test_a_region_shows_the_difference_larger_than_the_whole_does(pair):
    with PlantedMeasurer(cost) as measurer:
        region = measure_region(*pair, {}, measurer, "ort")
        whole = measurer.measure(*pair, {}, "ort", Protocol.screening())
    assert region.nodes == (5, 4)
    assert region.delta.verdict is whole.delta.verdict is Verdict.FASTER
    assert region.delta.ratio == pytest.approx(4 / 9, rel=0.01)
    assert whole.delta.ratio == pytest.approx(5 / 10, rel=0.01)


def test_context_is_a_choice(pair):
    with PlantedMeasurer(cost) as measurer:
        region = measure_region(*pair, {}, measurer, "ort", hops=0)
    assert region.nodes == (3, 2)  # the reader of the new result has changed too
    assert region.delta.ratio == pytest.approx(2 / 7, rel=0.01)


def test_signs_are_compared_where_both_claim_one(tmp_path):
    onnx.save(model(NET, w=W, v=V), tmp_path / "net.onnx")
    with PlantedMeasurer(cost) as measurer:
        found = compare([str(tmp_path / "net.onnx")], "ort", measurer, count=4)
    summary = summarise(found, "ort")
    assert summary["candidates"] == len(found) > 0
    assert summary["both_claim"] >= 1
    assert summary["sign_agrees"]["share"] == 1.0
    assert all(set(c) >= {"region", "whole", "agrees", "nodes"} for c in summary["comparisons"])
