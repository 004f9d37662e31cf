"""What every rule shares that moves a scale or a shift of the channels into a linear node beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import Context, dim, dims, operator, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, refuse_unless
from explorer.rewrite.rules.affine import Affine, affine_source, read_affine
from explorer.rewrite.rules.conv_parts import has_zero_pads
from explorer.rewrite.rules.linear import CONVOLUTIONS, Linear, linear_before, linears_after


@dataclass(frozen=True)
class Fold:
    """One linear node and what its new constants have to absorb."""

    linear: Linear
    affine: Affine

    @property
    def new_weight(self) -> bool:
        """Whether the weight changes."""
        return self.affine.scales


class FoldIntoProducer(PatternRule):
    """f(linear(x)) becomes linear(x) with other constants; f scales or shifts the channels."""

    numeric_class = NumericClass.REASSOCIATED
    operators: ClassVar[tuple[str, ...]]

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A node that scales or shifts the output of a linear node."""
        linear = linear_before(affine_source(node), self.operators, node.graph)
        if linear is None:
            return None
        fold = Fold(linear, read_affine(node, linear.axis, linear.outputs, context))
        summary = f"{node.op_type} of {text(node.outputs[0])} moves into weight {text(linear.weight)}"
        return Match(
            (*linear.nodes, node),
            (node.outputs[0],),
            {"fold": fold},
            "",
            summary,
            linear.new_bytes(weight=fold.new_weight, bias=_needs_bias(fold)),
            _dropped(fold),
        )

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The linear node with scaled weight and shifted bias."""
        fold: Fold = match["fold"]
        linear, affine = fold.linear, fold.affine
        weight = None if affine.factor is None else linear.scaled_outputs(affine.factor)
        bias = affine.of(linear.bias_vector()) if _needs_bias(fold) else None
        return [linear.emit(linear.node.inputs[0], build, match.outputs[0], weight=weight, bias=bias)]


class FoldIntoReaders(PatternRule):
    """linear(f(x)) becomes linear(x) with other constants, for every reader of f(x)."""

    numeric_class = NumericClass.REASSOCIATED
    operators: ClassVar[tuple[str, ...]]

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A node that scales or shifts what one or several linear nodes read."""
        source = affine_source(node)
        linears = [] if source is None else linears_after(node.outputs[0], self.operators, node.graph)
        if not linears:
            return None
        folds = [Fold(item, read_affine(node, item.axis, item.inputs, context)) for item in linears]
        for fold in folds:
            _refuse_enlarging(fold, node, source)
            _refuse_shifted_padding(fold)
        weights = ", ".join(text(fold.linear.weight) for fold in folds)
        nodes = (node, *(n for fold in folds for n in fold.linear.nodes))
        size = sum(f.linear.new_bytes(weight=f.new_weight, bias=f.affine.shifts) for f in folds)
        drops = tuple(value for fold in folds for value in _dropped_before(fold))
        return Match(
            nodes,
            tuple(fold.linear.output for fold in folds),
            {"folds": folds, "source": source},
            "",
            f"{node.op_type} of {text(node.outputs[0])} moves into {weights}",
            size,
            drops,
        )

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The linear nodes with scaled weights and shifted biases, reading the unscaled tensor."""
        return [
            absorbed_before(fold, match["source"], build, output)
            for fold, output in zip(match["folds"], match.outputs, strict=True)
        ]


def absorbed_before(fold: Fold, source: ir.Value, build: Builder, like: ir.Value) -> ir.Value:
    """linear(factor * x + shift) as one linear node of x."""
    linear, affine = fold.linear, fold.affine
    weight = None if affine.factor is None else linear.scaled_inputs(affine.factor)
    bias = None
    if affine.shifts and affine.shift is not None:
        bias = linear.bias_vector() + linear.response(affine.shift)
    return linear.emit(source, build, like, weight=weight, bias=bias)


def _needs_bias(fold: Fold) -> bool:
    return fold.linear.bias is not None or fold.affine.adds


def _dropped(fold: Fold) -> tuple[ir.Value | None, ...]:
    weight = (fold.linear.weight,) if fold.new_weight else ()
    bias = (fold.linear.bias,) if _needs_bias(fold) else ()
    return (*weight, *bias, *fold.affine.constants)


def _dropped_before(fold: Fold) -> tuple[ir.Value | None, ...]:
    weight = (fold.linear.weight,) if fold.new_weight else ()
    bias = (fold.linear.bias,) if fold.affine.shifts else ()
    return (*weight, *bias, *fold.affine.constants)


def _refuse_enlarging(fold: Fold, node: ir.Node, source: ir.Value | None) -> None:
    """One number per channel turns a single channel into several, so the number there must be known."""
    if operator(node) == "BatchNormalization" or all(prod(dims(c) or ()) == 1 for c in fold.affine.constants):
        return
    channels = dim(source, fold.linear.axis)
    refuse_unless(
        channels == fold.linear.inputs,
        f"{text(source)} is not known to have {fold.linear.inputs} channels; if it has one, "
        f"{text(node.outputs[0])} is larger",
    )


def _refuse_shifted_padding(fold: Fold) -> None:
    """Padding is zeros: a shift of the input does not shift them."""
    node = fold.linear.node
    if not fold.affine.shifts or node.op_type not in CONVOLUTIONS:
        return
    refuse_unless(node.op_type == "Conv", "a shift before ConvTranspose is not the same at the border", node)
    refuse_unless(
        has_zero_pads(node), "the convolution pads with zeros, which the shift would not reach", node
    )
