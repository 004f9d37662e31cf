"""Families A and G: transposes that cancel, merge, or move only dims of size one."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import Context, exclusive, operand, producer, rank, shape_of, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal
from explorer.rewrite.rules.axes import Dims, is_identity, perm_of, permuted, reshape_target
from explorer.rewrite.rules.elimination import ABSORBED, Bypass, bypass


class EliminateTranspose(Bypass):
    """Transpose(x) that moves nothing becomes x."""

    name = "eliminate-transpose"
    family = "A4"
    title = "Remove Transpose that moves nothing"
    preconditions = "The permutation is the identity."
    anchors = ("Transpose",)

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Transpose by the identity permutation."""
        perm = perm_of(node)
        if perm is None or not is_identity(perm):
            return None
        return bypass(node, f"{text(node.outputs[0])} is {text(node.inputs[0])}")


class MergeTransposes(PatternRule):
    """Transpose(Transpose(x)) becomes one Transpose, or x where they cancel."""

    name = "merge-transposes"
    family = "A4"
    title = "Merge two transposes"
    numeric_class = NumericClass.EXACT
    preconditions = "Both permutations known (an absent one reverses the axes and needs the rank)."
    evidence = ABSORBED
    anchors = ("Transpose",)
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Transpose whose input is a Transpose."""
        first = producer(operand(node, 0), "Transpose")
        if first is None:
            return None
        inner, outer = perm_of(first), perm_of(node)
        if inner is None or outer is None:
            raise Refusal(f"the rank of {text(first.inputs[0])} is unknown", (first,))
        perm = tuple(inner[axis] for axis in outer)
        nodes = (*exclusive([first], node), node)
        what = "cancel" if is_identity(perm) else f"become one by {list(perm)}"
        bindings = {"source": first.inputs[0], "perm": perm}
        return Match(nodes, (node.outputs[0],), bindings, summary=f"two transposes {what}")

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Transpose, or none."""
        source, perm = match["source"], match["perm"]
        if is_identity(perm):
            return [source]
        return [build.op("Transpose", [source], {"perm": perm}, like=match.outputs[0])]


class TransposeToReshape(PatternRule):
    """A Transpose that moves only dims of size one becomes a Reshape."""

    name = "transpose-to-reshape"
    family = "G4"
    title = "Transpose of unit dims to Reshape"
    numeric_class = NumericClass.EXACT
    inverse = "reshape-to-transpose"
    preconditions = "All dims but those of size one keep their order; at most one dim is dynamic and moves."
    evidence = "OnnxSlim ships it; a Reshape moves no data."
    anchors = ("Transpose",)
    min_opset = 5
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Transpose after which the elements lie in the same order."""
        source, perm = shape_of(operand(node, 0)), perm_of(node)
        if source is None or perm is None or is_identity(perm):
            return None
        moved = [axis for axis in perm if source[axis] != 1]
        if moved != sorted(moved):
            return None
        result = permuted(source, perm) or ()
        target = reshape_target(result, source)
        if target is None:
            raise Refusal(f"more than one dim of {text(node.outputs[0])} is dynamic")
        summary = f"{text(node.outputs[0])} becomes a Reshape to {list(target)}"
        return Match((node,), (node.outputs[0],), {"target": target}, "", summary, 8 * len(target))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Reshape."""
        (node,) = match.nodes
        target = build.ints(match["target"], "shape")
        return [build.op("Reshape", [node.inputs[0], target], like=match.outputs[0])]


class ReshapeToTranspose(PatternRule):
    """A Reshape that only moves dims of size one becomes a Transpose."""

    name = "reshape-to-transpose"
    family = "G4"
    title = "Reshape that moves unit dims to Transpose"
    numeric_class = NumericClass.EXACT
    inverse = "transpose-to-reshape"
    preconditions = "Equal rank; the dims that are not one are the same, in the same order."
    evidence = "The reverse of G4: lets transposes meet and cancel."
    anchors = ("Reshape",)
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Reshape whose result holds the same dims, ones moved."""
        source, result = shape_of(operand(node, 0)), shape_of(node.outputs[0])
        if source is None or result is None or source == result:
            return None
        perm = _unit_permutation(source, result)
        if perm is None:
            return None
        summary = f"{text(node.outputs[0])} becomes a Transpose by {list(perm)}"
        drops = tuple(node.inputs[1:])
        return Match((node,), (node.outputs[0],), {"perm": perm}, "", summary, 0, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Transpose."""
        (node,) = match.nodes
        return [build.op("Transpose", [node.inputs[0]], {"perm": match["perm"]}, like=match.outputs[0])]


def _unit_permutation(source: Dims, result: Dims) -> tuple[int, ...] | None:
    """The permutation that turns one shape into the other by moving ones; None if there is none."""
    wide = [axis for axis, size in enumerate(source) if size != 1]
    if len(source) != len(result) or None in source or None in result:
        return None
    if [source[axis] for axis in wide] != [size for size in result if size != 1]:
        return None
    units = iter(axis for axis, size in enumerate(source) if size == 1)
    others = iter(wide)
    return tuple(next(units) if size == 1 else next(others) for size in result)


def transposed(
    value: ir.Value, perm: Sequence[int], build: Builder, original: ir.Node | None = None
) -> ir.Value:
    """A Transpose of a value, with its shape where known; the value itself if nothing moves.

    Args:
        value: what is transposed.
        perm: the permutation.
        build: where to.
        original: a Transpose whose way of writing the permutation is kept, where it is the same.
    """
    if is_identity(perm):
        return value
    shape = permuted(shape_of(value), perm) if rank(value) == len(perm) else None
    return build.op("Transpose", [value], _written(perm, original), dtype=value.dtype, shape=shape)


def _written(perm: Sequence[int], original: ir.Node | None) -> dict[str, object]:
    """The attributes of a Transpose: an absent permutation stays absent."""
    if original is not None and perm_of(original) == tuple(perm):
        return attributes_of(original)
    return {"perm": tuple(perm)}


RULES = (EliminateTranspose(), MergeTransposes(), TransposeToReshape(), ReshapeToTranspose())
