"""Family B: the 1 / sqrt(d) of attention folded into the query or key projection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import Context, dim, is_const, operand, operator, producer, rank, text
from explorer.rewrite.legality import describe_node
from explorer.rewrite.rule import Match, NumericClass, Refusal, Rule
from explorer.rewrite.rules.linear import CONVOLUTIONS, PRODUCTS, Linear, linear_before
from explorer.rewrite.rules.patterns import factor_of, is_last_axis, single_use
from explorer.rewrite.rules.siblings import split_sizes
from explorer.rewrite.walk import source_of

_MOVES = ("Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Identity")
_MOST_HOPS = 4


@dataclass(frozen=True)
class _Path:
    """How a value comes out of a projection: data movement, perhaps one part of a Split over its columns."""

    value: ir.Value
    hops: int = 0
    part: tuple[int, int] | None = None  # first column and number of columns


class FoldAttentionScale(Rule):
    """(q @ k) * c, or q * c, becomes a query (or key) projection with weight and bias times c."""

    name = "fold-attention-scale"
    family = "B7"
    title = "Fold the attention scale into a projection"
    numeric_class = NumericClass.REASSOCIATED
    preconditions = (
        "The scale is one number, applied to the scores before the mask or to the query or key itself; only Reshape, "
        "Transpose, Squeeze, Unsqueeze and a Split over the columns lie between the projection and it, each read by "
        "nothing else; weight and bias of the projection constant."
    )
    evidence = "Removes one pass over heads x length x length; ORT makes FusedMatMul(alpha) of it anyway."
    anchors = ("Mul", "Div")
    adds_dependencies = False
    min_opset = 7

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """The projection of either operand of the scores, or of the scaled tensor itself."""
        found = factor_of(node)
        if found is None or not single_use(found[0]):
            return
        source, factor = found
        for variant, start, is_scores in _starts(source):
            try:
                reached = _projection(_Path(start), at_least=0 if is_scores else 1, explain=is_scores)
            except Refusal as refusal:
                yield refusal
                continue
            if reached is not None:
                yield _match(node, source, factor, variant, *reached)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The projection with scaled columns; what was scaled takes the place of the product."""
        linear, path, factor = match["linear"], match["path"], match["factor"]
        columns = np.full(linear.outputs, 1.0 if path.part else factor)
        if path.part:
            columns[path.part[0] : sum(path.part)] = factor
        bias = None if linear.bias is None else linear.bias_vector() * columns
        weight = linear.scaled_outputs(columns)
        projected = linear.emit(linear.node.inputs[0], build, match.outputs[0], weight=weight, bias=bias)
        return [projected, match["source"]]


def _match(
    node: ir.Node, source: ir.Value, factor: float, variant: str, linear: Linear, path: _Path
) -> Match:
    summary = f"{text(node.outputs[0])}: the factor {factor:g} moves into weight {text(linear.weight)}"
    bindings = {"linear": linear, "path": path, "factor": factor, "source": source}
    size = linear.new_bytes(weight=True, bias=linear.bias is not None)
    drops = (*linear.constants, *(value for value in node.inputs if is_const(value)))
    outputs = (linear.output, node.outputs[0])
    return Match((*linear.nodes, node), outputs, bindings, variant, summary, size, drops)


def _starts(source: ir.Value) -> Iterator[tuple[str, ir.Value, bool]]:
    """(variant, where the walk starts, whether it is an operand of the scores)."""
    scores = producer(source, "MatMul")
    if scores is None:
        yield "", source, False
        return
    operands = [value for value in scores.inputs if value is not None]
    if len(operands) == 2 and not any(map(is_const, operands)) and operands[0] is not operands[1]:
        yield "left", operands[0], True
        yield "right", operands[1], True


def _projection(path: _Path, *, at_least: int, explain: bool) -> tuple[Linear, _Path] | None:
    """Walk up through data movement to a linear node; None or a Refusal if something else comes."""
    problem, node = "", source_of(path.value)
    while node is not None and path.hops <= _MOST_HOPS:
        if not single_use(path.value):
            problem = f"{text(path.value)} is read by more than the scaled product"
            break
        operators = PRODUCTS if path.part else (*PRODUCTS, *CONVOLUTIONS)
        linear = linear_before(path.value, operators, path.value.graph)
        if linear is not None:
            return _finish(linear, path) if path.hops >= at_least else None
        step = _step(path, node)
        if step is None:
            problem = f"between the projection and the product lies {describe_node(node)}"
            break
        path, node = step, source_of(step.value)
    if problem and explain and node is not None:
        raise Refusal(problem, (node,))
    return None


def _step(path: _Path, node: ir.Node) -> _Path | None:
    """One node further up, or None if it is no data movement the scale can pass."""
    source = operand(node, 0)
    if source is None:
        return None
    if path.part is None and operator(node) == "Split":
        return _through_split(path, node, source)
    if operator(node) not in _MOVES or (path.part is not None and not _keeps_columns(node, source)):
        return None
    return replace(path, value=source, hops=path.hops + 1)


def _through_split(path: _Path, split: ir.Node, source: ir.Value) -> _Path | None:
    columns = dim(source, -1)
    sizes = split_sizes(split, columns) if isinstance(columns, int) else None
    if sizes is None or not is_last_axis(split.attributes.get_int("axis", 0), source):
        return None
    position = path.value.index() or 0
    return _Path(source, path.hops + 1, (sum(sizes[:position]), sizes[position]))


def _keeps_columns(node: ir.Node, source: ir.Value) -> bool:
    size = dim(source, -1)
    return operator(node) == "Reshape" and isinstance(size, int) and dim(node.outputs[0], -1) == size


def _finish(linear: Linear, path: _Path) -> tuple[Linear, _Path] | None:
    if path.part is not None and dim(path.value, -1) != linear.outputs:
        return None
    known = rank(linear.output) is not None and linear.output.shape is not None
    return (linear, path) if known else None


RULES = (FoldAttentionScale(),)
