"""Family C: Conv and its activation as one com.microsoft FusedConv, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import MICROSOFT, Builder, attributes_of
from explorer.rewrite.context import Context, operand, producer, rank, scalar, text
from explorer.rewrite.rule import FLOAT32, Match, NumericClass, PatternRule, refuse_unless

_ACTIVATIONS = ("Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip", "HardSigmoid")
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
        return Match((conv, node), (node.outputs[0],), bindings, summary=summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One FusedConv."""
        conv, activation = match["conv"], match["activation"]
        attributes = attributes_of(conv, activation=activation.op_type)
        if match["params"]:
            attributes["activation_params"] = match["params"]
        return [build.op("FusedConv", conv.inputs, attributes, like=activation.outputs[0], domain=MICROSOFT)]


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
        return Match((node,), (node.outputs[0],), {"activation": activation}, summary=summary)

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


def _parameters(node: ir.Node) -> list[float]:
    if node.op_type == "LeakyRelu":
        return [node.attributes.get_float("alpha", 0.01) or 0.0]
    if node.op_type == "HardSigmoid":
        attributes = node.attributes
        return [attributes.get_float("alpha", 0.2) or 0.0, attributes.get_float("beta", 0.5) or 0.0]
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
        return build.op(name, [value], {"alpha": params[0], "beta": params[1]}, like=like)
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


RULES = (FuseConvActivation(), UnfuseConvActivation())
