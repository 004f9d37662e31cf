"""Family A: an If whose condition is known becomes its branch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import Context, is_const, operand, scalar, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal
from explorer.rewrite.rules.conv_parts import why_not_const


class InlineConstantIf(PatternRule):
    """If(true) becomes its then-branch, If(false) its else-branch."""

    name = "inline-constant-if"
    family = "A17"
    title = "Inline the branch of an If with a constant condition"
    numeric_class = NumericClass.EXACT
    preconditions = (
        "The condition is constant; the branch's values get fresh names, captured ones keep theirs."
    )
    evidence = "Makes the branch visible to all other rules."
    anchors = ("If",)
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """An If with a known condition."""
        condition = operand(node, 0)
        if condition is None:
            return None
        known = scalar(condition)
        if known is None:
            raise Refusal(f"condition {text(condition)} {why_not_const(condition)}")
        names = ("then_branch", "else_branch") if known else ("else_branch", "then_branch")
        taken, other = (node.attributes[name].as_graph() for name in names)
        kept = set(_constants_in(taken))
        drops = (condition, *(value for value in _constants_in(other) if value not in kept))
        summary = f"{text(condition)} is always {bool(known)}: the {names[0].replace('_', ' ')} stays"
        return Match((node,), tuple(node.outputs), {"branch": names[0]}, "", summary, 0, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The nodes and weights of the branch move into the graph that held the If."""
        branch = match.nodes[0].attributes[match["branch"]].as_graph()
        results = list(branch.outputs)
        branch.outputs.clear()
        for weight in list(branch.initializers.values()):
            del branch.initializers[weight.name or ""]
            weight.name = build.fresh(weight.name or "weight")
            build.home.register_initializer(weight)
        for node in list(branch):
            branch.remove(node)
            for value in node.outputs:
                value.name = build.fresh(value.name) if value.name else value.name
            build.nodes.append(node)
        return results


def _constants_in(body: ir.Graph) -> Iterator[ir.Value]:
    """Constants that a body holds or captures."""
    yield from body.initializers.values()
    for node in body.all_nodes():
        yield from (value for value in node.inputs if value is not None and is_const(value))


RULES = (InlineConstantIf(),)
