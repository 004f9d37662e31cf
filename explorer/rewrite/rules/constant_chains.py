"""Family B: chains of Add, Sub, Mul and Div by constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import (
    Context,
    array,
    dims,
    element_bytes,
    nbytes,
    producer,
    tensor,
    text,
)
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, refuse_unless
from explorer.rewrite.rules.affine import SCALES, SHIFTS, constant_operand
from explorer.rewrite.rules.linear import rounded

_LARGEST_CONSTANT = 65536  # elements of a constant that is combined or looked at


@dataclass(frozen=True)
class _Step:
    """``sign * x + value``, or ``x * value`` or ``x / value``, of one node."""

    node: ir.Node
    source: ir.Value
    constant: ir.Value
    position: int

    @property
    def sign(self) -> int:
        """-1 if a Sub takes x away from the constant."""
        return -1 if self.node.op_type == "Sub" and self.position == 0 else 1

    def values(self) -> np.ndarray:
        """What is added or multiplied, in float64."""
        found = array(self.constant).astype(np.float64)
        if self.node.op_type == "Div":
            with np.errstate(all="ignore"):
                return np.asarray(1.0 / found)
        return -found if self.node.op_type == "Sub" and self.position == 1 else found


class MergeConstantShifts(PatternRule):
    """(x + c1) + c2, with any of them a subtraction, becomes x + c."""

    name = "merge-constant-shifts"
    family = "B11"
    title = "Merge two additions of constants"
    numeric_class = NumericClass.REASSOCIATED
    preconditions = "Two constants, combined not larger than both; their sum finite; the inner result read by nothing else."
    evidence = "Absorbed in part by ONNX Runtime."
    anchors = SHIFTS
    min_opset = 7

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """An Add or Sub of a constant after another."""
        return _chain(node, SHIFTS)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Add, or one Sub where the sign of x changes."""
        outer, inner = match["steps"]
        constant = build.constant(_sum(outer, inner), "sum")
        if outer.sign * inner.sign > 0:
            return [build.op("Add", [inner.source, constant], like=match.outputs[0])]
        return [build.op("Sub", [constant, inner.source], like=match.outputs[0])]


class MergeConstantScales(PatternRule):
    """(x * c1) * c2, with any of them a division, becomes x * c."""

    name = "merge-constant-scales"
    family = "B11"
    title = "Merge two multiplications by constants"
    numeric_class = NumericClass.REASSOCIATED
    preconditions = (
        "Two constants, combined not larger than both; their product finite and without new zeros; the inner result "
        "read by nothing else."
    )
    evidence = "Absorbed in part by ONNX Runtime."
    anchors = SCALES
    min_opset = 7

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Mul or Div by a constant after another."""
        return _chain(node, SCALES)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Mul."""
        outer, inner = match["steps"]
        constant = build.constant(_product(outer, inner), "product")
        return [build.op("Mul", [inner.source, constant], like=match.outputs[0])]


class DistributeScale(PatternRule):
    """(x + c) * k becomes x * k + c * k."""

    name = "distribute-scale-over-shift"
    family = "B11"
    title = "Scale before the added constant instead of after it"
    numeric_class = NumericClass.REASSOCIATED
    preconditions = (
        "Two constants, combined not larger than both; their product finite; x + c read by nothing else."
    )
    evidence = (
        "As many nodes as before; brings the scale next to a Conv or product (B3, B6) and the sum to B4."
    )
    anchors = SCALES
    min_opset = 7

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Mul or Div by a constant after an Add or Sub of another."""
        outer = _step(node, SCALES)
        inner = None if outer is None else _step(producer(outer.source, *SHIFTS), SHIFTS)
        if outer is None or inner is None or inner.sign < 0:
            return None
        size = _combined_bytes(outer, inner)
        _product(outer, inner)
        summary = f"{text(inner.source)} is scaled before {text(inner.constant)} is added"
        nodes = (inner.node, outer.node)
        drops = (inner.constant,)
        return Match(nodes, (node.outputs[0],), {"steps": (outer, inner)}, "", summary, size, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The same scale, then an Add of the scaled constant."""
        (outer, inner), like = match["steps"], match.outputs[0]
        operands = [inner.source, outer.constant]
        if outer.node.op_type == "Mul" and outer.position == 0:
            operands.reverse()
        value = build.op(outer.node.op_type, operands)
        return [build.op("Add", [value, build.constant(_product(outer, inner), "scaled")], like=like)]


