"""Means and variances followed through operators, against a million samples."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from explorer.graph.moments import UNARY, Moments, combine, moments_of

SAMPLES = np.random.default_rng(11).standard_normal((2, 1_000_000))


def value(*dims: int | None) -> ir.Value:
    return ir.Value(name="v", shape=ir.Shape(dims), type=ir.TensorType(ir.DataType.FLOAT))


def node(op: str, *inputs: ir.Value, **attributes: int) -> ir.Node:
    listed = [ir.AttrInt64(name, number) for name, number in attributes.items()]
    return ir.Node("", op, list(inputs) or [value(4)], listed)


@pytest.mark.parametrize("op", sorted(set(UNARY) - {"Log", "Reciprocal", "Erf", "Exp"}))
@pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), (0.5, 0.7), (-1.0, 2.0)])
def test_element_wise_functions(op: str, mean: float, std: float) -> None:
    samples = UNARY[op](mean + std * SAMPLES[0])
    found = combine(node(op), [Moments(mean, std * std)])
    scale = max(float(np.abs(samples).mean()), 0.1)
    assert found.mean == pytest.approx(samples.mean(), abs=0.12 * scale)
    assert found.var == pytest.approx(samples.var(), rel=0.25, abs=0.02)


def test_a_value_knows_what_it_was_computed_from() -> None:
    x = Moments(0.0, 1.0)
    gate = combine(node("Sigmoid"), [x])
    swish = combine(node("Mul", value(4), value(4)), [x, gate])
    samples = SAMPLES[0] / (1 + np.exp(-SAMPLES[0]))
    assert swish.mean == pytest.approx(samples.mean(), abs=0.02)
    assert swish.var == pytest.approx(samples.var(), rel=0.1)
    strangers = combine(node("Mul", value(4), value(4)), [Moments(), gate])
    assert strangers.mean == 0.0
    square = combine(node("Mul", value(4), value(4)), [x, x])
    assert square.mean == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul"])
def test_independent_operands(op: str) -> None:
    a, b = Moments(0.5, 1.0), Moments(-1.0, 0.25)
    x, y = 0.5 + SAMPLES[0], -1.0 + 0.5 * SAMPLES[1]
    samples = {"Add": x + y, "Sub": x - y, "Mul": x * y}[op]
    found = combine(node(op, value(4), value(4)), [a, b])
    assert found.mean == pytest.approx(samples.mean(), abs=0.01)
    assert found.var == pytest.approx(samples.var(), rel=0.01)


def test_sums_products_and_softmax() -> None:
    product = combine(node("MatMul", value(8, 100), value(100, 8)), [Moments(0.0, 1.0), Moments(0.0, 0.01)])
    assert (product.mean, product.var) == (0.0, pytest.approx(1.0))
    softmax = combine(node("Softmax", value(8, 50)), [Moments(0.0, 1.0)])
    samples = np.exp(SAMPLES[0].reshape(-1, 50))
    samples /= samples.sum(axis=1, keepdims=True)
    assert softmax.mean == pytest.approx(0.02)
    assert softmax.var == pytest.approx(samples.var(), rel=0.25)
    reduced = ir.Node("", "ReduceSum", [value(8, 50)])
    reduced.outputs[0].shape = ir.Shape([8, 1])
    total = combine(reduced, [Moments(1.0, 2.0)])
    assert (total.mean, total.var) == (50.0, 100.0)
    mixed = combine(node("Concat", value(4), value(4), axis=0), [Moments(0.0, 1.0), Moments(2.0, 3.0)])
    assert (mixed.mean, mixed.var) == (1.0, 2.0)


def test_unknown_operators_pass_their_first_input_on() -> None:
    first = Moments(3.0, 2.0)
    assert combine(node("Mystery"), [first, Moments()]) is first
    assert combine(node("Mystery"), [None]).var == 1.0


def test_a_gate_is_looked_at_when_it_is_loud() -> None:
    x = Moments(0.0, 1.0)
    swish = combine(node("Mul", value(4), value(4)), [x, combine(node("Sigmoid"), [x])])
    relu = combine(node("Relu"), [x])
    bounded = combine(node("Tanh"), [x])
    assert swish.second < swish.largest_second <= 0.5
    assert relu.largest_second == pytest.approx(relu.second)
    assert bounded.largest_second == bounded.second
    assert x.largest_second == x.second == 1.0


def test_constants() -> None:
    assert (moments_of(np.array([1.0, 3.0])).mean, moments_of(np.array([1.0, 3.0])).var) == (2.0, 1.0)
    assert moments_of(np.array([np.nan, 2.0, np.inf], "f4")).mean == 2.0
    assert moments_of(np.array([True, False])).mean == 0.5
    assert moments_of(np.array([np.nan])).var == moments_of(np.array([b"a"])).var == 1.0
    assert np.isfinite(moments_of(np.array([1e300, 1.0])).var)
