"""F6: MultiHeadAttention and its projections as one Attention, and back."""

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

FUSE, SPLIT = "fuse-attention-projections", "split-attention-projections"
MS = {"com.microsoft": 1}
RNG = np.random.default_rng(14)
WEIGHTS = {f"w{name}": RNG.standard_normal((6, 8)).astype("f4") for name in "qkv"}
BIASES = {f"b{name}": RNG.standard_normal(8).astype("f4") for name in "qkv"}
PRODUCTS = "mq = MatMul(x, wq)  mk = MatMul(x, wk)  mv = MatMul(x, wv)"
SUMS = "q = Add(mq, bq)  k = Add(mk, bk)  v = Add(mv, bv)"
MHA = "com.microsoft.MultiHeadAttention<num_heads=2, scale=0.5>"


def layer(body, inputs="float[n,s,6] x", outputs="float[n,s,8] y", **weights):
    every = {**WEIGHTS, **BIASES, **weights}
    used = {k: v for k, v in every.items() if f"{k})" in body or f"{k}," in body}
    return graph_of(f"({inputs}) => ({outputs}) {{ {body} }}", domains=MS, **used)


def test_projections_move_into_the_attention_and_back():
    graph = layer(f"{PRODUCTS}  {SUMS}  y = {MHA}(q, k, v)")
    (candidate,) = candidates(graph, FUSE)
    assert candidate.bytes_delta == 0
    (node,) = apply_checked(graph, candidate).nodes
    assert (node.op_type, len(node.inputs)) == ("Attention", 3)
    assert_inverse_restores(graph, candidate)


def test_projections_without_biases_and_with_some():
    plain = layer(f"{PRODUCTS}  y = {MHA}(mq, mk, mv)")
    (node,) = apply_only(plain, FUSE).nodes
    assert len(node.inputs) == 2
    some = layer(f"{PRODUCTS}  q = Add(bq, mq)  y = {MHA}(q, mk, mv)")
    (candidate,) = candidates(some, FUSE)
    assert candidate.bytes_delta == 2 * 8 * 4  # zeros for keys and values
    apply_checked(some, candidate)


def test_mask_and_values_of_another_size():
    graph = layer(
        f"{PRODUCTS}  y = {MHA}(mq, mk, mv, , , mask)",
        "float[n,3,6] x, float[1,1,3,3] mask",
        "float[n,3,4] y",
        wv=WEIGHTS["wv"][:, :4].copy(),
    )
    (candidate,) = candidates(graph, FUSE)
    (node,) = apply_checked(graph, candidate).nodes
    assert node.attributes.get_ints("qkv_hidden_sizes") == (8, 8, 4)
    assert_inverse_restores(graph, candidate)


def test_merged_projection_keeps_its_weight():
    weight = np.concatenate(list(WEIGHTS.values()), axis=1)
    graph = layer(
        f"m = MatMul(x, w)  a = Add(m, b)  q, k, v = Split<axis=2>(a, sizes)  y = {MHA}(q, k, v)",
        w=weight,
        b=np.concatenate(list(BIASES.values())),
        sizes=np.array([8, 8, 8]),
    )
    (candidate,) = candidates(graph, FUSE)
    assert candidate.bytes_delta == -3 * 8
    (node,) = apply_checked(graph, candidate).nodes
    assert node.inputs[1].name == "w"


def test_shared_weight_is_copied():
    graph = layer(
        f"{PRODUCTS}  y = {MHA}(mq, mk, mv)  z = MatMul(x2, wq)",
        "float[n,s,6] x, float[n,s,6] x2",
        "float[n,s,8] y, float[n,s,8] z",
    )
    (candidate,) = candidates(graph, FUSE)
    assert candidate.bytes_delta == WEIGHTS["wq"].nbytes
    apply_checked(graph, candidate)


def test_cross_attention_is_left_alone():
    graph = layer(
        f"mq = MatMul(x, wq)  mk = MatMul(u, wk)  mv = MatMul(u, wv)  y = {MHA}(mq, mk, mv)",
        "float[n,s,6] x, float[n,t,6] u",
    )
    assert candidates(graph, FUSE) == reasons(graph, FUSE) == []


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"{PRODUCTS}  y = {MHA}(mq, mk, mv, b)", "it has a bias"),
        (
            f"{PRODUCTS}  y = {MHA}(mq, mk, mv)  z = Relu(mk)",
            "'mk', inside the pattern, is also read by an unnamed Relu",
        ),
    ],
)
def test_near_misses_are_refused(body, reason):
    outputs = "float[n,s,8] y" + (", float[n,s,8] z" if "z =" in body else "")
    assert reasons(layer(body, outputs=outputs, b=np.ones(24, "f4")), FUSE) == [reason]


@pytest.mark.parametrize(
    ("arguments", "attributes", "reason"),
    [
        ("x, w, b, lengths", "num_heads=2", "it has a mask index"),
        ("x, w, b", "num_heads=2, unidirectional=1", "it is unidirectional"),
        ("x, u, b", "num_heads=2", "'u' is not a constant"),
    ],
)
def test_operators_that_cannot_be_split_are_refused(arguments, attributes, reason):
    graph = layer(
        f"y = com.microsoft.Attention<{attributes}>({arguments})",
        "float[n,s,6] x, int32[n] lengths, float[6,24] u",
        w=np.concatenate(list(WEIGHTS.values()), axis=1),
        b=np.concatenate(list(BIASES.values())),
    )
    assert reasons(graph, SPLIT) == [reason]


def test_match_inside_a_branch():
    graph = layer(
        f"""y = If(c) <
            then_branch = t () => (float[n,s,8] o) {{ {PRODUCTS}  o = {MHA}(mq, mk, mv) }},
            else_branch = e () => (float[n,s,8] p) {{ p = MatMul(x, wq) }}
        >""",
        "bool c, float[n,s,6] x",
    )
    assert ops(apply_only(graph, FUSE)) == {"If": 1, "Attention": 1, "MatMul": 1}
