"""Family A: operands that change nothing (x + 0, x * 1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import onnx_ir as ir

from explorer.rewrite.context import Context, is_const, operand, shape_of, text, uniform
from explorer.rewrite.rule import Match, NumericClass, refuse_unless
from explorer.rewrite.rules.broadcasting import keeps_shape
from explorer.rewrite.rules.elimination import ABSORBED, Bypass, bypass


class _NeutralOperand(Bypass):
    """Base: a constant whose elements all have the neutral value, at a place where it is neutral."""

    evidence = (
        f"{ABSORBED} onnxruntime#27976 and onnx/optimizer#285: wrong where the constant enlarges the result."
    )
    min_opset = 7
    neutral: ClassVar[Mapping[str, tuple[float, tuple[int, ...]]]]  # operator: value, positions

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A node one of whose operands has no effect."""
        value, positions = self.neutral[node.op_type]
        for position in positions:
            constant, other = operand(node, position), operand(node, 1 - position)
            if constant is None or other is None or is_const(other) or uniform(constant) != value:
                continue
            refuse_unless(
                keeps_shape(constant, other, node.outputs[0]),
                f"{text(constant)} of shape {_dims(constant)} may enlarge {text(other)} of shape {_dims(other)}",
            )
            return bypass(node, f"{text(node.outputs[0])} is {text(other)}", 1 - position)
        return None


class EliminateMultiplicationByOne(_NeutralOperand):
    """x * 1, x / 1 and x ^ 1 become x."""

    name = "eliminate-multiplication-by-one"
    family = "A11"
    title = "Remove multiplication by one"
    preconditions = "A constant of ones (up to 65,536 elements) that does not enlarge the result."
    anchors = ("Mul", "Div", "Pow")
    dtypes = None
    neutral: ClassVar = {"Mul": (1, (1, 0)), "Div": (1, (1,)), "Pow": (1, (1,))}


class EliminateAdditionOfZero(_NeutralOperand):
    """x + 0 and x - 0 become x."""

    name = "eliminate-addition-of-zero"
    family = "A11"
    title = "Remove addition of zero"
    numeric_class = NumericClass.REASSOCIATED
    preconditions = (
        "A constant of zeros (up to 65,536 elements) that does not enlarge the result; -0 may stay -0."
    )
    anchors = ("Add", "Sub")
    dtypes = None
    neutral: ClassVar = {"Add": (0, (1, 0)), "Sub": (0, (1,))}


class EliminateNeutralLogic(_NeutralOperand):
    """x and true, x or false, x xor false become x."""

    name = "eliminate-neutral-logic"
    family = "A11"
    title = "Remove And with true, Or with false"
    preconditions = "A uniform constant (up to 65,536 elements) that does not enlarge the result."
    anchors = ("And", "Or", "Xor")
    dtypes = frozenset({ir.DataType.BOOL})
    neutral: ClassVar = {"And": (1, (1, 0)), "Or": (0, (1, 0)), "Xor": (0, (1, 0))}


def _dims(value: ir.Value) -> str:
    dims = shape_of(value)
    return "unknown" if dims is None else "[" + ", ".join("?" if d is None else str(d) for d in dims) + "]"


RULES = (EliminateMultiplicationByOne(), EliminateAdditionOfZero(), EliminateNeutralLogic())
