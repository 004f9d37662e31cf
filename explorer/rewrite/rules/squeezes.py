"""Family A: Squeeze and Unsqueeze that cancel or follow each other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import Context, dims, exclusive, operand, producer, rank, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal
from explorer.rewrite.rules.axes import axes_bytes, build_with_axes, given_axes, normalise
from explorer.rewrite.rules.elimination import ABSORBED

_OPERATORS = ("Squeeze", "Unsqueeze")
_NEW = -1  # marks an axis that the source does not have


class MergeSqueezes(PatternRule):
    """A Squeeze or Unsqueeze of another one becomes a single one, or x where they cancel."""

    name = "merge-squeezes"
    family = "A6"
    title = "Merge or cancel Squeeze and Unsqueeze"
    numeric_class = NumericClass.EXACT
    preconditions = (
        "Axes constant and the rank of x known; a Squeeze without axes only on a static shape; the axes of one "
        "undo or continue those of the other."
    )
    evidence = f"{ABSORBED} onnx/optimizer#253: that tool's Squeeze fusion is wrong."
    anchors = _OPERATORS
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Squeeze or Unsqueeze whose input comes from another one."""
        first = producer(operand(node, 0), *_OPERATORS)
        if first is None or first.inputs[0] is None:
            return None
        source = first.inputs[0]
        size = rank(source)
        if size is None:
            raise Refusal(f"the rank of {text(source)} is unknown", (first,))
        layout = _after(node, _after(first, list(range(size))))
        operator, axes = _single_operation(_reuse_removed(layout, size), size)
        if operator is None:
            return None
        summary = f"{text(node.outputs[0])} is {operator or 'the same as'} {text(source)}"
        nodes = (*exclusive([first], node), node)
        drops = tuple(value for n in nodes for value in n.inputs[1:])
        bindings = {"source": source, "operator": operator, "axes": axes}
        new_bytes = axes_bytes(operator, axes, context) if operator else 0
        return Match(nodes, (node.outputs[0],), bindings, "", summary, new_bytes, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Squeeze, one Unsqueeze, or nothing."""
        if not match["operator"]:
            return [match["source"]]
        return [
            build_with_axes(match["operator"], match["source"], match["axes"], build, like=match.outputs[0])
        ]


def removed_axes(node: ir.Node) -> tuple[int, ...] | None:
    """The axes a Squeeze removes or an Unsqueeze inserts (in its result), sorted; None if not known.

    Raises:
        Refusal: the axes are computed at run time.
    """
    given, size = given_axes(node), rank(operand(node, 0))
    if given is None:
        static = dims(operand(node, 0))
        return None if static is None else tuple(axis for axis, d in enumerate(static) if d == 1)
    if size is None:
        return None
    return normalise(given, size + len(given) if node.op_type == "Unsqueeze" else size)


def _after(node: ir.Node, layout: list[int]) -> list[int]:
    """Where the source's axes are after one more Squeeze or Unsqueeze."""
    axes = removed_axes(node)
    if axes is None:
        raise Refusal(f"the axes of {text(node.outputs[0])} depend on a shape that is not static", (node,))
    if node.op_type == "Squeeze":
        return [origin for position, origin in enumerate(layout) if position not in axes]
    origins = iter(layout)
    size = len(layout) + len(axes)
    return [_NEW if position in axes else next(origins) for position in range(size)]


def _reuse_removed(layout: Sequence[int], size: int) -> list[int]:
    """A new axis between two neighbours may be the removed one that lay there: both have size one."""
    found = list(layout)
    missing = [axis for axis in range(size) if axis not in found]
    for position, origin in enumerate(found):
        if origin != _NEW:
            continue
        before = max((axis for axis in found[:position] if axis != _NEW), default=-1)
        after = min((axis for axis in found[position + 1 :] if axis != _NEW), default=size)
        fitting = [axis for axis in missing if before < axis < after]
        if fitting:
            found[position] = fitting[0]
            missing.remove(fitting[0])
    return found


def _single_operation(layout: Sequence[int], size: int) -> tuple[str | None, tuple[int, ...]]:
    """(operator, axes) that gives this layout; ("", ()) for nothing at all, (None, ()) if it takes two."""
    removed = tuple(axis for axis in range(size) if axis not in layout)
    inserted = tuple(position for position, origin in enumerate(layout) if origin == _NEW)
    kept = [origin for origin in layout if origin != _NEW]
    if (removed and inserted) or any(a > b for a, b in pairwise(kept)):
        return None, ()
    if removed:
        return "Squeeze", removed
    return ("Unsqueeze", inserted) if inserted else ("", ())


RULES = (MergeSqueezes(),)
