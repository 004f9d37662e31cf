"""F3 and F4: a residual Add and the normalisation after it as one node, and back."""

import numpy as np
import pytest

from tests.rewrite.harness import (
    apply_checked,
    apply_only,
    assert_inverse_restores,
    candidates,
    graph_of,
    ops,
    reasons,
)

LAYER, SPLIT_LAYER = "fuse-skip-layernorm", "split-skip-layernorm"
RMS, SPLIT_RMS = "fuse-skip-rmsnorm", "split-skip-rmsnorm"
MS = {"com.microsoft": 1}
RNG = np.random.default_rng(13)
GAMMA, BETA = (RNG.uniform(0.5, 1.5, 6).astype("f4") for _ in range(2))
INPUTS = "float[n,3,6] x, float[n,3,6] z"
WRITTEN_OUT = """t = Add(x, z)  q = Pow(t, two)  v = ReduceMean<axes=[-1]>(q)  e = Add(v, eps)  s = Sqrt(e)
    n = Div(t, s)  y = Mul(n, gamma)"""


def residual(body, inputs=INPUTS, outputs="float[n,3,6] y", opset=17, domains=None, **changed):
    constants = {
        "gamma": GAMMA,
        "beta": BETA,
        "two": np.array(2, "f4"),
        "eps": np.array(1e-5, "f4"),
        "axes": np.array([-1]),
    }
    used = {k: v for k, v in constants.items() if f"{k})" in body or f"{k}," in body}
    return graph_of(
        f"({inputs}) => ({outputs}) {{ {body} }}", opset=opset, domains=domains, **{**used, **changed}
    )


@pytest.mark.parametrize("rank", ["3,6", "n,3,6"])
@pytest.mark.parametrize("operands", ["x, gamma, beta", "x, gamma"])
def test_residual_layernorm(operands, rank):
    body = f"t = Add(x, z)  y = LayerNormalization({operands.replace('x', 't')})"
    graph = residual(body, f"float[{rank}] x, float[{rank}] z", f"float[{rank}] y")
    (candidate,) = candidates(graph, LAYER)
    assert not candidate.portable
    assert ops(apply_checked(graph, candidate)) == {"SkipLayerNormalization": 1}


def test_sum_with_other_readers_becomes_the_fourth_output():
    graph = residual(
        "t = Add(x, z)  y = LayerNormalization(t, gamma, beta)  u = Relu(t)",
        outputs="float[n,3,6] y, float[n,3,6] u",
    )
    result = apply_only(graph, LAYER)
    assert ops(result) == {"SkipLayerNormalization": 1, "Relu": 1}
    assert [bool(value.name) for value in result.nodes[0].outputs] == [True, False, False, True]


def test_sum_that_is_an_output_keeps_its_name():
    graph = residual(
        "t = Add(x, z)  y = LayerNormalization(t, gamma, beta)", outputs="float[n,3,6] t, float[n,3,6] y"
    )
    result = apply_only(graph, LAYER)
    assert [value.name for value in result.outputs] == ["t", "y"]


@pytest.mark.parametrize("more", ["", "  u = Relu(t)"])
def test_layernorm_and_back(more):
    graph = residual(
        "t = Add(x, z)  y = LayerNormalization<axis=-1, epsilon=1e-6>(t, gamma, beta)" + more,
        outputs="float[n,3,6] y" + (", float[n,3,6] u" if more else ""),
    )
    assert_inverse_restores(graph, candidates(graph, LAYER)[0])


def test_half_precision_and_double():
    def of(kind, dtype):
        return residual(
            "t = Add(x, z)  y = LayerNormalization(t, gamma, beta)",
            f"{kind}[2,3,6] x, {kind}[2,3,6] z",
            f"{kind}[2,3,6] y",
            gamma=GAMMA.astype(dtype),
            beta=BETA.astype(dtype),
        )

    assert ops(apply_only(of("float16", "f2"), LAYER)) == {"SkipLayerNormalization": 1}
    assert reasons(of("double", "f8"), LAYER) == [
        "'y' has element type double; the rule handles float, float16"
    ]


@pytest.mark.parametrize(
    ("inputs", "outputs", "norm", "reason"),
    [
        (
            "float[2,3,6] x, float[1,3,6] z",
            "float[2,3,6] y",
            "LayerNormalization(t, gamma)",
            "'z' and 't' have different shapes: [1, 3, 6] and [2, 3, 6]",
        ),
        (
            "float[2,2,3,6] x, float[2,2,3,6] z",
            "float[2,2,3,6] y",
            "LayerNormalization(t, gamma)",
            "'t' has rank 4",
        ),
        (INPUTS, "float[n,3,6] y", "LayerNormalization<axis=1>(t, g2)", "axes [-2, -1] are normalised, not the last one only"),
        (INPUTS, "float[n,3,6] y", "LayerNormalization(t, one)", "'one' [1] is not one row of the normalised tensor"),
    ],
)  # fmt: skip
def test_sums_the_operator_cannot_do_are_refused(inputs, outputs, norm, reason):
    extra = (
        {"g2": np.ones((3, 6), "f4")} if "g2" in norm else {"one": np.ones(1, "f4")} if "one" in norm else {}
    )
    graph = residual(f"t = Add(x, z)  y = {norm}", inputs, outputs, **extra)
    assert candidates(graph, LAYER) == []
    assert reasons(graph, LAYER) == [reason]


