"""Family C: a 1x1 convolution merged with the convolution beside it (nothing in between)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import Context, array, dims, element_bytes, nbytes, operand, producer, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, refuse_unless
from explorer.rewrite.rules.conv_parts import (
    bias_array,
    group_of,
    has_zero_pads,
    is_pointwise,
    refuse_variable_bias,
    weight_of,
)
from explorer.rewrite.rules.linear import rounded

_GROWTH_LIMIT_BYTES = 64 << 20


class MergeConvThenPointwise(PatternRule):
    """Conv1x1(ConvK(x)) becomes one ConvK; ConvK may have groups (depthwise, C19)."""

    name = "merge-conv-then-pointwise"
    family = "C10"
    title = "Merge a convolution and the 1x1 convolution after it"
    numeric_class = NumericClass.REASSOCIATED
    preconditions = (
        "The second Conv 1x1, stride 1, no pads, group 1; the first without groups; weights and biases constant; "
        "nothing between them; the new weight at most 64 MiB larger."
    )
    evidence = "Decide by FLOPs: pays where the channels in between are more than the others."
    anchors = ("Conv",)

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A 1x1 Conv of a Conv without groups."""
        inner = producer(operand(node, 0), "Conv")
        if inner is None or group_of(inner) != 1:
            return None
        return _before_pointwise(node, inner)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The first Conv with composed weights and bias."""
        return [_composed(match, build)]


class MergeDepthwiseThenPointwise(MergeConvThenPointwise):
    """Conv1x1(grouped Conv(x)), a separable convolution, becomes one dense Conv."""

    name = "merge-depthwise-then-pointwise"
    family = "C19"
    title = "Merge a depthwise and a 1x1 convolution into a dense one"
    preconditions = (
        "The second Conv 1x1, stride 1, no pads, group 1; the first with groups; weights and biases constant; nothing "
        "between them; the new weight at most 64 MiB larger."
    )
    evidence = "More FLOPs: slower almost always."

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A 1x1 Conv of a Conv with groups."""
        inner = producer(operand(node, 0), "Conv")
        if inner is None or group_of(inner) == 1:
            return None
        return _before_pointwise(node, inner)


class MergePointwiseThenConv(PatternRule):
    """ConvK(Conv1x1(x)) becomes one ConvK."""

    name = "merge-pointwise-then-conv"
    family = "C10"
    title = "Merge a 1x1 convolution and the convolution after it"
    numeric_class = NumericClass.REASSOCIATED
    preconditions = (
        "The first Conv 1x1, stride 1, no pads; both without groups; weights and biases constant; the first without "
        "bias or the second without pads; nothing between them; the new weight at most 64 MiB larger."
    )
    evidence = "Decide by FLOPs: pays where the channels in between are more than the others."
    anchors = ("Conv",)

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Conv, larger than 1x1, of a 1x1 Conv."""
        inner = producer(operand(node, 0), "Conv")
        if inner is None or not is_pointwise(inner) or is_pointwise(node):
            return None
        for conv in (inner, node):
            refuse_unless(group_of(conv) == 1, f"the convolution has {group_of(conv)} groups", conv)
        _refuse_variable(inner, node)
        refuse_unless(
            operand(inner, 2) is None or has_zero_pads(node),
            f"the bias of {text(inner.outputs[0])} does not reach the padding of the second convolution",
            inner,
        )
        first, second = (dims(weight_of(conv)) or () for conv in (inner, node))
        return _match(inner, node, (second[0], first[1], *second[2:]))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The second Conv with composed weights and bias."""
        inner, outer = match.nodes
        first, second = (array(conv.inputs[1]).astype(np.float64) for conv in (inner, outer))
        matrix = first.reshape(first.shape[:2])
        weight = np.moveaxis(np.tensordot(second, matrix, axes=(1, 0)), -1, 1)
        carried = second.reshape(*second.shape[:2], -1).sum(axis=2) @ _bias(inner)
        return [_emit(match, outer, weight, carried + _bias(outer), build)]


def _before_pointwise(node: ir.Node, inner: ir.Node) -> Match | None:
    if not is_pointwise(node) or group_of(node) != 1:
        return None
    _refuse_variable(inner, node)
    first, second = (dims(weight_of(conv)) or () for conv in (inner, node))
    return _match(inner, node, (second[0], first[1] * group_of(inner), *first[2:]))


def _composed(match: Match, build: Builder) -> ir.Value:
    """Conv1x1 after a (grouped) convolution: the filters are combined by the 1x1 weight."""
    inner, outer = match.nodes
    groups = group_of(inner)
    first, second = (array(conv.inputs[1]).astype(np.float64) for conv in (inner, outer))
    matrix = second.reshape(second.shape[:2])
    parts = [
        np.tensordot(columns, filters, axes=(1, 0))
        for columns, filters in zip(np.split(matrix, groups, axis=1), np.split(first, groups), strict=True)
    ]
    return _emit(match, inner, np.concatenate(parts, axis=1), matrix @ _bias(inner) + _bias(outer), build)


def _refuse_variable(*convs: ir.Node) -> None:
    for conv in convs:
        weight_of(conv)
        refuse_variable_bias(conv)


def _match(inner: ir.Node, outer: ir.Node, shape: tuple[int, ...]) -> Match:
    weights = [weight_of(conv) for conv in (inner, outer)]
    element = element_bytes(weights[0])
    size, old = prod(shape) * element, sum(map(nbytes, weights))
    refuse_unless(
        size - old <= _GROWTH_LIMIT_BYTES, f"the weights would grow from {old:,} to {size:,} bytes", inner
    )
    biases = [operand(conv, 2) for conv in (inner, outer)]
    if any(bias is not None for bias in biases):
        size += shape[0] * element
    summary = f"{text(weights[0])} and {text(weights[1])} become one kernel of shape {list(shape)}"
    return Match((inner, outer), (outer.outputs[0],), {}, "", summary, size, (*weights, *biases))


def _bias(conv: ir.Node) -> np.ndarray:
    return bias_array(conv, array(conv.inputs[1])).astype(np.float64)


def _emit(match: Match, window: ir.Node, weight: np.ndarray, bias: np.ndarray, build: Builder) -> ir.Value:
    """A Conv with the window of one of the two, these weights, and a bias if either had one."""
    inner, outer = match.nodes
    dtype = array(outer.inputs[1]).dtype
    hint = outer.inputs[1].name if outer.inputs[1] is not None else "weight"
    operands = [inner.inputs[0], build.constant(rounded(weight, dtype), f"{hint}_composed")]
    if operand(inner, 2) is not None or operand(outer, 2) is not None:
        operands.append(build.constant(rounded(bias, dtype), f"{hint}_composed_bias"))
    return build.op("Conv", operands, attributes_of(window, "group"), like=match.outputs[0])


RULES = (MergeConvThenPointwise(), MergeDepthwiseThenPointwise(), MergePointwiseThenConv())
