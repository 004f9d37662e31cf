"""Nodes that are linear in their input, with constant weights: Conv, ConvTranspose, Gemm, MatMul (+ Add).

Every weight is seen as blocks ``[groups, outputs / groups, inputs / groups, taps]``, so that scaling channels and
pushing a constant input through the node are written once. Arithmetic is in float64, rounded once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import (
    array,
    dims,
    element_bytes,
    is_const,
    nbytes,
    operand,
    operator,
    producer,
    sole_reader,
    split_operands,
    text,
)
from explorer.rewrite.rule import Refusal, refuse_unless
from explorer.rewrite.rules.conv_parts import group_of, why_not_const
from explorer.rewrite.walk import uses_of

CONVOLUTIONS = ("Conv", "ConvTranspose")
PRODUCTS = ("Gemm", "MatMul")
_CHUNK_ELEMENTS = 1 << 22


@dataclass(frozen=True)
class Linear:
    """A linear node and its constants.

    Attributes:
        node: the operator.
        weight: its constant weight.
        bias: its bias (constant or not), or None.
        add: the Add that holds the bias of a MatMul, if any.
        groups: groups of a convolution.
        inputs_first: the weight is stored as [inputs, outputs / groups, ...].
    """

    node: ir.Node
    weight: ir.Value
    bias: ir.Value | None = None
    add: ir.Node | None = None
    groups: int = 1
    inputs_first: bool = False

    @property
    def nodes(self) -> tuple[ir.Node, ...]:
        """The operator, and the Add of its bias."""
        return (self.node,) if self.add is None else (self.node, self.add)

    @property
    def output(self) -> ir.Value:
        """What the node, bias included, computes."""
        return (self.add or self.node).outputs[0]

    @property
    def constants(self) -> tuple[ir.Value | None, ...]:
        """Weight and bias."""
        return (self.weight, self.bias)

    @property
    def axis(self) -> int:
        """The channel axis of input and output: 1 for convolutions, the last one for products."""
        return 1 if self.node.op_type in CONVOLUTIONS else -1

    @property
    def outputs(self) -> int:
        """Number of output channels (columns of a product)."""
        first, second = self._shape[:2]
        return second * self.groups if self.inputs_first else first

    @property
    def inputs(self) -> int:
        """Number of input channels (rows of a product)."""
        first, second = self._shape[:2]
        return first if self.inputs_first else second * self.groups

    @property
    def bias_bytes(self) -> int:
        """Bytes of a bias with one element per output channel."""
        return self.outputs * element_bytes(self.weight)

    @property
    def _shape(self) -> tuple[int, ...]:
        found = dims(self.weight)
        if found is None:
            raise Refusal(f"the shape of weight {text(self.weight)} is unknown", (self.node,))
        return found

    def new_bytes(self, *, weight: bool, bias: bool) -> int:
        """Bytes of the constants that ``emit`` creates."""
        return (nbytes(self.weight) if weight else 0) + (self.bias_bytes if bias else 0)

    def blocks(self, weight: np.ndarray) -> np.ndarray:
        """A view ``[groups, outputs / groups, inputs / groups, taps]`` of a weight."""
        first, second, *kernel = weight.shape
        view = weight.reshape(self.groups, first // self.groups, second, prod(kernel))
        return view.swapaxes(1, 2) if self.inputs_first else view

    def scaled_outputs(self, factor: np.ndarray) -> np.ndarray:
        """The weight with each output channel multiplied by its factor."""
        return self._scaled(_spread(factor, self.outputs).reshape(self.groups, -1, 1, 1))

    def scaled_inputs(self, factor: np.ndarray) -> np.ndarray:
        """The weight with each input channel multiplied by its factor."""
        return self._scaled(_spread(factor, self.inputs).reshape(self.groups, 1, -1, 1))

    def response(self, channels: np.ndarray) -> np.ndarray:
        """The outputs, without bias, for an input that is constant per channel (float64)."""
        shifts = _spread(channels, self.inputs).reshape(self.groups, -1, 1)
        source = self.blocks(array(self.weight))
        parts = [source[:, rows].sum(axis=3, dtype=np.float64) @ shifts for rows in _chunks(source.shape, 1)]
        gain = self.node.attributes.get_float("alpha", 1.0) if self.node.op_type == "Gemm" else 1.0
        return (1.0 if gain is None else gain) * np.concatenate(parts, axis=1).ravel()

    def bias_vector(self) -> np.ndarray:
        """The bias, as it is added, per output channel in float64; zeros if there is none."""
        if self.bias is None:
            return np.zeros(self.outputs)
        gain = self.node.attributes.get_float("beta", 1.0) if self.node.op_type == "Gemm" else 1.0
        return (1.0 if gain is None else gain) * _spread(array(self.bias).astype(np.float64), self.outputs)

    def refuse_other_bias(self) -> None:
        """The bias is absent, or a constant with one element or one per output channel."""
        if self.bias is None:
            return
        refuse_unless(is_const(self.bias), f"bias {text(self.bias)} {why_not_const(self.bias)}", *self.nodes)
        shape = dims(self.bias) or ()
        fits = prod(shape) == 1 or (shape[-1] == self.outputs == prod(shape))
        refuse_unless(
            fits,
            f"bias {text(self.bias)} of shape {list(shape)} is not one number per output channel",
            *self.nodes,
        )

    def emit(
        self,
        source: ir.Value | None,
        build: Builder,
        like: ir.Value,
        *,
        weight: np.ndarray | None = None,
        bias: np.ndarray | None = None,
    ) -> ir.Value:
        """The same operator on ``source``.

        Args:
            source: the input.
            build: collects the new nodes.
            like: the value that the result replaces.
            weight: the new weight, or None to keep it.
            bias: the new bias in float64, or None to keep it.
        """
        hint = self.weight.name or "weight"
        kernel = self.weight if weight is None else build.constant(weight, f"{hint}_folded")
        added = self.bias if bias is None else build.constant(self._rounded(bias), f"{hint}_bias")
        if self.node.op_type == "MatMul":
            value = build.op("MatMul", [source, kernel], like=like)
            return value if added is None else build.op("Add", [value, added], like=like)
        without = () if bias is None else ("beta",)
        operands = [source, kernel] if added is None else [source, kernel, added]
        return build.op(self.node.op_type, operands, attributes_of(self.node, *without), like=like)

    def _rounded(self, values: np.ndarray) -> np.ndarray:
        return rounded(values, array(self.weight).dtype)

    def _scaled(self, factor: np.ndarray) -> np.ndarray:
        weight = array(self.weight)
        result = np.empty(weight.shape, weight.dtype)
        source, target = self.blocks(weight), self.blocks(result)
        factors = np.broadcast_to(factor, source.shape)
        for rows in _chunks(source.shape, 1):
            target[:, rows] = rounded(source[:, rows].astype(np.float64) * factors[:, rows], weight.dtype)
        return result


def read_linear(node: ir.Node) -> Linear:
    """A Conv, ConvTranspose, Gemm or MatMul as a ``Linear``; refuses a weight that is not constant."""
    op, weight = operator(node), operand(node, 1)
    if weight is None:
        raise Refusal("the weight is missing", (node,))
    what = "weight" if op in CONVOLUTIONS else "right operand"
    refuse_unless(is_const(weight), f"{what} {text(weight)} {why_not_const(weight)}", node)
    if op in CONVOLUTIONS:
        return Linear(node, weight, operand(node, 2), None, group_of(node), op == "ConvTranspose")
    size = len(dims(weight) or ())
    refuse_unless(size == 2, f"right operand {text(weight)} has rank {size}, not 2", node)
    transposed = op == "Gemm" and bool(node.attributes.get_int("transB", 0))
    return Linear(node, weight, operand(node, 2) if op == "Gemm" else None, inputs_first=not transposed)


def with_bias(linear: Linear) -> Linear:
    """A MatMul together with the Add of a constant vector that follows it, if one does."""
    if linear.node.op_type != "MatMul" or linear.add is not None:
        return linear
    add = sole_reader(linear.node.outputs[0], "Add")
    operands = None if add is None or add.graph is not linear.node.graph else split_operands(add)
    if operands is None or dims(operands[1]) not in {(linear.outputs,), (1,), ()}:
        return linear
    return replace(linear, add=add, bias=operands[1])


def linear_before(value: ir.Value | None, operators: tuple[str, ...], home: object) -> Linear | None:
    """The linear node (of these operators, in this graph) that computes a value.

    Raises:
        Refusal: its weight or bias is not constant or has another form.
    """
    node = producer(value)
    if node is None or node.graph is not home:
        return None
    if operator(node) == "Add" and "MatMul" in operators:
        operands = split_operands(node)
        product = None if operands is None else producer(operands[0])
        if product is None or operator(product) != "MatMul" or not is_const(operand(product, 1)):
            return None
        linear = with_bias(read_linear(product))
        return linear if linear.add is node else None
    if operator(node) not in operators:
        return None
    linear = read_linear(node)
    linear.refuse_other_bias()
    return linear


def linears_after(value: ir.Value, operators: tuple[str, ...], home: object) -> list[Linear]:
    """The linear nodes (of these operators, in this graph) whose data input is a value.

    Raises:
        Refusal: a weight or bias of theirs is not constant or has another form.
    """
    found = []
    for reader, position in uses_of(value):
        if position != 0 or reader.graph is not home or operator(reader) not in operators:
            continue
        linear = with_bias(read_linear(reader))
        linear.refuse_other_bias()
        transposed = operator(reader) == "Gemm" and reader.attributes.get_int("transA", 0) == 1
        refuse_unless(not transposed, f"{text(value)} is transposed by the product", reader)
        found.append(linear)
    return found


def rounded(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Values in another type, rounded to nearest; refuses to turn a finite number into infinity."""
    with np.errstate(over="ignore"):
        result: np.ndarray = values.astype(dtype)
    if np.isfinite(values).all() and not np.isfinite(result).all():
        raise Refusal(f"a folded weight is too large for {dtype}")
    return result


def _spread(values: np.ndarray, count: int) -> np.ndarray:
    """One number, or one per channel, as exactly one per channel."""
    flat = values.ravel()
    return np.repeat(flat, count) if flat.size == 1 else flat


def _chunks(shape: tuple[int, ...], axis: int) -> list[slice]:
    """Slices along an axis that keep float64 copies of large weights small."""
    length = shape[axis]
    step = max(1, _CHUNK_ELEMENTS * length // max(prod(shape), 1))
    return [slice(start, start + step) for start in range(0, length, step)]
