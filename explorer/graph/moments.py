"""Mean and variance of tensors, followed through a graph without running it.

Used to choose weights so that activations keep an ordinary size in any architecture. The estimates assume
independent, roughly Gaussian elements; they steer a scale, they are not shown to anyone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

_HALF = np.array([0.17, 0.35, 0.55, 0.76, 1.0, 1.28, 1.65, 2.24])
_GRID = np.concatenate([-_HALF[::-1], [0.0], _HALF])
_GRID = _GRID / _GRID.std()
_WIDE = 2.0
_HUGE = 1e100


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and variance of the elements of one tensor.

    A tensor computed element by element from another one remembers it (``root``) and its values over the
    root's quantiles (``curve``), so that ``x * sigmoid(x)`` is not mistaken for a product of strangers.
    """

    mean: float = 0.0
    var: float = 1.0
    root: Moments | None = None
    curve: np.ndarray | None = None
    wide_curve: np.ndarray | None = None

    @property
    def largest_second(self) -> float:
        """The mean of the squares, or what it would be in proportion if the root were twice as large.

        A gate (Swish) passes large values almost whole and small ones by half: weights that suit the small ones
        would let every deviation grow from layer to layer.
        """
        if self.wide_curve is None:
            return self.second
        wide = float(np.mean(self.wide_curve**2)) / _WIDE**2
        return min(max(self.second, wide), 2 * self.second)

    @property
    def second(self) -> float:
        """The mean of the squares."""
        return self.mean * self.mean + self.var

    def quantiles(self) -> np.ndarray:
        """Values over the quantiles of the root (its own, if it has no root)."""
        return self.mean + np.sqrt(self.var) * _GRID if self.curve is None else self.curve

    def wide_quantiles(self) -> np.ndarray:
        """As ``quantiles``, if the root were twice as large."""
        if self.wide_curve is not None:
            return self.wide_curve
        return self.quantiles() if self.var == 0.0 else _WIDE * self.quantiles()

    def through(self, function: Callable[..., np.ndarray], *others: Moments) -> Moments:
        """Moments after an element-wise function of this tensor and others with the same root."""
        with np.errstate(all="ignore"):
            y = function(self.quantiles(), *(other.quantiles() for other in others))
            wide = function(self.wide_quantiles(), *(other.wide_quantiles() for other in others))
            y, wide = _finite(y), _finite(wide)
            return Moments(float(y.mean()), float(y.var()), self.root or self, y, wide)

    def depends_on_same(self, other: Moments) -> bool:
        """Whether both are element-wise functions of one tensor (or the other one is constant)."""
        return (self.root or self) is (other.root or other) or other.var == 0.0


def _finite(values: np.ndarray) -> np.ndarray:
    finite: np.ndarray = np.nan_to_num(np.broadcast_to(values, _GRID.shape), posinf=1e6, neginf=-1e6)
    return finite


def moments_of(array: np.ndarray) -> Moments:
    """Moments of the finite elements of a constant."""
    if array.dtype.kind not in "fiub":
        return Moments()
    with np.errstate(invalid="ignore"):
        elements = array.astype(np.float64)
    elements = elements[np.isfinite(elements) & (np.abs(elements) < _HUGE)]
    return Moments(float(elements.mean()), float(elements.var())) if elements.size else Moments()


UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Abs": np.abs,
    "Clip": lambda x: np.clip(x, 0, 6),
    "Cos": np.cos,
    "Elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "Erf": np.tanh,
    "Exp": lambda x: np.exp(np.minimum(x, 20)),
    "Gelu": lambda x: x / (1 + np.exp(-1.702 * x)),
    "HardSigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "LeakyRelu": lambda x: np.where(x > 0, x, 0.01 * x),
    "Log": lambda x: np.log(np.abs(x) + 1e-6),
    "Neg": np.negative,
    "Reciprocal": lambda x: 1 / np.where(np.abs(x) < 1e-3, 1e-3, x),
    "Relu": lambda x: np.maximum(x, 0),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Sin": np.sin,
    "Softplus": lambda x: np.log1p(np.exp(np.minimum(x, 20))),
    "Sqrt": lambda x: np.sqrt(np.abs(x)),
    "Tanh": np.tanh,
}
NORMALISED = {
    "LayerNormalization",
    "InstanceNormalization",
    "GroupNormalization",
    "RMSNormalization",
}


