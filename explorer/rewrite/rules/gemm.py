"""Family D: MatMul + Add as Gemm, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import Context, array, dim, is_const, nbytes, operand, producer, rank, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, Rule, refuse_unless
from explorer.rewrite.rules.patterns import both_orders


class MatMulAddToGemm(Rule):
    """A @ B + C becomes Gemm(A, B, C)."""

    name = "matmul-add-to-gemm"
    family = "D1"
    title = "MatMul + Add to Gemm"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "gemm-to-matmul-add"
    preconditions = "A and B of rank 2; C broadcasts one way to [M, N]; the product read by nothing else."
    evidence = "ORT 1.32 CPU: -4 to -6 % at M=1, -1 to -2 % at M=128 at DISABLE; absorbed at ALL."
    anchors = ("Add",)
    min_opset = 7

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """One match per operand of the Add that is a MatMul."""
        for position, (product, bias) in enumerate(both_orders(node)):
            matmul = producer(product, "MatMul")
            if matmul is None or product is bias:
                continue
            if (rank(matmul.inputs[0]) or 0) > 2 and rank(matmul.inputs[1]) == 2:
                continue  # flatten-matmul-add-to-gemm answers for batches
            problem = _problem(matmul, bias)
            if problem is not None:
                yield Refusal(problem, (matmul,))
                continue
            bindings = {"matmul": matmul, "bias": bias}
            summary = f"{text(product)} + {text(bias)} becomes one Gemm"
            yield Match((matmul, node), (node.outputs[0],), bindings, f"operand{position}", summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Gemm with the attributes at their defaults."""
        return [build.op("Gemm", [*match["matmul"].inputs, match["bias"]], like=match.outputs[0])]


class GemmToMatMulAdd(PatternRule):
    """Gemm(A, B, C) becomes A @ B + C; a transposed constant B is stored transposed."""

    name = "gemm-to-matmul-add"
    family = "D1"
    title = "Gemm to MatMul + Add"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "matmul-add-to-gemm"
    preconditions = "alpha = beta = 1; A not transposed; B not transposed, or constant."
    evidence = "The reverse of D1; exposes the product to D5."
    anchors = ("Gemm",)
    min_opset = 7

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """Any Gemm without scaling."""
        attributes = node.attributes
        alpha, beta = attributes.get_float("alpha", 1.0), attributes.get_float("beta", 1.0)
        refuse_unless(alpha == 1.0, f"alpha is {alpha}, not 1")
        refuse_unless(beta == 1.0 or operand(node, 2) is None, f"beta is {beta}, not 1")
        refuse_unless(not attributes.get_int("transA", 0), "A is transposed")
        transposed = bool(attributes.get_int("transB", 0))
        refuse_unless(not transposed or is_const(node.inputs[1]), "B is transposed and not a constant")
        summary = f"{text(node.outputs[0])} becomes a product and a sum"
        size = nbytes(node.inputs[1]) if transposed else 0
        bindings = {"transposed": transposed}
        drops = (node.inputs[1],) if transposed else ()
        return Match((node,), (node.outputs[0],), bindings, "", summary, size, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """MatMul, and Add if there is a C."""
        (gemm,), like = match.nodes, match.outputs[0]
        weight = gemm.inputs[1]
        if match["transposed"]:
            weight = build.constant(np.ascontiguousarray(array(weight).T), f"{weight.name}_t")  # type: ignore[union-attr] # match() saw it
        value = build.op("MatMul", [gemm.inputs[0], weight], like=like)
        bias = operand(gemm, 2)
        return [value if bias is None else build.op("Add", [value, bias], like=like)]


def _problem(matmul: ir.Node, bias: ir.Value) -> str | None:
    product = matmul.outputs[0]
    for value in matmul.inputs:
        if rank(value) != 2:
            return f"{text(value)} has rank {rank(value)}, Gemm needs 2"
    if rank(bias) is None:
        return f"the rank of {text(bias)} is unknown"
    if _broadcasts_one_way(bias, product):
        return None
    return (
        f"{text(bias)} does not broadcast one way to the shape of {text(product)}; the Add changes the shape"
    )


def _broadcasts_one_way(bias: ir.Value | None, product: ir.Value) -> bool:
    size = rank(bias) or 0
    if size > 2:
        return False
    for axis in range(-size, 0):
        own, other = dim(bias, axis), dim(product, axis)
        if own != 1 and (own is None or own != other):
            return False
    return True


RULES = (MatMulAddToGemm(), GemmToMatMulAdd())
