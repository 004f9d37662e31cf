"""F1: LayerNorm as exporters write it, as one node, and back."""

import numpy as np
import pytest

from explorer.graph import load
from tests.models import case_path
from tests.rewrite.harness import (
    apply_checked,
    apply_only,
    assert_inverse_restores,
    candidates,
    graph_of,
    ops,
    reasons,
)

FUSE, SPLIT = "fuse-layernorm", "split-layernorm"
RNG = np.random.default_rng(11)
EPSILON = float(np.float32(1e-5))
GAMMA, BETA = (RNG.uniform(0.5, 1.5, 6).astype("f4") for _ in range(2))
NUMBERS = {"two": 2.0, "one": 1.0, "eps": EPSILON, "half": 0.5, "minus": -0.5}
MEAN = "m = ReduceMean<axes=[-1]>(x)  d = Sub(x, m)"
VARIANCE = "q = Mul(d, d)  v = ReduceMean<axes=[-1]>(q)  e = Add(v, eps)  s = Sqrt(e)"
TAIL = "n = Div(d, s)  g = Mul(n, gamma)  y = Add(g, beta)"
FORMS = {
    "pow": f"{MEAN}  q = Pow(d, two)  v = ReduceMean<axes=[-1]>(q)  e = Add(v, eps)  s = Sqrt(e)  {TAIL}",
    "mul": f"{MEAN}  {VARIANCE}  {TAIL}",
    "operands swapped": f"""{MEAN}  q = Mul(d, d)  v = ReduceMean<axes=[2]>(q)  e = Add(eps, v)  s = Sqrt(e)
        n = Div(d, s)  g = Mul(gamma, n)  y = Add(beta, g)""",
    "two subtractions": f"""{MEAN}  d2 = Sub(x, m)  q = Mul(d2, d2)  v = ReduceMean<axes=[-1]>(q)
        e = Add(v, eps)  s = Sqrt(e)  {TAIL}""",
    "reciprocal": f"{MEAN}  {VARIANCE}  r = Reciprocal(s)  n = Mul(r, d)  g = Mul(n, gamma)  y = Add(g, beta)",
    "one over root": f"{MEAN}  {VARIANCE}  r = Div(one, s)  n = Mul(d, r)  g = Mul(n, gamma)  y = Add(g, beta)",
    "root by power": f"""{MEAN}  q = Mul(d, d)  v = ReduceMean<axes=[-1]>(q)  e = Add(v, eps)  s = Pow(e, half)
        {TAIL}""",
    "inverse power": f"""{MEAN}  q = Mul(d, d)  v = ReduceMean<axes=[-1]>(q)  e = Add(v, eps)  s = Pow(e, minus)
        n = Mul(d, s)  g = Mul(n, gamma)  y = Add(g, beta)""",
    "keras": f"""{MEAN}  {VARIANCE}  r = Reciprocal(s)  f = Mul(r, gamma)  a = Mul(x, f)  b = Mul(m, f)
        c = Sub(beta, b)  y = Add(a, c)""",
    "keras, swapped": f"""{MEAN}  {VARIANCE}  r = Reciprocal(s)  f = Mul(gamma, r)  a = Mul(f, x)  b = Mul(f, m)
        c = Sub(beta, b)  y = Add(c, a)""",
}


def norm(body, inputs="float[n,3,6] x", outputs="float[n,3,6] y", dtype="f4", opset=17, **changed):
    constants = {k: np.array(v, dtype) for k, v in NUMBERS.items() if f" {k})" in body or f"({k}," in body}
    constants |= {k: v.astype(dtype) for k, v in (("gamma", GAMMA), ("beta", BETA)) if k in body}
    return graph_of(f"({inputs}) => ({outputs}) {{ {body} }}", opset=opset, **{**constants, **changed})


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_forms(form):
    (node,) = apply_only(norm(form), FUSE).nodes
    assert (node.op_type, node.attributes.get_int("axis")) == ("LayerNormalization", -1)
    assert [value.name for value in node.inputs] == ["x", "gamma", "beta"]


def test_axes_are_an_input_from_opset_18():
    body = """m = ReduceMean(x, axes)  d = Sub(x, m)  q = Pow(d, two)  v = ReduceMean(q, axes)  e = Add(v, eps)
        s = Sqrt(e)  n = Div(d, s)  g = Mul(n, gamma)  y = Add(g, beta)"""
    graph = norm(body, opset=20, axes=np.array([-1]))
    (candidate,) = candidates(graph, FUSE)
    assert candidate.bytes_delta == -(4 + 4 + 8)
    assert ops(apply_checked(graph, candidate)) == {"LayerNormalization": 1}


@pytest.mark.parametrize(("kind", "dtype"), [("double", "f8"), ("float16", "f2")])
def test_other_float_types(kind, dtype):
    graph = norm(FORMS["pow"], f"{kind}[2,3,6] x", f"{kind}[2,3,6] y", dtype)
    assert ops(apply_only(graph, FUSE)) == {"LayerNormalization": 1}


def test_several_axes():
    body = FORMS["mul"].replace("axes=[-1]", "axes=[1, 2]")
    graph = norm(body, gamma=np.ones((3, 6), "f4"), beta=np.ones((3, 6), "f4"))
    (node,) = apply_only(graph, FUSE).nodes
    assert node.attributes.get_int("axis") == -2


