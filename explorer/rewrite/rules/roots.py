"""Family E: square roots written as powers, and divisions written with Reciprocal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import Context, is_const, operand, producer, scalar, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, Rule, refuse_unless
from explorer.rewrite.rules.patterns import FLOAT_HALF_DOUBLE, absorbed, both_orders, keeps_shape


class PowToSqrt(PatternRule):
    """Pow(x, 0.5) becomes Sqrt(x), Pow(x, -0.5) becomes Reciprocal(Sqrt(x))."""

    name = "pow-to-sqrt"
    family = "E2"
    title = "Power of a half to square root"
    numeric_class = NumericClass.DOMAIN
    default = False
    preconditions = (
        "Constant exponent 0.5 or -0.5 with one element that does not enlarge the result. Differs for -0 and minus "
        "infinity, whose powers are positive."
    )
    evidence = "ORT 1.32 CPU, Exp and Pow of 128 x 768: -85 % at both levels; Pow is a very slow kernel."
    anchors = ("Pow",)
    min_opset = 7
    dtypes = FLOAT_HALF_DOUBLE

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Pow with exponent 0.5 or -0.5."""
        base, exponent = node.inputs
        power = scalar(exponent)
        if power not in {0.5, -0.5}:
            return None
        refuse_unless(keeps_shape(exponent, base), f"exponent {text(exponent)} may enlarge the result")
        what = "the square root" if power > 0 else "the reciprocal square root"
        summary = f"{text(node.outputs[0])} is {what} of {text(base)}"
        bindings = {"inverted": power < 0}
        return Match((node,), (node.outputs[0],), bindings, "", summary, 0, (exponent,))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Sqrt, and Reciprocal for a negative exponent."""
        (node,), like = match.nodes, match.outputs[0]
        root = build.op("Sqrt", [node.inputs[0]], like=like)
        return [build.op("Reciprocal", [root], like=like) if match["inverted"] else root]


class MulReciprocalToDiv(Rule):
    """x * Reciprocal(y) becomes x / y."""

    name = "mul-reciprocal-to-div"
    family = "E1"
    title = "Multiplication by a reciprocal to division"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "div-to-mul-reciprocal"
    preconditions = "A Reciprocal that something else reads stays."
    evidence = (
        "ORT 1.32 CPU: +8 % at DISABLE, but ORT then recognises RMSNorm and LayerNorm as the dynamo exporter writes "
        "them: -59 % for one RMSNorm of 128 x 512 at ALL, about -4 % for llama_small with all 17 sites."
    )
    anchors = ("Mul",)
    min_opset = 7
    dtypes = FLOAT_HALF_DOUBLE

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """One match per operand that is a Reciprocal."""
        for position, (value, other) in enumerate(both_orders(node)):
            reciprocal = producer(value, "Reciprocal")
            if reciprocal is None or value is other:
                continue
            summary = f"{text(other)} is divided by {text(reciprocal.inputs[0])}"
            bindings = {"operands": (other, reciprocal.inputs[0])}
            nodes = (*absorbed(reciprocal), node)
            yield Match(nodes, (node.outputs[0],), bindings, f"operand{position}", summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Div."""
        return [build.op("Div", match["operands"], like=match.outputs[0])]


class DivToMulReciprocal(PatternRule):
    """x / y with a computed y becomes x * Reciprocal(y)."""

    name = "div-to-mul-reciprocal"
    family = "E1"
    title = "Division to multiplication by a reciprocal"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "mul-reciprocal-to-div"
    preconditions = "Float; y is not constant (E1 stores the reciprocal of a constant)."
    evidence = "ORT 1.32 CPU, one y per row of 512: -8 to -19 %. Hides norms from ORT's own matcher (F1, F2)."
    anchors = ("Div",)
    min_opset = 7
    dtypes = FLOAT_HALF_DOUBLE

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Div of two computed tensors."""
        dividend, divisor = operand(node, 0), operand(node, 1)
        if divisor is None or dividend is None or is_const(divisor) or is_const(dividend):
            return None
        if divisor.dtype is not None and not divisor.dtype.is_floating_point():
            return None
        summary = f"{text(dividend)} is multiplied by the reciprocal of {text(divisor)}"
        return Match((node,), (node.outputs[0],), summary=summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Reciprocal and Mul."""
        (node,), like = match.nodes, match.outputs[0]
        dividend, divisor = node.inputs
        reciprocal = build.op("Reciprocal", [divisor], like=divisor)
        return [build.op("Mul", [dividend, reciprocal], like=like)]


RULES = (PowToSqrt(), MulReciprocalToDiv(), DivToMulReciprocal())
