from __future__ import annotations

import numpy as np
import pytest

from explorer.errors import RuntimeFailure
from explorer.graph import load
from explorer.runtime import InlineExecutor, Measurer
from explorer.runtime.cache import NoCache
from tests.models import model

W = np.random.default_rng(3).standard_normal((4, 3, 3, 3)).astype("f4")
ONES = np.ones(4, "f4")
NET = """(float[1,3,8,8] x) => (float[1,4,8,8] y) {
    i = Identity(x)
    c = Conv<pads=[1,1,1,1]>(i, w)
    b = BatchNormalization(c, s, s, s, s)
    y = Relu(b)
}"""


@pytest.fixture
def measurer():
    with Measurer(executor=InlineExecutor(), cache=NoCache()) as one:
        yield one


def reasons(view):
    return {one.optimiser: (one.reason, one.is_certain) for one in view.unfused}


def test_fused_groups_are_named_by_our_nodes(measurer):
    view = measurer.runtime_view(load(model(NET, w=W, s=ONES)), "ort:level=extended")
    assert [node.nodes for node in view.fused] == [("n0", "n1", "n2", "n3")]
    assert view.groups() == dict.fromkeys(["n0", "n1", "n2", "n3"], 0)
    assert view.summary.ops() == {"com.microsoft::FusedConv": 1}
    assert view.unfused == ()


def test_without_optimisation_every_node_stands_for_itself(measurer):
    view = measurer.runtime_view(load(model(NET, w=W, s=ONES)), "ort:level=disable")
    assert [node.nodes for node in view.nodes] == [("n0",), ("n1",), ("n2",), ("n3",)]
    assert reasons(view)["ConvBNFusion"] == (
        "it is tried from level=basic on; the target has level=disable",
        True,
    )


def test_an_optimiser_that_is_switched_off_is_the_reason(measurer):
    view = measurer.runtime_view(load(model(NET, w=W, s=ONES)), "ort:level=basic,disabled=ConvBNFusion")
    assert reasons(view)["ConvBNFusion"] == ("ConvBNFusion is switched off by the target", True)


@pytest.mark.parametrize(
    ("text", "optimiser", "reason"),
    [
        (
            "(float[1,3,8,8] x) => (float[1,4,8,8] y, float[1,4,8,8] z) { c = Conv<pads=[1,1,1,1]>(x, w)\n y = Relu(c)\n z = Neg(c) }",
            "ConvActivationFusion",
            "the result between them is also read by Neg n2",
        ),
        (
            "(float[1,3,8,8] x) => (float[1,4,8,8] y, float[1,4,8,8] c) { c = Conv<pads=[1,1,1,1]>(x, w)\n y = Relu(c) }",
            "ConvActivationFusion",
            "'c' between them is an output of the model",
        ),
        (
            "(float[1,3,8,8] x, float[4] v) => (float[1,4,8,8] y) { c = Conv<pads=[1,1,1,1]>(x, w)\n y = BatchNormalization(c, v, s, s, s) }",
            "ConvBNFusion",
            "'v' would have to be a constant and is an input of the model",
        ),
    ],
)
def test_why_a_fusion_did_not_happen(measurer, text, optimiser, reason):
    weights = {"w": W, "s": ONES} if " s," in text else {"w": W}
    view = measurer.runtime_view(load(model(text, **weights)), "ort:level=extended")
    assert reasons(view)[optimiser] == (reason, True)


def test_what_nothing_executes_is_listed(measurer):
    text = "(float[4] x) => (float[4] y) { k = Neg(w)\n y = Add(x, k) }"
    view = measurer.runtime_view(load(model(text, w=ONES)), "ort:level=basic")
    assert [node.op_type for node in view.nodes] == ["Add"]
    assert {"n0", *view.nodes[0].nodes} == {"n0", "n1"}


def test_a_runtime_that_cannot_show_its_graph_says_so(measurer):
    with pytest.raises(RuntimeFailure, match="cannot write"):
        measurer.runtime_view(load(model(NET, w=W, s=ONES)), "openvino")
