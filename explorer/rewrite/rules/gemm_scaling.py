"""Family B: the factors alpha and beta of Gemm folded into its weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import Context, array, is_const, nbytes, operand, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, refuse_unless
from explorer.rewrite.rules.conv_parts import why_not_const
from explorer.rewrite.rules.linear import rounded


class FoldGemmScaling(PatternRule):
    """Gemm(A, B, C; alpha, beta) becomes Gemm(A, alpha B, beta C)."""

    name = "fold-gemm-scaling"
    family = "B9"
    title = "Fold Gemm's alpha and beta into its weights"
    numeric_class = NumericClass.REASSOCIATED
    preconditions = "alpha is 1 or B constant; beta is 1, C absent or C constant."
    evidence = "Neutral in ONNX Runtime; exposes the product to D1 and D5, which need alpha = beta = 1."
    anchors = ("Gemm",)

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Gemm with a factor other than 1."""
        factors = {1: _factor(node, "alpha"), 2: _factor(node, "beta")}
        scaled = {p: f for p, f in factors.items() if f != 1.0 and operand(node, p) is not None}
        if not scaled:
            return None
        constants = [node.inputs[position] for position in scaled]
        for value in constants:
            refuse_unless(is_const(value), f"{text(value)} {why_not_const(value) if value else ''}")
        names = " and ".join(text(value) for value in constants)
        summary = f"the factors of {text(node.outputs[0])} move into {names}"
        size = sum(nbytes(value) for value in constants)
        bindings = {"scaled": scaled}
        return Match((node,), (node.outputs[0],), bindings, "", summary, size, tuple(constants))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """A Gemm with both factors at 1."""
        (gemm,), inputs = match.nodes, list(match.nodes[0].inputs)
        for position, factor in match["scaled"].items():
            old = inputs[position]
            inputs[position] = build.constant(
                _scaled(array(old), factor), f"{old.name if old else ''}_scaled"
            )
        return [build.op("Gemm", inputs, attributes_of(gemm, "alpha", "beta"), like=match.outputs[0])]


def _factor(node: ir.Node, name: str) -> float:
    found = node.attributes.get_float(name, 1.0)
    return 1.0 if found is None else found


def _scaled(values: np.ndarray, factor: float) -> np.ndarray:
    return rounded(values.astype(np.float64) * factor, values.dtype)


RULES = (FoldGemmScaling(),)
