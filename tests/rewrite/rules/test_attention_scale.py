"""B7: the scale of attention folds into the query or key projection."""

import numpy as np
import pytest

from tests.rewrite.harness import apply_checked, apply_only, candidates, graph_of, ops, reasons

RULE = "fold-attention-scale"
RNG = np.random.default_rng(2)
HEADS = {"heads": np.array([0, 0, 2, 3]), "flat": np.array([0, 0, 6])}


def draw(*shape, dtype="f4"):
    return RNG.standard_normal(shape).astype(dtype)


def attention(scaled, projection="MatMul", **extra):
    """Two heads of three features; ``scaled`` computes ``s`` from ``q``, ``k``."""
    text = f"""(float[N,5,6] x) => (float[N,2,5,5] y) {{
        q1 = MatMul(x, wq)
        q2 = Add(q1, bq)
        q3 = Reshape(q2, heads)
        q = Transpose<perm=[0,2,1,3]>(q3)
        k1 = MatMul(x, wk)
        k3 = Reshape(k1, heads)
        k = Transpose<perm=[0,2,3,1]>(k3)
        {scaled}
        y = Softmax<axis=-1>(s)
    }}"""
    weights = {"wq": draw(6, 6), "wk": draw(6, 6), "bq": draw(6), "c": np.array(0.577, "f4"), **HEADS}
    return graph_of(text, **{**weights, **extra})


@pytest.mark.parametrize("scale", ["s = Mul(p, c)", "s = Mul(c, p)", "s = Div(p, c)"])
def test_scores_offer_both_projections(scale):
    graph = attention(f"p = MatMul(q, k)\n {scale}")
    found = candidates(graph, RULE)
    assert [candidate.variant for candidate in found] == ["left", "right"]
    for candidate in found:
        result = apply_checked(graph, candidate)
        assert ops(result) == {"MatMul": 3, "Add": 1, "Reshape": 2, "Transpose": 2, "Softmax": 1}


def test_weight_and_bias_are_scaled():
    graph = attention("p = MatMul(q, k)\n s = Mul(p, c)")
    result = apply_checked(graph, candidates(graph, RULE)[0])
    weights = {v.name: v.const_value.numpy() for v in result.initializers()}
    old = {v.name: v.const_value.numpy() for v in graph.initializers()}
    np.testing.assert_allclose(weights["wq_folded"], old["wq"] * np.float32(0.577), rtol=1e-6)
    np.testing.assert_allclose(weights["wq_bias"], old["bq"] * np.float32(0.577), rtol=1e-6)


def test_scaled_query():
    graph = attention("z = Mul(q, c)\n s = MatMul(z, k)")
    assert ops(apply_only(graph, RULE)).get("Mul") is None


def test_one_part_of_a_split_projection():
    graph = graph_of(
        """(float[N,5,6] x) => (float[N,5,5] y, float[N,5,6] v) {
            p = Gemm<transB=1>(flat, w, b)
            r = Reshape(p, back)
            q, k, v = Split<axis=2>(r, sizes)
            kt = Transpose<perm=[0,2,1]>(k)
            f = Identity(x)
            flat = Reshape(f, rows)
            m = MatMul(q, kt)
            y = Mul(m, c)
        }""",
        w=draw(18, 6),
        b=draw(18),
        rows=np.array([-1, 6]),
        back=np.array([-1, 5, 18]),
        sizes=np.array([6, 6, 6]),
        c=np.array(0.3, "f4"),
    )
    found = candidates(graph, RULE)
    assert [candidate.variant for candidate in found] == ["left", "right"]
    for candidate in found:
        assert ops(apply_checked(graph, candidate)).get("Mul") is None


def test_rotary_embedding_in_between_is_named():
    graph = attention("r = Mul(q, cos)\n p = MatMul(r, k)\n s = Mul(p, c)", cos=draw(1, 1, 5, 3))
    assert [candidate.variant for candidate in candidates(graph, RULE)] == ["right"]
    assert reasons(graph, RULE) == ["between the projection and the product lies an unnamed Mul"]


def test_query_with_another_reader_is_refused():
    graph = graph_of(
        """(float[N,5,6] x) => (float[N,5,5] y, float[N,5,6] z) {
            q = MatMul(x, wq)
            k = MatMul(x, wk)
            kt = Transpose<perm=[0,2,1]>(k)
            p = MatMul(q, kt)
            y = Mul(p, c)
            z = Relu(q)
        }""",
        wq=draw(6, 6),
        wk=draw(6, 6),
        c=np.array(0.3, "f4"),
    )
    assert [candidate.variant for candidate in candidates(graph, RULE)] == ["right"]
    assert reasons(graph, RULE) == ["'q' is read by more than the scaled product"]


def test_mask_added_first_is_something_else():
    graph = attention("p = MatMul(q, k)\n m = Add(p, mask)\n s = Mul(m, c)", mask=draw(5, 5))
    assert candidates(graph, RULE) == []


def test_scale_per_head_is_something_else():
    graph = attention("p = MatMul(q, k)\n s = Mul(p, c)", c=draw(2, 1, 1))
    assert candidates(graph, RULE) == []


def test_projection_computed_at_run_time_is_refused():
    graph = graph_of(
        """(float[2,5,6] x, float[6,6] w) => (float[2,5,5] y) {
            q = MatMul(x, w)
            kt = Transpose<perm=[0,2,1]>(x)
            p = MatMul(q, kt)
            y = Mul(p, c)
        }""",
        c=np.array(0.3, "f4"),
    )
    assert reasons(graph, RULE) == ["right operand 'w' is a graph input, not a constant"]
