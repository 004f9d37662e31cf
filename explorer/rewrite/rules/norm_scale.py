"""Family B: gain and offset of a layer normalisation folded into the products that read it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import (
    Context,
    array,
    dim,
    dims,
    is_const,
    nbytes,
    operand,
    operator,
    rank,
    text,
)
from explorer.rewrite.rule import Match, NumericClass, PatternRule, refuse_unless
from explorer.rewrite.rules.affine import Affine
from explorer.rewrite.rules.axes import perm_of
from explorer.rewrite.rules.conv_parts import why_not_const
from explorer.rewrite.rules.folds import Fold, absorbed_before
from explorer.rewrite.rules.linear import PRODUCTS, Linear, linears_after
from explorer.rewrite.walk import uses_of

_LARGEST_GAIN = 65536
_MOST_MOVES = 2  # Reshape and Transpose between the normalisation and a product


class FoldNormScaleIntoMatMul(PatternRule):
    """LayerNormalization(x, gain, offset) @ W becomes LayerNormalization(x, 1) @ (gain W) + offset W."""

    name = "fold-layernorm-scale-into-matmul"
    family = "B10"
    title = "Fold gain and offset of a normalisation into the products after it"
    numeric_class = NumericClass.REASSOCIATED
    preconditions = (
        "LayerNormalization or RMSNormalization over the last axis with constant gain and offset, not all ones; every "
        "reader (past a Reshape or Transpose that keeps the last axis) a MatMul or Gemm with a constant weight of "
        "rank 2."
    )
    evidence = (
        "Neutral on ORT, whose kernel still multiplies by ones; helps runtimes with a plain normalisation."
    )
    anchors = ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization")
    adds_dependencies = False

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A normalisation that only products read."""
        gain, offset, result = operand(node, 1), operand(node, 2), node.outputs[0]
        sources = [(linear, value) for value in _carriers(result) for linear in _products(value, node.graph)]
        if not sources or gain is None:
            return None
        for value in (gain, offset):
            reason = f"{text(value)} {why_not_const(value) if value is not None else ''}"
            refuse_unless(value is None or is_const(value), reason)
        size = rank(gain)
        refuse_unless(size == 1, f"{text(gain)} has rank {size}: the normalisation covers several axes")
        channels = sources[0][0].inputs
        refuse_unless(
            dims(gain) == (channels,) and channels <= _LARGEST_GAIN, f"{text(gain)} is not [{channels}]"
        )
        _refuse_other_readers(result, [linear.node for linear, _ in sources])
        affine = _affine(gain, offset)
        if affine is None:
            return None
        folds = [(Fold(linear, affine), value) for linear, value in sources]
        nodes = (node, *(n for fold, _ in folds for n in fold.linear.nodes))
        outputs = (result, *(fold.linear.output for fold, _ in folds))
        weights = ", ".join(text(fold.linear.weight) for fold, _ in folds)
        new_bytes = nbytes(gain) + sum(
            fold.linear.new_bytes(weight=True, bias=affine.shifts) for fold, _ in folds
        )
        biases = (fold.linear.bias for fold, _ in folds if affine.shifts)
        drops = (gain, offset, *(fold.linear.weight for fold, _ in folds), *biases)
        summary = f"gain and offset of {text(result)} move into {weights}"
        return Match(nodes, outputs, {"folds": folds}, "", summary, new_bytes, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The normalisation with gain 1, and the products with scaled weights."""
        norm, result = match.nodes[0], match.outputs[0]
        gain = array(norm.inputs[1])
        ones = build.constant(np.ones(gain.shape, gain.dtype), "ones")
        attributes = attributes_of(norm)
        plain = build.op(norm.op_type, [norm.inputs[0], ones], attributes, like=result, domain=norm.domain)
        values = [plain]
        for (fold, source), like in zip(match["folds"], match.outputs[1:], strict=True):
            values.append(absorbed_before(fold, plain if source is result else source, build, like))
        return values


def _affine(gain: ir.Value, offset: ir.Value | None) -> Affine | None:
    """Gain and offset as an affine function; None if they do nothing."""
    factor = array(gain).astype(np.float64)
    shift = None if offset is None else array(offset).astype(np.float64)
    if bool((factor == 1).all()) and (shift is None or not shift.any()):
        return None
    constants = (gain,) if offset is None else (gain, offset)
    return Affine(True, shift is not None, constants, lambda: (factor, shift))


def _products(value: ir.Value, home: object) -> list[Linear]:
    return linears_after(value, PRODUCTS, home)


def _carriers(value: ir.Value) -> list[ir.Value]:
    """The value, and what Reshape and Transpose make of it while the last axis stays what it is."""
    found = level = [value]
    for _ in range(_MOST_MOVES):
        level = [
            reader.outputs[0]
            for current in level
            for reader, position in uses_of(current)
            if position == 0 and reader.graph is value.graph and _keeps_last_axis(reader)
        ]
        found = [*found, *level]
    return found


def _keeps_last_axis(node: ir.Node) -> bool:
    source, result = operand(node, 0), node.outputs[0]
    if operator(node) == "Reshape":
        size = dim(source, -1)
        return isinstance(size, int) and dim(result, -1) == size
    perm = perm_of(node) if operator(node) == "Transpose" else None
    return perm is not None and perm[-1] == len(perm) - 1


def _refuse_other_readers(result: ir.Value, products: list[ir.Node]) -> None:
    """Every reader of the normalised tensor has to undo the missing gain."""
    carriers = _carriers(result)
    for value in carriers:
        refuse_unless(not value.is_graph_output(), f"{text(value)} is a graph output")
        for reader, _ in uses_of(value):
            fits = reader in products or reader.outputs[0] in carriers
            refuse_unless(fits, f"{text(value)} is also read by {operator(reader)} '{reader.name}'", reader)


RULES = (FoldNormScaleIntoMatMul(),)
