"""Family E: Relu, Max, Min and Clip as forms of each other."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import (
    Context,
    array,
    element_bytes,
    exclusive,
    is_const,
    operand,
    producer,
    text,
)
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, refuse_unless
from explorer.rewrite.rules.patterns import FLOAT_HALF_DOUBLE, number_beside, number_like

_NAN = "Differs for NaN in some runtimes, and Max turns -0 into 0."


class MaxZeroToRelu(PatternRule):
    """Max(x, 0) becomes Relu(x)."""

    name = "max-zero-to-relu"
    family = "E9"
    title = "Max with zero to Relu"
    numeric_class = NumericClass.DOMAIN
    default = False
    inverse = "relu-to-max-zero"
    preconditions = f"Two operands, one a one-element zero that does not enlarge the other. {_NAN}"
    evidence = "onnxscript ships it; Conv and Gemm fusions know Relu only."
    anchors = ("Max",)
    min_opset = 8
    dtypes = FLOAT_HALF_DOUBLE

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Max of a tensor and zero."""
        found = number_beside(node) if len(node.inputs) == 2 else None
        if found is None or found[1] != 0:
            return None
        summary = f"{text(node.outputs[0])} is Relu of {text(found[0])}"
        drops = tuple(node.inputs)
        return Match((node,), (node.outputs[0],), {"source": found[0]}, "", summary, 0, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Relu."""
        return [build.op("Relu", [match["source"]], like=match.outputs[0])]


class ReluToMaxZero(PatternRule):
    """Relu(x) becomes Max(x, 0)."""

    name = "relu-to-max-zero"
    family = "E9"
    title = "Relu to Max with zero"
    numeric_class = NumericClass.DOMAIN
    default = False
    inverse = "max-zero-to-relu"
    preconditions = f"None. {_NAN}"
    evidence = "The reverse of E9."
    anchors = ("Relu",)
    min_opset = 8
    dtypes = FLOAT_HALF_DOUBLE

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """Any Relu."""
        size = element_bytes(node.outputs[0])
        return Match((node,), (node.outputs[0],), summary=f"{text(node.outputs[0])} by Max", new_bytes=size)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Max."""
        (node,), like = match.nodes, match.outputs[0]
        return [build.op("Max", [node.inputs[0], number_like(build, 0.0, like, "zero")], like=like)]


class ClipToRelu(PatternRule):
    """Clip(x, 0) without an upper bound becomes Relu(x)."""

    name = "clip-to-relu"
    family = "E9"
    title = "Clip at zero to Relu"
    numeric_class = NumericClass.DOMAIN
    default = False
    inverse = "relu-to-clip"
    preconditions = f"The lower bound a constant zero, the upper bound absent or not finite. {_NAN}"
    evidence = "Conv and Gemm fusions take either."
    anchors = ("Clip",)
    dtypes = FLOAT_HALF_DOUBLE

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Clip from zero upwards."""
        low, high = _bound(node, "min", 1), _bound(node, "max", 2)
        is_open = operand(node, 2) is None if high is None else np.isposinf(high)
        if low is None or low != 0 or not is_open:
            return None
        summary = f"{text(node.outputs[0])} is Relu of {text(node.inputs[0])}"
        return Match((node,), (node.outputs[0],), {}, "", summary, 0, tuple(node.inputs[1:]))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Relu."""
        return [build.op("Relu", [match.nodes[0].inputs[0]], like=match.outputs[0])]


class ReluToClip(PatternRule):
    """Relu(x) becomes Clip(x, 0)."""

    name = "relu-to-clip"
    family = "E9"
    title = "Relu to Clip at zero"
    numeric_class = NumericClass.DOMAIN
    default = False
    inverse = "clip-to-relu"
    preconditions = f"None. {_NAN}"
    evidence = "Brings a Relu and a Clip together (E10)."
    anchors = ("Relu",)
    min_opset = 11
    dtypes = FLOAT_HALF_DOUBLE

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """Any Relu."""
        refuse_unless(
            context.opset >= 12 or node.outputs[0].dtype == ir.DataType.FLOAT,
            "Clip of anything but float needs opset 12 in ONNX Runtime",
        )
        size = element_bytes(node.outputs[0])
        return Match((node,), (node.outputs[0],), summary=f"{text(node.outputs[0])} by Clip", new_bytes=size)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Clip with a lower bound."""
        (node,), like = match.nodes, match.outputs[0]
        return [build.op("Clip", [node.inputs[0], number_like(build, 0.0, like, "min")], like=like)]


class MinMaxToClip(PatternRule):
    """Min(Max(x, lo), hi) and Max(Min(x, hi), lo) become Clip(x, lo, hi); so does one of them alone."""

    name = "min-max-to-clip"
    family = "E9"
    title = "Min and Max with constants to Clip"
    numeric_class = NumericClass.DOMAIN
    default = False
    preconditions = (
        f"Two operands each, one of them a one-element constant that does not enlarge; lo <= hi. {_NAN}"
    )
    evidence = "onnxscript ships it."
    anchors = ("Min", "Max")
    min_opset = 12
    dtypes = FLOAT_HALF_DOUBLE

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """The outer Min or Max."""
        source, bounds, nodes = _min_max_chain(node)
        if not nodes or (list(bounds) == ["Max"] and bounds["Max"][1] == 0):  # the latter is a Relu
            return None
        low, high = bounds.get("Max"), bounds.get("Min")
        if low is not None and high is not None and low[1] > high[1]:
            raise Refusal(f"the interval is empty: {low[1]:g} > {high[1]:g}", nodes)
        bindings = {"source": source, "low": low and low[0], "high": high and high[0]}
        size = len(bounds) * element_bytes(node.outputs[0])
        summary = f"{text(node.outputs[0])} is Clip of {text(source)}"
        drops = tuple(v for n in nodes for v in n.inputs if is_const(v))
        return Match(tuple(nodes), (node.outputs[0],), bindings, "", summary, size, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Clip; its bounds are scalars, whatever rank the constants had."""
        low, high = (
            None if value is None else build.constant(array(value).reshape(()), hint)
            for value, hint in ((match["low"], "min"), (match["high"], "max"))
        )
        bounds = [low] if high is None else [low, high]
        return [build.op("Clip", [match["source"], *bounds], like=match.outputs[0])]


def _min_max_chain(
    node: ir.Node,
) -> tuple[ir.Value, dict[str, tuple[ir.Value | None, float]], list[ir.Node]]:
    """What a Max, a Min, or one of each after the other read, with their constants by operator."""
    source, current = node.outputs[0], producer(node.outputs[0], "Min", "Max")
    bounds: dict[str, tuple[ir.Value | None, float]] = {}
    nodes: list[ir.Node] = []
    while current is not None and current.op_type not in bounds:
        found = number_beside(current) if len(current.inputs) == 2 else None
        if found is None:
            break
        source, number = found
        bounds[current.op_type] = (next(v for v in current.inputs if v is not source), number)
        nodes.insert(0, current)
        current = producer(source, "Min", "Max")
    return source, bounds, nodes


class MergeReluClip(PatternRule):
    """Clip(Relu(x), lo, hi) and Relu(Clip(x, lo, hi)) become Clip(x, max(lo, 0), max(hi, 0))."""

    name = "merge-relu-clip"
    family = "E10"
    title = "Merge Relu and Clip"
    numeric_class = NumericClass.EXACT
    preconditions = (
        "Constant bounds. With Relu first and hi < 0 the result is hi everywhere, so the upper bound stays."
    )
    evidence = "ORT's own pass does it: absorbed; some versions fail on double (see the trap models)."
    anchors = ("Clip", "Relu")
    min_opset = 6
    dtypes = FLOAT_HALF_DOUBLE

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Clip of a Relu, or a Relu of a Clip."""
        inner = producer(operand(node, 0), "Relu" if node.op_type == "Clip" else "Clip")
        if inner is None:
            return None
        clip = node if node.op_type == "Clip" else inner
        low, high = _bound(clip, "min", 1), _bound(clip, "max", 2)
        for position, bound in ((1, low), (2, high)):
            constant = (operand(clip, position) is None or bound is not None) and not isnan(bound or 0.0)
            refuse_unless(constant, f"bound {text(operand(clip, position))} is not a constant number", inner)
        first = max(low, 0.0) if low is not None else 0.0
        last = high if high is None or clip is node else max(high, 0.0)
        nodes = (*exclusive([inner], node), node)
        drops = tuple(clip.inputs[1:]) if clip in nodes else ()
        bindings = {"source": inner.inputs[0], "low": first, "high": last}
        as_inputs = context.opset >= 11
        size = (1 + (last is not None)) * element_bytes(node.outputs[0]) if as_inputs else 0
        summary = f"{text(node.outputs[0])} is clipped once"
        return Match(nodes, (node.outputs[0],), bindings, "", summary, size, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Clip."""
        like, low, high = match.outputs[0], match["low"], match["high"]
        if build.opset < 11:
            return [build.op("Clip", [match["source"]], {"min": low, "max": high}, like=like)]
        bounds = [number_like(build, low, like, "min")]
        if high is not None:
            bounds.append(number_like(build, high, like, "max"))
        return [build.op("Clip", [match["source"], *bounds], like=like)]


def _bound(clip: ir.Node, name: str, position: int) -> float | None:
    """A constant bound of a Clip; None if there is none or it is computed."""
    value = operand(clip, position)
    if value is None:
        return clip.attributes.get_float(name, None)
    return float(array(value).ravel()[0]) if is_const(value) else None


RULES = (MaxZeroToRelu(), ReluToMaxZero(), ClipToRelu(), ReluToClip(), MinMaxToClip(), MergeReluClip())
