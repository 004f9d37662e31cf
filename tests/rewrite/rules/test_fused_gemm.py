"""D14: Gemm and its activation as FusedGemm, and back."""

import numpy as np
import pytest

from tests.rewrite.harness import apply_checked, assert_inverse_restores, candidates, graph_of, ops, reasons

FUSE, SPLIT = "fuse-gemm-activation", "unfuse-gemm-activation"
RNG = np.random.default_rng(3)
WEIGHTS = {"w": RNG.standard_normal((4, 5)).astype("f4"), "b": RNG.standard_normal(5).astype("f4")}
ACTIVATIONS = [
    "Relu",
    "Sigmoid",
    "Tanh",
    "Softplus",
    "Softsign",
    "LeakyRelu<alpha=0.2>",
    "Elu<alpha=0.7>",
    "ThresholdedRelu<alpha=0.3>",
    "HardSigmoid<alpha=0.3, beta=0.4>",
    "Selu<alpha=1.5, gamma=1.1>",
]


def layer(body, inputs="float[n,4] x", outputs="float[n,5] y", opset=17, **options):
    return graph_of(f"({inputs}) => ({outputs}) {{ {body} }}", opset=opset, **{**WEIGHTS, **options})


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activation_moves_into_the_gemm_and_back(activation):
    graph = layer(f"g = Gemm(x, w, b)  y = {activation}(g)")
    (candidate,) = candidates(graph, FUSE)
    assert not candidate.portable
    assert ops(apply_checked(graph, candidate)) == {"FusedGemm": 1}
    assert_inverse_restores(graph, candidate)


def test_default_parameters_are_written_out():
    graph = layer("g = Gemm<alpha=0.5, transB=0>(x, w, b)  y = LeakyRelu(g)")
    (node,) = apply_checked(graph, candidates(graph, FUSE)[0]).nodes
    assert node.attributes.get_float("activation_alpha") == pytest.approx(0.01)
    assert node.attributes.get_float("alpha") == 0.5


def test_second_reader_and_other_types_are_refused():
    twice = layer("g = Gemm(x, w, b)  y = Relu(g)  z = Neg(g)", outputs="float[n,5] y, float[n,5] z")
    assert reasons(twice, FUSE) == ["'g', inside the pattern, is also read by an unnamed Neg"]
    double = layer(
        "g = Gemm(x, w, b)  y = Relu(g)",
        "double[n,4] x",
        "double[n,5] y",
        **{k: v.astype("f8") for k, v in WEIGHTS.items()},
    )
    assert reasons(double, FUSE) == ["'y' has element type double; the rule handles float"]


@pytest.mark.parametrize(
    ("body", "opset", "reason"),
    [
        ("FusedGemm(x, w, b)", 17, "activation '' is not known"),
        ('FusedGemm<activation="Cubic">(x, w, b)', 17, "activation 'Cubic' is not known"),
        ('FusedGemm<activation="Elu">(x, w, b)', 17, "activation_alpha is not given"),
        ('FusedGemm<activation="Relu">(x, w)', 9, "Gemm needs a C before opset 11, the model imports 9"),
    ],
)
def test_what_cannot_be_split_is_refused(body, opset, reason):
    graph = layer(f"y = com.microsoft.{body}", opset=opset, domains={"com.microsoft": 1})
    assert reasons(graph, SPLIT) == [reason]


def test_match_inside_a_branch():
    graph = layer(
        """y = If(c) <
            then_branch = t () => (float[n,5] a) { g = Gemm(x, w, b)  a = Relu(g) },
            else_branch = e () => (float[n,5] o) { h = MatMul(x, w)  o = Tanh(h) }
        >""",
        "bool c, float[n,4] x",
    )
    assert ops(apply_checked(graph, candidates(graph, FUSE)[0])) == {
        "If": 1,
        "FusedGemm": 1,
        "MatMul": 1,
        "Tanh": 1,
    }
