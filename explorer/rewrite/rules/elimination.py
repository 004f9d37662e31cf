"""Family A: nodes that do nothing."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import Context, operand, text
from explorer.rewrite.replace import takeover_obstacle
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, refuse_unless


class EliminateIdentity(PatternRule):
    """Identity(x) becomes x."""

    name = "eliminate-identity"
    family = "A1"
    title = "Remove Identity"
    numeric_class = NumericClass.EXACT
    preconditions = "Not where an input, a weight or another output would become a graph output (G3)."
    evidence = "Absorbed by ONNX Runtime at every level from BASIC on."
    anchors = ("Identity",)
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """Any Identity whose input can stand in for its output."""
        return bypass(node, f"{text(node.outputs[0])} is {text(node.inputs[0])}")

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The input replaces the output."""
        return [match["source"]]


def bypass(node: ir.Node, summary: str) -> Match:
    """A match that replaces a node's first output by its first input; refuses if names forbid it."""
    source, result = operand(node, 0), node.outputs[0]
    if source is None:
        raise Refusal(f"the input of {text(result)} is missing")
    obstacle = takeover_obstacle(result, source)
    refuse_unless(obstacle is None, obstacle or "")
    return Match((node,), (result,), {"source": source}, summary=summary)


RULES = (EliminateIdentity(),)
