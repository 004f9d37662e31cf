"""D5 and D6: products of the same tensor merged into one, and split again."""

import numpy as np

from tests.rewrite.harness import (
    apply_checked,
    apply_only,
    assert_inverse_restores,
    candidates,
    graph_of,
    ops,
    reasons,
)

MERGE, SPLIT = "merge-parallel-matmuls", "split-merged-matmul"
RNG = np.random.default_rng(1)
WEIGHTS = {f"w{i}": RNG.standard_normal((4, n)).astype("f4") for i, n in enumerate((3, 5, 2))}
BIASES = {f"b{i}": RNG.standard_normal(n).astype("f4") for i, n in enumerate((3, 5, 2))}
QKV = """(float[n,6,4] x) => (float[n,6,3] q, float[n,6,5] k, float[n,6,2] v) {
    m0 = MatMul(x, w0)  q = Add(m0, b0)
    m1 = MatMul(x, w1)  k = Add(b1, m1)
    m2 = MatMul(x, w2)  v = Add(m2, b2)
}"""


def test_three_projections_become_one_product():
    graph = graph_of(QKV, **WEIGHTS, **BIASES)
    every = next(c for c in candidates(graph, MERGE) if len(c.nodes) == 6)
    assert every.bytes_delta == 3 * 8  # the sizes of the Split
    assert ops(apply_checked(graph, every)) == {"MatMul": 1, "Add": 1, "Split": 1}


def test_every_pair_is_a_candidate_of_its_own():
    graph = graph_of(QKV, **WEIGHTS, **BIASES)
    assert sorted(len(c.nodes) for c in candidates(graph, MERGE)) == [4, 4, 4, 6]
    for candidate in candidates(graph, MERGE):
        apply_checked(graph, candidate)


def test_sizes_are_an_attribute_before_opset_13():
    graph = graph_of(QKV, opset=11, **WEIGHTS, **BIASES)
    every = next(c for c in candidates(graph, MERGE) if len(c.nodes) == 6)
    result = apply_checked(graph, every)
    (node,) = (n for n in result.nodes if n.op_type == "Split")
    assert node.attributes.get_ints("split") == (3, 5, 2)


def test_biases_stay_outside_unless_all_have_one():
    graph = graph_of(
        """(float[2,4] x) => (float[2,3] y, float[2,5] z) {
            m0 = MatMul(x, w0)  y = Add(m0, b0)
            z = MatMul(x, w1)
        }""",
        w0=WEIGHTS["w0"],
        w1=WEIGHTS["w1"],
        b0=BIASES["b0"],
    )
    assert ops(apply_only(graph, MERGE)) == {"MatMul": 1, "Split": 1, "Add": 1}


def test_shared_weight_is_copied():
    graph = graph_of(
        "(float[2,4] x, float[2,4] u) => (float[2,3] y, float[2,5] z, float[2,3] s)"
        "{ y = MatMul(x, w0)  z = MatMul(x, w1)  s = MatMul(u, w0) }",
        w0=WEIGHTS["w0"],
        w1=WEIGHTS["w1"],
    )
    (candidate,) = candidates(graph, MERGE)
    assert candidate.bytes_delta == WEIGHTS["w0"].nbytes + 2 * 8
    apply_checked(graph, candidate)


def test_merge_and_split_undo_each_other():
    graph = graph_of(
        "(float[2,4] x) => (float[2,3] y, float[2,5] z) { y = MatMul(x, w0)  z = MatMul(x, w1) }",
        w0=WEIGHTS["w0"],
        w1=WEIGHTS["w1"],
    )
    assert_inverse_restores(graph, candidates(graph, MERGE)[0])


