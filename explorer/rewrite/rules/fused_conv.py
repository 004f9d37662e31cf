"""Family C: Conv and its activation as one com.microsoft FusedConv, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import MICROSOFT, Builder, attributes_of
from explorer.rewrite.context import Context, dim, operand, producer, rank, same_shape, scalar, text
from explorer.rewrite.rule import FLOAT32, Match, NumericClass, PatternRule, Refusal, Rule, refuse_unless

_ACTIVATIONS = ("Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip", "HardSigmoid")
_HARD_SIGMOID_BETA = 0.5  # what ONNX assumes and exporters leave out
_LIMIT = float(np.finfo(np.float32).max)


class FuseConvActivation(PatternRule):
    """activation(Conv(x)) becomes com.microsoft FusedConv."""

    name = "fuse-conv-activation"
    family = "C17"
    title = "Fuse Conv and its activation (FusedConv)"
    numeric_class = NumericClass.EXACT
    inverse = "unfuse-conv-activation"
    preconditions = (
        "float32; 4-D; activation Relu, Sigmoid, Tanh, LeakyRelu, HardSigmoid or Clip with constant bounds; the "
        "Conv read by nothing else. The result is not portable (com.microsoft)."
    )
    evidence = "ORT 1.32 CPU: -4 to -5 % at DISABLE, within 5 % either way at ALL, where it is absorbed."
    anchors = _ACTIVATIONS
    portable = False
    dtypes = FLOAT32

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """An activation whose input is a Conv."""
        conv = producer(operand(node, 0), "Conv")
        if conv is None:
            return None
        refuse_unless(rank(conv.inputs[0]) == 4, "the convolution is not known to be 2-D (4-D input)", conv)
        params = _parameters(node)
        summary = f"{node.op_type} of {text(node.outputs[0])} moves into the convolution"
        bindings = {"conv": conv, "activation": node, "params": params}
        drops = tuple(node.inputs[1:])
        return Match((conv, node), (node.outputs[0],), bindings, summary=summary, drops=drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One FusedConv."""
        conv, activation = match["conv"], match["activation"]
        return [_fused(conv, conv.inputs, activation, match["params"], build)]


