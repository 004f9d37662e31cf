"""E5: the forms of HardSwish and HardSigmoid that exporters write."""

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

SWISH, SIGMOID = "fuse-hardswish", "fuse-hardsigmoid"
SPLIT_SWISH, SPLIT_SIGMOID = "split-hardswish", "split-hardsigmoid"
NUMBERS = {"zero": 0.0, "one": 1.0, "three": 3.0, "six": 6.0, "sixth": 1 / 6, "half": 0.5}


def activation(body, kind="float", dtype="f4", opset=17, **extra):
    constants = {
        name: np.array(number, dtype) for name, number in NUMBERS.items() if name in body.replace("(", " ( ")
    }
    return graph_of(
        f"({kind}[n,3,4] x) => ({kind}[n,3,4] y) {{ {body} }}", opset=opset, **{**constants, **extra}
    )


FORMS = {
    "torch": "a = Add(x, three)  c = Clip(a, zero, six)  m = Mul(x, c)  y = Div(m, six)",
    "swapped": "a = Add(three, x)  c = Clip(a, zero, six)  m = Mul(c, x)  y = Mul(sixth, m)",
    "gate first": "a = Add(x, three)  c = Clip(a, zero, six)  d = Div(c, six)  y = Mul(d, x)",
    "x scaled": "a = Add(x, three)  c = Clip(a, zero, six)  d = Mul(x, sixth)  y = Mul(c, d)",
    "hard sigmoid": "h = HardSigmoid<alpha=0.1666666716337204, beta=0.5>(x)  y = Mul(x, h)",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_forms_of_hardswish(form):
    (candidate,) = candidates(activation(form), SWISH)
    assert ops(apply_checked(activation(form), candidate)) == {"HardSwish": 1}


def test_half_precision():
    graph = activation(FORMS["torch"], "float16", "f2")
    assert ops(apply_only(graph, SWISH)) == {"HardSwish": 1}


def test_hardswish_and_back():
    graph = activation("y = HardSwish(x)")
    (candidate,) = candidates(graph, SPLIT_SWISH)
    assert_inverse_restores(graph, candidate)
    assert ops(apply_checked(graph, candidate)) == {"HardSigmoid": 1, "Mul": 1}


@pytest.mark.parametrize(
    "form",
    [
        FORMS["torch"].replace("Mul(x, c)", "Mul(three, c)"),  # no x in the product
        FORMS["torch"].replace("Add(x, three)", "Add(x, six)"),
        FORMS["torch"].replace("Clip(a, zero, six)", "Clip(a, zero, three)"),
        FORMS["torch"].replace("Div(m, six)", "Div(m, three)"),
        "h = HardSigmoid(x)  y = Mul(x, h)",  # alpha 0.2
    ],
)
def test_lookalikes_are_left_alone(form):
    assert candidates(activation(form), SWISH) == []


def test_constants_that_enlarge_the_result_are_left_alone():
    graph = graph_of(
        "(float[3,4] x) => (float[1,3,4] y) { " + FORMS["torch"] + " }",
        three=np.full((1, 1, 1), 3, "f4"),
        zero=np.array(0, "f4"),
        six=np.array(6, "f4"),
    )
    assert candidates(graph, SWISH) == []


def test_inner_values_that_others_read_are_refused():
    graph = graph_of(
        "(float[3,4] x) => (float[3,4] y, float[3,4] c) { " + FORMS["torch"] + " }",
        three=np.array(3, "f4"),
        zero=np.array(0, "f4"),
        six=np.array(6, "f4"),
    )
    assert reasons(graph, SWISH) == ["'c', inside the pattern, is a graph output"]


def test_old_opset_and_double_are_refused():
    old = activation(FORMS["torch"], opset=13)
    assert reasons(old, SWISH) == ["the result needs opset 14, the model imports 13"]
    double = activation(FORMS["torch"], "double", "f8")
    assert reasons(double, SWISH) == ["'y' has element type double; the rule handles float, float16"]


@pytest.mark.parametrize(
    "form",
    [
        "m = Mul(x, sixth)  a = Add(m, half)  y = Clip(a, zero, one)",
        "m = Mul(sixth, x)  a = Add(half, m)  y = Clip(a, zero, one)",
        "a = Add(x, three)  c = Clip(a, zero, six)  y = Div(c, six)",
        "a = Add(x, three)  c = Clip(a, zero, six)  y = Mul(c, sixth)",
    ],
)
def test_forms_of_hardsigmoid(form):
    (node,) = apply_only(activation(form), SIGMOID).nodes
    assert node.op_type == "HardSigmoid"
    assert node.attributes.get_float("alpha") == pytest.approx(1 / 6)
    assert node.attributes.get_float("beta") == 0.5


def test_clip_with_attributes_before_opset_11():
    graph = activation("m = Mul(x, sixth)  a = Add(m, half)  y = Clip<min=0.0, max=1.0>(a)", opset=10)
    assert ops(apply_only(graph, SIGMOID)) == {"HardSigmoid": 1}


def test_hardsigmoid_and_back():
    graph = activation("y = HardSigmoid<alpha=0.3, beta=0.4>(x)")
    (candidate,) = candidates(graph, SPLIT_SIGMOID)
    assert candidate.bytes_delta == 16
    assert_inverse_restores(graph, candidate)


@pytest.mark.parametrize("opset", [10, 17])
def test_bytes_of_the_clip_depend_on_the_opset(opset):
    graph = activation("y = HardSigmoid(x)", opset=opset)
    (candidate,) = candidates(graph, SPLIT_SIGMOID)
    assert candidate.bytes_delta == (8 if opset == 10 else 16)
    apply_checked(graph, candidate)


def test_other_bounds_are_refused():
    graph = activation("m = Mul(x, sixth)  a = Add(m, half)  y = Clip(a, zero, six)")
    assert reasons(graph, SIGMOID) == ["the bounds of Clip are (0.0, 6.0), not 0 and 1"]


def test_match_inside_a_branch():
    graph = graph_of(
        """(bool k, float[3,4] x) => (float[3,4] y) {
            y = If(k) <
                then_branch = t () => (float[3,4] o) {
                    a = Add(x, three)  c = Clip(a, zero, six)  m = Mul(x, c)  o = Div(m, six)
                },
                else_branch = e () => (float[3,4] p) { p = Relu(x) }
            >
        }""",
        three=np.array(3, "f4"),
        zero=np.array(0, "f4"),
        six=np.array(6, "f4"),
    )
    assert ops(apply_only(graph, SWISH)) == {"If": 1, "HardSwish": 1, "Relu": 1}
