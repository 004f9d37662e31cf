"""Family F: LayerNormalization and RMSNormalization below or above a Transpose of the other axes."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import Context, dim, is_used, operand, producer, rank, sole_reader, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, refuse_unless
from explorer.rewrite.rules.axes import perm_of
from explorer.rewrite.rules.layernorm import normalised_axes
from explorer.rewrite.rules.patterns import FLOAT_HALF_DOUBLE, describe_dims
from explorer.rewrite.rules.transposes import transposed

_NORMS = ("LayerNormalization", "RMSNormalization")
_PRECONDITIONS = (
    "The permutation leaves the normalised axes last and in their order; scale and bias vary over these only; mean "
    "and standard deviation not used; the inner node read by nothing else."
)


def _keeps_normalised(perm: Sequence[int] | None, axes: Sequence[int]) -> bool:
    if perm is None or len(axes) > len(perm):
        return False
    return all(perm[axis] == len(perm) + axis for axis in axes)


def _is_constant_before(value: ir.Value, count: int) -> bool:
    """Whether a scale or bias varies over the last ``count`` axes only."""
    size = rank(value)
    return size is not None and all(dim(value, axis) == 1 for axis in range(size - count))


def _check(norm: ir.Node, transpose: ir.Node) -> tuple[int, ...] | None:
    perm, axes = perm_of(transpose), normalised_axes(norm)
    for value in norm.outputs[1:]:
        refuse_unless(not is_used(value), f"{text(value)} is used too")
    refuse_unless(
        _keeps_normalised(perm, axes),
        f"the permutation {list(perm or ())} moves the normalised axes {list(axes)}",
    )
    for parameter in norm.inputs[1:]:
        refuse_unless(
            parameter is None or _is_constant_before(parameter, len(axes)),
            f"{text(parameter)} {describe_dims(parameter)} may vary over other axes than the normalised "
            f"{list(axes)}",
        )
    return perm


class MoveTransposeAfterNorm(PatternRule):
    """Norm(Transpose(x)) becomes Transpose(Norm(x))."""

    name = "move-transpose-after-norm"
    family = "F10"
    title = "Normalise before the Transpose"
    numeric_class = NumericClass.EXACT
    inverse = "move-transpose-before-norm"
    preconditions = _PRECONDITIONS
    evidence = "Enabling: the Transpose may meet another and cancel (A4)."
    anchors = _NORMS
    dtypes = FLOAT_HALF_DOUBLE

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A normalisation of a Transpose."""
        transpose = producer(operand(node, 0), "Transpose")
        if transpose is None:
            return None
        perm = _check(node, transpose)
        summary = f"{text(transpose.inputs[0])} is normalised before it is transposed"
        bindings = {"perm": perm, "source": transpose.inputs[0]}
        return Match((transpose, node), (node.outputs[0],), bindings, summary=summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The normalisation, then the Transpose."""
        node, source, like = match.nodes[-1], match["source"], match.outputs[0]
        value = build.op(node.op_type, [source, *node.inputs[1:]], attributes_of(node), like=source)
        return [build.op("Transpose", [value], {"perm": match["perm"]}, like=like)]


class MoveTransposeBeforeNorm(PatternRule):
    """Transpose(Norm(x)) becomes Norm(Transpose(x))."""

    name = "move-transpose-before-norm"
    family = "F10"
    title = "Normalise after the Transpose"
    numeric_class = NumericClass.EXACT
    inverse = "move-transpose-after-norm"
    preconditions = _PRECONDITIONS
    evidence = "Enabling: the Transpose may meet another and cancel (A4)."
    anchors = _NORMS
    dtypes = FLOAT_HALF_DOUBLE

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A normalisation that only a Transpose reads."""
        transpose = sole_reader(node.outputs[0], "Transpose")
        if transpose is None or transpose.graph is not node.graph:
            return None
        perm = _check(node, transpose)
        summary = f"{text(operand(node, 0))} is transposed before it is normalised"
        return Match((node, transpose), (transpose.outputs[0],), {"perm": perm}, summary=summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The Transpose, then the normalisation."""
        node, like = match.nodes[0], match.outputs[0]
        source = node.inputs[0]
        if source is None:
            return []
        turned = transposed(source, match["perm"], build)
        return [build.op(node.op_type, [turned, *node.inputs[1:]], attributes_of(node), like=like)]


RULES = (MoveTransposeAfterNorm(), MoveTransposeBeforeNorm())
