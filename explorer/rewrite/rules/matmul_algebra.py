"""Family D: transposes of products, and scalar factors before or after a product."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import Context, array, is_const, nbytes, operand, producer, rank, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, Rule, refuse_unless
from explorer.rewrite.rules.patterns import absorbed, factor_of, last_two_swapped, swaps_last_two


class TransposeOfProduct(PatternRule):
    """Transpose(A @ B) becomes Transpose(B) @ Transpose(A)."""

    name = "transpose-of-product"
    family = "D11"
    title = "Transpose of a product to a product of transposes"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "product-of-transposes"
    preconditions = (
        "The Transpose swaps the last two axes and nothing else; A and B of known rank, 2 or more; the product read "
        "only by the Transpose. Constants are stored transposed."
    )
    evidence = "An enabling rule: the transposes may cancel or fuse further on (D3, A4)."
    anchors = ("Transpose",)

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Transpose of a MatMul."""
        matmul = producer(operand(node, 0), "MatMul")
        if matmul is None or not swaps_last_two(node):
            return None
        for value in matmul.inputs:
            refuse_unless((rank(value) or 0) >= 2, f"{text(value)} has rank {rank(value)}", matmul)
        summary = f"{text(node.outputs[0])} is the product of the transposes in reverse order"
        constants = [value for value in matmul.inputs if is_const(value)]
        size = sum(nbytes(value) for value in constants)
        bindings = {"matmul": matmul}
        return Match((matmul, node), (node.outputs[0],), bindings, "", summary, size, tuple(constants))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Two transposes and a product."""
        a, b = match["matmul"].inputs
        return [build.op("MatMul", [_turned(b, build), _turned(a, build)], like=match.outputs[0])]


class ProductOfTransposes(PatternRule):
    """Transpose(B) @ Transpose(A) becomes Transpose(A @ B)."""

    name = "product-of-transposes"
    family = "D11"
    title = "Product of transposes to the transpose of a product"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "transpose-of-product"
    preconditions = (
        "Each operand is a Transpose that swaps the last two axes, or a constant, at least one a Transpose; ranks "
        "known. A Transpose that something else reads stays."
    )
    evidence = "One Transpose of the product instead of two of the operands: enabling."
    anchors = ("MatMul",)

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A product of transposes."""
        found = [producer(value, "Transpose") for value in node.inputs]
        turned = [t if t is not None and swaps_last_two(t) else None for t in found]
        if turned == [None, None] or not all(
            t is not None or (is_const(v) and (rank(v) or 0) >= 2)
            for t, v in zip(turned, node.inputs, strict=True)
        ):
            return None
        refuse_unless(rank(node.outputs[0]) is not None, f"the rank of {text(node.outputs[0])} is unknown")
        constants = [value for value, t in zip(node.inputs, turned, strict=True) if t is None]
        summary = f"{text(node.outputs[0])} is transposed after the product"
        nodes = (*absorbed(*(t for t in turned if t is not None)), node)
        size = sum(nbytes(value) for value in constants)
        bindings = {"turned": turned}
        return Match(nodes, (node.outputs[0],), bindings, "", summary, size, tuple(constants))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One product, then one Transpose."""
        node, like = match.nodes[-1], match.outputs[0]
        b, a = (
            _turned(value, build) if t is None else t.inputs[0]
            for t, value in zip(match["turned"], node.inputs, strict=True)
        )
        value = build.op("MatMul", [a, b], dtype=like.dtype)
        return [build.op("Transpose", [value], {"perm": last_two_swapped(rank(like) or 2)}, like=like)]


def _turned(value: ir.Value | None, build: Builder) -> ir.Value:
    if value is None:
        raise Refusal("an operand of the product is missing")
    if is_const(value):
        swapped = np.ascontiguousarray(np.swapaxes(array(value), -1, -2))
        return build.constant(swapped, f"{value.name}_t")
    return build.op("Transpose", [value], {"perm": last_two_swapped(rank(value) or 2)}, dtype=value.dtype)


class MoveScaleBeforeMatMul(Rule):
    """c * (A @ B) becomes (c * A) @ B or A @ (c * B)."""

    name = "move-scale-before-matmul"
    family = "D12"
    title = "Scale an operand instead of the product"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "move-scale-after-matmul"
    preconditions = (
        "c a one-element constant that does not enlarge the product; the operand is not constant (B6 folds those) "
        "and has rank 1 or more; the product read only by the Mul or Div."
    )
    evidence = "Pays where the operand is smaller than the product (attention scores)."
    anchors = ("Mul", "Div")
    min_opset = 7

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """One match per operand of the product."""
        found = factor_of(node)
        matmul = producer(found[0], "MatMul") if found is not None else None
        if found is None or matmul is None:
            return
        constant = next(v for v in node.inputs if v is not found[0])
        for position, variant in enumerate(("left", "right")):
            value = operand(matmul, position)
            if value is None or is_const(value) or (rank(value) or 0) < (rank(constant) or 0):
                continue
            summary = f"{text(value)} is scaled by {found[1]:g} instead of {text(matmul.outputs[0])}"
            bindings = {"matmul": matmul, "position": position, "constant": constant}
            yield Match((matmul, node), (node.outputs[0],), bindings, variant, summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The scale, then the product."""
        node, matmul = match.nodes[-1], match["matmul"]
        operands = list(matmul.inputs)
        operands[match["position"]] = _scaled(node, operands[match["position"]], match["constant"], build)
        return [build.op("MatMul", operands, like=match.outputs[0])]


class MoveScaleAfterMatMul(Rule):
    """(c * A) @ B and A @ (c * B) become c * (A @ B)."""

    name = "move-scale-after-matmul"
    family = "D12"
    title = "Scale the product instead of an operand"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "move-scale-before-matmul"
    preconditions = (
        "c a one-element constant that does not enlarge the operand; the scaled operand read by nothing else."
    )
    evidence = (
        "Pays where the product is smaller; brings two factors together (B11) or a scale before a mask."
    )
    anchors = ("MatMul",)
    min_opset = 7

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """One match per scaled operand."""
        for position, variant in enumerate(("left", "right")):
            scale = producer(operand(node, position), "Mul", "Div")
            found = factor_of(scale)
            if scale is None or found is None:
                continue
            constant = next(v for v in scale.inputs if v is not found[0])
            if (rank(node.outputs[0]) or 0) < (rank(constant) or 0):
                continue
            summary = f"{text(node.outputs[0])} is scaled by {found[1]:g} instead of {text(found[0])}"
            bindings = {"scale": scale, "source": found[0], "position": position, "constant": constant}
            yield Match((scale, node), (node.outputs[0],), bindings, variant, summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The product, then the scale."""
        node, like = match.nodes[-1], match.outputs[0]
        operands = list(node.inputs)
        operands[match["position"]] = match["source"]
        value = build.op("MatMul", operands, like=like)
        return [_scaled(match["scale"], value, match["constant"], build)]


def _scaled(scale: ir.Node, value: ir.Value | None, constant: ir.Value, build: Builder) -> ir.Value:
    """The same Mul or Div of another value, operands in the same order."""
    operands = [constant if v is constant else value for v in scale.inputs]
    return build.op(scale.op_type, operands, like=value)


RULES = (TransposeOfProduct(), ProductOfTransposes(), MoveScaleBeforeMatMul(), MoveScaleAfterMatMul())
