"""D2 and D3: transpositions inside and in front of Gemm."""

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

PLAIN, STORED = "pretranspose-gemm-weight", "store-gemm-weight-transposed"
FUSE, SPLIT, MATMUL = "fuse-transpose-into-gemm", "split-transpose-from-gemm", "matmul-transpose-to-gemm"
RNG = np.random.default_rng(2)
W = RNG.standard_normal((5, 4)).astype("f4")
B = RNG.standard_normal(5).astype("f4")


def gemm(body, inputs="float[3,4] x", outputs="float[3,5] y", **options):
    return graph_of(f"({inputs}) => ({outputs}) {{ {body} }}", **{"w": W, "b": B, **options})


def test_transposed_weight_is_stored_as_it_is_used():
    graph = gemm("y = Gemm<transB=1, alpha=0.5, beta=2.0>(x, w, b)")
    (candidate,) = candidates(graph, PLAIN)
    assert candidate.bytes_delta == 0
    (node,) = apply_checked(graph, candidate).nodes
    np.testing.assert_array_equal(node.inputs[1].const_value.numpy(), W.T)
    assert node.attributes.get_int("transB", 0) == 0
    assert_inverse_restores(graph, candidate)


def test_constant_left_operand():
    graph = gemm("y = Gemm(w, x, c)", "float[4,3] x", "float[5,3] y", c=np.ones((5, 1), "f4"))
    (candidate,) = candidates(graph, STORED)
    assert candidate.variant == "transA"
    apply_checked(graph, candidate)
    assert_inverse_restores(graph, candidate)


def test_shared_weight_is_copied():
    graph = gemm("g = Gemm<transB=1>(x, w, b)  h = Gemm<transB=1>(x, w)  y = Add(g, h)")
    found = candidates(graph, PLAIN)
    assert [c.bytes_delta for c in found] == [W.nbytes, W.nbytes]
    apply_checked(graph, found[0])


def test_weight_that_is_an_input_is_left_alone():
    graph = gemm("y = Gemm<transB=1>(x, u, b)", "float[3,4] x, float[5,4] u")
    assert candidates(graph, PLAIN) == []


@pytest.mark.parametrize(("kind", "dtype"), [("float16", "f2"), ("double", "f8")])
def test_other_float_types(kind, dtype):
    text = f"({kind}[3,4] x) => ({kind}[3,5] y) {{ t = Transpose(x)  y = Gemm<transA=1, transB=1>(t, w, b) }}"
    graph = graph_of(text, w=W.astype(dtype), b=B.astype(dtype))
    apply_only(graph, PLAIN)
    apply_only(graph, FUSE)


def test_transpose_of_either_operand_is_fused():
    graph = gemm(
        "t = Transpose<perm=[1,0]>(x)  s = Transpose<perm=[1,0]>(u)  y = Gemm(t, s, b)",
        "float[4,3] x, float[5,4] u",
    )
    found = candidates(graph, FUSE)
    assert [c.variant for c in found] == ["transA", "transB"]
    for candidate in found:
        assert ops(apply_checked(graph, candidate)) == {"Transpose": 1, "Gemm": 1}
        assert_inverse_restores(graph, candidate)


def test_transpose_cancels_the_flag():
    (node,) = apply_only(gemm("t = Transpose(x)  y = Gemm<transA=1, transB=1>(t, w)"), FUSE).nodes
    assert [node.attributes.get_int(flag, 0) for flag in ("transA", "transB")] == [0, 1]


def test_transpose_with_another_reader_stays():
    graph = gemm(
        "t = Transpose(x)  y = Gemm<transB=1>(t, w)  z = Relu(t)",
        "float[4,3] x",
        "float[3,5] y, float[3,4] z",
    )
    assert ops(apply_only(graph, FUSE)) == {"Transpose": 1, "Gemm": 1, "Relu": 1}


def test_one_transpose_for_both_operands():
    graph = gemm("t = Transpose(x)  y = Gemm(t, t)", "float[4,4] x", "float[4,4] y")
    first = apply_checked(graph, candidates(graph, FUSE)[0])
    assert ops(first) == {"Transpose": 1, "Gemm": 1}
    assert ops(apply_only(first, FUSE)) == {"Gemm": 1}


def test_identity_permutation_is_refused():
    graph = load(case_path("identity_transpose_before_gemm"))
    assert candidates(graph, FUSE) == []
    assert reasons(graph, FUSE) == ["the perm [0, 1] of the Transpose does not swap rows and columns"]


def test_flag_on_a_constant_is_not_split():
    assert candidates(gemm("y = Gemm<transB=1>(x, w)"), SPLIT) == []
    split = apply_only(gemm("y = Gemm<transA=1, transB=1>(x, w)", "float[4,3] x"), SPLIT)
    assert ops(split) == {"Transpose": 1, "Gemm": 1}


def test_product_of_transposed_matrices_becomes_a_gemm():
    graph = gemm(
        "t = Transpose(x)  s = Transpose(u)  y = MatMul(t, s)", "float[4,n] x, float[5,4] u", "float[n,5] y"
    )
    found = candidates(graph, MATMUL)
    assert [c.variant for c in found] == ["transA", "transB", "transA+transB"]
    assert [ops(apply_checked(graph, c)) for c in found] == [
        {"Transpose": 1, "Gemm": 1},
        {"Transpose": 1, "Gemm": 1},
        {"Gemm": 1},
    ]


def test_product_of_a_transpose_with_itself():
    graph = gemm("t = Transpose(x)  y = MatMul(t, t)", "float[4,4] x", "float[4,4] y")
    both = next(c for c in candidates(graph, MATMUL) if c.variant == "transA+transB")
    assert ops(apply_checked(graph, both)) == {"Gemm": 1}


def test_batched_products_and_old_opsets_are_refused():
    batched = gemm("t = Transpose<perm=[0,2,1]>(x)  y = MatMul(t, w)", "float[2,5,3] x", "float[2,3,4] y")
    assert candidates(batched, MATMUL) == []
    mixed = gemm("t = Transpose(u)  y = MatMul(x, t)", "float[2,3,4] x, float[5,4] u", "float[2,3,5] y")
    assert reasons(mixed, MATMUL) == ["'x' has rank 3, Gemm needs 2"]
    old = gemm("t = Transpose(x)  s = Transpose(w)  y = MatMul(t, s)", "float[4,3] x", opset=9)
    assert set(reasons(old, MATMUL)) == {"the result needs opset 11, the model imports 9"}


def test_match_inside_a_loop_body_keeps_the_outer_transpose():
    graph = graph_of(
        """(float[4,3] x) => (float[3,5] y) {
            t = Transpose(x)
            y = Loop(n, , start) <body = body (int64 i, bool c, float[3,5] acc) => (bool k, float[3,5] out) {
                k = Identity(c)
                g = Gemm<transB=1>(t, w, b)
                out = Add(acc, g)
            }>
        }""",
        n=np.array(3),
        start=np.zeros((3, 5), "f4"),
        w=W,
        b=B,
    )
    result = apply_only(graph, FUSE)
    assert [node.attributes.get_int("transA") for node in result.nodes if node.op_type == "Gemm"] == [1]
