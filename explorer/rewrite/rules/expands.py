"""Family A: Expands that enlarge nothing, or that broadcasting would do anyway."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import Context, exclusive, operand, producer, same_shape, text
from explorer.rewrite.rule import Match, NumericClass, Refusal, Rule
from explorer.rewrite.rules.broadcasting import BROADCASTING, results_in
from explorer.rewrite.rules.elimination import Bypass, bypass


class EliminateExpand(Bypass):
    """Expand(x) to the shape x has becomes x."""

    name = "eliminate-expand"
    family = "A10"
    title = "Remove Expand that enlarges nothing"
    preconditions = "Input and output provably have the same shape: equal static dims or equal symbols."
    anchors = ("Expand",)

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """An Expand whose result has the shape of its input."""
        if not same_shape(operand(node, 0), node.outputs[0]):
            return None
        return bypass(node, f"{text(node.outputs[0])} is {text(node.inputs[0])}, nothing is enlarged")


class DropExpandBeforeBroadcast(Rule):
    """Add(Expand(x), y) becomes Add(x, y) where broadcasting gives the same shape."""

    name = "drop-expand-before-broadcast"
    family = "A10"
    title = "Leave enlarging to the element-wise operator"
    numeric_class = NumericClass.EXACT
    preconditions = (
        "The result provably keeps its shape without the Expand: every dim comes from x or another operand."
    )
    evidence = "onnx/optimizer#275: that tool is wrong here."
    anchors = tuple(sorted(BROADCASTING))
    min_opset = 8
    dtypes = None

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """Every operand of an element-wise operator that is an Expand."""
        for index, value in enumerate(node.inputs):
            expand = producer(value, "Expand")
            if expand is None or expand.inputs[0] is None or value in node.inputs[:index]:
                continue
            operands = [expand.inputs[0] if other is value else other for other in node.inputs]
            if not results_in([v for v in operands if v is not None], node.outputs[0]):
                yield Refusal(
                    f"{text(node.outputs[0])} may be smaller without {text(value)}: no other operand is known to have "
                    "its shape",
                    (expand,),
                )
                continue
            nodes = (*exclusive([expand], node), node)
            drops = tuple(expand.inputs[1:]) if expand in nodes else ()
            summary = f"{node.op_type} enlarges {text(expand.inputs[0])} by itself"
            bindings = {"operands": operands}
            yield Match(nodes, (node.outputs[0],), bindings, str(index), summary, 0, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The operator without the Expand."""
        node = match.nodes[-1]
        return [build.op(node.op_type, match["operands"], attributes_of(node), like=match.outputs[0])]


RULES = (EliminateExpand(), DropExpandBeforeBroadcast())
