"""Family C: convolutions of the same tensor merged into one, and a merged one split again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import Context, array, dim, dims, nbytes, operand, producer, sole_reader, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, Rule, refuse_unless
from explorer.rewrite.rules.conv_parts import (
    bias_array,
    geometry,
    group_of,
    refuse_variable_bias,
    weight_of,
)
from explorer.rewrite.rules.siblings import (
    groups,
    siblings,
    slices,
    split,
    split_bytes,
    split_sizes,
)


class MergeParallelConvs(Rule):
    """Conv(x, W1), Conv(x, W2) ... become Split(Conv(x, concat W))."""

    name = "merge-parallel-convs"
    family = "C4"
    title = "Merge convolutions of the same tensor"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "split-merged-conv"
    preconditions = (
        "Same input, kernel, strides, pads, dilations; group 1; weights and biases constant (a missing bias is "
        "zeros)."
    )
    evidence = "ORT 1.32 CPU: 1x1 pairs +17 to +22 % at ALL; 3x3 pairs -5 to -8 % at DISABLE, +3 % at ALL."
    anchors = ("Conv",)
    min_opset = 2

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """All compatible siblings together and every pair of them."""
        family = siblings(node, context)
        fitting = []
        for conv in family:
            problem = _problem(conv, family[0])
            if problem is None:
                fitting.append(conv)
            else:
                yield Refusal(problem, (conv,))
        if len(fitting) > 1:
            for members in groups(fitting):
                outputs = tuple(conv.outputs[0] for conv in members)
                summary = f"{len(members)} convolutions of {text(node.inputs[0])} become one"
                yield Match(
                    members, outputs, {}, "", summary, _merged_bytes(members, context), _constants(members)
                )

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One wide convolution and a Split over its channels."""
        convs, first = match.nodes, match.nodes[0]
        weights = [array(conv.inputs[1]) for conv in convs]
        inputs = [
            first.inputs[0],
            build.constant(np.concatenate(weights), f"{first.inputs[1].name}_merged"),  # type: ignore[union-attr] # weight_of checked it
        ]
        if any(operand(conv, 2) is not None for conv in convs):
            biases = [bias_array(conv, weight) for conv, weight in zip(convs, weights, strict=True)]
            inputs.append(build.constant(np.concatenate(biases), f"{first.inputs[1].name}_merged_bias"))  # type: ignore[union-attr] # as above
        merged = build.op("Conv", inputs, attributes_of(first), dtype=first.outputs[0].dtype)
        return split(merged, [weight.shape[0] for weight in weights], 1, build)


class SplitMergedConv(PatternRule):
    """Split(Conv(x, W), axis=1) becomes one convolution per part."""

    name = "split-merged-conv"
    family = "C5"
    title = "Split a merged convolution"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "merge-parallel-convs"
    preconditions = "Conv read only by a Split over channels with constant sizes; group 1; W and b constant."
    evidence = "The reverse of C4: pays where C4 hurts."
    anchors = ("Split",)

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Split whose input is a Conv."""
        conv = producer(node.inputs[0])
        if conv is None or conv.op_type != "Conv" or sole_reader(conv.outputs[0]) is not node:
            return None
        axis = node.attributes.get_int("axis", 0)
        refuse_unless(axis == 1, f"the Split is over axis {axis}, not over channels", conv)
        refuse_unless(group_of(conv) == 1, f"the convolution has {group_of(conv)} groups", conv)
        weight = weight_of(conv)
        refuse_variable_bias(conv)
        channels = dim(weight, 0)
        sizes = split_sizes(node, channels if isinstance(channels, int) else None)
        refuse_unless(sizes, "the sizes of the Split are not constant", conv)
        summary = f"{text(conv.outputs[0])} is computed in {len(node.outputs)} parts"
        bindings = {"conv": conv, "sizes": sizes}
        size = sum(nbytes(value) for value in conv.inputs[1:])
        drops = (*conv.inputs[1:], *node.inputs[1:])
        return Match((conv, node), tuple(node.outputs), bindings, "", summary, size, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Conv per slice of the weight."""
        conv, sizes = match["conv"], match["sizes"]
        parts = slices(array(conv.inputs[1]), sizes, 0)
        bias = operand(conv, 2)
        biases = slices(array(bias), sizes, 0) if bias is not None else [None] * len(sizes)
        results = []
        for weight, part, output in zip(parts, biases, match.outputs, strict=True):
            inputs = [conv.inputs[0], build.constant(weight, f"{conv.inputs[1].name}_part")]
            if part is not None:
                inputs.append(build.constant(part, "bias_part"))
            results.append(build.op("Conv", inputs, attributes_of(conv), like=output))
        return results


def _constants(convs: Sequence[ir.Node]) -> tuple[ir.Value | None, ...]:
    return tuple(value for conv in convs for value in conv.inputs[1:])


def _merged_bytes(convs: Sequence[ir.Node], context: Context) -> int:
    """Weights, a bias for every channel if any convolution has one, and the sizes of the Split."""
    weights = [conv.inputs[1] for conv in convs]
    size = sum(nbytes(weight) for weight in weights) + split_bytes(len(convs), context)
    if any(operand(conv, 2) is not None for conv in convs):
        found = [dims(weight) for weight in weights]
        size += sum(nbytes(w) // (prod(d[1:]) or 1) for w, d in zip(weights, found, strict=True) if d)
    return size


def _problem(conv: ir.Node, first: ir.Node) -> str | None:
    try:
        weight_of(conv)
        refuse_variable_bias(conv)
    except Refusal as refusal:
        return refusal.reason
    if group_of(conv) != 1:
        return f"the convolution has {group_of(conv)} groups"
    if geometry(conv) != geometry(first):
        return "kernel, strides, pads or dilations differ from the first convolution of this tensor"
    return None


RULES = (MergeParallelConvs(), SplitMergedConv())
