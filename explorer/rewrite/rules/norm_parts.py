"""How exporters write LayerNorm and RMSNorm: mean, square, mean, epsilon, root, division, scale, shift.

Reading starts at the ReduceMean of squares and follows its readers. Squares are Pow or Mul, the root is Sqrt or
Pow, the division is Div, Reciprocal and Mul, or Mul by a power of -1/2; the scale may come before the product (the
form of batch normalisation in Keras and TensorFlow).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import (
    array,
    constants_of,
    dim,
    dims,
    element_bytes,
    is_const,
    operand,
    operator,
    producer,
    rank,
    readers,
    same_shape,
    scalar,
    sole_reader,
    text,
)
from explorer.rewrite.rule import Refusal, refuse_unless
from explorer.rewrite.rules.axis_operators import drops_axes
from explorer.rewrite.rules.patterns import (
    both_orders,
    describe_dims,
    is_float32,
    keeps_shape,
    number_beside,
    reader_of,
    reduced_axes,
)
from explorer.rewrite.walk import source_of


@dataclass(frozen=True)
class Norm:
    """A normalisation written out.

    Attributes:
        source: what is normalised.
        output: the result.
        nodes: all nodes, in no particular order.
        axes: how many trailing axes are normalised.
        epsilon: what is added under the root.
        centred: whether the mean is subtracted (LayerNorm) or not (RMSNorm).
        scale: the factor, or None.
        bias: the term added at the end, or None.
    """

    source: ir.Value
    output: ir.Value
    nodes: tuple[ir.Node, ...]
    axes: int
    epsilon: float
    centred: bool
    scale: ir.Value | None = None
    bias: ir.Value | None = None

    @property
    def normalised(self) -> tuple[int | str | None, ...]:
        """The dims that are normalised."""
        return tuple(dim(self.source, axis) for axis in range(-self.axes, 0))

    def parameter_bytes(self, *, scale: bool, bias: bool) -> int:
        """Bytes of the constants that ``parameter`` creates for scale and bias."""
        wanted = ([self.scale] if scale else []) + ([self.bias] if bias and self.bias is not None else [])
        size = prod(d for d in self.normalised if isinstance(d, int)) * element_bytes(self.source)
        return sum(size for value in wanted if value is None or not self.fits(value))

    def dropped(self) -> tuple[ir.Value, ...]:
        """The constants that one node in the place of all does not read."""
        kept = {value for value in (self.scale, self.bias) if value is not None and self.fits(value)}
        return tuple(value for value in constants_of(self.nodes) if value not in kept)

    def fits(self, value: ir.Value) -> bool:
        """Whether a scale or bias has exactly the normalised dims."""
        shape = tuple(dim(value, axis) for axis in range(rank(value) or 0))
        return rank(value) == self.axes and None not in shape and shape == self.normalised

    def parameter(self, value: ir.Value | None, build: Builder) -> ir.Value:
        """Scale or bias with exactly the normalised dims; ones for a missing scale."""
        if value is not None and self.fits(value):
            return value
        shape = [size for size in self.normalised if isinstance(size, int)]
        dtype = (self.source.dtype or ir.DataType.FLOAT).numpy()
        flat = np.ones((), dtype) if value is None else array(value)
        squeezed = flat.reshape(flat.shape[-self.axes :] if flat.ndim > self.axes else flat.shape)
        return build.constant(
            np.broadcast_to(squeezed, shape).copy(), f"{value.name}_full" if value else "ones"
        )


def read_norm(variance: ir.Node) -> Norm | None:
    """The normalisation whose mean of squares this ReduceMean is; None if it is something else.

    Raises:
        Refusal: it is one in all but an axis, keepdims, or the epsilon.
    """
    squared = _squared(operand(variance, 0))
    spread = None if squared is None else next(_spreads(variance.outputs[0]), None)
    if squared is None or spread is None:
        return None
    centred = _centred(squared[0])
    source = centred.source if centred is not None else squared[0]
    for product, nodes in _products(spread, squared[0], centred):
        inner = (*squared[1], variance, *spread.nodes, *nodes)
        return _complete(source, product, inner, variance, spread.epsilon, centred)
    return None


def _complete(
    source: ir.Value,
    product: _Product,
    inner: tuple[ir.Node, ...],
    variance: ir.Node,
    epsilon: float | None,
    centred: _Centred | None,
) -> Norm:
    means = [variance] if centred is None else [centred.mean, variance]
    nodes = (*inner, *([centred.mean, *centred.subtractions(inner)] if centred is not None else []))
    for mean in means:
        kept = not drops_axes(mean)
        refuse_unless(
            kept, f"{text(mean.outputs[0])} has keepdims=0: it is broadcast along other axes", *means
        )
    axes = [reduced_axes(mean) for mean in means]
    refuse_unless(axes[0] == axes[-1], f"mean and variance are over axes {axes[0]} and {axes[-1]}", *means)
    count = len(axes[0] or ())
    trailing = axes[0] == tuple(range(-count, 0)) and count > 0
    refuse_unless(trailing, f"axes {list(axes[0] or ())} are not the last ones", *means)
    if epsilon is None:
        raise Refusal("nothing is added to the variance before the root", tuple(means))
    exact = source.dtype != ir.DataType.DOUBLE or is_float32(epsilon)
    refuse_unless(exact, f"epsilon {epsilon!r} would be rounded to float32", *means)
    norm = Norm(source, product.output, tuple(dict.fromkeys(nodes)), count, epsilon, centred is not None)
    if product.closed:
        return replace(norm, scale=product.scale, bias=product.bias)
    return _with_bias(_with_scale(norm))


def _squared(value: ir.Value | None) -> tuple[ir.Value, tuple[ir.Node, ...]] | None:
    node = producer(value, "Pow", "Mul")
    if node is None or node.inputs[0] is None:
        return None
    squares = node.inputs[0] is node.inputs[1] if node.op_type == "Mul" else scalar(node.inputs[1]) == 2
    keeps = node.op_type == "Mul" or keeps_shape(node.inputs[1], node.inputs[0])
    return (node.inputs[0], (node,)) if squares and keeps else None


@dataclass(frozen=True)
class _Centred:
    """x - mean(x), which may be computed by several Sub nodes."""

    source: ir.Value
    mean: ir.Node
    sub: ir.Node

    def is_same(self, value: ir.Value | None) -> bool:
        node = producer(value, "Sub")
        return node is not None and tuple(node.inputs) == tuple(self.sub.inputs)

    def subtractions(self, nodes: tuple[ir.Node, ...]) -> list[ir.Node]:
        """The Subs that the given nodes read."""
        found = (producer(value, "Sub") for node in nodes for value in node.inputs)
        return [node for node in found if node is not None and self.is_same(node.outputs[0])]


def _centred(value: ir.Value) -> _Centred | None:
    sub = producer(value, "Sub")
    mean = None if sub is None else producer(operand(sub, 1), "ReduceMean")
    if sub is None or mean is None or sub.inputs[0] is None or mean.inputs[0] is not sub.inputs[0]:
        return None
    return _Centred(sub.inputs[0], mean, sub)


@dataclass(frozen=True)
class _Spread:
    """The standard deviation, or its reciprocal."""

    value: ir.Value
    inverted: bool
    nodes: tuple[ir.Node, ...]
    epsilon: float | None


def _spreads(variance: ir.Value) -> Iterator[_Spread]:
    """Root of the variance plus epsilon, as a divisor or as a factor."""
    add = reader_of(variance, "Add")
    beside = None if add is None else number_beside(add)
    shifted, epsilon = variance, None
    nodes: tuple[ir.Node, ...] = ()
    if add is not None and beside is not None and beside[0] is variance:
        shifted, nodes, epsilon = add.outputs[0], (add,), beside[1]
    for root in readers(shifted):
        if operator(root) == "Pow" and root.inputs[0] is shifted and scalar(root.inputs[1]) in {0.5, -0.5}:
            yield _Spread(root.outputs[0], (scalar(root.inputs[1]) or 0) < 0, (*nodes, root), epsilon)
        elif operator(root) == "Sqrt":
            yield from _around_root(_Spread(root.outputs[0], False, (*nodes, root), epsilon))


def _around_root(root: _Spread) -> Iterator[_Spread]:
    inverse = reader_of(root.value, "Reciprocal", "Div")
    is_inverse = inverse is not None and (inverse.op_type == "Reciprocal" or scalar(inverse.inputs[0]) == 1)
    if inverse is not None and is_inverse:
        yield _Spread(inverse.outputs[0], True, (*root.nodes, inverse), root.epsilon)
    else:
        yield root


@dataclass(frozen=True)
class _Product:
    """The normalised value; closed if scale and bias are in it already."""

    output: ir.Value
    closed: bool = False
    scale: ir.Value | None = None
    bias: ir.Value | None = None


def _products(
    spread: _Spread, centre: ir.Value, centred: _Centred | None
) -> Iterator[tuple[_Product, tuple[ir.Node, ...]]]:
    """What is divided by the standard deviation, or multiplied by its reciprocal."""

    def is_numerator(value: ir.Value | None) -> bool:
        return value is centre or (centred is not None and centred.is_same(value))

    for node in readers(spread.value):
        if operator(node) == "Div" and not spread.inverted and is_numerator(operand(node, 0)):
            yield _Product(node.outputs[0]), (node,)
            continue
        orders = both_orders(node) if operator(node) == "Mul" and spread.inverted else ()
        if any(is_numerator(a) and b is spread.value for a, b in orders):
            yield _Product(node.outputs[0]), (node,)
    if spread.inverted and centred is not None:
        yield from _affine_form(spread.value, centred)


def _affine_form(factor: ir.Value, centred: _Centred) -> Iterator[tuple[_Product, tuple[ir.Node, ...]]]:
    """X * f + (beta - mean * f) with f = gamma / sigma, as batch normalisation is written in TensorFlow."""
    scale: ir.Value | None = None
    nodes: tuple[ir.Node, ...] = ()
    product = sole_reader(factor, "Mul")
    if product is not None and not any(v is centred.source for v in product.inputs):
        scale = next((v for v in product.inputs if v is not factor), None)
        factor, nodes = product.outputs[0], (product,)
    by_reader = {
        other: node
        for node in readers(factor)
        if operator(node) == "Mul"
        for value, other in both_orders(node)
        if value is factor
    }
    scaled, moved = by_reader.get(centred.source), by_reader.get(centred.mean.outputs[0])
    sub = None if moved is None else reader_of(moved.outputs[0], "Sub")
    add = None if scaled is None else reader_of(scaled.outputs[0], "Add")
    if scaled is None or moved is None or sub is None or add is None:
        return
    bias = operand(sub, 0)
    if sub.inputs[1] is moved.outputs[0] and any(b is sub.outputs[0] for _, b in both_orders(add)):
        yield _Product(add.outputs[0], True, scale, bias), (*nodes, scaled, moved, sub, add)


def _with_scale(norm: Norm) -> Norm:
    mul = sole_reader(norm.output, "Mul")
    if mul is None or mul.graph is not norm.nodes[0].graph:
        return norm
    for value, other in both_orders(mul):
        if value is norm.output and is_parameter(norm, other):
            return replace(norm, output=mul.outputs[0], nodes=(*norm.nodes, mul), scale=other)
    return norm


def _with_bias(norm: Norm) -> Norm:
    add = sole_reader(norm.output, "Add")
    if not norm.centred or add is None or add.graph is not norm.nodes[0].graph:
        return norm
    for value, other in both_orders(add):
        if value is norm.output and is_parameter(norm, other):
            return replace(norm, output=add.outputs[0], nodes=(*norm.nodes, add), bias=other)
    return norm


def is_parameter(norm: Norm, value: ir.Value | None) -> bool:
    """Whether a factor or term varies over the normalised axes only and can be given their shape."""
    if value is None or value is norm.output:
        return False
    if norm.fits(value):
        return source_of(value) is None or is_const(value)
    shape = dims(value)
    if not is_const(value) or shape is None or not all(isinstance(d, int) for d in norm.normalised):
        return False
    if len(shape) > (rank(norm.source) or 0) or any(size != 1 for size in shape[: -norm.axes]):
        return False
    own = shape[-norm.axes :]
    wanted = norm.normalised[len(norm.normalised) - len(own) :]
    return all(size in {1, other} for size, other in zip(own, wanted, strict=True))


def refuse_odd_parameters(norm: Norm) -> None:
    """Scale and bias (of a form that contains them) can be given the normalised shape; ones can be made."""
    for value in (norm.scale, norm.bias):
        if value is not None and not is_parameter(norm, value):
            raise Refusal(
                f"{text(value)} {describe_dims(value)} does not vary over the normalised dims "
                f"{list(norm.normalised)} only"
            )
    static = norm.scale is not None or all(isinstance(size, int) for size in norm.normalised)
    refuse_unless(static, f"there is no scale, and the normalised dims of {text(norm.source)} are not static")
    refuse_unless(
        same_shape(norm.source, norm.output) or norm.output.shape is None or rank(norm.source) is None,
        f"{text(norm.output)} {describe_dims(norm.output)} is larger than {text(norm.source)}",
    )
