"""Families A and G: reshapes that do nothing or follow each other, and Flatten as Reshape."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import (
    Context,
    dim,
    exclusive,
    integers,
    operand,
    producer,
    same_shape,
    shape_of,
    text,
)
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal
from explorer.rewrite.rules.axes import reshape_target
from explorer.rewrite.rules.elimination import ABSORBED, Bypass, bypass

RESHAPES = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")


class EliminateReshape(Bypass):
    """A Reshape (or Flatten, Squeeze) to the shape x has becomes x."""

    name = "eliminate-reshape"
    family = "A5"
    title = "Remove Reshape to the same shape"
    preconditions = "Input and output provably have the same shape: equal static dims or equal symbols."
    anchors = ("Reshape", "Flatten", "Squeeze")

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A node whose result has the shape of its input."""
        source, result = operand(node, 0), node.outputs[0]
        if not same_shape(source, result) and not _keeps_shape(node):
            return None
        return bypass(node, f"{text(result)} is {text(source)}, the shape stays")


class MergeReshapes(PatternRule):
    """Reshape(Reshape(x)) becomes the last Reshape."""

    name = "merge-reshapes"
    family = "A5"
    title = "Merge two reshapes"
    numeric_class = NumericClass.EXACT
    preconditions = (
        "The last target is constant, or the last shape has at most one dynamic dim; a 0 in the target copies a "
        "dim that is static, or the same in x. The first may be a Flatten, Squeeze or Unsqueeze."
    )
    evidence = f"{ABSORBED} onnxscript#2945 is a bug in this rule."
    anchors = ("Reshape",)
    min_opset = 5
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Reshape whose input comes from another one."""
        first = producer(operand(node, 0), *RESHAPES)
        if first is None or first.inputs[0] is None or operand(node, 1) is None:
            return None
        source = first.inputs[0]
        target = merged_target(node, source)
        nodes = (*exclusive([first], node), node)
        drops = tuple(value for n in nodes for value in n.inputs[1:] if value is not node.inputs[1])
        size = 0
        if target is not None:
            drops, size = (*drops, node.inputs[1]), 8 * len(target)
        summary = f"{text(source)} is reshaped once"
        bindings = {"source": source, "target": target}
        return Match(nodes, (node.outputs[0],), bindings, "", summary, size, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Reshape of x."""
        node, target = match.nodes[-1], match["target"]
        if target is None:
            inputs = [match["source"], node.inputs[1]]
            attributes = {"allowzero": node.attributes.get_int("allowzero", None)}
            return [build.op("Reshape", inputs, attributes, like=match.outputs[0])]
        return [build.op("Reshape", [match["source"], build.ints(target, "shape")], like=match.outputs[0])]


class FlattenToReshape(PatternRule):
    """Flatten(x) becomes Reshape(x)."""

    name = "flatten-to-reshape"
    family = "G9"
    title = "Flatten to Reshape"
    numeric_class = NumericClass.EXACT
    inverse = "reshape-to-flatten"
    preconditions = "Axis 0 or 1, or the dims on one side of the axis static."
    evidence = "Enabling: lets A5 merge it with other reshapes."
    anchors = ("Flatten",)
    min_opset = 5
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Flatten whose target can be written as a constant."""
        dims = shape_of(operand(node, 0))
        axis = node.attributes.get_int("axis", 1) or 0
        if axis < 0:
            axis += len(dims) if dims is not None else 0
        target = _flat_target(dims, axis)
        if target is None:
            raise Refusal(f"the dims of {text(node.inputs[0])} on both sides of axis {axis} are dynamic")
        summary = f"{text(node.outputs[0])} becomes a Reshape to {list(target)}"
        return Match((node,), (node.outputs[0],), {"target": target}, "", summary, 16)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Reshape."""
        (node,) = match.nodes
        target = build.ints(match["target"], "shape")
        return [build.op("Reshape", [node.inputs[0], target], like=match.outputs[0])]


