"""Family G: reductions that follow each other, or whose lost axes come back."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import Context, operand, producer, rank, text
from explorer.rewrite.rule import FLOATS, Match, NumericClass, PatternRule, refuse_unless
from explorer.rewrite.rules.axes import axes_bytes, build_with_axes
from explorer.rewrite.rules.axis_operators import REDUCTIONS, axes_of, drops_axes

_ASSOCIATIVE = tuple(
    f"Reduce{kind}" for kind in ("L1", "L2", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum")
)
_EVIDENCE = "One node less; onnx/optimizer#29 is a crash in this rule."


class MergeReductionAndUnsqueeze(PatternRule):
    """Unsqueeze(ReduceX(x, axes, keepdims=0), axes) becomes ReduceX(keepdims=1); Squeeze the other way."""

    name = "merge-reduction-and-unsqueeze"
    family = "G11"
    title = "Let the reduction keep (or drop) its axes"
    numeric_class = NumericClass.EXACT
    preconditions = "The axes of the Unsqueeze (Squeeze) are those of the reduction; all constant."
    evidence = _EVIDENCE
    anchors = ("Squeeze", "Unsqueeze")
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Squeeze or Unsqueeze of a reduction's result."""
        reduction = producer(operand(node, 0), *REDUCTIONS)
        if reduction is None or drops_axes(reduction) is not (node.op_type == "Unsqueeze"):
            return None
        own, other = axes_of(reduction), axes_of(node)
        reason = f"{node.op_type} has axes {list(other)}, {reduction.op_type} {list(own)}"
        refuse_unless(own == other, reason, reduction)
        keeps = int(node.op_type == "Unsqueeze")
        summary = f"{reduction.op_type} {'keeps' if keeps else 'drops'} axes {list(own)}"
        bindings = {"reduction": reduction, "keepdims": keeps}
        drops = tuple(value for value in node.inputs[1:] if value not in reduction.inputs)
        return Match((reduction, node), (node.outputs[0],), bindings, summary=summary, drops=drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The reduction with its axes kept or dropped."""
        reduction = match["reduction"]
        attributes = attributes_of(reduction, keepdims=match["keepdims"])
        return [build.op(reduction.op_type, reduction.inputs, attributes, like=match.outputs[0])]


class MergeReductions(PatternRule):
    """ReduceX(ReduceX(x, a), b) becomes ReduceX(x, a and b)."""

    name = "merge-reductions"
    family = "G11"
    title = "Merge two reductions"
    numeric_class = NumericClass.REASSOCIATED
    preconditions = (
        "The same associative reduction (sum, mean, product, maximum, minimum, L1, L2, log-sum-exp) twice, over "
        "different constant axes, with the same keepdims."
    )
    evidence = _EVIDENCE
    anchors = _ASSOCIATIVE
    dtypes = FLOATS

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A reduction of the same reduction's result."""
        first = producer(operand(node, 0), node.op_type)
        if first is None:
            return None
        keeps = [int(not drops_axes(n)) for n in (first, node)]
        refuse_unless(keeps[0] == keeps[1], f"the two {node.op_type} differ in keepdims", first)
        inner, outer = axes_of(first), axes_of(node)
        if not keeps[0]:
            left = [axis for axis in range(rank(first.inputs[0]) or 0) if axis not in inner]
            outer = tuple(left[axis] for axis in outer)
        both = f"both {node.op_type} are over axes {sorted(set(inner) & set(outer))}"
        refuse_unless(not set(inner) & set(outer), both, first)
        axes = tuple(sorted((*inner, *outer)))
        bindings = {"source": first.inputs[0], "axes": axes, "keepdims": keeps[0]}
        size = axes_bytes(node.op_type, axes, context)
        drops = (*first.inputs[1:], *node.inputs[1:])
        summary = f"{text(first.inputs[0])} is reduced once over axes {list(axes)}"
        return Match((first, node), (node.outputs[0],), bindings, "", summary, size, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One reduction."""
        op_type, source, axes = match.nodes[-1].op_type, match["source"], match["axes"]
        return [
            build_with_axes(op_type, source, axes, build, keepdims=match["keepdims"], like=match.outputs[0])
        ]


RULES = (MergeReductionAndUnsqueeze(), MergeReductions())
