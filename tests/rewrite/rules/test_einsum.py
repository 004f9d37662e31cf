"""D15: Einsum as Transpose, Reshape and MatMul."""

import numpy as np
import pytest

from tests.rewrite.harness import apply_only, candidates, graph_of, ops, reasons

RULE = "einsum-to-matmul"
SIZES = {"b": 2, "h": 3, "i": 4, "j": 5, "k": 6, "l": 7, "d": 3, "e": 2, "m": 4, "n": 5, "s": 6}


def shape(labels, dynamic=""):
    return f"[{','.join('N' + x if x in dynamic else str(SIZES[x]) for x in labels)}]"


def einsum(equation, kind="float", dynamic="", opset=17):
    terms, _, out = equation.replace(" ", "").partition("->")
    names = "xz"
    inputs = ", ".join(f"{kind}{shape(t, dynamic)} {names[i]}" for i, t in enumerate(terms.split(",")))
    operands = ", ".join(names[: len(terms.split(","))])
    return graph_of(
        f'({inputs}) => ({kind}{shape(out, dynamic)} y) {{ y = Einsum<equation="{equation}">({operands}) }}',
        opset=opset,
    )


@pytest.mark.parametrize(
    ("equation", "expected"),
    [
        ("ij,jk->ik", {"MatMul": 1}),
        ("bij,bjk->bik", {"MatMul": 1}),
        ("bhij,bhjk->bhik", {"MatMul": 1}),
        ("bsk,kn->bsn", {"MatMul": 1}),
        ("bhik,bhjk->bhij", {"MatMul": 1, "Transpose": 1}),
        ("bihd,bjhd->bhij", {"MatMul": 1, "Transpose": 2}),
        ("bhij,bjhd->bihd", {"MatMul": 1, "Transpose": 2}),
        ("ij,jk->ki", {"MatMul": 1, "Transpose": 1}),
        ("ji,jk->ik", {"MatMul": 1, "Transpose": 1}),
        ("k,kn->n", {"MatMul": 1}),
        ("i,i->", {"MatMul": 1, "Reshape": 3}),
        ("bi,bi->b", {"MatMul": 1, "Reshape": 3}),
        ("bihd,hde->bie", {"MatMul": 1, "Reshape": 3}),
        ("bij,ijk->bk", {"MatMul": 1, "Reshape": 3}),
        ("bij,kj->bik", {"MatMul": 1, "Transpose": 1}),
        ("bie,hde->bihd", {"MatMul": 1, "Transpose": 1, "Reshape": 3}),
        ("ij->ji", {"Transpose": 1}),
    ],
)
def test_equations(equation, expected):
    assert ops(apply_only(einsum(equation), RULE)) == expected


def test_equation_without_an_arrow():
    graph = graph_of('(float[3,2] x, float[2,4] z) => (float[3,4] y) { y = Einsum<equation="ij, jk">(x, z) }')
    assert ops(apply_only(graph, RULE)) == {"MatMul": 1}


def test_dynamic_batch_needs_no_sizes_where_nothing_is_merged():
    assert ops(apply_only(einsum("bij,bjk->bik", dynamic="bi"), RULE)) == {"MatMul": 1}
    assert ops(apply_only(einsum("bihd,hde->bie", dynamic="b"), RULE)) == {"MatMul": 1, "Reshape": 3}


@pytest.mark.parametrize(("kind"), ["double", "float16"])
def test_other_float_types(kind):
    graph = einsum("bhik,bhjk->bhij", kind)
    if kind == "double":
        apply_only(graph, RULE)
    else:
        assert (
            len(candidates(graph, RULE)) == 1
        )  # ONNX Runtime has no Einsum in half precision to compare with


@pytest.mark.parametrize(
    ("equation", "reason"),
    [
        ("ij,jk->k", "'ij,jk->k' sums over 'i' of one operand"),
        ("ij,kl->ijkl", "'ij,kl->ijkl' sums over nothing: it is no product of matrices"),
        ("ij->i", "'ij->i' sums over labels of its only operand"),
    ],
)
def test_equations_that_are_no_product_are_refused(equation, reason):
    assert reasons(einsum(equation), RULE) == [reason]


def test_ellipsis_repeated_labels_and_three_operands_are_refused():
    def written(equation, inputs, operands, out):
        return graph_of(f'({inputs}) => ({out} y) {{ y = Einsum<equation="{equation}">({operands}) }}')

    dots = written("...ij,...jk->...ik", "float[2,3,4] x, float[2,4,5] z", "x, z", "float[2,3,5]")
    assert reasons(dots, RULE) == ["the equation '...ij,...jk->...ik' has an ellipsis"]
    diagonal = written("ii,ij->j", "float[3,3] x, float[3,4] z", "x, z", "float[4]")
    assert reasons(diagonal, RULE) == ["a label occurs twice in 'ii'"]
    three = written("ij,jk,kl->il", "float[2,3] x, float[3,4] z, float[4,5] u", "x, z, u", "float[2,5]")
    assert reasons(three, RULE) == ["the equation has 3 operands, not 1 or 2"]


def test_sizes_that_may_differ_and_two_unknown_sizes_are_refused():
    graph = graph_of(
        '(float[3,a] x, float[b,4] z) => (float[3,4] y) { y = Einsum<equation="ij,jk->ik">(x, z) }'
    )
    assert reasons(graph, RULE) == ["the sizes of 'j' are not known to be equal: a and b"]
    stretched = graph_of(
        '(float[1,3,2] x, float[5,2,4] z) => (float[5,3,4] y) { y = Einsum<equation="bij,bjk->bik">(x, z) }'
    )
    assert reasons(stretched, RULE) == ["the sizes of 'b' are not known to be equal: 1 and 5"]
    unknown = einsum("bihd,hde->bie", dynamic="bi")
    assert reasons(unknown, RULE) == ["the sizes of 'b' and 'i' are not static"]


def test_integers_are_refused():
    graph = graph_of(
        '(int32[3,2] x, int32[2,4] z) => (int32[3,4] y) { y = Einsum<equation="ij,jk->ik">(x, z) }'
    )
    assert reasons(graph, RULE) == ["'y' has element type int32; the rule handles double, float, float16"]


def test_match_inside_a_branch():
    graph = graph_of(
        """(bool c, float[3,2] x, float[2,4] z) => (float[3,4] y) {
            y = If(c) <
                then_branch = t () => (float[3,4] o) { o = Einsum<equation="ij,jk->ik">(x, z) },
                else_branch = e () => (float[3,4] p) { m = MatMul(x, z)  p = Neg(m) }
            >
        }"""
    )
    assert ops(apply_only(graph, RULE)) == {"If": 1, "MatMul": 2, "Neg": 1}


def test_constant_weight():
    graph = graph_of(
        '(float[2,6] x) => (float[2,3] y) { y = Einsum<equation="bk,kn->bn">(x, w) }',
        w=np.random.default_rng(8).standard_normal((6, 3)).astype("f4"),
    )
    assert ops(apply_only(graph, RULE)) == {"MatMul": 1}
