"""Family G: transposes moved through operators that work along axes, by renumbering the axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import (
    Context,
    is_const,
    nbytes,
    operand,
    operator,
    producer,
    rank,
    readers,
    shape_of,
    text,
)
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal
from explorer.rewrite.rules.axes import inverse_of, is_identity, perm_of, permuted
from explorer.rewrite.rules.axis_operators import (
    REDUCTIONS,
    Parameters,
    axes_of,
    data_of,
    drops_axes,
    renumbered,
    with_axes,
)
from explorer.rewrite.rules.transpose_binary import laid_out, refuse_chained, stays
from explorer.rewrite.rules.transposes import transposed

_MOVERS = ("Concat", "Pad", "Slice", "Squeeze", "Unsqueeze")
_REDUCERS = (*REDUCTIONS, "LogSoftmax", "Softmax")
_EVIDENCE = "ONNX Runtime's transpose optimiser does most of it."


class _Sink(PatternRule):
    """Base: an operator along an axis is applied before its data are transposed."""

    family = "G3"
    evidence = _EVIDENCE
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """An operator along an axis whose data are transposed."""
        found = [producer(value, "Transpose") for value in data_of(node)]
        transposes = tuple(dict.fromkeys(t for t in found if t is not None))
        if not transposes:
            return None
        perm = perm_of(transposes[0])
        if perm is None or any(perm_of(t) != perm for t in transposes):
            raise Refusal("the operands are transposed in different ways", transposes)
        if is_identity(perm):
            return None
        refuse_chained(transposes)
        others = [v for v, t in zip(data_of(node), found, strict=True) if t is None and v is not None]
        if not all(is_const(value) for value in others):
            raise Refusal("not every operand is transposed or constant", transposes)
        parameters, result_perm = _sunk(node, perm, context)
        others = [value for value in dict.fromkeys(others) if not stays(value)]
        size = parameters.new_bytes + sum(map(nbytes, others))
        summary = f"{node.op_type} is applied before {text(transposes[0].outputs[0])} is transposed"
        bindings = {"node": node, "perm": perm, "parameters": parameters, "result_perm": result_perm}
        drops = (*others, *_dropped(node, parameters))
        return Match((*transposes, node), tuple(node.outputs), bindings, "", summary, size, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The operator on the untransposed data, then a Transpose per result."""
        node, perm, back = match["node"], match["result_perm"], inverse_of(match["result_perm"])
        made: dict[ir.Value, ir.Value] = {}
        data: list[ir.Value | None] = []
        for value in data_of(node):
            transpose = producer(value, "Transpose")
            original = None if transpose is None else transpose.inputs[0]
            data.append(
                original
                if value is None or original is not None
                else laid_out(value, inverse_of(match["perm"]), build, made)
            )
        shapes = [permuted(shape_of(value), back) for value in node.outputs]
        parameters: Parameters = match["parameters"]
        results = parameters.build(node, data, shapes, build)
        if is_identity(perm):
            return results
        return [transposed(result, perm, build, match.nodes[0]) for result in results]


