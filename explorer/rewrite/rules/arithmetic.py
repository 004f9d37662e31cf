"""Family E: powers and divisions by constants as multiplications."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import Context, array, element_bytes, is_const, rank, scalar, tensor, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, refuse_unless

_LARGEST_DIVISOR = 65536  # elements; larger constants are not copied into reciprocals


class PowToMul(PatternRule):
    """Pow(x, 2) becomes x * x, Pow(x, 3) becomes x * x * x."""

    name = "pow-to-mul"
    family = "E2"
    title = "Small power to multiplications"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "mul-to-square"
    preconditions = "Constant exponent 2 or 3 with one element that does not enlarge the result."
    evidence = "ORT 1.32 CPU: -40 %, not absorbed. Hides LayerNorm and RMSNorm from ORT's own matcher."
    anchors = ("Pow",)
    min_opset = 7

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Pow with exponent 2 or 3."""
        base, exponent = node.inputs
        power = scalar(exponent)
        if power is None:
            return None
        refuse_unless(power in {2.0, 3.0}, f"the exponent is {power:g}, not 2 or 3")
        base_rank = rank(base)
        fits = base_rank is not None and (rank(exponent) or 0) <= base_rank
        refuse_unless(
            fits, f"exponent {text(exponent)} may enlarge the result: the rank of {text(base)} is {base_rank}"
        )
        summary = f"{text(node.outputs[0])} = {text(base)} multiplied by itself"
        return Match((node,), (node.outputs[0],), {"power": int(power)}, "", summary, 0, (exponent,))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One or two Mul nodes."""
        (pow_node,), like = match.nodes, match.outputs[0]
        base = pow_node.inputs[0]
        value = build.op("Mul", [base, base], like=like)
        return [value if match["power"] == 2 else build.op("Mul", [value, base], like=like)]


class MulToSquare(PatternRule):
    """x * x becomes Pow(x, 2)."""

    name = "mul-to-square"
    family = "E2"
    title = "Square to Pow"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "pow-to-mul"
    preconditions = "Both operands are the same tensor."
    evidence = "Slower by itself; makes hand-written norms visible to ORT's matcher (F1)."
    anchors = ("Mul",)
    min_opset = 12

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Mul of a tensor with itself."""
        a, b = node.inputs
        if a is not b or a is None:
            return None
        summary, size = f"{text(node.outputs[0])} = {text(a)} squared", element_bytes(a)
        return Match((node,), (node.outputs[0],), summary=summary, new_bytes=size)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """A Pow with a scalar exponent of the same type."""
        (mul,), like = match.nodes, match.outputs[0]
        dtype = (like.dtype or ir.DataType.FLOAT).numpy()
        return [build.op("Pow", [mul.inputs[0], build.constant(np.array(2, dtype=dtype), "two")], like=like)]


class DivToMul(PatternRule):
    """x / c becomes x * (1 / c)."""

    name = "div-to-mul"
    family = "E1"
    title = "Division by a constant to multiplication"
    numeric_class = NumericClass.REASSOCIATED
    preconditions = "Float; c constant, without zeros, and with finite, normal reciprocals."
    evidence = "ORT 1.32 CPU: -17 to -23 %, not absorbed."
    anchors = ("Div",)
    min_opset = 7

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Div whose divisor is constant and whose dividend is not."""
        dividend, divisor = node.inputs
        found = tensor(divisor)
        if found is None or is_const(dividend) or not found.dtype.is_floating_point():
            return None
        refuse_unless(found.size <= _LARGEST_DIVISOR, f"{text(divisor)} has {found.size} elements")
        refuse_unless(
            _invertible(array(divisor)), f"{text(divisor)} holds a zero or a value without a reciprocal"
        )
        summary = f"{text(dividend)} is multiplied by the reciprocal of {text(divisor)}"
        return Match((node,), (node.outputs[0],), {}, "", summary, found.nbytes, (divisor,))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """A Mul with the reciprocal, rounded once."""
        (div,), like = match.nodes, match.outputs[0]
        divisor = array(div.inputs[1])
        reciprocal = (1.0 / divisor.astype(np.float64)).astype(divisor.dtype)
        return [build.op("Mul", [div.inputs[0], build.constant(reciprocal, "reciprocal")], like=like)]


def _invertible(divisor: np.ndarray) -> bool:
    with np.errstate(all="ignore"):
        reciprocal = (1.0 / divisor.astype(np.float64)).astype(divisor.dtype)
    smallest = 1e-38 if divisor.dtype.itemsize >= 4 else 1e-4
    sizes = np.abs(reciprocal.astype(np.float64))
    return bool(np.isfinite(sizes).all() and (sizes >= smallest).all())


RULES = (PowToMul(), MulToSquare(), DivToMul())
