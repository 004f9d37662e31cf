"""C9: a 1x1 convolution as a matrix product, and back."""

import json

import numpy as np
import pytest

from tests.rewrite.harness import apply_only, assert_inverse_restores, candidates, graph_of, ops, reasons

FORWARD, BACK = "pointwise-conv-to-matmul", "matmul-to-pointwise-conv"
RNG = np.random.default_rng(17)


def draw(*shape, dtype="f4"):
    return RNG.standard_normal(shape).astype(dtype)


IN_FULL = "kernel_shape=[1,1], strides=[1,1], dilations=[1,1], group=1, pads=[0,0,0,0]"


def pointwise(shape="N,3,4,5", attributes=IN_FULL, bias=True, dtype="float"):
    kind = "f2" if dtype == "float16" else "f4"
    sizes = shape.split(",")
    result = ",".join([sizes[0], "6", *sizes[2:]])
    text = f"({dtype}[{shape}] x) => ({dtype}[{result}] y) {{ y = Conv<{attributes}>(x, w{', b' if bias else ''}) }}"
    weights = {"w": draw(6, 3, *(1,) * (len(sizes) - 2), dtype=kind)}
    return graph_of(text, **weights, **({"b": draw(6, dtype=kind)} if bias else {}))


@pytest.mark.parametrize("shape", ["2,3,4,5", "N,3,4,5", "N,3,H,5", "2,3,4,W"])
def test_there_and_back(shape):
    graph = pointwise(shape)
    (candidate,) = candidates(graph, FORWARD)
    assert_inverse_restores(graph, candidate)


@pytest.mark.parametrize("shape", ["N,3,9", "N,3,2,3,4"])
def test_other_ranks_and_no_bias(shape):
    spatial = [1] * (shape.count(",") - 1)
    result = apply_only(pointwise(shape, f"kernel_shape={spatial}", bias=False), FORWARD)
    assert ops(result) == {"Reshape": 2, "MatMul": 1}
    assert ops(apply_only(result, BACK)) == {"Conv": 1}


def test_half_precision():
    apply_only(pointwise(dtype="float16"), FORWARD)


def test_automatic_padding_pads_nothing():
    apply_only(pointwise(attributes='auto_pad="SAME_UPPER"'), FORWARD)


@pytest.mark.parametrize("attributes", ["strides=[2,1]", "pads=[0,0,1,0]"])
def test_stride_or_padding_is_something_else(attributes):
    graph = graph_of(
        f"(float[N,3,4,5] x) => (float[N,6,?,?] y) {{ y = Conv<{attributes}>(x, w) }}", w=draw(6, 3, 1, 1)
    )
    assert candidates(graph, FORWARD) == []


def test_groups_are_something_else():
    graph = graph_of(
        "(float[N,4,4,5] x) => (float[N,6,4,5] y) { y = Conv<group=2>(x, w) }", w=draw(6, 2, 1, 1)
    )
    assert candidates(graph, FORWARD) == []


def test_two_dynamic_spatial_dims_are_refused():
    assert reasons(pointwise("N,3,H,W"), FORWARD) == ["more than one spatial dim of 'y' is dynamic"]


def product(opening="[0,3,-1]", closing="[0,6,4,5]", add="m", shape="N,3,4,5", result="N,6,4,5", **weights):
    text = f"""(float[{shape}] x) => (float[{result}] y) {{
        r = Reshape(x, opening)
        m = MatMul(w, r)
        s = {f"Add({add})" if "," in add else "Identity(m)"}
        y = Reshape({"s" if "," in add else "m"}, closing)
    }}"""
    if "," not in add:
        text = text.replace("s = Identity(m)", "")
    constants = {"opening": np.array(json.loads(opening)), "closing": np.array(json.loads(closing))}
    return graph_of(text, **{"w": draw(6, 3), **constants, **weights})


@pytest.mark.parametrize("add", ["m", "m, b", "b, m"])
@pytest.mark.parametrize("opening", ["[0,3,-1]", "[-1,3,20]"])
def test_product_in_any_form(add, opening):
    weights = {"b": draw(6, 1)} if "," in add else {}
    shape, result = ("N,3,4,5", "N,6,4,5") if opening == "[0,3,-1]" else ("2,3,4,5", "2,6,4,5")
    graph = product(opening=opening, add=add, shape=shape, result=result, **weights)
    assert ops(apply_only(graph, BACK)) == {"Conv": 1}


def test_bias_per_position_is_refused():
    graph = product(add="m, b", b=draw(6, 20))
    assert reasons(graph, BACK) == ["'b' is not one number per row"]


@pytest.mark.parametrize(
    ("closing", "result", "reason"),
    [
        ("[0,6,5,4]", "N,6,5,4", "axis 2 of 'y' is not known to equal that of 'x'"),
        ("[0,3,8,5]", "N,3,8,5", "axis 1 of 'x' is not the 3 channels of 'w'"),
    ],
)
def test_other_closing_shapes_are_refused(closing, result, reason):
    graph = product(closing=closing, result=result)
    assert candidates(graph, BACK) == []
    assert reasons(graph, BACK) == [reason]


def test_unknown_batch_is_refused():
    graph = product(opening="[-1,3,20]", closing="[-1,6,4,5]", shape="?,3,4,5", result="?,6,4,5")
    assert reasons(graph, BACK) == ["axis 0 of 'x' is not known to stay the same"]


def test_double_precision_has_no_convolution():
    text = """(double[2,3,4,5] x) => (double[2,6,4,5] y) {
        r = Reshape(x, opening)
        m = MatMul(w, r)
        y = Reshape(m, closing)
    }"""
    graph = graph_of(
        text, w=draw(6, 3, dtype="f8"), opening=np.array([0, 3, -1]), closing=np.array([0, 6, 4, 5])
    )
    assert reasons(graph, BACK) == ["'y' has element type double; the rule handles float, float16"]
