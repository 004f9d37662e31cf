"""F10: normalisations below or above a Transpose of the other axes."""

import numpy as np
import pytest

from tests.rewrite.harness import apply_only, assert_inverse_restores, candidates, graph_of, ops, reasons

AFTER, BEFORE = "move-transpose-after-norm", "move-transpose-before-norm"
GAMMA = np.random.default_rng(17).uniform(0.5, 1.5, 6).astype("f4")


def norm(body, inputs="float[n,3,6] x", outputs="float[3,n,6] y", opset=17, gamma=GAMMA):
    return graph_of(f"({inputs}) => ({outputs}) {{ {body} }}", opset=opset, gamma=gamma)


@pytest.mark.parametrize(("op_type", "opset"), [("LayerNormalization", 17), ("RMSNormalization", 23)])
def test_transpose_moves_and_comes_back(op_type, opset):
    below = norm(f"t = Transpose<perm=[1,0,2]>(x)  y = {op_type}(t, gamma)", opset=opset)
    assert [n.op_type for n in apply_only(below, AFTER).nodes] == [op_type, "Transpose"]
    assert_inverse_restores(below, candidates(below, AFTER)[0])
    above = norm(f"n = {op_type}<axis=2>(x, gamma)  y = Transpose<perm=[1,0,2]>(n)", opset=opset)
    assert [n.op_type for n in apply_only(above, BEFORE).nodes] == ["Transpose", op_type]
    assert_inverse_restores(above, candidates(above, BEFORE)[0])


def test_permutation_that_moves_the_normalised_axes_is_refused():
    graph = norm(
        "t = Transpose<perm=[0,2,1]>(x)  y = LayerNormalization(t, gamma)", "float[n,6,3] x", "float[n,3,6] y"
    )
    assert reasons(graph, AFTER) == ["the permutation [0, 2, 1] moves the normalised axes [-1]"]
    two = norm(
        "t = Transpose<perm=[1,0,2]>(x)  y = LayerNormalization<axis=1>(t, gamma)",
        "float[2,3,6] x",
        "float[3,2,6] y",
        gamma=np.ones((2, 6), "f4"),
    )
    assert reasons(two, AFTER) == ["the permutation [1, 0, 2] moves the normalised axes [-2, -1]"]


@pytest.mark.parametrize("shape", ["3,1,6", "k,1,6"])
def test_scale_that_varies_over_a_moved_axis_is_refused(shape):
    scale = f"float[{shape}] g"
    after = graph_of(
        f"(float[3,3,6] x, {scale}) => (float[3,3,6] y) "
        "{ t = Transpose<perm=[1,0,2]>(x)  y = LayerNormalization(t, g) }",
        opset=17,
    )
    said = f"'g' [{shape.replace(',', ', ')}] may vary over other axes than the normalised [-1]"
    assert reasons(after, AFTER) == [said]
    before = graph_of(
        f"(float[3,3,6] x, {scale}) => (float[3,3,6] y) "
        "{ n = LayerNormalization(x, g)  y = Transpose<perm=[1,0,2]>(n) }",
        opset=17,
    )
    assert reasons(before, BEFORE) == [said]


def test_scale_with_leading_ones_moves_too():
    below = norm(
        "t = Transpose<perm=[1,0,2]>(x)  y = LayerNormalization(t, gamma)", gamma=GAMMA.reshape(1, 6)
    )
    assert [n.op_type for n in apply_only(below, AFTER).nodes] == ["LayerNormalization", "Transpose"]


def test_other_readers_are_refused_or_left_alone():
    shared = norm(
        "t = Transpose<perm=[1,0,2]>(x)  y = LayerNormalization(t, gamma)  z = Relu(t)",
        outputs="float[3,n,6] y, float[3,n,6] z",
    )
    assert reasons(shared, AFTER) == ["'t', inside the pattern, is also read by an unnamed Relu"]
    read = norm(
        "n = LayerNormalization(x, gamma)  y = Transpose<perm=[1,0,2]>(n)  z = Relu(n)",
        outputs="float[3,n,6] y, float[n,3,6] z",
    )
    assert candidates(read, BEFORE) == []


def test_used_mean_is_refused():
    graph = norm(
        "t = Transpose<perm=[1,0,2]>(x)  y, m = LayerNormalization(t, gamma)",
        outputs="float[3,n,6] y, float[3,n,1] m",
    )
    assert reasons(graph, AFTER) == ["'m' is used too"]


def test_match_inside_a_branch():
    graph = norm(
        """y = If(k) <
            then_branch = t () => (float[3,2,6] o) {
                a = Transpose<perm=[1,0,2]>(x)  o = LayerNormalization(a, gamma)
            },
            else_branch = e () => (float[3,2,6] p) { p = Transpose<perm=[1,0,2]>(x) }
        >""",
        "bool k, float[2,3,6] x",
        "float[3,2,6] y",
    )
    assert ops(apply_only(graph, AFTER)) == {"If": 1, "Transpose": 2, "LayerNormalization": 1}
