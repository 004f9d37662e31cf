"""E4: x * sigmoid(x) as one node, and back."""

import numpy as np
import pytest

from explorer.graph import load
from tests.models import case_path
from tests.rewrite.harness import (
    apply_all,
    apply_checked,
    apply_only,
    assert_inverse_restores,
    candidates,
    graph_of,
    ops,
    reasons,
)

QUICK, SPLIT_QUICK, SWISH, SPLIT_SWISH = "fuse-quickgelu", "split-quickgelu", "fuse-swish", "split-swish"


def silu(body="s = Sigmoid(x)  y = Mul(x, s)", kind="float", opset=17, **constants):
    return graph_of(f"({kind}[n,3] x) => ({kind}[n,3] y) {{ {body} }}", opset=opset, **constants)


@pytest.mark.parametrize("product", ["Mul(x, s)", "Mul(s, x)"])
def test_silu_in_any_order(product):
    (node,) = apply_only(silu(f"s = Sigmoid(x)  y = {product}"), QUICK).nodes
    assert (node.op_type, node.domain, node.attributes.get_float("alpha")) == (
        "QuickGelu",
        "com.microsoft",
        1.0,
    )


@pytest.mark.parametrize("scale", ["Mul(x, a)", "Mul(a, x)"])
def test_scaled_gate(scale):
    graph = silu(f"m = {scale}  s = Sigmoid(m)  y = Mul(x, s)", a=np.array(1.702, "f4"))
    (candidate,) = candidates(graph, QUICK)
    assert candidate.bytes_delta == -4
    (node,) = apply_checked(graph, candidate).nodes
    assert node.attributes.get_float("alpha") == pytest.approx(1.702)


def test_quickgelu_and_back():
    assert_inverse_restores(silu(), candidates(silu(), QUICK)[0])
    scaled = silu("m = Mul(x, a)  s = Sigmoid(m)  y = Mul(x, s)", a=np.array(1.702, "f4"))
    assert_inverse_restores(scaled, candidates(scaled, QUICK)[0])


def test_swish_needs_opset_24_and_comes_back():
    assert reasons(silu(), SWISH) == ["the result needs opset 24, the model imports 17"]
    graph = silu(opset=24)
    (candidate,) = candidates(graph, SWISH)
    assert candidate.portable
    assert ops(apply_checked(graph, candidate)) == {"Swish": 1}
    assert_inverse_restores(graph, candidate)


def test_alpha_of_swish_that_float32_cannot_hold_is_refused():
    graph = silu("m = Mul(x, a)  s = Sigmoid(m)  y = Mul(x, s)", "double", opset=24, a=np.array(1.1))
    assert reasons(graph, SWISH) == ["the factor 1.1 would be rounded to float32"]


def test_defaults_of_both_operators():
    quick = silu("y = com.microsoft.QuickGelu(x)", domains={"com.microsoft": 1})
    assert ops(apply_only(quick, SPLIT_QUICK)) == {"Mul": 2, "Sigmoid": 1}
    assert ops(apply_only(silu("y = Swish(x)", opset=24), SPLIT_SWISH)) == {"Mul": 1, "Sigmoid": 1}


def test_gates_of_something_else_are_left_alone():
    other = graph_of("(float[2,3] x, float[2,3] z) => (float[2,3] y) { s = Sigmoid(z)  y = Mul(x, s) }")
    assert candidates(other, QUICK) == reasons(other, QUICK) == []
    squared = silu("s = Sigmoid(x)  y = Mul(s, s)")
    assert candidates(squared, QUICK) == []
    vector = silu("m = Mul(x, a)  s = Sigmoid(m)  y = Mul(x, s)", a=np.array([1, 2, 3], "f4"))
    assert candidates(vector, QUICK) == []


def test_gate_that_others_read_and_other_types_are_refused():
    shared = graph_of("(float[2,3] x) => (float[2,3] y, float[2,3] s) { s = Sigmoid(x)  y = Mul(x, s) }")
    assert reasons(shared, QUICK) == ["'s', inside the pattern, is a graph output"]
    assert reasons(silu(kind="float16"), QUICK) == ["'y' has element type float16; the rule handles float"]


def test_twin_subgraphs_keep_both_outputs():
    graph = load(case_path("twin_subgraphs_both_outputs"))
    result = apply_all(graph, QUICK)
    assert [v.name for v in result.outputs] == [v.name for v in graph.outputs]
    assert ops(result) == {"QuickGelu": 2}


def test_match_inside_a_branch():
    graph = graph_of(
        """(bool k, float[2,3] x) => (float[2,3] y) {
            y = If(k) <
                then_branch = t () => (float[2,3] o) { s = Sigmoid(x)  o = Mul(x, s) },
                else_branch = e () => (float[2,3] q) { q = Relu(x) }
            >
        }"""
    )
    assert ops(apply_only(graph, QUICK)) == {"If": 1, "QuickGelu": 1, "Relu": 1}
