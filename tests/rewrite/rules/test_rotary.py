"""F8: rotary position embeddings as exporters write them, as one node, and back."""

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

MS, SPLIT_MS, STANDARD, SPLIT_STANDARD = (
    "fuse-microsoft-rotary",
    "split-microsoft-rotary",
    "fuse-rotary",
    "split-rotary",
)
ANGLES = np.random.default_rng(15).uniform(-3, 3, (5, 4))
ANGLES = np.concatenate([ANGLES, ANGLES], axis=1)
COS, SIN = np.cos(ANGLES).astype("f4"), np.sin(ANGLES).astype("f4")
SLICES = """a = Slice(x, zero, half, axis, one)  b = Slice(x, half, end, axis, one)  n = Neg(b)
    r = Concat<axis=-1>(n, a)  s = Mul(r, sin)  c = Mul(x, cos)  y = Add(c, s)"""
SPLIT = """a, b = Split<axis=3>(x, halves)  n = Neg(b)  r = Concat<axis=-1>(n, a)
    c = Mul(x, cos)  s = Mul(r, sin)  y = Add(c, s)"""


def rotated(body, kind="float", dtype="f4", opset=17, batch="n", outputs="", **changed):
    numbers = {
        "zero": np.array([0]),
        "half": np.array([4]),
        "end": np.array([2**63 - 1]),
        "axis": np.array([3]),
        "one": np.array([1]),
        "halves": np.array([4, 4]),
        "cos": COS[None, None].astype(dtype),
        "sin": SIN[None, None].astype(dtype),
    }
    used = {k: v for k, v in {**numbers, **changed}.items() if f"{k})" in body or f"{k}," in body}
    shape = f"[{batch},3,5,8]"
    return graph_of(f"({kind}{shape} x) => ({kind}{shape} y{outputs}) {{ {body} }}", opset=opset, **used)


FORMS = {
    "slices": SLICES,
    "split": SPLIT,
    "swapped": SLICES.replace("Mul(r, sin)", "Mul(sin, r)").replace("Mul(x, cos)", "Mul(cos, x)").replace("Add(c, s)", "Add(s, c)"),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(("kind", "dtype"), [("float", "f4"), ("float16", "f2")])
def test_forms(form, kind, dtype):
    (node,) = apply_only(rotated(form, kind, dtype), MS).nodes
    assert (node.op_type, node.domain) == ("RotaryEmbedding", "com.microsoft")


def test_bytes_of_the_tables():
    graph = rotated(SPLIT)
    (candidate,) = candidates(graph, MS)
    assert candidate.bytes_delta == 2 * 5 * 4 * 4 + 8 - 2 * 5 * 8 * 4 - 16
    apply_checked(graph, candidate)


def test_fused_and_back():
    graph = rotated(SPLIT, cos=COS, sin=SIN)
    assert_inverse_restores(graph, candidates(graph, MS)[0])
    graph = rotated(SPLIT, opset=23, batch=2, cos=COS, sin=SIN)
    (candidate,) = candidates(graph, STANDARD)
    assert candidate.portable
    assert ops(apply_checked(graph, candidate)) == {"RotaryEmbedding": 1}


def test_standard_operator_of_one_batch_and_back():
    graph = rotated(SPLIT, opset=23, batch=1, cos=COS, sin=SIN)
    assert_inverse_restores(graph, candidates(graph, STANDARD)[0])


def test_standard_operator_needs_opset_23_and_a_static_batch():
    assert reasons(rotated(SPLIT, batch=2), STANDARD) == ["the result needs opset 23, the model imports 17"]
    assert reasons(rotated(SPLIT, opset=23), STANDARD) == ["the batch of 'x' is not static"]


def test_shared_tables_are_kept():
    graph = rotated(SPLIT + "  z = Mul(y, cos)", outputs=", float[n,3,5,8] z")
    (candidate,) = candidates(graph, MS)
    assert candidate.bytes_delta == 2 * 5 * 4 * 4 + 8 - 5 * 8 * 4 - 16
    apply_checked(graph, candidate)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"cos": np.cos(np.arange(40.0).reshape(1, 1, 5, 8)).astype("f4")}, "the two halves of the cosine 'cos' differ"),
        ({"sin": SIN[None, None, :1].copy()}, "sine 'sin' [1, 1, 1, 8] is not one row per position of 'x'"),
        ({"cos": np.tile(COS, (1, 3, 1, 1))}, "cosine 'cos' [1, 3, 5, 8] is not one row per position of 'x'"),
    ],
)  # fmt: skip
def test_tables_of_another_kind_are_refused(changed, reason):
    assert reasons(rotated(SPLIT, **changed), MS) == [reason]


