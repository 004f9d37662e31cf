"""Family D: products stacked over rows (the same weight) or over the summed axis, and taken apart again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import (
    Context,
    array,
    dim,
    is_const,
    nbytes,
    operand,
    operator,
    producer,
    rank,
    text,
)
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, Rule, refuse_unless
from explorer.rewrite.rules.patterns import absorbed, describe_dims, is_last_axis
from explorer.rewrite.rules.siblings import groups, slices, split, split_bytes
from explorer.rewrite.walk import uses_of


class StackMatMulsOfSameWeight(Rule):
    """x @ B, y @ B ... become Split(Concat(x, y, ...) @ B) over the rows."""

    name = "stack-matmuls-of-same-weight"
    family = "D7"
    title = "Stack products with the same weight over their rows"
    numeric_class = NumericClass.REASSOCIATED
    preconditions = (
        "Same right operand of rank 2; left operands of the same rank (2 or more) with a static number of rows "
        "and otherwise equal dims; none depends on the product of another."
    )
    evidence = "ORT 1.32 CPU, two of M x 512 x 512: -25 % at M=1, +4 to +8 % at M=16 and 128, at both levels."
    anchors = ("MatMul",)
    min_opset = 4

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """All products of the weight together, and every pair, anchored at the first."""
        weight = operand(node, 1)
        family = [] if weight is None else _readers_on_the_right(weight, node, context)
        if len(family) < 2 or family[0] is not node or rank(weight) != 2:
            return
        fitting = [node]
        for matmul in family[1:]:
            problem = _mismatch(matmul, node) or _dependence(fitting, matmul, context)
            if problem is None:
                fitting.append(matmul)
            else:
                yield Refusal(problem, (matmul,))
        if len(fitting) > 1:
            for members in groups(fitting):
                outputs = tuple(matmul.outputs[0] for matmul in members)
                summary = f"{len(members)} products with {text(weight)} become one"
                size = split_bytes(len(members), context)
                yield Match(members, outputs, {}, "", summary, size)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Concat, MatMul, Split."""
        first = match.nodes[0]
        lefts, dtype = [matmul.inputs[0] for matmul in match.nodes], match.outputs[0].dtype
        axis = (rank(lefts[0]) or 2) - 2
        stacked = build.op("Concat", lefts, {"axis": axis}, dtype=dtype)
        value = build.op("MatMul", [stacked, first.inputs[1]], dtype=dtype)
        rows = [dim(left, axis) for left in lefts]
        return split(value, [r for r in rows if isinstance(r, int)], axis, build)


def _readers_on_the_right(weight: ir.Value, node: ir.Node, context: Context) -> list[ir.Node]:
    found = [
        reader
        for reader, position in uses_of(weight)
        if position == 1 and operator(reader) == "MatMul" and reader.graph is node.graph
    ]
    return sorted(found, key=context.position.__getitem__)


def _mismatch(matmul: ir.Node, first: ir.Node) -> str | None:
    a, b = matmul.inputs[0], first.inputs[0]
    size = rank(a) or 0
    if a is b:
        return f"{text(a)} is multiplied with the same weight twice; merge equal nodes instead"
    if size < 2 or size != rank(b):
        return f"{text(a)} has rank {rank(a)}, {text(b)} rank {rank(b)}"
    for value in (a, b):
        if not isinstance(dim(value, -2), int):
            return f"the number of rows of {text(value)} is not static: {describe_dims(value)}"
    others = [axis for axis in range(size) if axis != size - 2]
    if any(dim(a, axis) is None or dim(a, axis) != dim(b, axis) for axis in others):
        return f"{text(a)} {describe_dims(a)} and {text(b)} {describe_dims(b)} differ beside the rows"
    return None


def _dependence(earlier: Sequence[ir.Node], later: ir.Node, context: Context) -> str | None:
    for matmul in earlier:
        if context.reaches(matmul, later):
            return f"{text(later.inputs[0])} depends on {text(matmul.outputs[0])}"
    return None


