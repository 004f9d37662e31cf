"""Family C: a sum of convolutions as one convolution of joined inputs, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import (
    Context,
    array,
    dim,
    nbytes,
    operand,
    producer,
    rank,
    text,
)
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, refuse_unless
from explorer.rewrite.rules.axes import axis_of
from explorer.rewrite.rules.conv_parts import geometry, group_of, refuse_variable_bias, weight_of
from explorer.rewrite.rules.linear import rounded
from explorer.rewrite.rules.siblings import slices


class MergeConvSum(PatternRule):
    """Conv(x, W1) + Conv(y, W2) becomes Conv(concat(x, y), concat W)."""

    name = "merge-conv-sum"
    family = "C6"
    title = "Merge two added convolutions into one of joined inputs"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "split-conv-inputs"
    preconditions = (
        "Equal kernel, strides, pads, dilations and number of filters; group 1; inputs equal but for their channels; "
        "weights and biases constant; both results read by nothing else."
    )
    evidence = "ORT 1.32 CPU: -1 % at DISABLE, +3 to +7 % at ALL."
    anchors = ("Add",)
    min_opset = 7

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """An Add of two convolutions."""
        convs = [producer(value, "Conv") for value in node.inputs]
        first, second = convs
        if first is None or second is None or first is second or _feeds(first, second):
            return None
        for conv in (first, second):
            weight_of(conv)
            refuse_variable_bias(conv)
            refuse_unless(group_of(conv) == 1, f"the convolution has {group_of(conv)} groups", conv)
        refuse_unless(
            geometry(first) == geometry(second), "kernel, strides, pads or dilations differ", first, second
        )
        filters = [dim(conv.inputs[1], 0) for conv in (first, second)]
        refuse_unless(
            filters[0] == filters[1], f"{filters[0]} and {filters[1]} filters are added", first, second
        )
        _refuse_other_sizes(first, second)
        sources = f"{text(first.inputs[0])} and {text(second.inputs[0])}"
        summary = f"one convolution of {sources} joined instead of two added"
        constants = (*first.inputs[1:], *second.inputs[1:])
        biases = [operand(conv, 2) for conv in (first, second)]
        size = nbytes(first.inputs[1]) + nbytes(second.inputs[1])
        size += max(nbytes(bias) for bias in biases) if all(biases) else 0
        drops = constants if all(biases) else (first.inputs[1], second.inputs[1])
        return Match((first, second, node), (node.outputs[0],), {}, "", summary, size, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Concat and Conv; two biases become their sum, one stays what it is."""
        first, second, add = match.nodes
        joined = build.op(
            "Concat", [first.inputs[0], second.inputs[0]], {"axis": 1}, dtype=add.outputs[0].dtype
        )
        weights = [array(conv.inputs[1]) for conv in (first, second)]
        weight = build.constant(np.concatenate(weights, axis=1), f"{_name(first)}_joined")
        operands: list[ir.Value | None] = [joined, weight]
        biases = [bias for conv in (first, second) if (bias := operand(conv, 2)) is not None]
        if len(biases) == 2:
            total = sum(array(bias).astype(np.float64) for bias in biases)
            operands.append(
                build.constant(rounded(np.asarray(total), weights[0].dtype), f"{_name(first)}_bias")
            )
        else:
            operands += biases
        return [build.op("Conv", operands, attributes_of(first), like=match.outputs[0])]


class SplitConvInputs(PatternRule):
    """Conv(concat(x, y, ...), W) becomes Conv(x, W1) + Conv(y, W2) + ..."""

    name = "split-conv-inputs"
    family = "C6"
    title = "Split a convolution of joined inputs into a sum"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "merge-conv-sum"
    preconditions = (
        "Concat over channels, of static sizes, read by nothing else; group 1; weight constant; the bias stays with "
        "the first part."
    )
    evidence = "The reverse of C6: pays slightly at ALL."
    anchors = ("Conv",)
    min_opset = 7

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Conv whose input is a Concat."""
        concat = producer(operand(node, 0), "Concat")
        if concat is None or len(concat.inputs) < 2:
            return None
        axis = axis_of(concat, 1, rank(operand(node, 1)))
        if axis != 1:
            return None
        refuse_unless(group_of(node) == 1, f"the convolution has {group_of(node)} groups", concat)
        weight = weight_of(node)
        sizes = [dim(value, 1) for value in concat.inputs]
        known = [size for size in sizes if isinstance(size, int)]
        if len(known) < len(sizes) or sum(known) != dim(weight, 1):
            raise Refusal(f"the channels of the parts of {text(concat.outputs[0])} are not known", (concat,))
        summary = f"{text(node.outputs[0])} is the sum of {len(sizes)} convolutions"
        bindings = {"sizes": known, "sources": tuple(concat.inputs)}
        outputs = (node.outputs[0],)
        return Match((concat, node), outputs, bindings, "", summary, nbytes(weight), (weight,))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Conv per part, the first with the bias, and a chain of Adds."""
        conv, like = match.nodes[1], match.outputs[0]
        weights = slices(array(conv.inputs[1]), match["sizes"], 1)
        total: ir.Value | None = None
        for source, weight in zip(match["sources"], weights, strict=True):
            operands = [source, build.constant(weight, f"{_name(conv)}_part")]
            operands += [] if total is not None else list(conv.inputs[2:])
            value = build.op("Conv", operands, attributes_of(conv), like=like)
            total = value if total is None else build.op("Add", [total, value], like=like)
        if total is None:
            raise Refusal("the Concat has no inputs")
        return [total]


def _feeds(first: ir.Node, second: ir.Node) -> bool:
    """Whether one convolution reads the result of the other."""
    return second.inputs[0] is first.outputs[0] or first.inputs[0] is second.outputs[0]


def _refuse_other_sizes(first: ir.Node, second: ir.Node) -> None:
    """The inputs can be joined: equal in every axis but the channels (G6)."""
    a, b = first.inputs[0], second.inputs[0]
    size = rank(a)
    refuse_unless(size is not None and size == rank(b), f"the ranks of {text(a)} and {text(b)} are not known")
    for axis in (0, *range(2, size or 0)):
        known = dim(a, axis) is not None and dim(a, axis) == dim(b, axis)
        refuse_unless(
            known, f"axis {axis} of {text(a)} and {text(b)} is not known to be equal", first, second
        )


def _name(conv: ir.Node) -> str:
    weight = conv.inputs[1]
    return (weight.name if weight is not None else None) or "weight"


RULES = (MergeConvSum(), SplitConvInputs())
