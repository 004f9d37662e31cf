"""Family G: transposes moved through element-wise operators of one operand."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import Context, operand, producer, shape_of, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule
from explorer.rewrite.rules.axes import is_identity, perm_of
from explorer.rewrite.rules.elementwise import UNARY_OPERATORS, apply_function, is_unary, unary_before
from explorer.rewrite.rules.transposes import transposed

_EVIDENCE = "Removing a sandwich of transposes: -72 % at DISABLE, absorbed at ALL."


class SinkTransposeThroughUnary(PatternRule):
    """f(Transpose(x)) becomes Transpose(f(x))."""

    name = "sink-transpose-through-unary"
    family = "G1"
    title = "Move Transpose below an element-wise operator"
    numeric_class = NumericClass.EXACT
    inverse = "hoist-transpose-through-unary"
    preconditions = "An element-wise operator of one tensor; the Transpose read by nothing else."
    evidence = _EVIDENCE
    anchors = tuple(sorted(UNARY_OPERATORS))
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """An element-wise node whose input is a Transpose."""
        transpose = producer(operand(node, 0), "Transpose")
        if transpose is None or not is_unary(node) or is_identity(perm_of(transpose) or (1,)):
            return None
        summary = f"{node.op_type} is applied before {text(transpose.outputs[0])} is transposed"
        return Match((transpose, node), (node.outputs[0],), summary=summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The function, then the Transpose."""
        transpose, node = match.nodes
        source = transpose.inputs[0]
        value = apply_function(node, source, build, shape_of(source))  # type: ignore[arg-type] # a Transpose has an input
        return [build.op("Transpose", [value], attributes_of(transpose), like=match.outputs[0])]


class HoistTransposeThroughUnary(PatternRule):
    """Transpose(f(x)) becomes f(Transpose(x))."""

    name = "hoist-transpose-through-unary"
    family = "G1"
    title = "Move Transpose above an element-wise operator"
    numeric_class = NumericClass.EXACT
    inverse = "sink-transpose-through-unary"
    preconditions = "An element-wise operator of one tensor, read by the Transpose only."
    evidence = _EVIDENCE
    anchors = ("Transpose",)
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Transpose of an element-wise node's result."""
        unary, perm = unary_before(operand(node, 0)), perm_of(node)
        if unary is None or perm is None or is_identity(perm):
            return None
        summary = f"{unary.op_type} is applied after {text(unary.inputs[0])} is transposed"
        return Match((unary, node), (node.outputs[0],), {"perm": perm}, summary=summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The Transpose, then the function."""
        unary, node = match.nodes
        value = transposed(unary.inputs[0], match["perm"], build, node)  # type: ignore[arg-type] # is_unary() saw it
        return [apply_function(unary, value, build, shape_of(match.outputs[0]))]


RULES = (SinkTransposeThroughUnary(), HoistTransposeThroughUnary())
