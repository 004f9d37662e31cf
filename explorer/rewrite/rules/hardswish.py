"""Family E: the forms of HardSwish and HardSigmoid that exporters write."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import Context, constants_of, element_bytes, operand, producer, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, refuse_unless
from explorer.rewrite.rules.fused_conv import clip, clip_bounds
from explorer.rewrite.rules.patterns import FLOAT_OR_HALF, both_orders, close, factor_of, number_beside
from explorer.rewrite.walk import source_of

_ALPHA = 1.0 / 6.0


class HardSwishFromParts(PatternRule):
    """x * clip(x + 3, 0, 6) / 6, or x * HardSigmoid(x), becomes HardSwish(x)."""

    name = "fuse-hardswish"
    family = "E5"
    title = "Fuse the parts of HardSwish"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "split-hardswish"
    preconditions = "Constants exactly 3, 0, 6 and 6 (or alpha 1/6, beta 0.5), all of them scalars; same x."
    evidence = "ORT 1.32 CPU: -34 to -41 %, not absorbed."
    anchors = ("Mul", "Div")
    min_opset = 14
    dtypes = FLOAT_OR_HALF

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """The last Mul or Div of any form, operands in any order."""
        found = _hardswish_nodes(node)
        if found is None:
            return None
        source, inner = found
        refuse_unless(node.outputs[0].dtype is not None, f"the type of {text(node.outputs[0])} is unknown")
        summary = f"{text(node.outputs[0])} = HardSwish({text(source)})"
        nodes = (*inner, node)
        return Match(nodes, (node.outputs[0],), {"source": source}, "", summary, 0, constants_of(nodes))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One HardSwish."""
        return [build.op("HardSwish", [match["source"]], like=match.outputs[0])]


class SplitHardSwish(PatternRule):
    """HardSwish(x) becomes x * HardSigmoid(x)."""

    name = "split-hardswish"
    family = "E5"
    title = "HardSwish to x * HardSigmoid(x)"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "fuse-hardswish"
    preconditions = "None."
    evidence = "The reverse of E5; lets a following Conv fusion see the HardSigmoid."
    anchors = ("HardSwish",)
    dtypes = FLOAT_OR_HALF

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """Any HardSwish."""
        return Match((node,), (node.outputs[0],), summary=f"{text(node.outputs[0])} becomes two nodes")

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """HardSigmoid and Mul."""
        (node,), like = match.nodes, match.outputs[0]
        gate = build.op("HardSigmoid", node.inputs, {"alpha": _ALPHA, "beta": 0.5}, like=like)
        return [build.op("Mul", [node.inputs[0], gate], like=like)]


class HardSigmoidFromClip(PatternRule):
    """clip(alpha * x + beta, 0, 1), or clip(x + 3, 0, 6) / 6, becomes HardSigmoid(x)."""

    name = "fuse-hardsigmoid"
    family = "E5"
    title = "Fuse the parts of HardSigmoid"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "split-hardsigmoid"
    preconditions = "Scalar constants; the clip bounds exactly 0 and 1 (or 0 and 6, divided by 6)."
    evidence = "ORT 1.32 CPU: -34 to -41 % with E5, not absorbed."
    anchors = ("Clip", "Mul", "Div")
    min_opset = 7
    dtypes = FLOAT_OR_HALF

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Clip of an affine function, or a scaled Clip."""
        found = _affine_clip(node) if node.op_type == "Clip" else _scaled_clip(node)
        if found is None:
            return None
        source, alpha, beta, inner = found
        summary = f"{text(node.outputs[0])} = HardSigmoid({text(source)})"
        bindings = {"source": source, "alpha": alpha, "beta": beta}
        nodes = (*inner, node)
        return Match(nodes, (node.outputs[0],), bindings, "", summary, 0, constants_of(nodes))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One HardSigmoid."""
        attributes = {"alpha": match["alpha"], "beta": match["beta"]}
        return [build.op("HardSigmoid", [match["source"]], attributes, like=match.outputs[0])]


