"""Family G: element-wise operators moved through Concat and Split."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import Context, operand, producer, readers, shape_of, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, refuse_unless
from explorer.rewrite.rules.elementwise import (
    UNARY_OPERATORS,
    apply_function,
    is_unary,
    same_function,
    unary_before,
)

_EVIDENCE = "In TASO's rule set; mostly neutral by itself, enables fusions on either side."


class DistributeUnaryOverConcat(PatternRule):
    """f(Concat(x, y)) becomes Concat(f(x), f(y))."""

    name = "distribute-unary-over-concat"
    family = "G5"
    title = "Apply an element-wise operator before Concat"
    numeric_class = NumericClass.EXACT
    inverse = "factor-unary-out-of-concat"
    preconditions = "An element-wise operator of one tensor; the Concat read by nothing else."
    evidence = _EVIDENCE
    anchors = tuple(sorted(UNARY_OPERATORS))
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """An element-wise node whose input is a Concat."""
        concat = producer(operand(node, 0), "Concat")
        if concat is None or not is_unary(node):
            return None
        summary = f"{node.op_type} is applied to the {len(concat.inputs)} parts of {text(node.inputs[0])}"
        return Match((concat, node), (node.outputs[0],), summary=summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The function of every part, then the Concat."""
        concat, node = match.nodes
        operands = [value for value in concat.inputs if value is not None]
        made = {v: apply_function(node, v, build, shape_of(v)) for v in dict.fromkeys(operands)}
        parts = [made[value] for value in operands]
        return [build.op("Concat", parts, attributes_of(concat), like=match.outputs[0])]


class FactorUnaryOutOfConcat(PatternRule):
    """Concat(f(x), f(y)) becomes f(Concat(x, y))."""

    name = "factor-unary-out-of-concat"
    family = "G5"
    title = "Apply an element-wise operator once, after Concat"
    numeric_class = NumericClass.EXACT
    inverse = "distribute-unary-over-concat"
    preconditions = "All parts are results of the same function, read by the Concat only."
    evidence = _EVIDENCE
    anchors = ("Concat",)
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Concat of results of one function."""
        found = [unary_before(value) for value in node.inputs]
        functions = tuple(dict.fromkeys(f for f in found if f is not None))
        if len(found) < 2 or not functions:
            return None
        first = functions[0]
        if any(f is None or f.op_type != first.op_type for f in found):
            return None
        refuse_unless(
            all(same_function(f, first) for f in functions),
            f"the parts go through {first.op_type} with different attributes or operands",
            *functions,
        )
        summary = f"{first.op_type} is applied once to {text(node.outputs[0])}"
        bindings = {"concat": node, "function": first, "parts": tuple(f.inputs[0] for f in found if f)}
        return Match((*functions, node), (node.outputs[0],), bindings, summary=summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The Concat of the operands, then the function."""
        concat, function, (result,) = match["concat"], match["function"], match.outputs
        dtype, shape = match["parts"][0].dtype, shape_of(result)
        joined = build.op("Concat", match["parts"], attributes_of(concat), dtype=dtype, shape=shape)
        return [apply_function(function, joined, build, shape)]


class DistributeUnaryOverSplit(PatternRule):
    """Split(f(x)) becomes f(Split(x)) for every part."""

    name = "distribute-unary-over-split"
    family = "G5"
    title = "Apply an element-wise operator after Split"
    numeric_class = NumericClass.EXACT
    inverse = "factor-unary-out-of-split"
    preconditions = "An element-wise operator of one tensor, read by the Split only."
    evidence = _EVIDENCE
    anchors = ("Split",)
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Split of an element-wise node's result."""
        unary = unary_before(operand(node, 0))
        if unary is None:
            return None
        summary = f"{unary.op_type} is applied to the {len(node.outputs)} parts of {text(unary.inputs[0])}"
        return Match((unary, node), tuple(node.outputs), summary=summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The Split, then the function of every part."""
        unary, split = match.nodes
        parts = _split(split, unary.inputs[0], [shape_of(value) for value in match.outputs], build)
        pairs = zip(parts, match.outputs, strict=True)
        return [apply_function(unary, part, build, shape_of(old)) for part, old in pairs]


class FactorUnaryOutOfSplit(PatternRule):
    """f of every part of Split(x) becomes Split(f(x))."""

    name = "factor-unary-out-of-split"
    family = "G5"
    title = "Apply an element-wise operator once, before Split"
    numeric_class = NumericClass.EXACT
    inverse = "distribute-unary-over-split"
    preconditions = "Every part is read by the same function and by nothing else."
    evidence = _EVIDENCE
    anchors = ("Split",)
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Split all of whose parts go through one function."""
        found = [readers(value) for value in node.outputs]
        functions = [r[0] for r in found if len(r) == 1 and is_unary(r[0]) and r[0].graph is node.graph]
        if len(functions) != len(found) or len(found) < 2:
            return None
        first = functions[0]
        if any(f.op_type != first.op_type for f in functions):
            return None
        if not all(same_function(f, first) for f in functions):
            reason = f"the parts go through {first.op_type} with different attributes or operands"
            raise Refusal(reason, functions)
        summary = f"{first.op_type} is applied once to {text(node.inputs[0])}"
        outputs = tuple(f.outputs[0] for f in functions)
        return Match((node, *functions), outputs, {"function": first}, summary=summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The function, then the Split."""
        split, source = match.nodes[0], match.nodes[0].inputs[0]
        value = apply_function(match["function"], source, build, shape_of(source))  # type: ignore[arg-type] # a Split has an input
        return _split(split, value, [shape_of(value) for value in match.outputs], build)


def _split(
    node: ir.Node,
    value: ir.Value | None,
    shapes: Sequence[tuple[int | str | None, ...] | None],
    build: Builder,
) -> tuple[ir.Value, ...]:
    """The same Split of another tensor."""
    parts = build.ops("Split", [value, *node.inputs[1:]], attributes_of(node), outputs=len(shapes))
    for part, shape in zip(parts, shapes, strict=True):
        part.shape = None if shape is None else ir.Shape(shape)
        part.type = None if value is None else value.type
    return parts


RULES = (
    DistributeUnaryOverConcat(),
    FactorUnaryOutOfConcat(),
    DistributeUnaryOverSplit(),
    FactorUnaryOutOfSplit(),
)
