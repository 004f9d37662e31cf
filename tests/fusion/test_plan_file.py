"""Plans in files: the way there and back, and files that are damaged or belong to something else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from explorer.errors import InputError
from explorer.fusion import Lbdf, Plan, PlanFile, fuse, optimum, plan_json, weigh_plan
from explorer.graph import load
from tests.fusion.networks import graph_of, network_of, sample

DIAMOND = """(float[1,4,8,8] x) => (float[1,4,8,8] y) {
    a = Relu(x)
    b = Sigmoid(a)
    c = Tanh(a)
    y = Add(b, c)
}"""


def document() -> dict[str, Any]:
    scheme = Lbdf(network_of(DIAMOND), 4096)
    found: dict[str, Any] = json.loads(json.dumps(plan_json(Plan.of(scheme, [["n0", "n1", "n2", "n3"]]))))
    return found


def test_a_plan_survives_the_way_there_and_back(tmp_path: Path) -> None:
    scheme = Lbdf(sample("resnet18"), 128 * 1024)
    plan = optimum(scheme).plan
    (tmp_path / "plan.json").write_text(json.dumps(plan_json(plan)))
    given = PlanFile.read(tmp_path / "plan.json")
    given.check(scheme.network)
    again = given.plan(scheme)
    assert set(again.masks) == set(plan.masks)
    assert again.dram_bytes == plan.dram_bytes == plan_json(plan)["dram_bytes"]
    assert (given.scheme, given.buffer_kb, given.element_bytes) == ("lbdf", 128, 2)
    assert len(plan_json(plan)["removed"]) == 14  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 2}, "has format 2; this version reads plans of format 1"),
        ({"version": "1"}, "needs a whole number of at least 0 as 'version'"),
        ({"groups": [["n0"], "n1"]}, "'groups' must be a list of lists of node ids"),
        ({"groups": 3}, "needs a list as 'groups'"),
        ({"capacity_bytes": 0}, "at least 1 as 'capacity_bytes'"),
        ({"capacity_bytes": True}, "as 'capacity_bytes', not True"),
        ({"element_bytes": None}, "as 'element_bytes', not None"),
        ({"dims": [1]}, "needs an object as 'dims'"),
        ({"dims": {"N": -1}}, "at least 0 as 'N'"),
    ],
)
def test_what_is_no_plan_is_refused(change: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        PlanFile.of(document() | change)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": "resnet50", "network": "0"}, "made for 'resnet50', not for 'tested'; open that model"),
        ({"network": "0"}, "made for another state of 'tested'"),
        ({"scheme": "magic"}, "no fusion scheme 'magic'"),
        ({"groups": [["n0", "n1", "n3"]]}, "not convex"),
        ({"groups": [["n77"]]}, "Node 'n77' of 'tested' does not exist"),
        ({"groups": [["n0"], ["n0"]]}, "Node 'n0' is in two groups"),
    ],
)
def test_what_does_not_belong_is_refused(change: dict[str, object], words: str) -> None:
    given = PlanFile.of(document() | change)
    with pytest.raises(InputError, match=words):
        weigh_plan(graph_of(DIAMOND), given)


def test_a_given_plan_is_weighed_under_its_own_settings_or_others() -> None:
    graph = load("resnet18")
    given = PlanFile.of(plan_json(fuse(graph, buffer_kb=128).plan))
    own = weigh_plan(graph, given)
    assert (own.plan.dram_bytes, own.gap_ratio, own.search) == (5973.75 * 1024, 0.0, "given")
    larger = weigh_plan(graph, given, buffer_kb=256)
    assert larger.plan.scheme.capacity_bytes == 256 * 1024
    assert larger.gap_ratio is not None
    assert larger.gap_ratio > 0
    double = weigh_plan(graph, given, element_bytes=4, buffer_kb=256)
    assert double.plan.dram_bytes == 2 * own.plan.dram_bytes
    with pytest.raises(InputError, match="split it"):
        weigh_plan(graph, given, buffer_kb=100)


def test_sizes_of_unknown_dimensions_come_with_the_plan() -> None:
    graph = graph_of("(float[N,4,8,8] x) => (float[N,4,8,8] y) { a = Relu(x) y = Tanh(a) }")
    found = fuse(graph, dims={"N": 3})
    given = PlanFile.of(plan_json(found.plan, {"N": 3}))
    assert weigh_plan(graph, given).plan.dram_bytes == found.plan.dram_bytes == 2 * 3 * 4 * 64 * 2
    with pytest.raises(InputError, match="other sizes of dimensions"):
        weigh_plan(graph, given, dims={"N": 1})


def test_an_element_of_a_size_that_does_not_exist_is_refused() -> None:
    given = PlanFile.of(document() | {"element_bytes": 3})
    with pytest.raises(InputError, match="1, 2 or 4"):
        weigh_plan(graph_of(DIAMOND), given)
