"""Fill a structure (float weights as graph inputs) with seeded values of ordinary size.

Constant weights would hide wrong rewrites and zeros run faster, so values are random: Gaussian with a scale
that keeps the variance of activations near 1 through convolutions, products and normalisations (He et
al. 2015 where a ReLU precedes), positive variances for BatchNormalization. The same model and seed
always give the same weights. Values are made when first needed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable

import numpy as np
import onnx_ir as ir

from explorer.graph.graph import constant_tensor
from explorer.graph.moments import NORMALISED, Moments, combine, dims_of, moments_of
from explorer.graph.statistics import value_bytes

_FLOATS = {
    ir.DataType.FLOAT: np.float32,
    ir.DataType.DOUBLE: np.float64,
    ir.DataType.FLOAT16: np.float16,
}
_LOOKED_AT = 4096
_STANDARD = {"", "ai.onnx"}
_VIEWS = {"Transpose", "Reshape", "Identity", "Unsqueeze", "Squeeze", "Cast", "Expand", "Flatten"}
_Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def weight_inputs(model: ir.Model) -> list[ir.Value]:
    """Graph inputs that hold weights in a structure file.

    The first input, integer inputs and inputs with a dynamic dimension are data; every other float
    input with a static shape is a weight.
    """
    return [
        value
        for position, value in enumerate(model.graph.inputs)
        if position > 0 and not value.is_initializer() and _is_static_float(value)
    ]


def fill_weights(model: ir.Model, seed: int) -> int:
    """Turn the weight inputs of a model into initializers, in place; returns how many."""
    weights = dict.fromkeys(weight_inputs(model))
    filler = _Filler(seed, weights)
    for node in model.graph:
        filler.visit(node)
    data = [value for value in model.graph.inputs if value not in weights]
    model.graph.inputs.clear()
    model.graph.inputs.extend(data)
    for value in weights:
        filler.draw(value, _normal(0.5))  # read by nothing the walk understands, or by a body only
        model.graph.register_initializer(value)
    return len(weights)


def fill_bytes(model: ir.Model) -> int:
    """Memory that filling would take."""
    return sum(value_bytes(value) or 0 for value in weight_inputs(model))


def _is_static_float(value: ir.Value) -> bool:
    shape = value.shape
    return value.dtype in _FLOATS and shape is not None and all(isinstance(d, int) for d in shape)


def _normal(std: float, mean: float = 0.0) -> _Draw:
    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        values = np.asarray(rng.standard_normal(shape, dtype=np.float32))
        if type(std) is not float or type(mean) is not float:  # NumPy would compute with 64 bits
            return np.asarray(mean + std * values)
        values *= std  # in place: a copy of a large weight takes as long as making it
        values += mean
        return values

    return draw


def _filters(std: float) -> _Draw:
    """Gaussian filters, each (along axis 0) scaled to the same norm: small ones vary too much."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        array = rng.standard_normal(shape, dtype=np.float32)
        if len(shape) < 2 or not array.size:
            return array * np.float32(std)
        flat = array.reshape(shape[0], -1)
        flat *= std / np.sqrt(np.mean(flat * flat, axis=1, keepdims=True) + 1e-12)
        return array

    return draw


def _uniform(low: float, high: float) -> _Draw:
    return lambda rng, shape: low + (high - low) * rng.random(shape, dtype=np.float32)


class _Filler:
    """Walks the nodes in order, following variances and fixing each weight at its first reader."""

    def __init__(self, seed: int, weights: Iterable[ir.Value]) -> None:
        self.seed = seed
        self.moments: dict[ir.Value, Moments] = {}
        self.origin: dict[ir.Value, ir.Value] = {value: value for value in weights}

    def draw(self, value: ir.Value, how: _Draw) -> None:
        """Give a weight its values unless it has some already."""
        if value.const_value is not None or value.dtype is None:
            return
        shape = tuple(int(d) for d in value.shape or () if isinstance(d, int))
        kind, key = _FLOATS[value.dtype], zlib.crc32((value.name or "").encode())

        def make() -> ir.TensorProtocol:
            rng = np.random.default_rng([self.seed, key])
            return ir.Tensor(how(rng, shape).astype(kind, copy=False), name=value.name)

        value.const_value = ir.LazyTensor(
            make, dtype=value.dtype, shape=ir.Shape(shape), cache=True, name=value.name
        )

    def visit(self, node: ir.Node) -> None:
        """Choose the weights this node reads and estimate what comes out."""
        source = self.weight_behind(node.inputs[0]) if node.op_type in _VIEWS and node.inputs else None
        if source is not None and node.outputs:
            self.origin[node.outputs[0]] = source
            return
        handler = _HANDLERS.get(node.op_type) if node.domain in _STANDARD else None
        result = handler(self, node) if handler else None
        for position, value in enumerate(node.inputs):
            self._generic(node, position, value)
        if result is None:
            result = combine(node, [self.of(value) for value in node.inputs])
        for output in node.outputs:
            self.moments[output] = result

    def of(self, value: ir.Value | None) -> Moments | None:
        """Moments of a value; None if it is absent or not float."""
        if value is None or (value.dtype is not None and value.dtype not in _FLOATS):
            return None
        if value in self.moments:
            return self.moments[value]
        tensor = constant_tensor(value)
        if tensor is None or not 0 < tensor.size <= _LOOKED_AT or value in self.origin:
            return Moments()
        return moments_of(tensor.numpy())

    def weight_behind(self, value: ir.Value | None) -> ir.Value | None:
        """The weight that a value is, possibly seen through a Transpose or Reshape; None if it is data."""
        return None if value is None else self.origin.get(value)

    def weight(self, node: ir.Node, position: int) -> ir.Value | None:
        """The unfilled weight behind an operand, or None."""
        weight = self.weight_behind(node.inputs[position]) if position < len(node.inputs) else None
        return weight if weight is not None and weight.const_value is None else None

    def set(self, node: ir.Node, position: int, how: _Draw, moments: Moments) -> None:
        """Fill the weight behind an operand, if it is one, and note its moments."""
        weight = self.weight(node, position)
        if weight is not None:
            self.draw(weight, how)
            operand = node.inputs[position]
            if operand is not None:
                self.moments[weight] = self.moments[operand] = moments

    def _generic(self, node: ir.Node, position: int, value: ir.Value | None) -> None:
        if value is None or self.weight(node, position) is None:
            return
        scale = node.op_type in {"Mul", "Div", "PRelu"}
        how = _uniform(0.5, 1.5) if scale else _normal(0.5)
        self.set(node, position, how, Moments(1.0, 0.08) if scale else Moments(0.0, 0.25))


