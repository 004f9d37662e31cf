"""A18: shapes, and what is computed from them, become constants."""

import numpy as np
import pytest

from explorer.graph import load
from explorer.graph.shape_values import ShapeEvaluator
from tests.models import case_path
from tests.rewrite.harness import apply_all, apply_only, candidates, graph_of, ops, reasons

SHAPE, ARITHMETIC, TARGET = "fold-shape", "fold-shape-arithmetic", "constant-reshape-target"


def i64(*values):
    return np.array(values, "i8")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("Shape(x)", [2, 3, 4]),
        ("Shape<start=1>(x)", [3, 4]),
        ("Shape<start=-2, end=-1>(x)", [3]),
        ("Size(x)", 24),
    ],
)
def test_shape_of_static_dims(expression, value):
    graph = graph_of(f"(float[2,3,4] x, int64[9,1] z) => (int64[] y) {{ s = {expression} y = Add(s, z) }}")
    result = apply_only(graph, SHAPE)
    assert ops(result) == {"Add": 1}
    np.testing.assert_array_equal(result.nodes[0].inputs[0].const_value.numpy(), value)


def test_shape_of_a_constant_that_nothing_else_reads():
    graph = graph_of("(int64 x) => (int64 y) { s = Size(w) y = Add(s, x) }", w=np.zeros((3, 4), "f4"))
    result = apply_only(graph, SHAPE)
    assert "w" not in {value.name for value in result.initializers()}


def test_shape_with_start_and_end_of_dynamic_dims_is_not_frozen():
    graph = load(case_path("shape_with_start_end"))
    assert candidates(graph, SHAPE) == []
    (name,) = {node.inputs[0].name for node in graph.nodes if node.op_type == "Shape"}
    assert reasons(graph, SHAPE) == [f"not all dims of '{name}' are static"]
    assert candidates(graph, ARITHMETIC) == []


def test_shape_with_start_and_end_of_the_static_dims_only():
    graph = graph_of("(float[N,3,4] x, int64[2] z) => (int64[2] y) { s = Shape<start=1>(x) y = Add(s, z) }")
    result = apply_only(graph, SHAPE)
    np.testing.assert_array_equal(result.nodes[0].inputs[0].const_value.numpy(), [3, 4])


def test_shape_that_is_an_output_keeps_its_name():
    graph = graph_of("(float[2,3] x) => (float[2,3] y, int64[2] s) { y = Relu(x) s = Shape(x) }")
    result = apply_only(graph, SHAPE)
    assert ops(result) == {"Relu": 1, "Identity": 1}
    assert result.outputs[1].name == "s"
    assert candidates(result, ARITHMETIC) == []


