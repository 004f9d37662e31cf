"""Family A: functions applied twice that do nothing new the second time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import Context, array, exclusive, operand, producer, tensor, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, refuse_unless
from explorer.rewrite.rules.elimination import Bypass, bypass

_TWICE = ("Abs", "Ceil", "Floor", "Relu", "Round", "Sign")
_INVOLUTIONS = ("Neg", "Not", "BitwiseNot")
_EVIDENCE = "Partly absorbed by ONNX Runtime; onnx/optimizer#259."


class EliminateIdempotent(Bypass):
    """Relu(Relu(x)), Abs(Abs(x)), Floor(Floor(x)) ... become the inner one."""

    name = "eliminate-idempotent"
    family = "A12"
    title = "Remove a function applied twice"
    preconditions = "Abs, Ceil, Floor, Relu, Round or Sign directly after itself."
    evidence = _EVIDENCE
    anchors = _TWICE

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A function whose input is the same function's result."""
        if producer(operand(node, 0), node.op_type) is None:
            return None
        return bypass(node, f"{text(node.inputs[0])} has been through {node.op_type} already")


class EliminateInvolution(PatternRule):
    """Neg(Neg(x)) and Not(Not(x)) become x."""

    name = "eliminate-involution"
    family = "A12"
    title = "Cancel two negations"
    numeric_class = NumericClass.EXACT
    preconditions = "Neg, Not or BitwiseNot directly after itself."
    evidence = _EVIDENCE
    anchors = _INVOLUTIONS
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A negation of a negation."""
        first = producer(operand(node, 0), node.op_type)
        if first is None:
            return None
        nodes = (*exclusive([first], node), node)
        summary = f"{text(node.outputs[0])} is {text(first.inputs[0])}"
        return Match(nodes, (node.outputs[0],), {"source": first.inputs[0]}, summary=summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The original tensor."""
        return [match["source"]]


@dataclass(frozen=True)
class _Limit:
    """One bound of a Clip: the operand or attribute it comes from, and its number."""

    value: ir.Value | None
    number: float | int


class MergeClips(PatternRule):
    """Clip(Clip(x, a, b), c, d) becomes Clip(x, max(a, c), min(b, d))."""

    name = "merge-clips"
    family = "A12"
    title = "Merge two Clips"
    numeric_class = NumericClass.EXACT
    preconditions = "All bounds constant; the two intervals meet."
    evidence = _EVIDENCE
    anchors = ("Clip",)
    min_opset = 6
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Clip whose input is a Clip."""
        first = producer(operand(node, 0), "Clip")
        if first is None:
            return None
        lows = [low for low in (_limit(n, "min", 1) for n in (first, node)) if low is not None]
        highs = [high for high in (_limit(n, "max", 2) for n in (first, node)) if high is not None]
        low = max(lows, key=lambda limit: limit.number, default=None)
        high = min(highs, key=lambda limit: limit.number, default=None)
        meets = low is None or high is None or low.number <= high.number
        refuse_unless(meets, "the two intervals do not meet", first)
        nodes = (*exclusive([first], node), node)
        kept = {limit.value for limit in (low, high) if limit is not None}
        drops = tuple(v for n in nodes for v in n.inputs[1:] if v not in kept)
        bindings = {"source": first.inputs[0], "low": low, "high": high}
        summary = f"{text(node.outputs[0])} is clipped once"
        return Match(nodes, (node.outputs[0],), bindings, "", summary, 0, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Clip, which reads the tighter of the existing bounds."""
        low, high = match["low"], match["high"]
        if build.opset < 11:
            numbers = {"min": low and low.number, "max": high and high.number}
            return [build.op("Clip", [match["source"]], numbers, like=match.outputs[0])]
        bounds = [low and low.value, high and high.value]
        while bounds and bounds[-1] is None:
            bounds.pop()
        return [build.op("Clip", [match["source"], *bounds], like=match.outputs[0])]


def _limit(clip: ir.Node, name: str, position: int) -> _Limit | None:
    """A bound of a Clip, None if it has none; refuses one that is computed or NaN."""
    value, attribute = operand(clip, position), clip.attributes.get_float(name, None)
    if value is None:
        return None if attribute is None else _Limit(None, attribute)
    found = tensor(value)
    if found is None or found.size != 1:
        raise Refusal(f"the {name} of Clip {text(clip.outputs[0])} is not a constant", (clip,))
    number = array(value).ravel()[0]
    exact = float(number) if found.dtype.is_floating_point() else int(number)
    refuse_unless(not isnan(exact), f"the {name} of Clip {text(clip.outputs[0])} is NaN", clip)
    return _Limit(value, exact)


RULES = (EliminateIdempotent(), EliminateInvolution(), MergeClips())