class _Hoist(PatternRule):
    """Base: an operator along an axis is applied after its data are transposed."""

    family = "G3"
    evidence = _EVIDENCE
    anchors: ClassVar[tuple[str, ...]] = ("Transpose",)
    dtypes = None
    operators: ClassVar[tuple[str, ...]]

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Transpose of the result of an operator along an axis."""
        inner, perm = producer(operand(node, 0), *self.operators), perm_of(node)
        if inner is None or perm is None or is_identity(perm):
            return None
        data = [value for value in data_of(inner) if value is not None]
        if any(rank(value) is None for value in data):
            raise Refusal(f"the rank of the input of {text(inner.outputs[0])} is unknown", (inner,))
        parameters, data_perm = _hoisted(inner, perm, context)
        moved = [] if is_identity(data_perm) else list(dict.fromkeys(data))
        relaid = [value for value in moved if is_const(value) and not stays(value)]
        size = parameters.new_bytes + sum(map(nbytes, relaid))
        summary = f"{inner.op_type} is applied after {text(data[0])} is transposed"
        bindings = {"inner": inner, "parameters": parameters, "perm": data_perm}
        drops = (*relaid, *_dropped(inner, parameters))
        return Match((inner, node), (node.outputs[0],), bindings, "", summary, size, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """A Transpose per operand, then the operator."""
        inner, perm = match["inner"], match["perm"]
        made: dict[ir.Value, ir.Value] = {}
        for value in data_of(inner):
            if value is not None and value not in made:
                constant = is_const(value) and not is_identity(perm)
                made[value] = (
                    laid_out(value, perm, build, made)
                    if constant
                    else transposed(value, perm, build, match.nodes[-1])
                )
        data = [None if value is None else made[value] for value in data_of(inner)]
        parameters: Parameters = match["parameters"]
        return parameters.build(inner, data, [shape_of(match.outputs[0])], build)


class SinkTransposeThroughAxisOperator(_Sink):
    """Concat(Transpose(x), Transpose(y), axis) becomes Transpose(Concat(x, y, other axis)); also Slice, Split ..."""

    name = "sink-transpose-through-axis-operator"
    title = "Move Transpose below an operator along an axis"
    numeric_class = NumericClass.EXACT
    inverse = "hoist-transpose-through-axis-operator"
    preconditions = (
        "Concat, Split, Slice, Pad, Squeeze or Unsqueeze with constant axes; every operand of a Concat transposed "
        "alike or constant; the transposes read by nothing else."
    )
    anchors = (*_MOVERS, "Split")


class HoistTransposeThroughAxisOperator(_Hoist):
    """Transpose(Concat(x, y, axis)) becomes Concat(Transpose(x), Transpose(y), other axis); also Slice, Split ..."""

    name = "hoist-transpose-through-axis-operator"
    title = "Move Transpose above an operator along an axis"
    numeric_class = NumericClass.EXACT
    inverse = "sink-transpose-through-axis-operator"
    preconditions = (
        "Concat, Slice, Pad, Squeeze or Unsqueeze with constant axes, read by the Transpose only; or a Split whose "
        "parts are all transposed alike and read by nothing else."
    )
    anchors = ("Transpose", "Split")
    operators = _MOVERS

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Transpose of such an operator's result, or a Split all of whose parts are transposed."""
        return super().match(node, context) if node.op_type == "Transpose" else _match_split(node, context)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The transposes, then the operator."""
        if "split" not in match.bindings:
            return super().rewrite(match, build)
        split, parameters = match["split"], match["parameters"]
        whole = transposed(split.inputs[0], match["perm"], build, match.nodes[1])
        shapes = [shape_of(value) for value in match.outputs]
        return list(parameters.build(split, [whole], shapes, build))


def _match_split(node: ir.Node, context: Context) -> Match | None:
    found = [readers(value) for value in node.outputs]
    transposes = tuple(r[0] for r in found if len(r) == 1 and operator(r[0]) == "Transpose")
    if not transposes or len(transposes) != len(found):
        return None
    perm = perm_of(transposes[0])
    if perm is None or any(perm_of(t) != perm for t in transposes):
        raise Refusal("the parts are transposed in different ways", transposes)
    parameters = renumbered(node, inverse_of(perm), context)
    bindings = {"split": node, "perm": perm, "parameters": parameters}
    outputs = tuple(t.outputs[0] for t in transposes)
    summary = f"{text(node.inputs[0])} is transposed before it is split"
    return Match((node, *transposes), outputs, bindings, summary=summary)


class SinkTransposeThroughReduction(_Sink):
    """ReduceMean(Transpose(x), axes) becomes Transpose(ReduceMean(x, other axes)); also Softmax."""

    name = "sink-transpose-through-reduction"
    title = "Move Transpose below a reduction or Softmax"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "hoist-transpose-through-reduction"
    preconditions = "A reduction with constant axes, Softmax or LogSoftmax (opset 13 on); the Transpose read by nothing else."
    anchors = _REDUCERS


class HoistTransposeThroughReduction(_Hoist):
    """Transpose(ReduceMean(x, axes)) becomes ReduceMean(Transpose(x), other axes); also Softmax."""

    name = "hoist-transpose-through-reduction"
    title = "Move Transpose above a reduction or Softmax"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "sink-transpose-through-reduction"
    preconditions = (
        "A reduction with constant axes, Softmax or LogSoftmax (opset 13 on), read by the Transpose only."
    )
    operators = _REDUCERS


def _sunk(node: ir.Node, perm: Sequence[int], context: Context) -> tuple[Parameters, tuple[int, ...]]:
    """Parameters on the untransposed data, and the permutation that its result still needs."""
    if node.op_type == "Unsqueeze":
        axes = axes_of(node)
        places = [i for i in range(len(perm) + len(axes)) if i not in axes]
        result = list(range(len(perm) + len(axes)))
        for position, axis in zip(places, perm, strict=True):
            result[position] = places[axis]
        return with_axes(node, axes, context), tuple(result)
    if node.op_type == "Squeeze" or node.op_type.startswith("Reduce"):
        moved = sorted(perm[axis] for axis in axes_of(node))
        if not drops_axes(node):
            return with_axes(node, moved, context), tuple(perm)
        left = [axis for axis in range(len(perm)) if axis not in moved]
        kept = [axis for axis in perm if axis not in moved]
        return with_axes(node, moved, context), tuple(left.index(axis) for axis in kept)
    return renumbered(node, perm, context), tuple(perm)


def _hoisted(node: ir.Node, perm: Sequence[int], context: Context) -> tuple[Parameters, tuple[int, ...]]:
    """Parameters on transposed data, and how to transpose them, so that no Transpose is needed afterwards."""
    if node.op_type == "Unsqueeze":
        inserted = axes_of(node)
        axes = [i for i, axis in enumerate(perm) if axis in inserted]
        places = [i for i in range(len(perm)) if i not in inserted]
        return with_axes(node, axes, context), tuple(places.index(a) for a in perm if a not in inserted)
    if drops_axes(node):
        removed = axes_of(node)
        kept = [axis for axis in range(len(perm) + len(removed)) if axis not in removed]
        order = iter(kept[axis] for axis in perm)
        return with_axes(node, removed, context), tuple(
            axis if axis in removed else next(order) for axis in range(len(perm) + len(removed))
        )
    back = inverse_of(perm)
    if node.op_type.startswith("Reduce"):
        return with_axes(node, sorted(back[axis] for axis in axes_of(node)), context), tuple(perm)
    return renumbered(node, back, context), tuple(perm)


def _dropped(node: ir.Node, parameters: Parameters) -> tuple[ir.Value | None, ...]:
    """The parameter operands that the new operator no longer reads."""
    own = () if node.op_type == "Concat" else tuple(node.inputs[1:])
    return tuple(value for value in own if not any(value is item for item in parameters.operands))


RULES = (
    SinkTransposeThroughAxisOperator(),
    HoistTransposeThroughAxisOperator(),
    SinkTransposeThroughReduction(),
    HoistTransposeThroughReduction(),
)
