"""Does an operand enlarge the result of an element-wise operator? Proved from shapes, never assumed."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from explorer.rewrite.context import dim, rank, same_shape, shape_of

UNARY = frozenset(
    """Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Cast Ceil Celu Clip Cos Cosh Elu Erf Exp Floor Gelu
    HardSigmoid HardSwish IsInf IsNaN LeakyRelu Log Mish Neg Not Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin
    Sinh Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu""".split()
)
BINARY = frozenset(
    """Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Mod Mul Or
    Pow Sub Xor""".split()
)
VARIADIC = frozenset({"Max", "Mean", "Min", "Sum"})
BROADCASTING = BINARY | VARIADIC | {"Where"}


def enlarges(operand: ir.Value, other: ir.Value) -> bool:
    """Whether ``operand`` may broadcast ``other`` to a larger shape (True where that is not known)."""
    size, room = rank(operand), rank(other)
    if size == 0:
        return False
    if size is None or room is None or size > room:
        return True
    return any(dim(operand, a) != 1 and not _equal(operand, other, a) for a in range(-size, 0))


def _equal(a: ir.Value, b: ir.Value, axis: int) -> bool:
    size = dim(a, axis)
    return size is not None and size == dim(b, axis)


def results_in(operands: Sequence[ir.Value], result: ir.Value) -> bool:
    """Whether these operands provably broadcast to the shape ``result`` has.

    They are parts of larger operands of which ``result`` is the broadcast: no dim of theirs can exceed it.
    """
    dims, ranks = shape_of(result), [rank(operand) for operand in operands]
    if dims is None or None in ranks or max(r for r in ranks if r is not None) != len(dims):
        return False
    for axis in range(-len(dims), 0):
        sizes = [dim(operand, axis) if -axis <= (rank(operand) or 0) else 1 for operand in operands]
        if dims[axis] is None or dims[axis] not in sizes:
            return False
    return True


def keeps_shape(operand: ir.Value, other: ir.Value, result: ir.Value) -> bool:
    """Whether ``result``, computed from both, provably has the shape of ``other``."""
    return same_shape(other, result) or not enlarges(operand, other)