class FuseConvSumActivation(Rule):
    """activation(Conv(x, W, b) + z) becomes com.microsoft FusedConv(x, W, b, z)."""

    name = "fuse-conv-add-activation"
    family = "C18"
    title = "Fuse Conv, the Add after it and an activation (FusedConv)"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "unfuse-conv-activation"
    preconditions = (
        "As fuse-conv-activation; the other operand of the Add has exactly the shape of the Conv's result; a missing "
        "bias becomes zeros. The result is not portable (com.microsoft)."
    )
    evidence = "ORT 1.32 CPU: -3 to -6 % at DISABLE, +13 to +21 % at ALL, because it blocks the NCHWc layout."
    anchors = _ACTIVATIONS
    portable = False
    dtypes = FLOAT32

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """Either operand of the Add may be the convolution that absorbs it."""
        add = producer(operand(node, 0), "Add")
        operands = () if add is None else ((add.inputs[0], add.inputs[1]), (add.inputs[1], add.inputs[0]))
        for position, (value, other) in enumerate(operands):
            conv = producer(value, "Conv")
            if conv is None or add is None or value is other:
                continue
            try:
                yield self._match(node, add, conv, other, f"operand{position}")
            except Refusal as refusal:
                yield refusal

    def _match(
        self, node: ir.Node, add: ir.Node, conv: ir.Node, other: ir.Value | None, variant: str
    ) -> Match:
        refuse_unless(rank(conv.inputs[0]) == 4, "the convolution is not known to be 2-D (4-D input)", conv)
        refuse_unless(
            same_shape(conv.outputs[0], other),
            f"{text(other)} is not known to have the shape of {text(conv.outputs[0])}",
            conv,
        )
        filters, has_bias = dim(operand(conv, 1), 0), operand(conv, 2) is not None
        if not has_bias and not isinstance(filters, int):
            raise Refusal(f"the number of filters of {text(conv.outputs[0])} is unknown", (conv,))
        bindings = {"conv": conv, "other": other, "activation": node}
        numbers = {"params": _parameters(node), "filters": filters}
        size = 0 if has_bias or not isinstance(filters, int) else 4 * filters
        summary = f"{text(add.outputs[0])} and its {node.op_type} move into the convolution"
        nodes, drops = (conv, add, node), tuple(node.inputs[1:])
        return Match(nodes, (node.outputs[0],), {**bindings, **numbers}, variant, summary, size, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One FusedConv with four inputs."""
        conv, bias = match["conv"], operand(match["conv"], 2)
        if bias is None:
            bias = build.constant(np.zeros(match["filters"], np.float32), "zero_bias")
        operands = [*conv.inputs[:2], bias, match["other"]]
        return [_fused(conv, operands, match["activation"], match["params"], build)]


class UnfuseConvActivation(PatternRule):
    """FusedConv(x, W, b, z) becomes activation(Conv(x, W, b) + z)."""

    name = "unfuse-conv-activation"
    family = "C20"
    title = "Split FusedConv into Conv and activation"
    numeric_class = NumericClass.EXACT
    inverse = "fuse-conv-activation"
    preconditions = "com.microsoft FusedConv with a known activation."
    evidence = "Undoes hand-written fusions that keep ORT from its NCHWc layout (+13 to +21 % at ALL)."
    anchors = ("com.microsoft::FusedConv",)
    dtypes = FLOAT32

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """Any FusedConv."""
        activation = node.attributes.get_string("activation", "") or ""
        refuse_unless(activation in {"", *_ACTIVATIONS}, f"activation '{activation}' is not known")
        summary = f"{text(node.outputs[0])}: Conv, then {activation or 'nothing'}"
        size = 8 if activation == "Clip" and context.opset >= 11 else 0
        return Match((node,), (node.outputs[0],), {"activation": activation}, "", summary, size)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Conv, the residual Add if there is one, and the activation."""
        (node,), like = match.nodes, match.outputs[0]
        attributes = attributes_of(node, "activation", "activation_params")
        value = build.op("Conv", node.inputs[:3], attributes, like=like)
        if operand(node, 3) is not None:
            value = build.op("Add", [value, node.inputs[3]], like=like)
        if match["activation"]:
            params = tuple(node.attributes.get_floats("activation_params", ()) or ())
            value = _activate(match["activation"], params, value, like, build)
        return [value]


def _fused(
    conv: ir.Node,
    operands: Sequence[ir.Value | None],
    activation: ir.Node,
    params: Sequence[float],
    build: Builder,
) -> ir.Value:
    attributes = attributes_of(conv, activation=activation.op_type)
    if params:
        attributes["activation_params"] = list(params)
    return build.op("FusedConv", operands, attributes, like=activation.outputs[0], domain=MICROSOFT)


def _parameters(node: ir.Node) -> list[float]:
    if node.op_type == "LeakyRelu":
        return [node.attributes.get_float("alpha", 0.01) or 0.0]
    if node.op_type == "HardSigmoid":
        attributes = node.attributes
        return [
            attributes.get_float("alpha", 0.2) or 0.0,
            attributes.get_float("beta", _HARD_SIGMOID_BETA) or 0.0,
        ]
    return list(clip_bounds(node)) if node.op_type == "Clip" else []


def clip_bounds(clip: ir.Node) -> tuple[float, float]:
    """Constant (low, high) of a Clip, as attributes (opset < 11) or inputs; refuses variable bounds."""
    bounds = []
    for position, (name, default) in enumerate((("min", -_LIMIT), ("max", _LIMIT)), start=1):
        value = operand(clip, position)
        found = scalar(value) if value is not None else clip.attributes.get_float(name, default)
        refuse_unless(found is not None, f"the {name} of Clip is not a constant", clip)
        bounds.append(float(found if found is not None else default))
    return bounds[0], bounds[1]


def _activate(
    name: str, params: tuple[float, ...], value: ir.Value, like: ir.Value, build: Builder
) -> ir.Value:
    if name == "LeakyRelu":
        return build.op(name, [value], {"alpha": params[0]}, like=like)
    if name == "HardSigmoid":
        beta = {} if params[1] == _HARD_SIGMOID_BETA else {"beta": params[1]}
        return build.op(name, [value], {"alpha": params[0], **beta}, like=like)
    if name == "Clip":
        return clip(value, params[0], params[1], like, build)
    return build.op(name, [value], like=like)


def clip(value: ir.Value, low: float, high: float, like: ir.Value, build: Builder) -> ir.Value:
    """A Clip in the form of the model's opset."""
    if build.opset < 11:
        return build.op("Clip", [value], {"min": low, "max": high}, like=like)
    dtype = (like.dtype or ir.DataType.FLOAT).numpy()
    bounds = [build.constant(np.array(x, dtype=dtype), hint) for x, hint in ((low, "min"), (high, "max"))]
    return build.op("Clip", [value, *bounds], like=like)


RULES = (FuseConvActivation(), FuseConvSumActivation(), UnfuseConvActivation())
