from __future__ import annotations

import numpy as np
import pytest

from explorer.graph import Graph
from tests.rewrite.harness import apply_checked, apply_only, candidates, graph_of, ops, reasons

RULE = "pad-depthwise-channels"
RNG = np.random.default_rng(5)


def weights(channels: int) -> dict[str, np.ndarray]:
    shapes = {"a": (channels, 6, 1, 1), "d": (channels, 1, 3, 3), "c": (5, channels, 1, 1)}
    found = {name: RNG.normal(0, 0.5, shape) for name, shape in shapes.items()}
    found |= {f"{name}b": RNG.normal(size=shape[0]) for name, shape in shapes.items()}
    return {name: array.astype("f4") for name, array in found.items()}


def block(body: str, channels: int = 10) -> Graph:
    used = {
        name: array for name, array in weights(channels).items() if f" {name}," in body or f" {name})" in body
    }
    return graph_of(f"(float[N,6,7,7] x) => (float[N,5,P,Q] y) {{ {body} }}", **used)


PLAIN = """h = Conv(x, a, ab) r = Relu(h) e = Conv<group=10, pads=[1,1,1,1], strides=[2,2]>(r, d, db)
           s = HardSwish(e) y = Conv(s, c, cb)"""


def test_inner_channels_become_whole_blocks():
    graph = block(PLAIN)
    found = candidates(graph, RULE)
    assert [c.summary for c in found] == ["'e': 10 channels become 16"]
    result = apply_checked(graph, found[0])
    first, depthwise, last = (n for n in result.nodes if n.op_type == "Conv")
    assert [list(n.inputs[1].shape) for n in (first, depthwise, last)] == [
        [16, 6, 1, 1],
        [16, 1, 3, 3],
        [5, 16, 1, 1],
    ]
    assert depthwise.attributes.get_int("group") == 16
    assert ops(result) == ops(graph)


def test_both_block_sizes_are_offered_where_they_differ():
    body = PLAIN.replace("group=10", "group=18")
    assert [c.variant for c in candidates(block(body, 18), RULE)] == ["24", "32"]


def test_without_functions_and_biases():
    graph = block("h = Conv(x, a) e = Conv<group=10>(h, d) y = Conv(e, c)")
    apply_only(graph, RULE)


def test_a_bound_of_a_clip_stays():
    body = PLAIN.replace("Relu(h)", "Clip(h, lo, hi)")
    used = {n: a for n, a in weights(10).items() if n != "q"}
    graph = graph_of(
        f"(float[1,6,7,7] x) => (float[1,5,P,Q] y) {{ {body} }}",
        lo=np.float32(0.25),
        hi=np.float32(6),
        **used,
    )
    apply_only(graph, RULE)


@pytest.mark.parametrize(
    "body",
    [
        PLAIN.replace("group=10", "group=16"),
        "h = Conv(x, a, ab) r = Log(h) e = Conv<group=10>(r, d, db) y = Conv(e, c, cb)",
        "h = Conv(x, a, ab) e = Conv<group=10>(h, d, db) y = Conv<group=5>(e, q)",
        "h = Conv(x, a, ab) e = Conv<group=10>(h, d, db) k = Relu(h) j = Conv(k, c, cb) y = Conv(e, c, cb)",
    ],
    ids=["whole blocks", "infinite at zero", "grouped", "second reader"],
)
def test_other_structures_are_not_mentioned(body: str):
    channels = 16 if "group=16" in body else 10
    used = weights(channels) | {"q": RNG.normal(size=(5, 2, 1, 1)).astype("f4")}
    graph = graph_of(f"(float[1,6,7,7] x) => (float[1,5,P,Q] y) {{ {body} }}", **used)
    assert candidates(graph, RULE) == []
    assert reasons(graph, RULE) == []


@pytest.mark.parametrize("place", ["h", "e"])
def test_a_normalisation_between_is_folded_first(place: str):
    norm = f"n = BatchNormalization({place}, v, v, v, v)"
    body = "h = Conv(x, a, ab) e = Conv<group=10>(h, d, db) y = Conv(e, c, cb)"
    following = {"h": "Conv<group=10>(h", "e": "Conv(e"}[place]
    body = body.replace(following, following.replace(f"({place}", "(n"))
    marker = "e = Conv" if place == "h" else "y = Conv"
    body = body.replace(marker, f"{norm} {marker}")
    graph = graph_of(
        f"(float[1,6,7,7] x) => (float[1,5,P,Q] y) {{ {body} }}",
        v=np.linspace(0.5, 2, 10, dtype="f4"),
        **weights(10),
    )
    assert candidates(graph, RULE) == []
    assert any("fold it first" in reason for reason in reasons(graph, RULE))


def test_weights_that_are_inputs_are_refused():
    arrays = weights(10)
    del arrays["d"]
    graph = graph_of(
        "(float[1,6,7,7] x, float[10,1,3,3] d) => (float[1,5,P,Q] y) "
        "{ h = Conv(x, a, ab) e = Conv<group=10>(h, d, db) y = Conv(e, c, cb) }",
        **arrays,
    )
    assert any("is a graph input, not a constant" in reason for reason in reasons(graph, RULE))
