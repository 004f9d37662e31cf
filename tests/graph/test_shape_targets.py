"""Shapes told by computed vectors, with the names of dynamic dims in them."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.graph import describe, load
from tests import models

INTS = {
    "first": np.array([0]),
    "second": np.array([1]),
    "heads": np.array([12]),
    "rest": np.array([-1]),
    "size": np.array([64]),
}
START = "s = Shape(x) n = Gather(s, first) t = Gather(s, second) "


def shape_of(text: str, name: str = "r", **more: np.ndarray) -> str:
    summary = describe(load(models.model(text, **INTS, **more)))
    return {t.name: t.shape_text for node in summary.nodes for t in node.outputs}[name]


@pytest.mark.parametrize(
    ("vector", "wanted"),
    [
        ("Concat<axis=0>(n, t, heads, size)", "NxTx12x64"),
        ("Concat<axis=0>(n, t, heads, rest)", "NxTx12x64"),
        ("Concat<axis=0>(n, rest, size)", "Nx?x64"),
        ("Concat<axis=0>(t, n, rest)", "TxNx768"),
        ("Concat<axis=0>(n, rest)", "Nx?"),
        ("Concat<axis=0>(rest, t, heads, size)", "NxTx12x64"),
        ("Concat<axis=0>(first, first, rest)", "NxTx768"),
        ("Concat<axis=0>(n, n, rest)", "NxNx?"),
        ("Concat<axis=0>(n, t, size)", "NxTx64"),
    ],
)
def test_reshape(vector: str, wanted: str) -> None:
    text = f"(float[N,T,768] x) => (float[k] y) {{ {START} v = {vector} r = Reshape(x, v) y = Neg(q) }}"
    found = shape_of(text, q=np.zeros(3, "f4"))
    assert ["?" if dim.startswith("unk__") else dim for dim in found.split("x")] == wanted.split("x")


def test_the_merged_dim_of_a_transposed_attention() -> None:
    text = f"(float[N,12,T,64] h) => (float[k] y) {{ x = Transpose<perm=[0,2,1,3]>(h) {START} v = Concat<axis=0>(n, t, rest) r = Reshape(x, v) z = Relu(r) y = Neg(q) }}"
    assert shape_of(text, q=np.zeros(3, "f4")) == "NxTx768"
    assert shape_of(text, "z", q=np.zeros(3, "f4")) == "NxTx768"


def test_expand_and_constant_of_shape() -> None:
    text = "(float[N,1,4] x, float[1,5,1] z) => (float[k] y) { s = Shape(x) e = Expand(z, s) c = ConstantOfShape(s) r = Add(e, c) y = Neg(q) }"
    more = {"q": np.zeros(3, "f4")}
    assert [shape_of(text, name, **more) for name in "ecr"] == ["Nx5x4", "Nx1x4", "Nx5x4"]


def test_a_dim_of_zero_is_copied_unless_it_is_allowed() -> None:
    text = "(float[0,N] x) => (float[k] y) {{ s = Shape(x) n = Gather(s, second) v = Concat<axis=0>(first, n) r = Reshape{}(x, v) y = Neg(q) }}"
    more = {"q": np.zeros(3, "f4")}
    assert shape_of(text.format(""), **more) == "0xN"
    assert shape_of(text.replace("[0,N]", "[5,N]").format(""), **more) == "5xN"
    assert (
        shape_of(text.replace("[0,N]", "[N,0]").replace("n)", "first)").format("<allowzero=1>"), **more)
        == "0x0"
    )


def test_impossible_targets_are_left_alone() -> None:
    text = "(float[N,4] x) => (float[k] y) { s = Shape(x) m = Sub(z, heads) v = Concat<axis=0>(m, rest) r = Reshape(x, v) n = Gather(s, first) y = Neg(q) }"
    found = shape_of(text, q=np.zeros(3, "f4"), z=np.array([5]))
    assert "-" not in found