class MergeSumOfMatMuls(PatternRule):
    """x @ A + y @ B becomes Concat(x, y) @ Concat(A, B)."""

    name = "merge-sum-of-matmuls"
    family = "D10"
    title = "Merge a sum of products into one product"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "split-matmul-of-concat"
    preconditions = (
        "A and B constant, of rank 2, with the same number of columns; x and y of the same rank (2 or more) and "
        "equal in all dims but the last; both products read only by the Add."
    )
    evidence = "ORT 1.32 CPU: within 1 % either way, neutral."
    anchors = ("Add",)
    min_opset = 4

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """An Add of two products with constant weights."""
        a, b = producer(operand(node, 0), "MatMul"), producer(operand(node, 1), "MatMul")
        if a is None or b is None or a is b or not is_const(a.inputs[1]) or not is_const(b.inputs[1]):
            return None
        x, y, weights = a.inputs[0], b.inputs[0], (a.inputs[1], b.inputs[1])
        for weight in weights:
            refuse_unless(rank(weight) == 2, f"weight {text(weight)} has rank {rank(weight)}, not 2", a, b)
        columns = [dim(weight, 1) for weight in weights]
        refuse_unless(
            columns[0] == columns[1], f"the products have {columns[0]} and {columns[1]} columns", a, b
        )
        size = rank(x) or 0
        agree = size >= 2 and size == rank(y) and all(_same_dim(x, y, axis) for axis in range(size - 1))
        refuse_unless(
            agree, f"{text(x)} {describe_dims(x)} and {text(y)} {describe_dims(y)} do not line up", a, b
        )
        summary = f"{text(x)} and {text(y)} are joined and multiplied once"
        new = sum(nbytes(weight) for weight in weights)
        return Match((a, b, node), (node.outputs[0],), {"products": (a, b)}, "", summary, new, weights)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Concat of the left operands, MatMul with the stacked weights."""
        products, like = match["products"], match.outputs[0]
        lefts = [p.inputs[0] for p in products]
        joined = build.op("Concat", lefts, {"axis": (rank(lefts[0]) or 2) - 1}, dtype=like.dtype)
        weight = np.concatenate([array(p.inputs[1]) for p in products])
        stacked = build.constant(weight, f"{products[0].inputs[1].name}_stacked")
        return [build.op("MatMul", [joined, stacked], like=like)]


def _same_dim(a: ir.Value | None, b: ir.Value | None, axis: int) -> bool:
    return dim(a, axis) is not None and dim(a, axis) == dim(b, axis)


class SplitMatMulOfConcat(PatternRule):
    """Concat(x, y, ...) @ W becomes x @ W1 + y @ W2 + ..."""

    name = "split-matmul-of-concat"
    family = "D10"
    title = "Multiply the parts of a Concat one by one"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "merge-sum-of-matmuls"
    preconditions = (
        "W constant, of rank 2; the Concat over the last axis, of parts with a static last dim, read only by the "
        "product."
    )
    evidence = "The reverse of D10: neutral, saves the copy of the Concat."
    anchors = ("MatMul",)
    min_opset = 7

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A product of a Concat with a constant."""
        concat, weight = producer(operand(node, 0), "Concat"), operand(node, 1)
        if concat is None or len(concat.inputs) < 2 or not is_const(weight) or rank(weight) != 2:
            return None
        axis = concat.attributes.get_int("axis", 1)
        refuse_unless(
            is_last_axis(axis, concat.outputs[0]),
            f"the Concat is over axis {axis}, not over the last axis",
            concat,
        )
        sizes = [dim(value, -1) for value in concat.inputs]
        for value, size in zip(concat.inputs, sizes, strict=True):
            refuse_unless(isinstance(size, int), f"the last dim of {text(value)} is not static", concat)
        summary = f"{text(node.outputs[0])} is the sum of {len(sizes)} products"
        bindings = {"concat": concat, "sizes": sizes}
        nodes = (*absorbed(concat), node)
        return Match(nodes, (node.outputs[0],), bindings, "", summary, nbytes(weight), (weight,))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One MatMul per part, then Adds."""
        node, concat, like = match.nodes[-1], match["concat"], match.outputs[0]
        name = node.inputs[1].name if node.inputs[1] is not None else "weight"
        parts = slices(array(node.inputs[1]), match["sizes"], 0)
        products = [
            build.op("MatMul", [value, build.constant(part, f"{name}_part")], like=like)
            for value, part in zip(concat.inputs, parts, strict=True)
        ]
        total = products[0]
        for _, product in pairwise(products):
            total = build.op("Add", [total, product], like=like)
        return [total]


RULES = (StackMatMulsOfSameWeight(), MergeSumOfMatMuls(), SplitMatMulOfConcat())
