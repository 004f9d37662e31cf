"""B9: Gemm's alpha and beta fold into its weights."""

import numpy as np
import pytest

from tests.rewrite.harness import apply_only, candidates, graph_of, reasons

RULE = "fold-gemm-scaling"
RNG = np.random.default_rng(4)


def gemm(attributes, inputs="x, w, b", signature="float[N,6] x", dtype="f4", opset=17, **weights):
    kind = "float" if dtype == "f4" else "double"
    text = f"({signature}) => ({kind}[N,4] y) {{ y = Gemm<{attributes}>({inputs}) }}"
    defaults = {
        "w": RNG.standard_normal((6, 4)).astype(dtype),
        "b": RNG.standard_normal(4).astype(dtype),
    }
    weights = {**defaults, **weights}
    return graph_of(text, opset=opset, **{k: v for k, v in weights.items() if k in inputs})


@pytest.mark.parametrize("attributes", ["alpha=0.5", "beta=3.0", "alpha=-0.25, beta=2.0"])
@pytest.mark.parametrize("opset", [9, 17])
def test_factors_move_into_the_weights(attributes, opset):
    (node,) = apply_only(gemm(attributes, opset=opset), RULE).nodes
    assert node.attributes.get_float("alpha", 1.0) == 1.0
    assert node.attributes.get_float("beta", 1.0) == 1.0


def test_only_what_changes_is_copied():
    (node,) = apply_only(gemm("alpha=0.5"), RULE).nodes
    assert node.inputs[2].name == "b"


def test_double_precision_and_transposition():
    graph = gemm("alpha=0.5, transB=1", signature="double[N,6] x", dtype="f8", w=RNG.standard_normal((4, 6)))
    (node,) = apply_only(graph, RULE).nodes
    assert node.attributes.get_int("transB", 0) == 1


def test_beta_without_a_bias_matters_not():
    assert candidates(gemm("beta=2.0", inputs="x, w"), RULE) == []


def test_nothing_to_fold():
    graph = gemm("alpha=1.0, beta=1.0")
    assert candidates(graph, RULE) == []
    assert reasons(graph, RULE) == []


def test_variable_operand_is_refused():
    graph = gemm("alpha=0.5", inputs="x, z", signature="float[N,6] x, float[6,4] z")
    assert reasons(graph, RULE) == ["'z' is a graph input, not a constant"]
