"""D1: MatMul + Add as Gemm, and back."""

import numpy as np

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

FUSE, SPLIT = "matmul-add-to-gemm", "gemm-to-matmul-add"
RNG = np.random.default_rng(0)
W, B = RNG.standard_normal((4, 5)).astype("f4"), RNG.standard_normal(5).astype("f4")


def product(body="m = MatMul(x, w)  y = Add(m, b)", left="float[3,4]", out="float[3,5]", opset=17, **weights):
    text = f"({left} x) => ({out} y) {{ {body} }}"
    return graph_of(text, opset=opset, **{"w": W, "b": B, **weights})


def test_product_and_sum_become_one_gemm():
    graph = product()
    result = apply_only(graph, FUSE)
    assert ops(result) == {"Gemm": 1}
    assert [value.name for value in result.nodes[0].inputs] == ["x", "w", "b"]
    assert_inverse_restores(graph, candidates(graph, FUSE)[0])


def test_bias_may_be_the_first_operand():
    assert ops(apply_only(product("m = MatMul(x, w)  y = Add(b, m)"), FUSE)) == {"Gemm": 1}


def test_bias_may_be_a_row_a_column_a_scalar_or_computed():
    for bias in ((1, 5), (3, 1), (3, 5), ()):
        graph = product(b=RNG.standard_normal(bias).astype("f4"))
        assert ops(apply_only(graph, FUSE)) == {"Gemm": 1}
    computed = product("m = MatMul(x, w)  r = Relu(m)  n = MatMul(x, w)  y = Add(r, n)")
    assert ops(apply_only(computed, FUSE)) == {"MatMul": 1, "Relu": 1, "Gemm": 1}


def test_sum_of_two_products_has_two_candidates():
    graph = product("m = MatMul(x, w)  n = MatMul(x, v)  y = Add(m, n)", v=W[::-1].copy())
    found = candidates(graph, FUSE)
    assert len(found) == 2
    for candidate in found:
        assert ops(apply_checked(graph, candidate)) == {"MatMul": 1, "Gemm": 1}


def test_dynamic_rows_and_other_float_types():
    assert ops(apply_only(product(left="float[n,4]", out="float[n,5]"), FUSE)) == {"Gemm": 1}
    for kind, dtype in (("double", "f8"), ("float16", "f2")):
        graph = product(left=f"{kind}[3,4]", out=f"{kind}[3,5]", w=W.astype(dtype), b=B.astype(dtype))
        assert ops(apply_only(graph, FUSE)) == {"Gemm": 1}


def test_batched_product_is_refused():
    graph = product(left="float[2,3,4]", out="float[2,3,5]", w=np.stack([W, W]))
    assert reasons(graph, FUSE) == ["'x' has rank 3, Gemm needs 2"]
    flattened = product(left="float[2,3,4]", out="float[2,3,5]")
    assert candidates(flattened, FUSE) == reasons(flattened, FUSE) == []  # another rule's
    assert len(candidates(flattened, "flatten-matmul-add-to-gemm")) == 1


def test_bias_that_enlarges_the_result_is_refused():
    graph = load(case_path("matmul_add_bias_rank5"))
    assert candidates(graph, FUSE) == []
    assert reasons(graph, FUSE) == [
        "'bias5d' does not broadcast one way to the shape of 'z'; the Add changes the shape"
    ]


def test_second_reader_and_output_of_the_product_are_refused():
    twice = graph_of(
        "(float[3,4] x) => (float[3,5] y, float[3,5] z) { m = MatMul(x, w)  y = Add(m, b)  z = Relu(m) }",
        w=W,
        b=B,
    )
    assert reasons(twice, FUSE) == ["'m', inside the pattern, is also read by an unnamed Relu"]
    output = graph_of(
        "(float[3,4] x) => (float[3,5] m, float[3,5] y) { m = MatMul(x, w)  y = Add(m, b) }", w=W, b=B
    )
    assert reasons(output, FUSE) == ["'m', inside the pattern, is a graph output"]


def test_integers_and_old_opsets_are_refused():
    integers = product(
        left="int32[3,4]", out="int32[3,5]", w=np.ones((4, 5), "i4"), b=np.ones(5, "i4"), opset=13
    )
    assert reasons(integers, FUSE) == [
        "'y' has element type int32; the rule handles bfloat16, double, float, float16"
    ]
    assert reasons(product(opset=6), FUSE) == ["the result needs opset 7, the model imports 6"]


def test_match_inside_a_branch():
    graph = graph_of(
        """(bool c, float[3,4] x) => (float[3,5] y) {
            y = If(c) <
                then_branch = t () => (float[3,5] a) { m = MatMul(x, w)  a = Add(m, b) },
                else_branch = e () => (float[3,5] o) { o = MatMul(x, w) }
            >
        }""",
        w=W,
        b=B,
    )
    assert ops(apply_only(graph, FUSE)) == {"If": 1, "Gemm": 1, "MatMul": 1}


def test_gemm_becomes_product_and_sum():
    graph = product("y = Gemm(x, w, b)")
    result = apply_only(graph, SPLIT)
    assert ops(result) == {"MatMul": 1, "Add": 1}
    assert_inverse_restores(graph, candidates(graph, SPLIT)[0])


def test_transposed_weight_is_stored_as_it_is_used():
    graph = product("y = Gemm<transB=1>(x, w, b)", w=np.ascontiguousarray(W.T))
    (candidate,) = candidates(graph, SPLIT)
    assert candidate.bytes_delta == 0
    result = apply_checked(graph, candidate)
    matmul = next(node for node in result.nodes if node.op_type == "MatMul")
    np.testing.assert_array_equal(matmul.inputs[1].const_value.numpy(), W)


def test_shared_transposed_weight_is_copied():
    graph = product("g = Gemm<transB=1>(x, w, b)  h = Gemm<transB=1>(x, w)  y = Add(g, h)", w=W.T.copy())
    assert [c.bytes_delta for c in candidates(graph, SPLIT)] == [W.nbytes, W.nbytes]


def test_gemm_without_c_and_with_beta():
    assert ops(apply_only(product("y = Gemm<beta=2.0>(x, w)"), SPLIT)) == {"MatMul": 1}


def test_scaled_and_transposed_gemms_are_refused():
    cases = {
        "y = Gemm<alpha=0.5>(x, w, b)": "alpha is 0.5, not 1",
        "y = Gemm<beta=0.5>(x, w, b)": "beta is 0.5, not 1",
        "t = Transpose(x)  y = Gemm<transA=1>(t, w, b)": "A is transposed",
        "v = Relu(w)  t = Transpose(v)  y = Gemm<transB=1>(x, t, b)": "B is transposed and not a constant",
    }
    for body, reason in cases.items():
        assert reasons(product(body), SPLIT) == [reason]