class SplitHardSigmoid(PatternRule):
    """HardSigmoid(x) becomes clip(alpha * x + beta, 0, 1)."""

    name = "split-hardsigmoid"
    family = "E5"
    title = "HardSigmoid to Clip"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "fuse-hardsigmoid"
    preconditions = "None."
    evidence = "The reverse of E5."
    anchors = ("HardSigmoid",)
    min_opset = 7
    dtypes = FLOAT_OR_HALF

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """Any HardSigmoid."""
        element = element_bytes(node.outputs[0])
        summary = f"{text(node.outputs[0])} becomes Mul, Add and Clip"
        size = (4 if context.opset >= 11 else 2) * element
        return Match((node,), (node.outputs[0],), summary=summary, new_bytes=size)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Mul, Add, Clip."""
        (node,), like = match.nodes, match.outputs[0]
        dtype = (like.dtype or ir.DataType.FLOAT).numpy()
        alpha, beta = node.attributes.get_float("alpha", 0.2), node.attributes.get_float("beta", 0.5)
        value = build.op("Mul", [node.inputs[0], build.constant(np.array(alpha, dtype), "alpha")], like=like)
        value = build.op("Add", [value, build.constant(np.array(beta, dtype), "beta")], like=like)
        return [clip(value, 0.0, 1.0, like, build)]


def _hardswish_nodes(node: ir.Node) -> tuple[ir.Value, tuple[ir.Node, ...]] | None:
    """(x, inner nodes) if ``node`` ends a HardSwish."""
    if node.op_type == "Mul":
        for gate, other in both_orders(node):
            found = _gate(gate)
            if found is not None and found[0] is other:
                return found
            scaled = _scaled_source(gate, other)
            if scaled is not None:
                return scaled
    return _scaled_product(node)


def _scaled_source(value: ir.Value, other: ir.Value) -> tuple[ir.Value, tuple[ir.Node, ...]] | None:
    """(x / 6) * clip(x + 3, 0, 6), given the two factors."""
    found, scale = _shifted_clip(value, 3.0, 6.0), producer(other, "Mul", "Div")
    source = None if scale is None else _divided_by_six(scale)
    if found is None or scale is None or source is not found[0]:
        return None
    return found[0], (scale, *found[1])


def _gate(value: ir.Value) -> tuple[ir.Value, tuple[ir.Node, ...]] | None:
    """(x, nodes) if ``value`` is HardSigmoid(x) with alpha 1/6 and beta 1/2, in one node or several."""
    node = source_of(value)
    if node is None:
        return None
    if node.op_type == "HardSigmoid":
        alpha, beta = node.attributes.get_float("alpha", 0.2), node.attributes.get_float("beta", 0.5)
        fits = close(alpha, _ALPHA) and close(beta, 0.5)
        return (node.inputs[0], (node,)) if fits and node.inputs[0] is not None else None
    found = _scaled_clip(node)
    return None if found is None else (found[0], (*found[3], node))


def _scaled_product(node: ir.Node) -> tuple[ir.Value, tuple[ir.Node, ...]] | None:
    """(x * clip(x + 3, 0, 6)) / 6, or times 1/6."""
    value = _divided_by_six(node)
    product = producer(value, "Mul")
    if product is None:
        return None
    for inner, other in both_orders(product):
        found = _shifted_clip(inner, 3.0, 6.0)
        if found is not None and found[0] is other:
            return found[0], (*found[1], product)
    return None


def _scaled_clip(node: ir.Node) -> tuple[ir.Value, float, float, tuple[ir.Node, ...]] | None:
    """clip(x + 3, 0, 6) / 6 as (x, alpha, beta, inner nodes)."""
    value = _divided_by_six(node)
    found = None if value is None else _shifted_clip(value, 3.0, 6.0)
    return None if found is None else (found[0], _ALPHA, 0.5, found[1])


def _divided_by_six(node: ir.Node) -> ir.Value | None:
    found = factor_of(node)
    return found[0] if found is not None and close(found[1], _ALPHA, node.outputs[0].dtype) else None


def _shifted_clip(value: ir.Value, shift: float, high: float) -> tuple[ir.Value, tuple[ir.Node, ...]] | None:
    clip_node = producer(value, "Clip")
    add = None if clip_node is None else producer(clip_node.inputs[0], "Add")
    shifted = None if add is None else number_beside(add)
    if clip_node is None or add is None or shifted is None or shifted[1] != shift:
        return None
    try:
        bounds = clip_bounds(clip_node)
    except Refusal:
        return None
    return (shifted[0], (add, clip_node)) if bounds == (0.0, high) else None


def _affine_clip(node: ir.Node) -> tuple[ir.Value, float, float, tuple[ir.Node, ...]] | None:
    """clip(alpha * x + beta, 0, 1) as (x, alpha, beta, inner nodes)."""
    add = producer(operand(node, 0), "Add")
    shifted = None if add is None else number_beside(add)
    mul = None if shifted is None else producer(shifted[0], "Mul")
    scaled = None if mul is None else number_beside(mul)
    if add is None or shifted is None or mul is None or scaled is None:
        return None
    bounds = clip_bounds(node)
    refuse_unless(bounds == (0.0, 1.0), f"the bounds of Clip are {bounds}, not 0 and 1", add, mul)
    return scaled[0], scaled[1], shifted[1], (mul, add)


RULES = (HardSwishFromParts(), SplitHardSwish(), HardSigmoidFromClip(), SplitHardSigmoid())
