"""Family D: products of flattened matrices (Reshape, MatMul or Gemm, Reshape) against broadcasting products."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import (
    Context,
    array,
    dim,
    dims,
    is_const,
    nbytes,
    operand,
    producer,
    rank,
    text,
)
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, refuse_unless
from explorer.rewrite.rules.patterns import absorbed, describe_dims, reader_of


class UnflattenMatMul(PatternRule):
    """Reshape(Reshape(x, [rows, K]) @ W) becomes x @ W, with a bias if the product is a Gemm."""

    name = "unflatten-matmul"
    family = "D16"
    title = "Drop the Reshapes around a product"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "flatten-matmul-add-to-gemm"
    preconditions = (
        "W of rank 2; the result's leading dims are those of x, or all dims of x are static (then one Reshape of x "
        "stays); a Gemm has alpha = beta = 1, no transA, and transB only on a constant. A first Reshape that "
        "something else reads stays."
    )
    evidence = "Neutral at ALL, where ORT flattens products again; removes two nodes at DISABLE."
    anchors = ("MatMul", "Gemm")
    min_opset = 7

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A product between two Reshapes."""
        before, after = producer(operand(node, 0), "Reshape"), reader_of(node.outputs[0], "Reshape")
        if before is None or after is None or after.inputs[0] is not node.outputs[0]:
            return None
        source, result, weight = before.inputs[0], after.outputs[0], node.inputs[1]
        if (rank(result) or 0) < 3 or source is None:
            return None
        transposed = _check_gemm(node)
        refuse_unless(rank(weight) == 2, f"{text(weight)} has rank {rank(weight)}, not 2", before, after)
        inner, columns = (dim(weight, axis) for axis in ((1, 0) if transposed else (0, 1)))
        refuse_unless(
            dim(result, -1) == columns and columns is not None,
            f"{text(result)} {describe_dims(result)} does not keep the columns of {text(node.outputs[0])}",
            before,
            after,
        )
        shape = _left_shape(source, inner, result)
        size = (8 * len(shape) if shape else 0) + (nbytes(weight) if transposed else 0)
        bindings = {"node": node, "source": source, "shape": shape, "transposed": transposed}
        summary = f"{text(source)} is multiplied without being flattened"
        drops = (
            *(before.inputs[1:] if absorbed(before) else ()),
            *after.inputs[1:],
            weight if transposed else None,
        )
        return Match((*absorbed(before), node, after), (result,), bindings, "", summary, size, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """MatMul, and Add if the Gemm had a C."""
        node, source, like = match["node"], match["source"], match.outputs[0]
        if match["shape"]:
            source = build.op("Reshape", [source, build.ints(match["shape"], "shape")], dtype=like.dtype)
        weight = node.inputs[1]
        if match["transposed"]:
            weight = build.constant(np.ascontiguousarray(array(weight).T), f"{weight.name}_t")
        value = build.op("MatMul", [source, weight], like=like)
        bias = operand(node, 2)
        return [value if bias is None else build.op("Add", [value, bias], like=like)]


def _check_gemm(node: ir.Node) -> bool:
    """Whether B is stored transposed; refuses a Gemm that is no product plus a row."""
    if node.op_type != "Gemm":
        return False
    attributes = node.attributes
    scaled = attributes.get_float("alpha", 1.0) != 1.0 or attributes.get_float("beta", 1.0) != 1.0
    refuse_unless(not scaled, "alpha or beta of the Gemm is not 1")
    refuse_unless(not attributes.get_int("transA", 0), "A is transposed")
    transposed = bool(attributes.get_int("transB", 0))
    refuse_unless(not transposed or is_const(node.inputs[1]), "B is transposed and not a constant")
    bias = operand(node, 2)
    row = (
        bias is None or rank(bias) == 0 or ((rank(bias) or 9) <= 2 and (rank(bias) == 1 or dim(bias, 0) == 1))
    )
    refuse_unless(row, f"{text(bias)} {describe_dims(bias)} is not one row for all rows of the product")
    return transposed


def _left_shape(source: ir.Value, inner: int | str | None, result: ir.Value) -> list[int] | None:
    """None if ``source`` fits as it is, else the shape it needs."""
    lead = (rank(result) or 1) - 1
    same = rank(source) == lead + 1 and dim(source, -1) == inner and inner is not None
    if same and all(_known_equal(source, result, axis) for axis in range(lead)):
        return None
    wanted, have = dims(result), dims(source)
    if wanted is None or have is None or not isinstance(inner, int):
        raise Refusal(
            f"{text(source)} {describe_dims(source)} and {text(result)} {describe_dims(result)} are not provably "
            "the same but for the last dim"
        )
    shape = [*wanted[:-1], inner]
    refuse_unless(prod(shape) == prod(have), f"{text(source)} has {prod(have)} elements, not {prod(shape)}")
    return shape


def _known_equal(a: ir.Value, b: ir.Value, axis: int) -> bool:
    return dim(a, axis) is not None and dim(a, axis) == dim(b, axis)


class FlattenMatMulAddToGemm(PatternRule):
    """x @ W + b with x of rank 3 or more becomes Reshape(Gemm(Reshape(x), W, b))."""

    name = "flatten-matmul-add-to-gemm"
    family = "D1"
    title = "MatMul + Add of a batch to Reshape + Gemm + Reshape"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "unflatten-matmul"
    preconditions = (
        "W of rank 2; b of rank 1 (or one row); x of rank 3 or more with a static last dim and at most one dynamic "
        "leading dim; the product read by nothing else."
    )
    evidence = "ORT does this by itself at ALL: absorbed."
    anchors = ("Add",)
    min_opset = 7

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """An Add of a batched product and a row, in either order."""
        for position in (0, 1):
            matmul, bias = producer(operand(node, position), "MatMul"), operand(node, 1 - position)
            if matmul is not None and (rank(matmul.inputs[0]) or 0) >= 3 and rank(matmul.inputs[1]) == 2:
                return self._match(node, matmul, bias)
        return None

    def _match(self, add: ir.Node, matmul: ir.Node, bias: ir.Value | None) -> Match | None:
        source, weight = matmul.inputs[0], matmul.inputs[1]
        columns, inner = dim(weight, 1), dim(weight, 0)
        if source is None or rank(bias) != 1 or dim(bias, 0) != columns:
            return None
        refuse_unless(
            isinstance(columns, int) and isinstance(inner, int),
            f"the size of {text(weight)} is unknown",
            matmul,
        )
        lead = [dim(source, axis) for axis in range((rank(source) or 1) - 1)]
        unknown = sum(not isinstance(size, int) for size in lead)
        refuse_unless(
            unknown <= 1, f"{text(source)} {describe_dims(source)} has {unknown} dynamic leading dims", matmul
        )
        final = [size if isinstance(size, int) else -1 for size in lead] + [columns]
        bindings = {"matmul": matmul, "bias": bias, "inner": inner, "final": final}
        summary = f"{text(add.outputs[0])} becomes a Gemm of {text(source)} flattened to two axes"
        return Match((matmul, add), (add.outputs[0],), bindings, "", summary, 8 * (2 + len(final)))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Reshape, Gemm, Reshape."""
        matmul, like = match["matmul"], match.outputs[0]
        flat = build.ints([-1, match["inner"]], "shape")
        value = build.op("Reshape", [matmul.inputs[0], flat], dtype=like.dtype)
        value = build.op("Gemm", [value, matmul.inputs[1], match["bias"]], dtype=like.dtype)
        return [build.op("Reshape", [value, build.ints(match["final"], "shape")], like=like)]


RULES = (UnflattenMatMul(), FlattenMatMulAddToGemm())
