"""Family K: channels added to a depthwise convolution so that they fill the runtime's blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import (
    Context,
    array,
    dims,
    nbytes,
    operand,
    operator,
    producer,
    sole_reader,
    text,
)
from explorer.rewrite.rule import FLOAT32, Match, NumericClass, Refusal, Rule, refuse_unless
from explorer.rewrite.rules.conv_parts import group_of, refuse_variable_bias, weight_of

BLOCKS = (8, 16)
"""Channels per block of ONNX Runtime's NCHWc layout: with AVX2 and with AVX-512."""

_FINITE_AT_ZERO = (
    "Relu",
    "LeakyRelu",
    "Clip",
    "Elu",
    "Selu",
    "Sigmoid",
    "Tanh",
    "HardSigmoid",
    "HardSwish",
    "Softplus",
)


class PadDepthwiseChannels(Rule):
    """Conv, depthwise Conv, Conv get inner channels of zeros up to a multiple of the block."""

    name = "pad-depthwise-channels"
    family = "K3"
    title = "Pad depthwise channels to the runtime's block"
    numeric_class = NumericClass.REASSOCIATED
    preconditions = (
        "A depthwise convolution between two dense ones, directly or through element-wise functions finite at zero, "
        "each read by the next one only; constant weights; channels no multiple of the block (8 or 16); finite values."
    )
    evidence = (
        "ShuffleNetV2 (58 and 116 channels): -9 % at ALL, where the padded ones get an NCHWc kernel; within noise at "
        "DISABLE (ORT 1.32 CPU, screening)."
    )
    anchors = ("Conv",)
    dtypes = FLOAT32

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """One match per block size at a depthwise convolution."""
        shape = dims(operand(node, 1))
        if (
            shape is None
            or len(shape) != 4
            or group_of(node) == 1
            or group_of(node) != shape[0]
            or shape[1] != 1
        ):
            return
        channels = shape[0]
        if channels % BLOCKS[0] == 0:
            return
        before, after = _chain(node, upwards=True), _chain(node, upwards=False)
        if before is None or after is None:
            return
        chain = (*reversed(before), node, *after)
        convs = [n for n in chain if n.op_type == "Conv"]
        for conv in convs:
            _refuse_normalisation(conv)
            weight_of(conv)
            refuse_variable_bias(conv)
        for padded in dict.fromkeys(-(-channels // block) * block for block in BLOCKS):
            yield self._match(chain, convs, channels, padded)

    def _match(
        self, chain: tuple[ir.Node, ...], convs: Sequence[ir.Node], channels: int, padded: int
    ) -> Match:
        constants = [
            value
            for conv, is_last in zip(convs, (False, False, True), strict=True)
            for value in (conv.inputs[1:2] if is_last else conv.inputs[1:])
        ]
        size = sum(nbytes(value) // channels * padded for value in constants)
        summary = f"{text(convs[1].outputs[0])}: {channels} channels become {padded}"
        bindings = {"padded": padded, "channels": channels}
        return Match(chain, (chain[-1].outputs[0],), bindings, str(padded), summary, size, tuple(constants))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The same chain with zeros in the weights of the new channels."""
        extra = match["padded"] - match["channels"]
        first, last = match.nodes[0], match.nodes[-1]
        value: ir.Value = first.inputs[0]  # type: ignore[assignment] # a Conv has an input
        for node in match.nodes:
            if node.op_type != "Conv":
                value = build.op(
                    node.op_type, [value, *node.inputs[1:]], attributes_of(node), dtype=value.dtype
                )
                continue
            weight, bias = array(node.inputs[1]), operand(node, 2)
            padding = [(0, 0)] * weight.ndim
            padding[1 if node is last else 0] = (0, extra)
            operands: list[ir.Value | None] = [
                value,
                build.constant(np.pad(weight, padding), "padded_weight"),
            ]
            if bias is not None:
                same = node is last
                operands.append(
                    bias if same else build.constant(np.pad(array(bias), (0, extra)), "padded_bias")
                )
            is_depthwise = node is not first and node is not last
            changed = {"group": match["padded"]} if is_depthwise else {}
            like = match.outputs[0] if node is last else None
            value = build.op("Conv", operands, attributes_of(node, **changed), like=like)
        return [value]


def _chain(depthwise: ir.Node, *, upwards: bool) -> tuple[ir.Node, ...] | None:
    """Element-wise functions and the dense Conv before or after, nearest first; None if there is another node."""
    found: list[ir.Node] = []
    node = depthwise
    for _ in range(3):
        following = _before(node) if upwards else sole_reader(node.outputs[0])
        if following is None:
            return None
        found.append(following)
        if operator(following) == "Conv":
            is_data = upwards or following.inputs[0] is node.outputs[0]
            return tuple(found) if group_of(following) == 1 and is_data else None
        if operator(following) == "BatchNormalization":
            _refuse_normalisation(node if not upwards else following)
        if operator(following) not in _FINITE_AT_ZERO:
            return None
        node = following
    return None


def _before(node: ir.Node) -> ir.Node | None:
    source = producer(operand(node, 0))
    return source if source is not None and sole_reader(source.outputs[0]) is node else None


def _refuse_normalisation(node: ir.Node) -> None:
    is_one = operator(node) == "BatchNormalization"
    norm = node if is_one else sole_reader(node.outputs[0], "BatchNormalization")
    refuse_unless(norm is None, "a BatchNormalization lies between the convolutions; fold it first")


RULES = (PadDepthwiseChannels(),)
