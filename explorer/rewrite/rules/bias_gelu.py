"""Family E: the bias before a Gelu as part of it (BiasGelu, FastGelu with a bias), and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from explorer.rewrite.builder import MICROSOFT, Builder
from explorer.rewrite.context import Context, dim, operand, operator, producer, rank, text
from explorer.rewrite.rule import FLOAT32, Match, NumericClass, PatternRule, Refusal, Rule
from explorer.rewrite.rules.patterns import both_orders, describe_dims

_GELUS = ("Gelu", "com.microsoft::Gelu", "com.microsoft::FastGelu")


class FuseBiasGelu(Rule):
    """Gelu(x + b) becomes com.microsoft BiasGelu(x, b); FastGelu(x + b) becomes FastGelu(x, b)."""

    name = "fuse-bias-gelu"
    family = "E8"
    title = "Fuse the bias into Gelu (BiasGelu)"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "split-bias-gelu"
    preconditions = (
        "float32; b has rank 1 and the size of x's last dim; the sum read by nothing else. Gelu exact, or "
        "com.microsoft FastGelu without a bias."
    )
    evidence = "ORT 1.32 CPU: -5 to -11 % at DISABLE; ORT's own pass does it at ALL: absorbed."
    anchors = _GELUS
    portable = False
    dtypes = FLOAT32

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """A Gelu of a sum, operands in either order."""
        add = producer(operand(node, 0), "Add")
        if add is None or operand(node, 1) is not None:
            return
        if node.attributes.get_string("approximate", "none") != "none":
            return
        for source, bias in both_orders(add):
            width = dim(source, -1)
            if rank(bias) != 1 or (rank(source) or 0) < 1:
                continue
            if width is None or dim(bias, 0) != width:
                yield Refusal(
                    f"{text(bias)} {describe_dims(bias)} is not one row of {text(source)} {describe_dims(source)}",
                    (add,),
                )
                continue
            summary = f"the bias {text(bias)} moves into the Gelu"
            fast = operator(node) == "com.microsoft::FastGelu"
            bindings = {"operands": (source, bias), "op_type": "FastGelu" if fast else "BiasGelu"}
            yield Match((add, node), (node.outputs[0],), bindings, summary=summary)
            return

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One node."""
        like = match.outputs[0]
        return [build.op(match["op_type"], match["operands"], like=like, domain=MICROSOFT)]


class SplitBiasGelu(PatternRule):
    """com.microsoft BiasGelu(x, b) becomes Gelu(x + b); FastGelu(x, b) becomes FastGelu(x + b)."""

    name = "split-bias-gelu"
    family = "E8"
    title = "BiasGelu to Add and Gelu"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "fuse-bias-gelu"
    preconditions = "The Gelu is the standard one from opset 20 on, com.microsoft's before."
    evidence = "The reverse of E8; exposes the bias to D1 and E6 to a portable form."
    anchors = ("com.microsoft::BiasGelu", "com.microsoft::FastGelu")
    min_opset = 7
    dtypes = FLOAT32

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Gelu with a bias."""
        if operand(node, 1) is None:
            return None
        return Match(
            (node,), (node.outputs[0],), summary=f"the bias of {text(node.outputs[0])} is added before"
        )

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Add, then Gelu."""
        (node,), like = match.nodes, match.outputs[0]
        total = build.op("Add", node.inputs, like=like)
        fast = node.op_type == "FastGelu"
        domain = MICROSOFT if fast or build.opset < 20 else ""
        return [build.op("FastGelu" if fast else "Gelu", [total], like=like, domain=domain)]


RULES = (FuseBiasGelu(), SplitBiasGelu())
