"""Family B: BatchNormalization folded into the convolution before it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import Context, array, is_const, nbytes, operand, producer, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, refuse_unless
from explorer.rewrite.rules.conv_parts import bias_array, refuse_variable_bias, weight_of, why_not_const


class FoldBatchNormIntoConv(PatternRule):
    """BN(Conv(x)) becomes one Conv with weight W * s / sqrt(v + eps) and an adapted bias."""

    name = "fold-batchnorm-into-conv"
    family = "B1"
    title = "Fold BatchNormalization into Conv"
    numeric_class = NumericClass.REASSOCIATED
    preconditions = (
        "BatchNormalization in inference mode with one used output; its scale, bias, mean and variance and the "
        "Conv's weight and bias constant; variance + epsilon > 0; the Conv read by nothing else."
    )
    evidence = "ORT 1.32 CPU: -1 to -2 % per layer at DISABLE, absorbed at BASIC and above."
    anchors = ("BatchNormalization",)

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A BatchNormalization whose input is a Conv."""
        conv = producer(node.inputs[0], "Conv")
        if conv is None:
            return None
        refuse_training(node, context)
        weight_of(conv)
        refuse_variable_bias(conv)
        statistics = refuse_variable_statistics(node)
        variance, epsilon = array(statistics[3]), node.attributes.get_float("epsilon", 1e-5) or 0.0
        refuse_unless(
            bool((variance + epsilon > 0).all()), "variance + epsilon is not positive everywhere", conv
        )
        summary = f"{text(node.outputs[0])}: the normalisation moves into weight {text(conv.inputs[1])}"
        size = nbytes(conv.inputs[1]) + nbytes(statistics[0])
        bindings = {"conv": conv, "bn": node}
        drops = (*conv.inputs[1:], *statistics)
        return Match((conv, node), (node.outputs[0],), bindings, "", summary, size, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Conv with scaled weight and shifted bias."""
        conv, bn = match["conv"], match["bn"]
        weight = array(conv.inputs[1])
        factor, shift = affine_of(bn)
        shape = (-1,) + (1,) * (weight.ndim - 1)
        bias = bias_array(conv, weight).astype(np.float64) * factor + shift
        inputs = [
            conv.inputs[0],
            build.constant(
                (weight * factor.reshape(shape)).astype(weight.dtype), f"{conv.inputs[1].name}_bn"
            ),
            build.constant(bias.astype(weight.dtype), f"{conv.inputs[1].name}_bn_bias"),
        ]
        return [build.op("Conv", inputs, attributes_of(conv), like=bn.outputs[0])]


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


def refuse_variable_statistics(bn: ir.Node) -> tuple[ir.Value, ...]:
    """Scale, bias, mean and variance, all constant."""
    values = [operand(bn, position) for position in range(1, 5)]
    for value in values:
        refuse_unless(is_const(value), f"{text(value)} {why_not_const(value) if value else 'is missing'}")
    return tuple(value for value in values if value is not None)


def affine_of(bn: ir.Node) -> tuple[np.ndarray, np.ndarray]:
    """(factor, shift) per channel, in float64: BN(x) = factor * x + shift."""
    scale, bias, mean, variance = (array(v).astype(np.float64) for v in bn.inputs[1:5])
    factor = scale / np.sqrt(variance + (bn.attributes.get_float("epsilon", 1e-5) or 0.0))
    return factor, bias - factor * mean


RULES = (FoldBatchNormIntoConv(),)