class SubToAdd(PatternRule):
    """x - c becomes x + (-c)."""

    name = "sub-to-add"
    family = "B11"
    title = "Subtraction of a constant to addition"
    numeric_class = NumericClass.EXACT
    inverse = "add-to-sub"
    preconditions = "c constant."
    evidence = "Neutral by itself; fewer forms for other rules to know."
    anchors = ("Sub",)
    min_opset = 7

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Sub whose second operand is a constant."""
        step = _step(node, ("Sub",))
        return None if step is None or step.position == 0 else _negation(step, "added")

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """An Add of the negated constant."""
        return [_negated(match, "Add", build)]


class AddToSub(PatternRule):
    """x + c with no positive element in c becomes x - (-c)."""

    name = "add-to-sub"
    family = "B11"
    title = "Addition of a negative constant to subtraction"
    numeric_class = NumericClass.EXACT
    inverse = "sub-to-add"
    preconditions = "c constant, all elements negative."
    evidence = "Neutral; the reverse of sub-to-add."
    anchors = ("Add",)
    min_opset = 7

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """An Add of a constant all of whose elements are negative."""
        step = _step(node, ("Add",))
        if step is None or not _is_small(step.constant) or not bool((array(step.constant) < 0).all()):
            return None
        return _negation(step, "taken away")

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """A Sub of the negated constant."""
        return [_negated(match, "Sub", build)]


def _step(node: ir.Node | None, operators: tuple[str, ...]) -> _Step | None:
    """A node of these operators with one constant floating-point operand."""
    if node is None or node.op_type not in operators:
        return None
    found = constant_operand(node)
    if found is None or (node.op_type == "Div" and found[1] == 0):
        return None
    constant, position = found
    source, stored = node.inputs[1 - position], tensor(constant)
    if source is None or stored is None or not stored.dtype.is_floating_point():
        return None
    return _Step(node, source, constant, position)


def _chain(node: ir.Node, operators: tuple[str, ...]) -> Match | None:
    outer = _step(node, operators)
    inner = None if outer is None else _step(producer(outer.source, *operators), operators)
    if outer is None or inner is None:
        return None
    size = _combined_bytes(outer, inner)
    (_product if operators is SCALES else _sum)(outer, inner)
    summary = f"{text(inner.constant)} and {text(outer.constant)} become one constant"
    drops = (inner.constant, outer.constant)
    nodes = (inner.node, outer.node)
    return Match(nodes, (node.outputs[0],), {"steps": (outer, inner)}, "", summary, size, drops)


def _combined_bytes(outer: _Step, inner: _Step) -> int:
    """Size of the two constants combined; refuses a combination larger than both."""
    shapes = [dims(step.constant) or () for step in (outer, inner)]
    count = prod(np.broadcast_shapes(*shapes))
    size = count * element_bytes(inner.constant)
    both = nbytes(outer.constant) + nbytes(inner.constant)
    names = f"{text(inner.constant)} and {text(outer.constant)}"
    refuse_unless(size <= both, f"{names} combine to {size} bytes, more than both", inner.node)
    refuse_unless(count <= _LARGEST_CONSTANT, f"{names} combine to {count} elements", inner.node)
    return size


def _sum(outer: _Step, inner: _Step) -> np.ndarray:
    """What is added in all; refuses overflow."""
    return _finite(outer.sign * inner.values() + outer.values(), outer.constant)


def _product(outer: _Step, inner: _Step) -> np.ndarray:
    """The product of the two constants; refuses overflow and underflow."""
    with np.errstate(all="ignore"):
        exact = inner.values() * outer.values()
    result = _finite(exact, outer.constant)
    if bool(((exact != 0) & (result == 0)).any()):
        raise Refusal(f"the product of {text(inner.constant)} and {text(outer.constant)} underflows to zero")
    return result


def _finite(values: np.ndarray, like: ir.Value) -> np.ndarray:
    refuse_unless(np.isfinite(values).all(), f"combined with {text(like)} a constant is not finite")
    return rounded(values, array(like).dtype)


def _is_small(constant: ir.Value) -> bool:
    found = tensor(constant)
    return found is not None and 0 < found.size <= _LARGEST_CONSTANT


def _negation(step: _Step, how: str) -> Match | None:
    if not _is_small(step.constant):
        return None
    summary = f"{text(step.constant)} is negated and {how}"
    size, bindings = nbytes(step.constant), {"step": step}
    return Match((step.node,), (step.node.outputs[0],), bindings, "", summary, size, (step.constant,))


def _negated(match: Match, op_type: str, build: Builder) -> ir.Value:
    step: _Step = match["step"]
    constant = build.constant(-array(step.constant), "negated")
    return build.op(op_type, [step.source, constant], like=match.outputs[0])


RULES = (MergeConstantShifts(), MergeConstantScales(), DistributeScale(), SubToAdd(), AddToSub())
