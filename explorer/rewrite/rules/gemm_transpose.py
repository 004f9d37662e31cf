"""Family D: transpositions inside and in front of Gemm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import Context, array, is_const, nbytes, operand, producer, rank, text
from explorer.rewrite.rule import Match, NumericClass, Refusal, Rule
from explorer.rewrite.rules.axes import perm_of
from explorer.rewrite.rules.patterns import absorbed

_FLAGS = ("transA", "transB")
_NEUTRAL = "ORT 1.32 CPU: -1 to +5 %, noise: ORT packs constant operands itself."


def _is_set(gemm: ir.Node, position: int) -> bool:
    return bool(gemm.attributes.get_int(_FLAGS[position], 0))


def _with_operand(
    gemm: ir.Node, position: int, value: ir.Value | None, like: ir.Value, build: Builder
) -> ir.Value:
    """The same Gemm with another operand and its transposition flag flipped."""
    inputs = list(gemm.inputs)
    inputs[position] = value
    flag = {_FLAGS[position]: None if _is_set(gemm, position) else 1}
    return build.op("Gemm", inputs, attributes_of(gemm, **flag), like=like)


class _StoreOperand(Rule):
    """A constant Gemm operand is stored transposed and the flag is flipped."""

    numeric_class = NumericClass.REASSOCIATED
    anchors = ("Gemm",)
    transposed: bool  # the flag that is looked for

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """One match per constant operand whose flag has the wanted value."""
        for position, flag in enumerate(_FLAGS):
            value = operand(node, position)
            if not is_const(value) or _is_set(node, position) is not self.transposed:
                continue
            summary = f"{text(value)} is stored transposed, {flag} becomes {int(not self.transposed)}"
            bindings = {"position": position}
            yield Match((node,), (node.outputs[0],), bindings, flag, summary, nbytes(value), (value,))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The Gemm with a transposed copy of its operand."""
        (gemm,), position = match.nodes, match["position"]
        old = gemm.inputs[position]
        name = old.name if old is not None else "weight"
        stored = build.constant(np.ascontiguousarray(array(old).T), f"{name}_t")
        return [_with_operand(gemm, position, stored, match.outputs[0], build)]


class StoreGemmOperandPlain(_StoreOperand):
    """transA / transB = 1 on a constant becomes a pre-transposed constant."""

    name = "pretranspose-gemm-weight"
    family = "D2"
    title = "Store a transposed Gemm weight as it is used"
    inverse = "store-gemm-weight-transposed"
    preconditions = "The operand is constant; other readers keep the old copy."
    evidence = _NEUTRAL
    transposed = True


class StoreGemmOperandTransposed(_StoreOperand):
    """A constant operand is stored transposed and transA / transB becomes 1."""

    name = "store-gemm-weight-transposed"
    family = "D2"
    title = "Store a Gemm weight transposed"
    inverse = "pretranspose-gemm-weight"
    preconditions = "The operand is constant; other readers keep the old copy."
    evidence = _NEUTRAL
    transposed = False


class FuseTransposeIntoGemm(Rule):
    """Gemm(Transpose(A), B) becomes Gemm(A, B, transA=1), and the same for B."""

    name = "fuse-transpose-into-gemm"
    family = "D3"
    title = "Fuse Transpose into Gemm"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "split-transpose-from-gemm"
    preconditions = "The Transpose has perm [1, 0]; it stays if something else reads it."
    evidence = "ORT's own pass at BASIC and above does it; saves one pass over the operand at DISABLE."
    anchors = ("Gemm",)

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """One match per transposed operand."""
        for position, flag in enumerate(_FLAGS):
            transpose = producer(operand(node, position), "Transpose")
            if transpose is None:
                continue
            if perm_of(transpose) != (1, 0):
                perm = list(perm_of(transpose) or ())
                yield Refusal(
                    f"the perm {perm} of the Transpose does not swap rows and columns", (transpose,)
                )
                continue
            summary = f"{text(transpose.outputs[0])} is read untransposed, {flag} is flipped"
            nodes, bindings = (*absorbed(transpose), node), {"position": position, "transpose": transpose}
            yield Match(nodes, (node.outputs[0],), bindings, flag, summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Gemm."""
        gemm, source = match.nodes[-1], match["transpose"].inputs[0]
        return [_with_operand(gemm, match["position"], source, match.outputs[0], build)]


class SplitTransposeFromGemm(Rule):
    """Gemm(A, B, transA=1) becomes Gemm(Transpose(A), B)."""

    name = "split-transpose-from-gemm"
    family = "D3"
    title = "Transpose a Gemm operand in a node of its own"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "fuse-transpose-into-gemm"
    preconditions = "The operand is not constant (D2 stores constants transposed)."
    evidence = "The reverse of D3; lets a Transpose move on or cancel."
    anchors = ("Gemm",)

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """One match per flag on a computed operand."""
        for position, flag in enumerate(_FLAGS):
            value = operand(node, position)
            if _is_set(node, position) and value is not None and not is_const(value):
                summary = f"{text(value)} is transposed by a node of its own"
                yield Match((node,), (node.outputs[0],), {"position": position}, flag, summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Transpose, then Gemm."""
        (gemm,), position = match.nodes, match["position"]
        turned = build.op(
            "Transpose", [gemm.inputs[position]], {"perm": (1, 0)}, dtype=match.outputs[0].dtype
        )
        return [_with_operand(gemm, position, turned, match.outputs[0], build)]


class MatMulTransposeToGemm(Rule):
    """MatMul(Transpose(A), B) of matrices becomes Gemm(A, B, transA=1)."""

    name = "matmul-transpose-to-gemm"
    family = "D3"
    title = "Transpose + MatMul to Gemm"
    numeric_class = NumericClass.REASSOCIATED
    preconditions = "A and B of rank 2; the Transpose has perm [1, 0]; C may be absent (opset 11)."
    evidence = "The portable form of D3; ORT's own pass at BASIC and above fuses the Transpose."
    anchors = ("MatMul",)
    min_opset = 11

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """One match per transposed operand, and one for both."""
        found = [producer(operand(node, position), "Transpose") for position in (0, 1)]
        turned = [t if t is not None and perm_of(t) == (1, 0) else None for t in found]
        if turned == [None, None]:
            return
        for value in node.inputs:
            if rank(value) != 2:
                yield Refusal(f"{text(value)} has rank {rank(value)}, Gemm needs 2")
                return
        for positions in ((0,), (1,), (0, 1)):
            chosen = [turned[p] for p in positions]
            if all(t is not None for t in chosen):
                yield self._match(
                    node, {p: t for p, t in zip(positions, chosen, strict=True) if t is not None}
                )

    def _match(self, node: ir.Node, turned: dict[int, ir.Node]) -> Match:
        inner = absorbed(*turned.values())
        variant = "+".join(_FLAGS[p] for p in turned)
        summary = f"{text(node.outputs[0])} becomes one Gemm with {variant}"
        return Match((*inner, node), (node.outputs[0],), {"turned": turned}, variant, summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Gemm without C."""
        turned: dict[int, ir.Node] = match["turned"]
        matmul = match.nodes[-1]
        inputs = [turned[p].inputs[0] if p in turned else matmul.inputs[p] for p in (0, 1)]
        return [build.op("Gemm", inputs, {_FLAGS[p]: 1 for p in turned}, like=match.outputs[0])]


RULES = (
    StoreGemmOperandPlain(),
    StoreGemmOperandTransposed(),
    FuseTransposeIntoGemm(),
    SplitTransposeFromGemm(),
    MatMulTransposeToGemm(),
)
