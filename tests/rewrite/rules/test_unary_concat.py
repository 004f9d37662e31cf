"""G5: element-wise operators through Concat and Split."""

import numpy as np
import pytest

from tests.rewrite.harness import apply_only, assert_inverse_restores, candidates, graph_of, ops, reasons

BEFORE, AFTER = "distribute-unary-over-concat", "factor-unary-out-of-concat"
BEHIND, AHEAD = "distribute-unary-over-split", "factor-unary-out-of-split"


@pytest.mark.parametrize("form", ["Relu(h)", "LeakyRelu<alpha=0.2>(h)", "Cast<to=11>(h)", "Clip(h, lo)"])
def test_function_of_a_concat_and_back(form):
    result = "double" if "Cast" in form else "float"
    graph = graph_of(
        f"(float[N,2] x, float[N,3] z) => ({result}[N,5] y) {{ h = Concat<axis=1>(x, z) y = {form} }}",
        lo=np.float32(0),
    )
    (candidate,) = candidates(graph, BEFORE)
    op = form.split("<")[0].split("(")[0]
    assert ops(apply_only(graph, BEFORE)) == {op: 2, "Concat": 1}
    assert_inverse_restores(graph, candidate)


def test_same_tensor_twice_is_computed_once():
    graph = graph_of("(float[2,2] x) => (float[2,4] y) { h = Concat<axis=1>(x, x) y = Relu(h) }")
    (candidate,) = candidates(graph, BEFORE)
    assert ops(apply_only(graph, BEFORE)) == {"Relu": 1, "Concat": 1}
    assert_inverse_restores(graph, candidate)


def test_functions_before_a_concat_and_back():
    graph = graph_of(
        "(float[2,2] x, float[2,3] z) => (float[2,5] y) { a = Tanh(x) b = Tanh(z) y = Concat<axis=1>(a, b) }"
    )
    (candidate,) = candidates(graph, AFTER)
    assert ops(apply_only(graph, AFTER)) == {"Tanh": 1, "Concat": 1}
    assert_inverse_restores(graph, candidate)


def test_different_functions_stay():
    graph = graph_of(
        "(float[2,2] x, float[2,3] z) => (float[2,5] y) { a = Tanh(x) b = Relu(z) y = Concat<axis=1>(a, b) }"
    )
    assert candidates(graph, AFTER) == []
    assert reasons(graph, AFTER) == []
    near = graph_of("""(float[2,2] x, float[2,3] z) => (float[2,5] y) {
        a = LeakyRelu<alpha=0.1>(x) b = LeakyRelu<alpha=0.2>(z) y = Concat<axis=1>(a, b)
    }""")
    assert reasons(near, AFTER) == ["the parts go through LeakyRelu with different attributes or operands"]


def test_function_with_another_reader_is_refused():
    graph = graph_of("""(float[2,2] x, float[2,3] z) => (float[2,5] y, float[2,2] w) {
        a = Tanh(x) b = Tanh(z) y = Concat<axis=1>(a, b) w = Neg(a)
    }""")
    assert reasons(graph, AFTER) == ["'a', inside the pattern, is also read by an unnamed Neg"]


def test_split_of_a_function_and_back():
    graph = graph_of(
        "(float[2,5] x) => (float[2,2] y, float[2,3] z) { h = Sigmoid(x) y, z = Split<axis=1>(h, sizes) }",
        sizes=np.array([2, 3]),
    )
    (candidate,) = candidates(graph, BEHIND)
    assert ops(apply_only(graph, BEHIND)) == {"Sigmoid": 2, "Split": 1}
    assert_inverse_restores(graph, candidate)


def test_functions_of_all_parts_and_back():
    graph = graph_of(
        """(float[2,5] x) => (float[2,2] y, float[2,3] z) {
            a, b = Split<axis=1, split=[2,3]>(x)
            y = Sigmoid(a)
            z = Sigmoid(b)
        }""",
        opset=12,
    )
    (candidate,) = candidates(graph, AHEAD)
    assert ops(apply_only(graph, AHEAD)) == {"Sigmoid": 1, "Split": 1}
    assert_inverse_restores(graph, candidate)


@pytest.mark.parametrize("last", ["z = Relu(b)", "z = Sigmoid(b) w = Neg(b)"])
def test_parts_read_by_something_else_stay(last):
    extra = ", float[2,2] w" if "w =" in last else ""
    graph = graph_of(f"""(float[2,4] x) => (float[2,2] y, float[2,2] z{extra}) {{
        a, b = Split<axis=1>(x)
        y = Sigmoid(a)
        {last}
    }}""")
    assert candidates(graph, AHEAD) == []


def test_parts_with_different_attributes_are_refused():
    graph = graph_of("""(float[2,4] x) => (float[2,2] y, float[2,2] z) {
        a, b = Split<axis=1>(x) y = Elu<alpha=1.0>(a) z = Elu<alpha=2.0>(b)
    }""")
    assert reasons(graph, AHEAD) == ["the parts go through Elu with different attributes or operands"]


def test_part_that_is_an_output_is_refused():
    graph = graph_of("""(float[2,4] x) => (float[2,2] a, float[2,2] y, float[2,2] z) {
        a, b = Split<axis=1>(x) y = Neg(a) z = Neg(b)
    }""")
    assert reasons(graph, AHEAD) == ["'a', inside the pattern, is a graph output"]


def test_inside_a_branch():
    graph = graph_of("""(bool c, float[2,3] x) => (float[2,6] y) {
        y = If(c) <
            then_branch = t () => (float[2,6] a) { h = Concat<axis=1>(x, x) a = Relu(h) },
            else_branch = e () => (float[2,6] b) { b = Concat<axis=1>(x, x) }
        >
    }""")
    assert ops(apply_only(graph, BEFORE)) == {"If": 1, "Relu": 1, "Concat": 2}
