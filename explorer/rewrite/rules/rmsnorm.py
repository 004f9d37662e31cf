"""Family F: RMSNorm written out, as one node, and back."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import Context, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, refuse_unless
from explorer.rewrite.rules.affine import epsilon_of
from explorer.rewrite.rules.layernorm import Means, match_written_out, normalise
from explorer.rewrite.rules.norm_parts import read_norm, refuse_odd_parameters
from explorer.rewrite.rules.patterns import FLOAT_HALF_DOUBLE, FLOAT_OR_DOUBLE


class FuseRmsNorm(PatternRule):
    """x / sqrt(mean(x * x) + epsilon) * scale becomes RMSNormalization."""

    name = "fuse-rmsnorm"
    family = "F2"
    title = "Fuse the parts of RMSNorm"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "split-rmsnorm"
    preconditions = (
        "As F1, without mean and bias. Before opset 23 there is no such operator in the standard, and the checker "
        "refuses ONNX Runtime's SimplifiedLayerNormalization (registered in the standard domain without a schema "
        "there): write the division with Div (mul-reciprocal-to-div) and the square with Pow (mul-to-square), then "
        "ORT fuses it itself, or fuse it with the Add before it (F4)."
    )
    evidence = "ORT 1.32 CPU: -67 % at DISABLE; absorbed at ALL if written with Pow and Div."
    anchors = ("ReduceMean",)
    min_opset = 23
    dtypes = FLOAT_HALF_DOUBLE

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """The ReduceMean of the squares."""
        norm = read_norm(node)
        if norm is None or norm.centred:
            return None
        refuse_unless(
            context.opset >= 23,
            f"RMSNormalization needs opset 23, the model imports {context.opset}; written with Pow and Div (rules "
            "mul-to-square, mul-reciprocal-to-div) ONNX Runtime fuses it itself",
        )
        refuse_odd_parameters(norm)
        summary = f"{text(norm.output)} = RMSNormalization({text(norm.source)})"
        size = norm.parameter_bytes(scale=True, bias=False)
        return Match(norm.nodes, (norm.output,), {"norm": norm}, "", summary, size, norm.dropped())

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One RMSNormalization."""
        norm, like = match["norm"], match.outputs[0]
        attributes = {"axis": -norm.axes, "epsilon": norm.epsilon}
        operands = [norm.source, norm.parameter(norm.scale, build)]
        return [build.op("RMSNormalization", operands, attributes, like=like)]


class SplitRmsNorm(PatternRule):
    """RMSNormalization, or ONNX Runtime's SimplifiedLayerNormalization, becomes its parts."""

    name = "split-rmsnorm"
    family = "F2"
    title = "RMSNormalization to its parts"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "fuse-rmsnorm"
    preconditions = (
        "float or double (half precision is computed in float inside the operator); the rank of x known; the second "
        "output not used."
    )
    evidence = "The reverse of F2: 3 times slower at DISABLE; the form that ORT's own pass recognises."
    anchors = ("RMSNormalization", "SimplifiedLayerNormalization")
    min_opset = 7
    dtypes = FLOAT_OR_DOUBLE

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """Either operator with one used output."""
        return match_written_out(node, context)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Six nodes."""
        (node,), like = match.nodes, match.outputs[0]
        source = node.inputs[0]
        if source is None:
            return []
        value = normalise(epsilon_of(node), source, Means(match["axes"], build), build)
        return [build.op("Mul", [value, node.inputs[1]], like=like)]


RULES = (FuseRmsNorm(), SplitRmsNorm())
