"""Family D: Gemm and its activation as one com.microsoft FusedGemm, and back."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from explorer.rewrite.builder import MICROSOFT, Builder, attributes_of
from explorer.rewrite.context import Context, operand, producer, text
from explorer.rewrite.rule import FLOAT32, Match, NumericClass, PatternRule, refuse_unless

_PARAMETERS = {
    "Relu": {},
    "Sigmoid": {},
    "Tanh": {},
    "Softplus": {},
    "Softsign": {},
    "LeakyRelu": {"alpha": 0.01},
    "Elu": {"alpha": 1.0},
    "ThresholdedRelu": {"alpha": 1.0},
    "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
    "Selu": {"alpha": 1.6732632423543772, "gamma": 1.0507009873554805},
}  # activation: its attributes with their defaults


class FuseGemmActivation(PatternRule):
    """activation(Gemm(A, B, C)) becomes com.microsoft FusedGemm."""

    name = "fuse-gemm-activation"
    family = "D14"
    title = "Fuse Gemm and its activation (FusedGemm)"
    numeric_class = NumericClass.EXACT
    inverse = "unfuse-gemm-activation"
    preconditions = (
        "float32; activation Relu, Sigmoid, Tanh, Softplus, Softsign, LeakyRelu, Elu, ThresholdedRelu, "
        "HardSigmoid or Selu; the Gemm read by nothing else. The result is not portable (com.microsoft)."
    )
    evidence = "ORT's own pass at EXTENDED and above does it: absorbed at ALL."
    anchors = tuple(_PARAMETERS)
    portable = False
    dtypes = FLOAT32

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """An activation whose input is a Gemm."""
        gemm = producer(operand(node, 0), "Gemm")
        if gemm is None:
            return None
        summary = f"{node.op_type} of {text(node.outputs[0])} moves into the Gemm"
        return Match((gemm, node), (node.outputs[0],), {"gemm": gemm, "activation": node}, summary=summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One FusedGemm."""
        gemm, activation = match["gemm"], match["activation"]
        attributes = attributes_of(gemm, activation=activation.op_type)
        for key, default in _PARAMETERS[activation.op_type].items():
            attributes[f"activation_{key}"] = activation.attributes.get_float(key, default)
        return [build.op("FusedGemm", gemm.inputs, attributes, like=activation.outputs[0], domain=MICROSOFT)]


class UnfuseGemmActivation(PatternRule):
    """com.microsoft FusedGemm becomes Gemm and its activation."""

    name = "unfuse-gemm-activation"
    family = "D14"
    title = "Split FusedGemm into Gemm and activation"
    numeric_class = NumericClass.EXACT
    inverse = "fuse-gemm-activation"
    preconditions = "com.microsoft FusedGemm with a known activation whose parameters are given."
    evidence = "The reverse of D14; the result is portable."
    anchors = ("com.microsoft::FusedGemm",)
    min_opset = 7
    dtypes = FLOAT32

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """Any FusedGemm."""
        activation = node.attributes.get_string("activation", "") or ""
        refuse_unless(activation in _PARAMETERS, f"activation '{activation}' is not known")
        has_bias = operand(node, 2) is not None or context.opset >= 11
        refuse_unless(has_bias, f"Gemm needs a C before opset 11, the model imports {context.opset}")
        given = {k for k in node.attributes if k.startswith("activation_")}
        missing = {f"activation_{k}" for k in _PARAMETERS[activation]} - given
        refuse_unless(not missing, f"{', '.join(sorted(missing))} is not given")
        summary = f"{text(node.outputs[0])}: Gemm, then {activation}"
        return Match((node,), (node.outputs[0],), {"activation": activation}, summary=summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Gemm, then the activation."""
        (node,), like, name = match.nodes, match.outputs[0], match["activation"]
        own = [key for key in node.attributes if key.startswith("activation")]
        value = build.op("Gemm", node.inputs, attributes_of(node, *own), like=like)
        parameters = {key: node.attributes.get_float(f"activation_{key}") for key in _PARAMETERS[name]}
        return [build.op(name, [value], parameters, like=like)]


RULES = (FuseGemmActivation(), UnfuseGemmActivation())
