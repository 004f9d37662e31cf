"""Family E: small identities of activations: Where(Not), PRelu and LeakyRelu, Mish."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import (
    Context,
    element_bytes,
    is_const,
    operand,
    operator,
    producer,
    readers,
    text,
    uniform,
)
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, Rule, refuse_unless
from explorer.rewrite.rules.broadcasting import enlarges
from explorer.rewrite.rules.patterns import (
    FLOAT_HALF_DOUBLE,
    FLOAT_OR_HALF,
    absorbed,
    both_orders,
    number_like,
)


class SwapWhereOfNot(PatternRule):
    """Where(Not(c), a, b) becomes Where(c, b, a)."""

    name = "swap-where-of-not"
    family = "E11"
    title = "Swap the branches of Where(Not)"
    numeric_class = NumericClass.EXACT
    preconditions = "A Not that something else reads stays."
    evidence = "Absorbed by ORT (NotWhereFusion at BASIC and above)."
    anchors = ("Where",)
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Where whose condition is a Not."""
        negation = producer(operand(node, 0), "Not")
        if negation is None:
            return None
        summary = f"{text(node.outputs[0])} tests {text(negation.inputs[0])} directly"
        operands = (negation.inputs[0], node.inputs[2], node.inputs[1])
        return Match((*absorbed(negation), node), (node.outputs[0],), {"operands": operands}, summary=summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Where."""
        return [build.op("Where", match["operands"], like=match.outputs[0])]


class PReluToLeakyRelu(PatternRule):
    """PRelu(x, slope) with one constant slope becomes LeakyRelu(x)."""

    name = "prelu-to-leakyrelu"
    family = "E12"
    title = "PRelu with one slope to LeakyRelu"
    numeric_class = NumericClass.EXACT
    inverse = "leakyrelu-to-prelu"
    preconditions = "The slope a constant (up to 65,536 elements) whose elements are all equal."
    evidence = "LeakyRelu is fused into Conv and Gemm, PRelu is not."
    anchors = ("PRelu",)
    min_opset = 6
    dtypes = FLOAT_OR_HALF

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A PRelu with a constant slope."""
        slope = operand(node, 1)
        if not is_const(slope):
            return None
        alpha = uniform(slope)
        refuse_unless(alpha is not None, f"the elements of slope {text(slope)} differ")
        source = node.inputs[0]
        enlarging = slope is None or source is None or enlarges(slope, source)
        refuse_unless(not enlarging, f"slope {text(slope)} may enlarge {text(source)}")
        summary = f"{text(node.outputs[0])} is LeakyRelu with slope {alpha:g}"
        return Match((node,), (node.outputs[0],), {"alpha": alpha}, "", summary, 0, (slope,))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One LeakyRelu."""
        (node,) = match.nodes
        return [build.op("LeakyRelu", [node.inputs[0]], {"alpha": match["alpha"]}, like=match.outputs[0])]


class LeakyReluToPRelu(PatternRule):
    """LeakyRelu(x) becomes PRelu(x, slope)."""

    name = "leakyrelu-to-prelu"
    family = "E12"
    title = "LeakyRelu to PRelu"
    numeric_class = NumericClass.EXACT
    inverse = "prelu-to-leakyrelu"
    preconditions = "None."
    evidence = "The reverse of E12."
    anchors = ("LeakyRelu",)
    min_opset = 9
    dtypes = FLOAT_OR_HALF

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """Any LeakyRelu."""
        size = element_bytes(node.outputs[0])
        return Match((node,), (node.outputs[0],), summary=f"{text(node.outputs[0])} by PRelu", new_bytes=size)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One PRelu with a slope of one element."""
        (node,), like = match.nodes, match.outputs[0]
        alpha = node.attributes.get_float("alpha", 0.01)
        slope = number_like(build, 0.01 if alpha is None else alpha, like, "slope")
        return [build.op("PRelu", [node.inputs[0], slope], like=like)]


class FuseMish(Rule):
    """x * tanh(softplus(x)) becomes Mish(x)."""

    name = "fuse-mish"
    family = "E13"
    title = "Fuse the parts of Mish"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "split-mish"
    preconditions = "The same x; Softplus and Tanh read by nothing else."
    evidence = "ORT 1.32 CPU: within 3 %: it has no kernel and expands Mish into these parts."
    anchors = ("Softplus",)
    min_opset = 18
    dtypes = FLOAT_HALF_DOUBLE

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """Every product of x and the gate."""
        source = operand(node, 0)
        for tanh in readers(node.outputs[0]):
            for product in readers(tanh.outputs[0]) if operator(tanh) == "Tanh" else ():
                operands = both_orders(product) if operator(product) == "Mul" else ()
                if any(gate is tanh.outputs[0] and other is source for gate, other in operands):
                    summary = f"{text(product.outputs[0])} = Mish({text(source)})"
                    nodes = (node, tanh, product)
                    yield Match(nodes, (product.outputs[0],), {"source": source}, summary=summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Mish."""
        return [build.op("Mish", [match["source"]], like=match.outputs[0])]


class SplitMish(PatternRule):
    """Mish(x) becomes x * tanh(softplus(x))."""

    name = "split-mish"
    family = "E13"
    title = "Mish to its parts"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "fuse-mish"
    preconditions = "None."
    evidence = "The reverse of E13: what ORT does itself."
    anchors = ("Mish",)
    dtypes = FLOAT_OR_HALF

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """Any Mish."""
        return Match((node,), (node.outputs[0],), summary=f"{text(node.outputs[0])} is written out")

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Softplus, Tanh, Mul."""
        (node,), like = match.nodes, match.outputs[0]
        gate = build.op("Tanh", [build.op("Softplus", node.inputs, like=like)], like=like)
        return [build.op("Mul", [node.inputs[0], gate], like=like)]


RULES = (SwapWhereOfNot(), PReluToLeakyRelu(), LeakyReluToPRelu(), FuseMish(), SplitMish())
