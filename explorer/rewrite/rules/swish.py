"""Family E: x * sigmoid(x) (SiLU, Swish) and its forms as one node, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from explorer.rewrite.builder import MICROSOFT, Builder
from explorer.rewrite.context import Context, element_bytes, operand, operator, producer, readers, text
from explorer.rewrite.rule import FLOAT32, Match, NumericClass, PatternRule, Refusal, Rule
from explorer.rewrite.rules.patterns import FLOAT_HALF_DOUBLE, both_orders, factor_of, is_float32, number_like

QUICK_GELU = "com.microsoft::QuickGelu"


class _FuseSwish(Rule):
    """x * sigmoid(alpha * x) becomes one node."""

    numeric_class = NumericClass.REASSOCIATED
    preconditions = (
        "The gate is Sigmoid of the same x, or of x times a one-element constant; gate and scaled x read by nothing "
        "else."
    )
    anchors = ("Sigmoid",)
    op_type: str
    domain: str = ""

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """Every product of the gate with its argument, operands in any order."""
        gate, argument = node.outputs[0], operand(node, 0)
        scale = producer(argument, "Mul", "Div")
        for product in readers(gate):
            if operator(product) != "Mul":
                continue
            for value, other in both_orders(product):
                if value is gate and other is not gate:
                    yield from self._match(node, product, argument, other, scale)

    def _match(
        self,
        gate: ir.Node,
        product: ir.Node,
        argument: ir.Value | None,
        other: ir.Value,
        scale: ir.Node | None,
    ) -> Iterator[Match | Refusal]:
        found = factor_of(scale)
        alpha, nodes = 1.0, [gate, product]
        if other is not argument:
            if scale is None or found is None or found[0] is not other:
                return
            alpha, nodes = found[1], [scale, gate, product]
        if not is_float32(alpha) and product.outputs[0].dtype == ir.DataType.DOUBLE:
            yield Refusal(f"the factor {alpha!r} would be rounded to float32", nodes)
            return
        summary = f"{text(product.outputs[0])} = {self.op_type}({text(other)})"
        drops = tuple(scale.inputs) if scale is not None and len(nodes) == 3 else ()
        bindings = {"source": other, "alpha": alpha}
        yield Match(tuple(nodes), (product.outputs[0],), bindings, "", summary, 0, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One node."""
        attributes = {"alpha": match["alpha"]}
        return [
            build.op(self.op_type, [match["source"]], attributes, like=match.outputs[0], domain=self.domain)
        ]


class _SplitSwish(PatternRule):
    """The reverse."""

    numeric_class = NumericClass.REASSOCIATED
    preconditions = "None."
    default_alpha: float

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """Any such node."""
        alpha = node.attributes.get_float("alpha", self.default_alpha)
        size = element_bytes(node.outputs[0]) if alpha != 1.0 else 0
        summary = f"{text(node.outputs[0])} becomes Sigmoid and Mul"
        return Match((node,), (node.outputs[0],), {"alpha": alpha}, "", summary, size)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Mul by alpha unless it is 1, Sigmoid, Mul."""
        (node,), like, alpha = match.nodes, match.outputs[0], match["alpha"]
        source = argument = node.inputs[0]
        if alpha != 1.0:
            argument = build.op("Mul", [source, number_like(build, alpha, like, "alpha")], like=like)
        gate = build.op("Sigmoid", [argument], like=like)
        return [build.op("Mul", [source, gate], like=like)]


class FuseQuickGelu(_FuseSwish):
    """x * sigmoid(alpha * x) becomes com.microsoft QuickGelu."""

    name = "fuse-quickgelu"
    family = "E4"
    title = "Fuse SiLU (QuickGelu)"
    inverse = "split-quickgelu"
    evidence = "ORT 1.32 CPU: -11 to -15 % at DISABLE; ORT's own pass does it at ALL: absorbed."
    op_type = "QuickGelu"
    domain = MICROSOFT
    portable = False
    dtypes = FLOAT32


class SplitQuickGelu(_SplitSwish):
    """com.microsoft QuickGelu(x) becomes x * sigmoid(alpha * x)."""

    name = "split-quickgelu"
    family = "E4"
    title = "QuickGelu to Sigmoid and Mul"
    inverse = "fuse-quickgelu"
    evidence = "The reverse of E4; the result is portable."
    anchors = (QUICK_GELU,)
    dtypes = FLOAT32
    default_alpha = 1.702


class FuseSwish(_FuseSwish):
    """x * sigmoid(alpha * x) becomes Swish."""

    name = "fuse-swish"
    family = "E4"
    title = "Fuse SiLU (Swish)"
    inverse = "split-swish"
    evidence = "ORT 1.32 CPU: +20 to +30 %: it has no kernel and expands Swish with a Cast and a Mul more. For portability."
    op_type = "Swish"
    min_opset = 24
    dtypes = FLOAT_HALF_DOUBLE


class SplitSwish(_SplitSwish):
    """Swish(x) becomes x * sigmoid(alpha * x)."""

    name = "split-swish"
    family = "E4"
    title = "Swish to Sigmoid and Mul"
    inverse = "fuse-swish"
    evidence = "ORT 1.32 CPU: -17 to -23 %, the reverse of E4: saves the Cast and the Mul of the expansion."
    anchors = ("Swish",)
    dtypes = FLOAT_HALF_DOUBLE
    default_alpha = 1.0


RULES = (FuseQuickGelu(), SplitQuickGelu(), FuseSwish(), SplitSwish())