EXPRESSIONS = {
    "Gather": ("Gather<axis=0>(s, one)", 3),
    "Slice": ("Slice(s, one, three)", [3, 4]),
    "Concat": ("Concat<axis=0>(s, one)", [2, 3, 4, 1]),
    "Unsqueeze": ("Unsqueeze(g, zero)", [3]),
    "Squeeze": ("Squeeze(t, zero)", 3),
    "Cast": ("Cast<to=7>(c)", [2, 3, 4]),
    "Add": ("Add(s, one)", [3, 4, 5]),
    "Sub": ("Sub(one, s)", [-1, -2, -3]),
    "Mul": ("Mul(s, s)", [4, 9, 16]),
    "Div": ("Div(s, two)", [1, 1, 2]),
    "Div of a negative": ("Div(n, two)", [-1, -1, -2]),
    "Mod": ("Mod(s, two)", [0, 1, 0]),
    "Max": ("Max(s, three)", [3, 3, 4]),
    "Min": ("Min(three, s)", [2, 3, 3]),
    "Reshape": ("Reshape(g, minus)", [3]),
    "ReduceProd": ("ReduceProd<keepdims=0>(s)", 24),
    "ConstantOfShape": ("ConstantOfShape<value=int64[1] {7}>(r)", [7, 7, 7]),
    "Where": ("Where(e, s, minus)", [-1, 3, -1]),
    "Identity": ("Identity(s)", [2, 3, 4]),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_arithmetic_on_static_dims_is_what_the_runtime_computes(name):
    expression, value = EXPRESSIONS[name]
    text = f"""(float[2,3,4] x, int64[1] z) => (int64[?] y) {{
        s = Shape(x)
        g = Gather<axis=0>(s, index)
        t = Gather<axis=0>(s, one)
        c = Cast<to=6>(s)
        n = Sub(zero, s)
        r = Shape(s)
        e = Equal(s, three)
        v = {expression.replace("Gather<axis=0>(s, one)", "Gather<axis=0>(s, index)")}
        y = Mod(z, v)
    }}"""
    graph = graph_of(
        text, index=np.array(1), zero=i64(0), one=i64(1), two=i64(2), three=i64(3), minus=i64(-1)
    )
    evaluated = ShapeEvaluator().value_of(graph.node("n7").outputs[0])
    assert evaluated is not None
    np.testing.assert_array_equal(evaluated.elements, np.atleast_1d(value))
    assert evaluated.rank == np.ndim(value)
    found = [c for c in candidates(graph, ARITHMETIC) if "n7" in c.nodes]
    assert [c.anchor for c in found] == ["n7"]


def test_whole_chain_becomes_one_constant():
    graph = graph_of(
        """(float[N,6,4] x) => (float[N,?,4] y) {
            s = Shape(x)
            c = Gather<axis=0>(s, one)
            h = Div(c, two)
            y = Slice(x, zero, h, one)
        }""",
        zero=i64(0),
        one=i64(1),
        two=i64(2),
    )
    (candidate,) = candidates(graph, ARITHMETIC)
    assert candidate.nodes == ("n0", "n1", "n2")
    result = apply_only(graph, ARITHMETIC)
    assert ops(result) == {"Slice": 1}
    assert result.outputs[0].shape[1] == 3


def test_dynamic_dims_in_the_result_are_refused():
    graph = graph_of(
        "(float[N,3] x, int64[9,1] z) => (int64[9,3] y) { s = Shape(x) c = Concat<axis=0>(s, one) y = Mod(z, c) }",
        one=i64(1),
    )
    assert candidates(graph, ARITHMETIC) == []
    assert reasons(graph, ARITHMETIC) == ["'c' depends on dynamic dims ['N']"]


def test_division_by_zero_is_left_to_the_runtime():
    graph = graph_of(
        "(float[2,3] x) => (float[?,?] y) { s = Shape(x) d = Div(s, zero) y = Expand(x, d) }", zero=i64(0)
    )
    assert candidates(graph, ARITHMETIC) == []


RESHAPE = """(float[N,6,4] x) => (float[?,?,?] y) {
    s = Shape(x)
    n = Gather<axis=0>(s, zero)
    t = Concat<axis=0>(ELEMENTS)
    y = Reshape(x, t)
}"""


@pytest.mark.parametrize(
    ("elements", "target"),
    [
        ("n, two, twelve", [0, 2, 12]),
        ("two, n, twelve", [2, -1, 12]),
        ("n, minus, two", [0, 12, 2]),
        ("twelve, two, n", [12, 2, -1]),
    ],
)
def test_computed_target_becomes_constant(elements, target):
    graph = graph_of(
        RESHAPE.replace("ELEMENTS", elements), zero=i64(0), two=i64(2), twelve=i64(12), minus=i64(-1)
    )
    result = apply_only(graph, TARGET)
    assert ops(result) == {"Reshape": 1}
    np.testing.assert_array_equal(result.nodes[0].inputs[1].const_value.numpy(), target)


def test_target_with_two_unknown_dims_is_refused():
    graph = graph_of(
        """(float[N,M,4] x) => (float[?,?,?] y) {
            s = Shape(x)
            t = Gather<axis=0>(s, order)
            y = Reshape(x, t)
        }""",
        order=i64(1, 0, 2),
    )
    assert candidates(graph, TARGET) == []
    assert reasons(graph, TARGET) == ["dims [0, 1] of 'y' are dynamic, only one can be inferred"]


def test_shape_that_others_read_stays():
    graph = graph_of(
        """(float[N,6] x) => (float[?,?] y, int64[2] z) {
            s = Shape(x)
            n = Gather<axis=0>(s, zero)
            t = Concat<axis=0>(n, two, minus)
            r = Reshape(x, t)
            y = Flatten(r)
            z = Add(s, s)
        }""",
        zero=i64(0),
        two=i64(2),
        minus=i64(-1),
    )
    result = apply_only(graph, TARGET)
    assert ops(result) == {"Shape": 1, "Reshape": 1, "Flatten": 1, "Add": 1}


def test_target_of_unknown_rank_is_refused():
    graph = graph_of("(float[2,3] x, int64[k] s) => (float[] y) { y = Reshape(x, s) }")
    assert reasons(graph, TARGET) == ["the rank of 'y' is unknown"]


def test_arithmetic_inside_a_branch():
    graph = graph_of(
        """(bool c, float[4,6] x) => (float[?,?] y) {
            y = If(c) <
                then_branch = t () => (float[?,?] a) { s = Shape(x) h = Div(s, two) a = Expand(one, h) },
                else_branch = e () => (float[?,?] b) { b = Neg(x) }
            >
        }""",
        two=i64(2),
        one=np.ones((1, 1), "f4"),
    )
    result = apply_only(graph, ARITHMETIC)
    assert ops(result) == {"If": 1, "Expand": 1, "Neg": 1}


def test_shufflenet_loses_its_scaffolding():
    graph = load("shufflenet_v2_x1_0")
    assert len(candidates(graph, ARITHMETIC)) == 26
    (first, *_) = candidates(graph, ARITHMETIC)
    assert first.bytes_delta <= 8


def test_nothing_is_offered_twice():
    graph = graph_of(
        """(float[2,6] x) => (float[?,?] y) {
            s = Shape(x)
            h = Div(s, two)
            y = Slice(x, zero, h)
        }""",
        two=i64(2, 2),
        zero=i64(0, 0),
    )
    result = apply_all(graph, ARITHMETIC)
    assert candidates(result, ARITHMETIC) == []
    assert ops(result) == {"Slice": 1}