def test_computed_batched_and_mismatched_weights_are_refused():
    def pair(second, declared="", **weights):
        return graph_of(
            f"(float[2,4] x{declared}) => (float[?,3] y, float[?,?,?] z) {{ y = MatMul(x, w0)  {second} }}",
            w0=WEIGHTS["w0"],
            **weights,
        )

    computed = pair("z = MatMul(x, u)", ", float[1,4,2] u")
    assert reasons(computed, MERGE) == ["right operand 'u' is not a constant"]
    batched = pair("z = MatMul(x, u)", u=RNG.standard_normal((2, 4, 2)).astype("f4"))
    assert reasons(batched, MERGE) == ["right operand 'u' has rank 3, not 2"]


def test_weight_that_is_an_overridable_input_is_refused():
    graph = graph_of(
        "(float[2,4] x, float[4,5] w1) => (float[2,3] y, float[2,5] z)"
        "{ y = MatMul(x, w0)  z = MatMul(x, w1) }",
        w0=WEIGHTS["w0"],
        w1=WEIGHTS["w1"],
    )
    assert candidates(graph, MERGE) == []
    assert reasons(graph, MERGE) == ["right operand 'w1' is not a constant"]


def test_branch_of_an_if_is_no_sibling_of_the_main_graph():
    graph = graph_of(
        """(bool c, float[2,4] x) => (float[2,3] y, float[2,3] z) {
            y = MatMul(x, w0)
            z = If(c) <
                then_branch = t () => (float[2,3] a) { a = MatMul(x, w0) },
                else_branch = e () => (float[2,3] o) {
                    p = MatMul(x, w1)  r = MatMul(x, w2)  o = Concat<axis=1>(p, r)
                }
            >
        }""",
        w0=WEIGHTS["w0"],
        w1=WEIGHTS["w0"][:, :1].copy(),
        w2=WEIGHTS["w2"],
    )
    (candidate,) = candidates(graph, MERGE)
    assert ops(apply_checked(graph, candidate)) == {"MatMul": 3, "If": 1, "Split": 1, "Concat": 1}


def test_merged_projection_is_split():
    graph = graph_of(
        """(float[n,4] x) => (float[n,3] q, float[n,5] k) {
            m = MatMul(x, w)  a = Add(b, m)  q, k = Split<axis=-1>(a, sizes)
        }""",
        w=RNG.standard_normal((4, 8)).astype("f4"),
        b=RNG.standard_normal(8).astype("f4"),
        sizes=np.array([3, 5]),
    )
    (candidate,) = candidates(graph, SPLIT)
    assert candidate.bytes_delta == -2 * 8
    assert ops(apply_checked(graph, candidate)) == {"MatMul": 2, "Add": 2}


def test_equal_parts_and_double_precision():
    graph = graph_of(
        "(double[2,4] x) => (double[2,3] q, double[2,3] k) { m = MatMul(x, w)  q, k = Split<axis=1, num_outputs=2>(m) }",
        opset=18,
        w=RNG.standard_normal((4, 6)),
    )
    assert ops(apply_only(graph, SPLIT)) == {"MatMul": 2}


def test_split_over_another_axis_or_of_unknown_sizes_is_refused():
    rows = graph_of(
        "(float[4,4] x) => (float[2,6] q, float[2,6] k) { m = MatMul(x, w)  q, k = Split<axis=0>(m) }",
        w=RNG.standard_normal((4, 6)).astype("f4"),
    )
    assert reasons(rows, SPLIT) == ["the Split is over axis 0, not over the last axis"]
    variable = graph_of(
        "(float[4,4] x, int64[2] s) => (float[4,?] q, float[4,?] k) { m = MatMul(x, w)  q, k = Split<axis=1>(m, s) }",
        w=RNG.standard_normal((4, 6)).astype("f4"),
    )
    assert reasons(variable, SPLIT) == ["the sizes of the Split are not constant"]


def test_product_that_something_else_reads_is_left_alone():
    graph = graph_of(
        """(float[4,4] x) => (float[4,3] q, float[4,3] k, float[4,6] r) {
            m = MatMul(x, w)  q, k = Split<axis=1>(m)  r = Relu(m)
        }""",
        w=RNG.standard_normal((4, 6)).astype("f4"),
    )
    assert candidates(graph, SPLIT) == []
