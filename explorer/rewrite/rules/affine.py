"""Nodes that scale or shift each channel by a constant: BatchNormalization, and Mul, Div, Add, Sub with one.

All are read as ``factor * x + shift`` with float64 vectors, one element or one per channel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import onnx_ir as ir

from explorer.rewrite.context import Context, array, dims, is_const, operand, operator, rank, text
from explorer.rewrite.rule import Refusal, refuse_unless
from explorer.rewrite.rules.conv_parts import why_not_const

SCALES = ("Mul", "Div")
SHIFTS = ("Add", "Sub")
_LARGEST_VECTOR = 65536  # elements of a constant that matching looks at
_EPSILON = float(np.float32(1e-5))


Vectors = tuple[np.ndarray | None, np.ndarray | None]


@dataclass(frozen=True)
class Affine:
    """What a node does to each channel; the numbers are worked out when first asked for.

    Attributes:
        scales: whether the channels are multiplied by a factor.
        adds: whether something is added afterwards.
        constants: the constants it is read from.
        vectors: computes (factor, shift), None for what there is not.
    """

    scales: bool
    adds: bool
    constants: tuple[ir.Value, ...]
    vectors: Callable[[], Vectors]

    @cached_property
    def _vectors(self) -> Vectors:
        return self.vectors()

    @property
    def factor(self) -> np.ndarray | None:
        """Multiplies the channels; None if they are not scaled."""
        return self._vectors[0]

    @property
    def shift(self) -> np.ndarray | None:
        """Is added afterwards; None if nothing is."""
        return self._vectors[1]

    @property
    def shifts(self) -> bool:
        """Whether anything but zero is added."""
        return self.adds and self.shift is not None and bool(self.shift.any())

    def of(self, values: np.ndarray) -> np.ndarray:
        """The function applied to one number per channel."""
        scaled = values if self.factor is None else values * self.factor
        return scaled if self.shift is None else scaled + self.shift


def affine_source(node: ir.Node) -> ir.Value | None:
    """The tensor that a node scales or shifts by constants; None if it does something else.

    Raises:
        Refusal: the would-be constant is a default that callers may override.
    """
    if operator(node) == "BatchNormalization":
        return operand(node, 0)
    found = constant_operand(node)
    return None if found is None or (node.op_type == "Div" and found[1] == 0) else node.inputs[1 - found[1]]


def constant_operand(node: ir.Node) -> tuple[ir.Value, int] | None:
    """(constant, its position) of a binary node with one constant operand; None if there is none or two.

    Raises:
        Refusal: instead of a constant there is a default that callers may override.
    """
    a, b = operand(node, 0), operand(node, 1)
    if a is None or b is None or (is_const(a) and is_const(b)):
        return None
    for position, value in enumerate((a, b)):
        if is_const(value):
            return value, position
        if value.is_graph_input() and value.is_initializer():
            raise Refusal(f"{text(value)} {why_not_const(value)}", (node,))
    return None


def read_affine(node: ir.Node, axis: int, channels: int, context: Context) -> Affine:
    """Factor and shift of a node that ``affine_source`` accepted.

    Args:
        node: BatchNormalization, Mul, Div, Add or Sub.
        axis: the channel axis, 1 or -1.
        channels: how many channels there are.
        context: the graph.

    Raises:
        Refusal: training mode, constants that vary along other axes, or a division by zero.
    """
    if operator(node) == "BatchNormalization":
        return batchnorm_affine(node, axis, channels, context)
    found = constant_operand(node)
    if found is None:
        raise Refusal("neither operand is a constant", (node,))
    constant, position = found
    vector = channel_vector(constant, node.inputs[1 - position], axis, channels)
    factor, shift = _factor_and_shift(node, vector, position, constant)
    return Affine(factor is not None, shift is not None, (constant,), lambda: (factor, shift))


def _factor_and_shift(node: ir.Node, vector: np.ndarray, position: int, constant: ir.Value) -> Vectors:
    if node.op_type == "Mul":
        return vector, None
    if node.op_type == "Div":
        return reciprocal(vector, constant), None
    if node.op_type == "Add":
        return None, vector
    return (None, -vector) if position == 1 else (-np.ones(1), vector)


def batchnorm_affine(bn: ir.Node, axis: int, channels: int, context: Context) -> Affine:
    """Factor and shift of a BatchNormalization in inference mode."""
    refuse_training(bn, context)
    statistics = refuse_variable_statistics(bn)
    size = rank(operand(bn, 0))
    refuse_unless(
        axis == 1 or size == 2, f"channels are axis 1 of a tensor of rank {size}, columns are the last axis"
    )
    for value in statistics:
        shape = dims(value)
        refuse_unless(shape == (channels,), f"{text(value)} has shape {list(shape or ())}, not [{channels}]")
    spread = array(statistics[3]).astype(np.float64) + epsilon_of(bn)
    refuse_unless(bool((spread > 0).all()), "variance + epsilon is not positive everywhere")

    def vectors() -> Vectors:
        scale, bias, mean = (array(value).astype(np.float64) for value in statistics[:3])
        factor = scale / np.sqrt(spread)
        return factor, bias - factor * mean

    return Affine(True, True, statistics, vectors)


def epsilon_of(node: ir.Node) -> float:
    """The epsilon of a normalisation (default 1e-5, as everywhere in ONNX); attributes are single precision."""
    found = node.attributes.get_float("epsilon", _EPSILON)
    return _EPSILON if found is None else found


def refuse_training(bn: ir.Node, context: Context) -> None:
    """Inference mode, in the words of each opset; one output per channel axis."""
    refuse_unless(not bn.attributes.get_int("training_mode", 0), "BatchNormalization is in training mode")
    if context.opset < 7:
        refuse_unless(
            bn.attributes.get_int("is_test", 0), "BatchNormalization is in training mode (is_test=0)"
        )
    if context.opset < 9:
        refuse_unless(
            bn.attributes.get_int("spatial", 1), "BatchNormalization is not per channel (spatial=0)"
        )
    if context.opset < 14:
        extra = [value for value in bn.outputs[1:] if value.name]
        refuse_unless(not extra, "BatchNormalization has several outputs, that is, it is in training mode")


def refuse_variable_statistics(bn: ir.Node) -> tuple[ir.Value, ...]:
    """Scale, bias, mean and variance, all constant."""
    values = [operand(bn, position) for position in range(1, 5)]
    for value in values:
        refuse_unless(is_const(value), f"{text(value)} {why_not_const(value) if value else 'is missing'}")
    return tuple(value for value in values if value is not None)


def channel_vector(constant: ir.Value, source: ir.Value | None, axis: int, channels: int) -> np.ndarray:
    """A constant as one number, or one per channel, in float64.

    Args:
        constant: an operand of a broadcasting operator.
        source: the other operand, which has the channels.
        axis: the channel axis of ``source``, 1 or -1.
        channels: how many channels there are.

    Raises:
        Refusal: it varies along another axis or enlarges the result.
    """
    shape, size = dims(constant) or (), rank(source)
    known = size if size is not None else (1 if axis == -1 else None)
    if known is None or len(shape) > known:
        reason = f"the rank of {text(source)} is {'unknown' if size is None else size}"
        raise Refusal(f"{text(constant)} of shape {list(shape)} may enlarge the result: {reason}")
    place = len(shape) - 1 if axis == -1 else axis - (known - len(shape))
    for position, length in enumerate(shape):
        if length != 1 and position != place:
            raise Refusal(
                f"{text(constant)} of shape {list(shape)} varies along an axis of {text(source)} that is not "
                "the channel axis"
            )
    count = prod(shape)
    refuse_unless(
        count in {1, channels}, f"{text(constant)} has {count} elements for {channels} channels and enlarges"
    )
    refuse_unless(count <= _LARGEST_VECTOR, f"{text(constant)} has {count} elements, too many to look at")
    return array(constant).astype(np.float64).ravel()


def reciprocal(vector: np.ndarray, constant: ir.Value) -> np.ndarray:
    """1 / vector; refuses zeros and numbers too small for it."""
    with np.errstate(all="ignore"):
        result: np.ndarray = 1.0 / vector
    refuse_unless(
        np.isfinite(result).all() and np.isfinite(vector).all(),
        f"{text(constant)} holds a zero or a value without a reciprocal",
    )
    return result
