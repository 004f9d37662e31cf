"""G11: reductions that follow each other, or whose axes come back."""

import numpy as np
import pytest

from tests.rewrite.harness import apply_only, candidates, graph_of, ops, reasons

KEEP, TWO = "merge-reduction-and-unsqueeze", "merge-reductions"


@pytest.mark.parametrize("opset", [11, 13, 17, 18])
@pytest.mark.parametrize("op", ["ReduceMean", "ReduceSum", "ReduceMax"])
def test_reduction_keeps_its_axes(op, opset):
    reduce_input = opset >= 18 or (op == "ReduceSum" and opset >= 13)
    reduced = f"{op}<keepdims=0>(x, a)" if reduce_input else f"{op}<axes=[2,1], keepdims=0>(x)"
    back = "Unsqueeze(h, b)" if opset >= 13 else "Unsqueeze<axes=[1,-1]>(h)"
    weights = ({"a": np.array([2, 1])} if reduce_input else {}) | (
        {"b": np.array([1, -1])} if opset >= 13 else {}
    )
    graph = graph_of(
        f"(float[N,3,4] x) => (float[N,1,1] y) {{ h = {reduced} k = {back} y = Neg(k) }}",
        opset=opset,
        **weights,
    )
    result = apply_only(graph, KEEP)
    assert ops(result) == {op: 1, "Neg": 1}
    assert result.nodes[0].attributes["keepdims"].value == 1


def test_axes_shared_by_both_stay():
    graph = graph_of(
        "(float[N,3,4] x) => (float[N,1,1] y) { h = ReduceSum<keepdims=0>(x, b) k = Unsqueeze(h, b) y = Neg(k) }",
        b=np.array([1, 2]),
    )
    assert [value.name for value in apply_only(graph, KEEP).initializers()] == ["b"]


def test_reduction_drops_its_axes():
    graph = graph_of(
        "(float[N,3,4] x) => (float[N,4] y) { h = ReduceMean<axes=[1]>(x) k = Squeeze(h, a) y = Neg(k) }",
        a=np.array([1]),
    )
    result = apply_only(graph, KEEP)
    assert result.nodes[0].attributes["keepdims"].value == 0
    assert list(result.initializers()) == []


def test_other_axes_are_refused():
    graph = graph_of(
        "(float[2,3,4] x) => (float[] y) { h = ReduceMean<axes=[1], keepdims=0>(x) y = Unsqueeze(h, a) }",
        a=np.array([0]),
    )
    assert candidates(graph, KEEP) == []
    assert reasons(graph, KEEP) == ["Unsqueeze has axes [0], ReduceMean [1]"]


def test_reduction_with_another_reader_is_refused():
    graph = graph_of(
        """(float[2,3] x) => (float[2,1] y, float[2] z) {
            h = ReduceMean<axes=[1], keepdims=0>(x) y = Unsqueeze(h, a) z = Neg(h)
        }""",
        a=np.array([1]),
    )
    assert reasons(graph, KEEP) == ["'h', inside the pattern, is also read by an unnamed Neg"]


@pytest.mark.parametrize(
    "op",
    [
        "ReduceL1",
        "ReduceL2",
        "ReduceLogSumExp",
        "ReduceMax",
        "ReduceMean",
        "ReduceMin",
        "ReduceProd",
        "ReduceSum",
    ],
)
@pytest.mark.parametrize("keepdims", [0, 1])
def test_two_reductions_become_one(op, keepdims):
    second = 1 if keepdims else 0
    if op == "ReduceSum":
        nodes = f"h = {op}<keepdims={keepdims}>(x, a) y = {op}<keepdims={keepdims}>(h, b)"
        weights = {"a": np.array([2]), "b": np.array([second])}
    else:
        nodes = (
            f"h = {op}<axes=[2], keepdims={keepdims}>(x) y = {op}<axes=[{second}], keepdims={keepdims}>(h)"
        )
        weights = {}
    graph = graph_of(f"(float[2,3,4] x) => (float[] y) {{ {nodes} }}", **weights)
    result = apply_only(graph, TWO)
    assert ops(result) == {op: 1}


@pytest.mark.parametrize("dtype", ["double", "float16"])
def test_axes_after_dropped_ones_are_renumbered(dtype):
    graph = graph_of(f"""({dtype}[2,3,4,5] x) => ({dtype}[3,4] y) {{
        h = ReduceMax<axes=[0], keepdims=0>(x)
        y = ReduceMax<axes=[-1], keepdims=0>(h)
    }}""")
    result = apply_only(graph, TWO)
    assert tuple(result.nodes[0].attributes["axes"].value) == (0, 3)


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ("axes=[1], keepdims=0", "axes=[1], keepdims=1", "the two ReduceMean differ in keepdims"),
        ("axes=[1,2], keepdims=1", "axes=[2], keepdims=1", "both ReduceMean are over axes [2]"),
        ("keepdims=1", "axes=[2], keepdims=1", "ReduceMean 'h' has no constant axes"),
    ],
)
def test_near_misses(first, second, reason):
    graph = graph_of(
        f"(float[2,3,4] x) => (float[] y) {{ h = ReduceMean<{first}>(x) y = ReduceMean<{second}>(h) }}"
    )
    assert candidates(graph, TWO) == []
    assert reasons(graph, TWO) == [reason]


def test_sums_of_squares_do_not_nest():
    graph = graph_of(
        "(float[2,3] x) => (float[] y) { h = ReduceSumSquare<axes=[0]>(x) y = ReduceSumSquare<axes=[1]>(h) }"
    )
    assert candidates(graph, TWO) == []
    mixed = graph_of(
        "(float[2,3] x) => (float[] y) { h = ReduceMax<axes=[0]>(x) y = ReduceMean<axes=[1]>(h) }"
    )
    assert candidates(mixed, TWO) == []


def test_inside_a_branch():
    graph = graph_of("""(bool c, float[2,3] x) => (float[1,1] y) {
        y = If(c) <
            then_branch = t () => (float[1,1] a) { h = ReduceMean<axes=[0]>(x) a = ReduceMean<axes=[1]>(h) },
            else_branch = e () => (float[1,1] b) { b = ReduceMax(x) }
        >
    }""")
    assert ops(apply_only(graph, TWO)) == {"If": 1, "ReduceMean": 1, "ReduceMax": 1}