def dims_of(value: ir.Value | None) -> list[int]:
    """Static dims of a value; an unknown dim counts as 1."""
    if value is None or value.shape is None:
        return []
    return [d if isinstance(d, int) else 1 for d in value.shape]


def combine(node: ir.Node, inputs: list[Moments | None]) -> Moments:
    """Moments of a node's first output from those of its float inputs (None where not float)."""
    floats = [m for m in inputs if m is not None] or [Moments()]
    first = floats[0]
    op = node.op_type
    if op in UNARY:
        return first.through(UNARY[op])
    if op in NORMALISED:
        return Moments(0.0, 1.0)
    if op in _BINARY and len(floats) > 1:
        return _binary(op, first, floats[1])
    if op in {"Concat", "Sum", "Where"}:
        return _mixture(floats, added=op == "Sum")
    if op == "Softmax":
        return _softmax(node, first)
    if op == "MatMul" and len(floats) > 1:
        return _product(node, first, floats[1])
    if op in {"ReduceMean", "GlobalAveragePool", "AveragePool"}:
        return Moments(first.mean, first.var * 0.55)
    if op == "ReduceSum":
        return Moments(first.mean * _reduced(node), first.var * _reduced(node))
    return first


def _binary(op: str, a: Moments, b: Moments) -> Moments:
    function, independent = _BINARY[op]
    if a.depends_on_same(b):
        return a.through(function, b)
    if b.depends_on_same(a):
        return b.through(lambda y, x: function(x, y), a)
    return independent(a, b)


def _power(base: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    power: np.ndarray = np.where((base < 0) & (exponent % 2 == 1), -1, 1) * np.abs(base) ** exponent
    return power


def _product_of_strangers(a: Moments, b: Moments) -> Moments:
    mean = a.mean * b.mean
    return Moments(mean, max(a.second * b.second - mean * mean, 0.0))


_BINARY: dict[str, tuple[Callable[..., np.ndarray], Callable[[Moments, Moments], Moments]]] = {
    "Add": (np.add, lambda a, b: Moments(a.mean + b.mean, a.var + b.var)),
    "Sub": (np.subtract, lambda a, b: Moments(a.mean - b.mean, a.var + b.var)),
    "Mul": (np.multiply, _product_of_strangers),
    "Div": (np.divide, lambda a, b: Moments(0.0, a.second / max(b.second, 1e-12))),
    "Pow": (_power, lambda a, b: a.through(_power, Moments(b.mean, 0.0))),
}


def _mixture(parts: list[Moments], *, added: bool) -> Moments:
    count = 1 if added else len(parts)
    return Moments(sum(p.mean for p in parts) / count, sum(p.var for p in parts) / count)


def _softmax(node: ir.Node, logits: Moments) -> Moments:
    dims = dims_of(node.inputs[0])
    axis = node.attributes.get_int("axis", -1) or -1
    count = max(dims[axis] if -len(dims) <= axis < len(dims) else 1, 1)
    second = min(float(np.exp(min(logits.var, 20.0))) / count**2, 1.0 / count)
    return Moments(1.0 / count, max(second - 1.0 / count**2, 0.0))


def _product(node: ir.Node, a: Moments, b: Moments) -> Moments:
    dims = dims_of(node.inputs[0])
    inner = dims[-1] if dims else 1
    mean = inner * a.mean * b.mean
    return Moments(mean, inner * max(a.second * b.second - (a.mean * b.mean) ** 2, 0.0))


def _reduced(node: ir.Node) -> float:
    before, after = dims_of(node.inputs[0]), dims_of(node.outputs[0])
    return float(np.prod(before, dtype=float) / max(np.prod(after, dtype=float), 1.0))