class ReshapeToFlatten(PatternRule):
    """A Reshape to two dims becomes Flatten(x, axis)."""

    name = "reshape-to-flatten"
    family = "G9"
    title = "Reshape to Flatten"
    numeric_class = NumericClass.EXACT
    preconditions = (
        "Two dims, the first provably the product of the leading dims of x (or the second of the others)."
    )
    evidence = "The reverse of G9 (which writes the target in one way of several)."
    anchors = ("Reshape",)
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Reshape that joins leading and trailing dims."""
        source, result = shape_of(operand(node, 0)), shape_of(node.outputs[0])
        if source is None or result is None or len(result) != 2 or 0 in source:
            return None
        axis = next((a for a in _axes_by_use(len(source)) if _is_flat(source, result, a)), None)
        if axis is None:
            return None
        summary = f"{text(node.outputs[0])} becomes a Flatten at axis {axis}"
        drops = tuple(node.inputs[1:])
        return Match((node,), (node.outputs[0],), {"axis": axis}, "", summary, 0, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Flatten."""
        (node,) = match.nodes
        return [build.op("Flatten", [node.inputs[0]], {"axis": match["axis"]}, like=match.outputs[0])]


def merged_target(node: ir.Node, source: ir.Value) -> tuple[int, ...] | None:
    """The target of a Reshape when it reads ``source`` instead; None if the given one can stay.

    Raises:
        Refusal: the target cannot be written as a constant.
    """
    given = integers(node.inputs[1])
    keeps_zero = node.attributes.get_int("allowzero", 0)
    if given is not None and (0 not in given or keeps_zero):
        return None
    if given is not None and all(size or _same_dim(node, source, axis) for axis, size in enumerate(given)):
        return None
    result = shape_of(node.outputs[0])
    target = None if result is None else reshape_target(result, shape_of(source))
    if target is None:
        what = "is not constant" if given is None else "copies a dynamic dim"
        raise Refusal(f"the target of {text(node.outputs[0])} {what} and cannot be written as a constant")
    return target


def _same_dim(node: ir.Node, source: ir.Value, axis: int) -> bool:
    size = dim(source, axis)
    return size is not None and size == dim(node.inputs[0], axis)


def _keeps_shape(node: ir.Node) -> bool:
    """Whether a constant target names every dim of the input but one, which then follows."""
    sizes, result = shape_of(operand(node, 0)), shape_of(node.outputs[0])
    if node.op_type != "Reshape" or sizes is None or 0 in sizes:
        return False
    if result is not None and all(isinstance(size, int) for size in (*sizes, *result)):
        return False  # two different static shapes
    target, keeps_zero = integers(operand(node, 1)), node.attributes.get_int("allowzero", 0)
    if target is None or len(target) != len(sizes) or (keeps_zero and 0 in target):
        return False
    pairs = list(zip(target, sizes, strict=True))
    return target.count(-1) <= 1 and all(size in {0, -1} or size == known for size, known in pairs)


def _flat_target(dims: Sequence[int | str | None] | None, axis: int) -> tuple[int, int] | None:
    if axis == 0:
        return 1, -1
    if dims is not None and 0 in dims:
        return None
    before = _product(dims[:axis]) if dims is not None else None
    after = _product(dims[axis:]) if dims is not None else None
    if before is not None:
        return before, -1
    if axis == 1:
        return 0, -1
    return None if after is None else (-1, after)


def _product(dims: Sequence[int | str | None]) -> int | None:
    static = [size for size in dims if isinstance(size, int)]
    return prod(static) if len(static) == len(dims) else None


def _axes_by_use(size: int) -> list[int]:
    """Axis 1 first: nearly every Flatten has it."""
    return sorted(range(size + 1), key=lambda axis: (axis != 1, axis))


def _is_flat(source: Sequence[int | str | None], result: Sequence[int | str | None], axis: int) -> bool:
    first, second = result
    if first is not None and [first] == [size for size in source[:axis] if size != 1]:
        return True  # one (dynamic) dim and ones
    before, after = _product(source[:axis]), _product(source[axis:])
    return (before is not None and before == first) or (after is not None and after == second)


RULES = (EliminateReshape(), MergeReshapes(), FlattenToReshape(), ReshapeToFlatten())