def _product_weight(
    filler: _Filler,
    node: ir.Node,
    position: int,
    fan_in: int,
    draw: Callable[[float], _Draw] = _normal,
) -> None:
    data = filler.of(node.inputs[1 - position]) or Moments()
    std = float(1.0 / np.sqrt(max(fan_in * data.largest_second, 1e-12)))
    filler.set(node, position, draw(std), Moments(0.0, std * std))


def _convolution(filler: _Filler, node: ir.Node) -> Moments:
    dims = dims_of(node.inputs[1])
    fan_in = int(np.prod(dims[1:] if node.op_type == "Conv" else dims[:1]))
    _product_weight(filler, node, 1, fan_in, _filters)
    filler.set(node, 2, _normal(0.1), Moments(0.0, 0.01))
    return Moments(0.0, 1.0)


def _gemm(filler: _Filler, node: ir.Node) -> Moments | None:
    if filler.weight(node, 1) is None:
        return None
    dims = dims_of(node.inputs[1]) or [1]
    fan_in = dims[-1] if node.attributes.get_int("transB", 0) else dims[0]
    _product_weight(filler, node, 1, fan_in)
    filler.set(node, 2, _normal(0.1), Moments(0.0, 0.01))
    return Moments(0.0, 1.0)


def _matmul(filler: _Filler, node: ir.Node) -> Moments | None:
    for position in (1, 0):
        if filler.weight(node, position) is not None:
            dims = dims_of(node.inputs[position]) or [1]
            inner = dims[-2] if position == 1 and len(dims) > 1 else dims[-1]
            _product_weight(filler, node, position, inner)
            return Moments(0.0, 1.0)
    return None


def _batch_norm(filler: _Filler, node: ir.Node) -> Moments:
    data = filler.of(node.inputs[0]) or Moments()
    std = float(np.sqrt(max(data.var, 1e-12)))
    filler.set(node, 1, _uniform(0.8, 1.2), Moments(1.0, 0.013))
    filler.set(node, 2, _normal(0.1), Moments(0.0, 0.01))
    filler.set(node, 3, _normal(0.1 * std, data.mean), Moments(data.mean, 0.01 * data.var))
    filler.set(node, 4, _uniform(0.9 * data.var, 1.3 * data.var), Moments(data.var, 0.0))
    return Moments(0.0, 1.0)


def _norm(filler: _Filler, node: ir.Node) -> Moments:
    filler.set(node, 1, _uniform(0.5, 1.5), Moments(1.0, 0.08))
    filler.set(node, 2, _normal(0.1), Moments(0.0, 0.01))
    return Moments(0.0, 1.0)


def _gather(filler: _Filler, node: ir.Node) -> Moments | None:
    if filler.weight(node, 0) is None:
        return None
    filler.set(node, 0, _normal(1.0), Moments(0.0, 1.0))
    return Moments(0.0, 1.0)


def _add(filler: _Filler, node: ir.Node) -> Moments | None:
    for position in (0, 1):
        if filler.weight(node, position) is not None:
            data = filler.of(node.inputs[1 - position]) or Moments()
            std = 0.1 * float(np.sqrt(max(data.second, 1e-12)))
            filler.set(node, position, _normal(std), Moments(0.0, std * std))
    return None


_HANDLERS: dict[str, Callable[[_Filler, ir.Node], Moments | None]] = {
    "Add": _add,
    "BatchNormalization": _batch_norm,
    "Conv": _convolution,
    "ConvTranspose": _convolution,
    "Gather": _gather,
    "Gemm": _gemm,
    "MatMul": _matmul,
    **dict.fromkeys(NORMALISED, _norm),
}
