"""Family G: transposes moved through element-wise operators of several operands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import Context, array, is_const, nbytes, producer, rank, shape_of, tensor, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal
from explorer.rewrite.rules.axes import inverse_of, is_identity, perm_of, permuted
from explorer.rewrite.rules.broadcasting import BROADCASTING
from explorer.rewrite.rules.transposes import transposed

_EVIDENCE = "ONNX Runtime's transpose optimiser does most of it."


class SinkTransposeThroughBinary(PatternRule):
    """f(Transpose(x), Transpose(y)) becomes Transpose(f(x, y))."""

    name = "sink-transpose-through-binary"
    family = "G2"
    title = "Move transposes below an element-wise operator"
    numeric_class = NumericClass.EXACT
    inverse = "hoist-transpose-through-binary"
    preconditions = (
        "All operands are transposed by the same permutation, or constant (then laid out anew at full rank), or "
        "have one element; the transposes read by nothing else."
    )
    evidence = _EVIDENCE
    anchors = tuple(sorted(BROADCASTING))
    min_opset = 7
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """An element-wise node with a transposed operand."""
        values = [value for value in node.inputs if value is not None]
        found = {value: producer(value, "Transpose") for value in values}
        transposes = tuple(dict.fromkeys(t for t in found.values() if t is not None))
        if not transposes or len(values) < 2:
            return None
        perm = perm_of(transposes[0])
        if perm is None or any(perm_of(t) != perm for t in transposes):
            raise Refusal("the operands are transposed in different ways", transposes)
        if is_identity(perm):
            return None
        refuse_chained(transposes)
        others = [value for value in values if found[value] is None]
        _refuse_untransposed(others, len(perm), transposes)
        summary = f"{node.op_type} is applied before its operands are transposed"
        bindings = {"node": node, "back": inverse_of(perm)}
        relaid = [value for value in dict.fromkeys(others) if not stays(value)]
        size = sum(map(nbytes, relaid))
        return Match((*transposes, node), (node.outputs[0],), bindings, "", summary, size, tuple(relaid))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The function of the untransposed operands, then one Transpose."""
        node, result = match["node"], match.outputs[0]
        made: dict[ir.Value, ir.Value] = {}
        operands = []
        for value in node.inputs:
            transpose = producer(value, "Transpose")
            operands.append(
                transpose.inputs[0] if transpose is not None else laid_out(value, match["back"], build, made)
            )
        shape = permuted(shape_of(result), match["back"])
        value = build.op(node.op_type, operands, attributes_of(node), dtype=result.dtype, shape=shape)
        return [build.op("Transpose", [value], attributes_of(match.nodes[0]), like=result)]


def refuse_chained(transposes: Sequence[ir.Node]) -> None:
    """A transpose that another one reads cannot be taken away together with it."""
    for transpose in transposes:
        if producer(transpose.inputs[0], "Transpose") in transposes:
            raise Refusal(f"{text(transpose.inputs[0])} is transposed once more", tuple(transposes))


class HoistTransposeThroughBinary(PatternRule):
    """Transpose(f(x, y)) becomes f(Transpose(x), Transpose(y))."""

    name = "hoist-transpose-through-binary"
    family = "G2"
    title = "Move Transpose above an element-wise operator"
    numeric_class = NumericClass.EXACT
    inverse = "sink-transpose-through-binary"
    preconditions = "Every operand has the rank of the result, or is constant, or a scalar; the operator is read by the Transpose only."
    evidence = _EVIDENCE
    anchors = ("Transpose",)
    min_opset = 7
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Transpose of an element-wise node's result."""
        inner, perm = producer(node.inputs[0], *BROADCASTING), perm_of(node)
        if inner is None or perm is None or is_identity(perm) or len(inner.inputs) < 2:
            return None
        values = [value for value in inner.inputs if value is not None]
        for value in values:
            fits = is_const(value) or rank(value) in {0, len(perm)}
            if not fits:
                raise Refusal(f"{text(value)} has rank {rank(value)}, not {len(perm)}", (inner,))
        if all(is_const(value) for value in values):
            return None
        relaid = [value for value in dict.fromkeys(values) if is_const(value) and not stays(value)]
        summary = f"{inner.op_type} is applied after its operands are transposed"
        bindings = {"perm": perm, "inner": inner}
        size = sum(nbytes(value) for value in relaid)
        return Match((inner, node), (node.outputs[0],), bindings, "", summary, size, tuple(relaid))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """A Transpose per operand, then the function."""
        inner, perm = match["inner"], match["perm"]
        made: dict[ir.Value, ir.Value] = {}
        for value in inner.inputs:
            if not is_const(value) and rank(value) and value not in made:
                made[value] = transposed(value, perm, build, match.nodes[-1])
        operands = [laid_out(value, perm, build, made) for value in inner.inputs]
        return [build.op(inner.op_type, operands, attributes_of(inner), like=match.outputs[0])]


def _refuse_untransposed(values: Sequence[ir.Value], size: int, transposes: tuple[ir.Node, ...]) -> None:
    for value in values:
        if not is_const(value) and rank(value) != 0:
            raise Refusal(f"{text(value)} is neither transposed nor constant", transposes)
        if (rank(value) or 0) > size:
            raise Refusal(f"{text(value)} has rank {rank(value)}, more than {size}", transposes)


def stays(value: ir.Value) -> bool:
    """Whether an operand is the same in every layout: one element."""
    found = tensor(value)
    return rank(value) == 0 or (found is not None and found.size == 1)


def laid_out(
    value: ir.Value, perm: Sequence[int], build: Builder, made: dict[ir.Value, ir.Value]
) -> ir.Value:
    """A constant with its axes permuted; one per operand in ``made``.

    Leading ones are left out, unless the constant has the full rank and a leading one already.
    """
    if value in made or stays(value):
        return made.get(value, value)
    elements = array(value)
    full = elements.reshape((1,) * (len(perm) - elements.ndim) + elements.shape)
    moved = np.transpose(full, perm)
    keeps_ones = elements.ndim == len(perm) and elements.shape[0] == 1
    while not keeps_ones and moved.ndim and moved.shape[0] == 1:
        moved = moved[0]
    made[value] = build.constant(np.ascontiguousarray(moved), f"{value.name or 'operand'}_transposed")
    return made[value]


RULES = (SinkTransposeThroughBinary(), HoistTransposeThroughBinary())