def test_bias_before_a_norm_is_no_residual():
    graph = residual("t = Add(x, b)  y = LayerNormalization(t, gamma)", b=BETA)
    assert candidates(graph, LAYER) == reasons(graph, LAYER) == []


def test_used_mean_is_refused():
    graph = residual(
        "t = Add(x, z)  y, m = LayerNormalization(t, gamma)", outputs="float[n,3,6] y, float[n,3,1] m"
    )
    assert reasons(graph, LAYER) == ["'m' is used too"]


def test_bias_of_the_fused_operator_becomes_an_add():
    graph = residual("y = com.microsoft.SkipLayerNormalization(x, z, gamma, beta, gamma)", domains=MS)
    assert ops(apply_only(graph, SPLIT_LAYER)) == {"Add": 2, "LayerNormalization": 1}
    rms = residual(
        "y = com.microsoft.SkipSimplifiedLayerNormalization(x, z, gamma, beta)", domains=MS, opset=23
    )
    assert ops(apply_only(rms, SPLIT_RMS)) == {"Add": 2, "RMSNormalization": 1}


def test_skip_of_lower_rank_can_be_split():
    graph = residual(
        "y = com.microsoft.SkipLayerNormalization(x, z, gamma)", "float[2,3,6] x, float[3,6] z", domains=MS
    )
    assert ops(apply_only(graph, SPLIT_LAYER)) == {"Add": 1, "LayerNormalization": 1}


def test_old_opset_is_refused():
    graph = residual("y = com.microsoft.SkipLayerNormalization(x, z, gamma)", domains=MS, opset=16)
    assert reasons(graph, SPLIT_LAYER) == ["the result needs opset 17, the model imports 16"]


@pytest.mark.parametrize("more", ["", "  u = Relu(t)"])
def test_rmsnorm_and_back(more):
    graph = residual(
        "t = Add(x, z)  y = RMSNormalization<axis=-1, epsilon=1e-6>(t, gamma)" + more,
        outputs="float[n,3,6] y" + (", float[n,3,6] u" if more else ""),
        opset=23,
    )
    assert_inverse_restores(graph, candidates(graph, RMS)[0])


@pytest.mark.parametrize("more", ["", "  u = Relu(t)"])
def test_written_out_rmsnorm_and_back(more):
    graph = residual(WRITTEN_OUT + more, outputs="float[n,3,6] y" + (", float[n,3,6] u" if more else ""))
    (candidate,) = candidates(graph, RMS)
    assert candidate.bytes_delta == -8
    assert_inverse_restores(graph, candidate)


def test_dynamo_form_of_rmsnorm():
    body = """t = Add(x, z)  q = Pow(t, two)  v = ReduceMean(q, axes)  e = Add(v, eps)  s = Sqrt(e)
        r = Reciprocal(s)  n = Mul(t, r)  y = Mul(gamma, n)  u = Relu(t)"""
    graph = residual(body, outputs="float[n,3,6] y, float[n,3,6] u", opset=20)
    assert ops(apply_only(graph, RMS)) == {"SkipSimplifiedLayerNormalization": 1, "Relu": 1}


def test_half_precision_cannot_be_written_out():
    body = "y = com.microsoft.SkipSimplifiedLayerNormalization(x, z, gamma)"
    inputs, outputs = "float16[2,3,6] x, float16[2,3,6] z", "float16[2,3,6] y"
    old = residual(body, inputs, outputs, domains=MS, gamma=GAMMA.astype("f2"))
    assert reasons(old, SPLIT_RMS) == ["written out, half precision would not be computed in float"]
    new = residual(body, inputs, outputs, opset=23, domains=MS, gamma=GAMMA.astype("f2"))
    assert ops(apply_only(new, SPLIT_RMS)) == {"Add": 1, "RMSNormalization": 1}


def test_match_inside_a_branch():
    graph = residual(
        """y = If(k) <
            then_branch = a () => (float[2,3,6] o) { t = Add(x, z)  o = LayerNormalization(t, gamma, beta) },
            else_branch = b () => (float[2,3,6] p) { p = Sub(x, z) }
        >""",
        "bool k, float[2,3,6] x, float[2,3,6] z",
        "float[2,3,6] y",
    )
    assert ops(apply_only(graph, LAYER)) == {"If": 1, "SkipLayerNormalization": 1, "Sub": 1}