def test_computed_tables_and_other_ranks_are_refused():
    computed = rotated("t = Neg(table)  " + SPLIT.replace("cos", "t"), table=COS)
    assert reasons(computed, MS) == ["the cosine 't' is not a constant"]
    flat = graph_of(
        "(float[n,5,8] x) => (float[n,5,8] y) { " + SPLIT.replace("axis=3", "axis=2") + " }",
        halves=np.array([4, 4]),
        cos=COS,
        sin=SIN,
    )
    assert reasons(flat, MS) == ["'x' has rank 3, not 4 (heads in axis 1)"]


@pytest.mark.parametrize(
    ("body", "changed"),
    [
        (SLICES.replace("Concat<axis=-1>(n, a)", "Concat<axis=-1>(a, n)"), {}),
        (SLICES, {"half": np.array([3])}),  # the halves overlap or leave a gap
        (SLICES.replace("Mul(x, cos)", "Mul(r, cos)"), {}),
    ],
)
def test_lookalikes_are_left_alone(body, changed):
    assert candidates(rotated(body, **changed), MS) == []


def test_inner_value_that_others_read_is_refused():
    graph = rotated(SPLIT + "  z = Relu(r)", outputs=", float[n,3,5,8] z")
    assert reasons(graph, MS) == ["'r', inside the pattern, is also read by an unnamed Relu"]


@pytest.mark.parametrize(
    ("attributes", "position", "reason"),
    [
        ("interleaved=1", "start", "interleaved is set"),
        ("scale=0.5", "start", "it scales the positions"),
        ("interleaved=0", "later", "the positions do not start at a constant zero"),
    ],
)
def test_operators_that_cannot_be_written_out_are_refused(attributes, position, reason):
    graph = graph_of(
        f"""(float[n,3,5,8] x) => (float[n,3,5,8] y) {{
            y = com.microsoft.RotaryEmbedding<{attributes}>(x, {position}, cos, sin)
        }}""",
        domains={"com.microsoft": 1},
        start=np.array([0]),
        later=np.array([2]),
        cos=COS[:, :4].copy(),
        sin=SIN[:, :4].copy(),
    )
    assert reasons(graph, SPLIT_MS) == [reason]


def test_longer_tables_are_cut():
    longer = np.concatenate([COS, COS])[:, :4].copy()
    graph = graph_of(
        """(float[n,3,5,8] x) => (float[n,3,5,8] y) { y = com.microsoft.RotaryEmbedding(x, start, cos, sin) }""",
        domains={"com.microsoft": 1},
        start=np.array([0]),
        cos=longer,
        sin=longer[::-1].copy(),
    )
    assert ops(apply_only(graph, SPLIT_MS)) == {"Split": 1, "Neg": 1, "Concat": 1, "Mul": 2, "Add": 1}


def test_match_inside_a_branch():
    body = SPLIT.replace("y =", "o =")
    graph = graph_of(
        f"""(bool k, float[2,3,5,8] x) => (float[2,3,5,8] y) {{
            y = If(k) <
                then_branch = t () => (float[2,3,5,8] o) {{ {body} }},
                else_branch = e () => (float[2,3,5,8] p) {{ p = Relu(x) }}
            >
        }}""",
        halves=np.array([4, 4]),
        cos=COS,
        sin=SIN,
    )
    assert ops(apply_only(graph, MS)) == {"If": 1, "RotaryEmbedding": 1, "Relu": 1}
