"""Family A: shapes that are known, and what is computed from them, become constants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from explorer.graph.shape_values import FOLLOWED, SHAPE_OPERATORS, Element, ShapeEvaluator
from explorer.rewrite.builder import Builder
from explorer.rewrite.context import (
    Context,
    constants_of,
    dim,
    exclusive,
    is_const,
    operand,
    operator,
    rank,
    readers,
    shape_of,
    text,
)
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal
from explorer.rewrite.rules.axes import reshape_target
from explorer.rewrite.walk import look_at

_INTEGERS = frozenset({ir.DataType.INT64, ir.DataType.INT32})
_WITH_OPERANDS = {"Gather", "Reshape", "Slice", "Squeeze", "Unsqueeze"}  # bounds, places, targets
_EVIDENCE = "Removes scaffolding and makes later shapes known; onnxsim#532 and #543 measure node counts."


class _ToConstant(PatternRule):
    """Base: integers that shapes decide become a constant."""

    family = "A18"
    numeric_class = NumericClass.EXACT
    evidence = _EVIDENCE
    dtypes = _INTEGERS

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """A constant of the same type and rank."""
        (old,) = match.outputs
        elements = np.array(match["elements"], dtype=(old.dtype or ir.DataType.INT64).numpy())
        shaped = elements.reshape(()) if match["rank"] == 0 else elements
        return [build.constant(shaped, f"{old.name}_value")]


class FoldShape(_ToConstant):
    """Shape(x) and Size(x) become constants."""

    name = "fold-shape"
    title = "Shape or Size of static dims to constant"
    preconditions = "All dims that are asked for are static (start and end are honoured)."
    anchors = SHAPE_OPERATORS

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Shape or Size whose answer is known."""
        found = ShapeEvaluator().value_of(node.outputs[0])
        if found is None or not found.is_known:
            raise Refusal(f"not all dims of {text(node.inputs[0])} are static")
        summary = f"{text(node.outputs[0])} is always {list(found.elements)}"
        bindings = {"elements": found.elements, "rank": found.rank}
        size = 8 * len(found.elements)
        return Match((node,), (node.outputs[0],), bindings, "", summary, size, constants_of([node]))


class FoldShapeArithmetic(_ToConstant):
    """Integers computed from static dims (of a tensor that may have dynamic ones) become constants."""

    name = "fold-shape-arithmetic"
    title = "Arithmetic on static dims to constant"
    preconditions = (
        "The result is a vector or scalar of integers that follow from static dims through Gather, Slice, Concat, "
        "casts, Squeeze, Unsqueeze, Reshape and integer arithmetic; offered where other nodes read it."
    )
    anchors = tuple(sorted(FOLLOWED - {*SHAPE_OPERATORS, "Flatten"}))

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """The end of a piece of shape arithmetic."""
        if node.outputs[0].dtype not in _INTEGERS or (rank(node.outputs[0]) or 0) > 1 or not _is_end(node):
            return None
        evaluator = ShapeEvaluator()
        found = evaluator.value_of(node.outputs[0])
        look_at(evaluator.nodes)
        visited = sorted(evaluator.nodes, key=context.position.__getitem__, reverse=True)
        if found is None or not any(n.op_type in SHAPE_OPERATORS for n in visited):
            return None
        if not found.is_known:
            symbols = [element for element in found.elements if not isinstance(element, int)]
            raise Refusal(f"{text(node.outputs[0])} depends on dynamic dims {symbols}")
        nodes = (*exclusive(visited[1:], node), node)
        summary = f"{text(node.outputs[0])} is always {list(found.elements)}"
        bindings = {"elements": found.elements, "rank": found.rank}
        size = (node.outputs[0].dtype or ir.DataType.INT64).bitwidth // 8 * len(found.elements)
        return Match(nodes, (node.outputs[0],), bindings, "", summary, size, constants_of(nodes))


class ConstantReshapeTarget(PatternRule):
    """Reshape(x, computed shape) becomes Reshape(x, constant), with 0 or -1 for a dynamic dim."""

    name = "constant-reshape-target"
    family = "A18"
    title = "Computed Reshape target to constant"
    numeric_class = NumericClass.EXACT
    preconditions = "Every dim of the target is static, the same dim of x, or the only other dynamic one (which becomes -1)."
    evidence = f"{_EVIDENCE} onnxscript#2736."
    anchors = ("Reshape",)
    min_opset = 5
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Reshape whose target is computed."""
        target = operand(node, 1)
        if target is None or is_const(target):
            return None
        evaluator = ShapeEvaluator()
        found = evaluator.value_of(target)
        look_at(evaluator.nodes)
        result = _result_dims(node, found.elements if found is not None else None)
        if result is None:
            raise Refusal(f"the rank of {text(node.outputs[0])} is unknown")
        constant = reshape_target(result, shape_of(operand(node, 0)))
        if constant is None:
            dynamic = [axis for axis, size in enumerate(result) if not isinstance(size, int)]
            raise Refusal(f"dims {dynamic} of {text(node.outputs[0])} are dynamic, only one can be inferred")
        visited = sorted(evaluator.nodes, key=context.position.__getitem__, reverse=True)
        nodes = (*exclusive(visited, node), node)
        drops = constants_of(nodes[:-1])
        summary = f"{text(node.outputs[0])} is reshaped to {list(constant)}"
        bindings = {"target": constant}
        return Match(nodes, (node.outputs[0],), bindings, "", summary, 8 * len(constant), drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The same Reshape with a constant target."""
        source = match.nodes[-1].inputs[0]
        return [build.op("Reshape", [source, build.ints(match["target"], "shape")], like=match.outputs[0])]


def _result_dims(node: ir.Node, elements: Sequence[Element] | None) -> list[Element] | None:
    """What is known about the dims of a Reshape's result, from its target and from shape inference."""
    inferred = shape_of(node.outputs[0])
    if elements is None:
        return None if inferred is None else list(inferred)
    result: list[Element] = []
    for axis, element in enumerate(elements):
        known = inferred[axis] if inferred is not None and axis < len(inferred) else None
        copied = element == 0 and not node.attributes.get_int("allowzero", 0)
        own = dim(operand(node, 0), axis) if copied else None if element == -1 else element
        result.append(known if isinstance(known, int) or own is None else own)
    return result


def _is_end(node: ir.Node) -> bool:
    """Whether something reads the result that is not itself a constant of this kind."""
    result = node.outputs[0]
    return result.is_graph_output() or any(not _is_foldable(reader, result) for reader in readers(result))


def _is_foldable(reader: ir.Node, value: ir.Value) -> bool:
    """Whether a reader computes another known value from this one, rather than using it for something else."""
    if operator(reader) not in FOLLOWED or (
        value is not reader.inputs[0] and operator(reader) in _WITH_OPERANDS
    ):
        return False
    evaluator = ShapeEvaluator()
    found = evaluator.value_of(reader.outputs[0])
    look_at(evaluator.nodes)
    return found is not None and found.is_known


RULES = (FoldShape(), FoldShapeArithmetic(), ConstantReshapeTarget())
