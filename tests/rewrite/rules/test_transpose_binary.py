"""G2: transposes through element-wise operators of several operands."""

import numpy as np
import pytest

from tests.rewrite.harness import apply_only, assert_inverse_restores, candidates, graph_of, ops, reasons

SINK, HOIST = "sink-transpose-through-binary", "hoist-transpose-through-binary"
RNG = np.random.default_rng(0)
HEAD = "(float[2,3,4] x, float[2,3,4] z) => (float[4,2,3] y)"


@pytest.mark.parametrize("form", ["Add(s, t)", "Sub(t, s)", "Max(s, t)", "Pow(s, two)", "Add(two, s)"])
def test_same_permutation_on_all_operands(form):
    other = "t = Transpose<perm=[2,0,1]>(z)" if "t" in form.replace("two", "") else ""
    graph = graph_of(f"{HEAD} {{ s = Transpose<perm=[2,0,1]>(x) {other} y = {form} }}", two=np.float32(2))
    (candidate,) = candidates(graph, SINK)
    result = apply_only(graph, SINK)
    assert ops(result)["Transpose"] == 1
    assert result.nodes[-1].op_type == "Transpose"
    assert_inverse_restores(graph, candidate)


def test_same_tensor_twice():
    graph = graph_of("(float[2,3] x) => (float[3,2] y) { t = Transpose(x) y = Mul(t, t) }")
    assert ops(apply_only(graph, SINK)) == {"Mul": 1, "Transpose": 1}


@pytest.mark.parametrize("shape", [(3,), (2, 1), (4, 1, 1), (4, 2, 3), (1, 3)])
def test_constants_are_laid_out_anew(shape):
    graph = graph_of(
        "(float[2,3,4] x) => (float[4,2,3] y) { s = Transpose<perm=[2,0,1]>(x) y = Add(c, s) }",
        c=RNG.standard_normal(shape).astype("f4"),
    )
    result = apply_only(graph, SINK)
    assert [node.op_type for node in result.nodes] == ["Add", "Transpose"]
    (constant,) = result.initializers()
    expected = moved_back(shape)
    assert tuple(constant.const_value.shape.numpy()) == expected


def moved_back(shape):
    """The shape of a constant at full rank, its axes moved back by the inverse of [2, 0, 1]."""
    full = (1,) * (3 - len(shape)) + shape
    moved = tuple(full[axis] for axis in (1, 2, 0))
    while moved[0] == 1:
        moved = moved[1:]
    return moved


def test_constant_and_its_layout_come_back():
    graph = graph_of(
        "(float[2,3,4] x) => (float[4,2,3] y) { s = Transpose<perm=[2,0,1]>(x) y = Add(c, s) }",
        c=RNG.standard_normal((4, 2, 3)).astype("f4"),
    )
    assert_inverse_restores(graph, candidates(graph, SINK)[0])


def test_constant_with_another_reader_is_copied():
    graph = graph_of(
        "(float[2,3] x, float[3,2] w) => (float[3,2] y, float[3,2] z) { s = Transpose(x) y = Add(c, s) z = Add(w, c) }",
        c=RNG.standard_normal((3, 2)).astype("f4"),
    )
    (candidate,) = candidates(graph, SINK)
    assert candidate.bytes_delta == 24
    apply_only(graph, SINK)


def test_where_with_three_operands():
    graph = graph_of(
        """(bool[2,3] c, float[2,3] x, float[2,3] z) => (float[3,2] y) {
            p = Transpose(c) q = Transpose(x) r = Transpose(z)
            y = Where(p, q, r)
        }"""
    )
    assert ops(apply_only(graph, SINK)) == {"Where": 1, "Transpose": 1}


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        (
            "s = Transpose<perm=[2,0,1]>(x) t = Transpose<perm=[2,1,0]>(w) y = Add(s, t)",
            "the operands are transposed in different ways",
        ),
        ("s = Transpose<perm=[2,0,1]>(x) y = Add(s, v)", "'v' is neither transposed nor constant"),
        ("s = Transpose<perm=[2,0,1]>(x) y = Add(s, c)", "'c' has rank 4, more than 3"),
    ],
)
def test_near_misses(nodes, reason):
    graph = graph_of(
        f"(float[2,3,4] x, float[3,2,4] w, float[4,2,3] v) => (float[] y) {{ {nodes} }}",
        c=np.ones((5, 1, 1, 1), "f4"),
    )
    assert candidates(graph, SINK) == []
    assert reasons(graph, SINK) == [reason]


def test_transpose_with_another_reader_is_refused():
    graph = graph_of(
        "(float[2,3] x) => (float[3,2] y, float[3,2] z) { s = Transpose(x) y = Add(s, one) z = Neg(s) }",
        one=np.float32(1),
    )
    assert reasons(graph, SINK) == ["'s', inside the pattern, is also read by an unnamed Neg"]


@pytest.mark.parametrize("shape", [(), (4,), (3, 1), (2, 3, 4)])
def test_transpose_rises_past_constants(shape):
    graph = graph_of(
        "(float[2,3,4] x) => (float[4,2,3] y) { h = Mul(x, c) y = Transpose<perm=[2,0,1]>(h) }",
        c=RNG.standard_normal(shape).astype("f4"),
    )
    result = apply_only(graph, HOIST)
    assert [node.op_type for node in result.nodes] == ["Transpose", "Mul"]
    if len(shape) in {0, 3}:
        assert_inverse_restores(graph, candidates(graph, HOIST)[0])


def test_transpose_rises_onto_every_operand():
    graph = graph_of("(float[2,3] x, float[1,3] z) => (float[3,2] y) { h = Add(x, z) y = Transpose(h) }")
    result = apply_only(graph, HOIST)
    assert ops(result) == {"Transpose": 2, "Add": 1}
    assert_inverse_restores(graph, candidates(graph, HOIST)[0])


def test_operand_of_lower_rank_is_refused():
    graph = graph_of("(float[2,3] x, float[3] z) => (float[3,2] y) { h = Add(x, z) y = Transpose(h) }")
    assert reasons(graph, HOIST) == ["'z' has rank 1, not 2"]


def test_dynamic_dims_and_other_types():
    graph = graph_of(
        "(int64[N,3] x, int64[N,3] z) => (bool[3,N] y) { s = Transpose(x) t = Transpose(z) y = Less(s, t) }"
    )
    result = apply_only(graph, SINK)
    assert ops(result) == {"Less": 1, "Transpose": 1}
    assert_inverse_restores(graph, candidates(graph, SINK)[0])


@pytest.mark.parametrize("body", ["y = Less(s, t)", "y = Less(t, s)"])
def test_transpose_of_the_other_operand_is_refused(body):
    graph = graph_of(f"(float[3,3] x) => (bool[3,3] y) {{ s = Transpose(x) t = Transpose(s) {body} }}")
    assert candidates(graph, "sink-transpose-through-binary") == []
    assert reasons(graph, "sink-transpose-through-binary") == ["'s' is transposed once more"]