def test_scale_and_bias_are_given_the_normalised_shape():
    body = FORMS["mul"].replace("axes=[-1]", "axes=[-2, -1]")
    graph = norm(body, gamma=GAMMA.reshape(1, 1, 6), beta=np.ones((3, 1), "f4"))
    (candidate,) = candidates(graph, FUSE)
    assert candidate.bytes_delta == 2 * 3 * 6 * 4 - 6 * 4 - 3 * 4 - 4
    (node,) = apply_checked(graph, candidate).nodes
    assert [tuple(value.shape) for value in node.inputs[1:]] == [(3, 6), (3, 6)]


def test_missing_scale_becomes_ones():
    graph = norm(f"{MEAN}  {VARIANCE}  y = Div(d, s)")
    (candidate,) = candidates(graph, FUSE)
    assert candidate.bytes_delta == 6 * 4 - 4
    assert ops(apply_checked(graph, candidate)) == {"LayerNormalization": 1}


def test_scale_that_varies_over_other_axes_stays_outside():
    graph = norm(f"{MEAN}  {VARIANCE}  n = Div(d, s)  y = Mul(n, gamma)", gamma=np.ones((3, 1), "f4"))
    assert ops(apply_only(graph, FUSE)) == {"LayerNormalization": 1, "Mul": 1}


def test_scale_may_be_an_input():
    graph = norm(FORMS["mul"], "float[n,3,6] x, float[6] gamma", gamma=GAMMA)
    assert ops(apply_only(graph, FUSE)) == {"LayerNormalization": 1}


def test_fused_and_back():
    graph = norm(FORMS["pow"], "float[2,3,6] x", "float[2,3,6] y")
    (candidate,) = candidates(graph, FUSE)
    assert_inverse_restores(graph, candidate)


def test_lookalike_without_keepdims_is_refused():
    graph = load(case_path("layernorm_lookalike_keepdims0"))
    assert candidates(graph, FUSE) == []
    assert reasons(graph, FUSE) == [
        f"'{_mean_of(graph)}' has keepdims=0: it is broadcast along other axes",
    ]


def _mean_of(graph):
    return next(node for node in graph.nodes if node.op_type == "ReduceMean").outputs[0].name


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (FORMS["mul"].replace("v = ReduceMean<axes=[-1]>", "v = ReduceMean<axes=[1]>"), "mean and variance are over axes (-1,) and (-2,)"),
        (FORMS["mul"].replace("axes=[-1]", "axes=[1]"), "axes [-2] are not the last ones"),
        (
            f"{MEAN}  q = Mul(d, d)  v = ReduceMean<axes=[-1]>(q)  s = Sqrt(v)  {TAIL}",
            "nothing is added to the variance before the root",
        ),
    ],
)  # fmt: skip
def test_near_misses_are_refused(body, reason):
    graph = norm(body)
    assert candidates(graph, FUSE) == []
    assert reasons(graph, FUSE) == [reason]


def test_epsilon_that_float32_cannot_hold_is_refused_in_double():
    graph = norm(FORMS["mul"], "double[2,3,6] x", "double[2,3,6] y", "f8", eps=np.array(1e-5))
    assert reasons(graph, FUSE) == ["epsilon 1e-05 would be rounded to float32"]


def test_scale_of_unknown_extent_is_refused():
    graph = norm(f"{MEAN}  {VARIANCE}  y = Div(d, s)", "float[n,3,k] x", "float[n,3,k] y")
    assert reasons(graph, FUSE) == ["there is no scale, and the normalised dims of 'x' are not static"]


def test_inner_values_that_others_read_and_old_opsets_are_refused():
    shared = norm(FORMS["mul"] + "  z = Neg(d)", outputs="float[n,3,6] y, float[n,3,6] z")
    assert reasons(shared, FUSE) == ["'d', inside the pattern, is also read by an unnamed Neg"]
    old = norm(FORMS["mul"], opset=16)
    assert reasons(old, FUSE) == ["the result needs opset 17, the model imports 16"]


def test_difference_to_another_mean_is_no_layernorm():
    graph = norm(
        FORMS["mul"].replace("ReduceMean<axes=[-1]>(x)", "ReduceMean<axes=[-1]>(z)"),
        "float[2,3,6] x, float[2,3,6] z",
    )
    assert candidates(graph, FUSE) == []


@pytest.mark.parametrize("opset", [17, 20])
def test_layernormalization_is_written_out(opset):
    graph = norm("y = LayerNormalization<axis=1>(x, gamma)", opset=opset, gamma=np.ones((3, 6), "f4"))
    (candidate,) = candidates(graph, SPLIT)
    assert candidate.bytes_delta == (8 if opset == 17 else 8 + 2 * 8)
    assert ops(apply_checked(graph, candidate))["ReduceMean"] == 2


def test_used_mean_and_half_precision_are_refused():
    graph = norm("y, mean = LayerNormalization(x, gamma)", outputs="float[n,3,6] y, float[n,3,1] mean")
    assert reasons(graph, SPLIT) == ["'mean' is used too"]
    half = norm("y = LayerNormalization(x, gamma)", "float16[n,3,6] x", "float16[n,3,6] y", "f2")
    assert reasons(half, SPLIT) == ["'y' has element type float16; the rule handles double, float"]


def test_match_inside_a_branch():
    graph = norm(
        f"""y = If(k) <
            then_branch = t () => (float[2,3,6] o) {{ {FORMS["mul"].replace("y =", "o =")} }},
            else_branch = e () => (float[2,3,6] p) {{ p = Relu(x) }}
        >""",
        "bool k, float[2,3,6] x",
        "float[2,3,6] y",
    )
    assert ops(apply_only(graph, FUSE)) == {"If": 1, "LayerNormalization": 1, "Relu": 1}
