"""Family D: MatMul with its transpositions or its scale as com.microsoft FusedMatMul, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from explorer.rewrite.builder import MICROSOFT, Builder, attributes_of
from explorer.rewrite.context import Context, element_bytes, operand, producer, rank, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, Rule, refuse_unless
from explorer.rewrite.rules.patterns import (
    FLOAT_OR_DOUBLE,
    absorbed,
    factor_of,
    is_float32,
    last_two_swapped,
    number_like,
    swaps_last_two,
)
from explorer.rewrite.walk import uses_of

FUSED = "com.microsoft::FusedMatMul"
_FLAGS = ("transA", "transB")
_BATCH_FLAGS = ("transBatchA", "transBatchB")


def product(
    inputs: Sequence[ir.Value | None], attributes: dict[str, object], like: ir.Value, build: Builder
) -> ir.Value:
    """A FusedMatMul, or a plain MatMul if all attributes have their default."""
    kept = {k: v for k, v in attributes.items() if v != (1.0 if k == "alpha" else 0)}
    if not kept:
        return build.op("MatMul", inputs, like=like)
    return build.op("FusedMatMul", inputs, kept, like=like, domain=MICROSOFT)


def alpha_of(node: ir.Node) -> float:
    """The scale of a product; 1 for MatMul."""
    return float(node.attributes.get_float("alpha", 1.0) or 0.0)


class FuseTransposeIntoMatMul(Rule):
    """MatMul(A, Transpose(B)) becomes FusedMatMul(A, B, transB=1)."""

    name = "fuse-transpose-into-matmul"
    family = "D3"
    title = "Fuse Transpose into MatMul (FusedMatMul)"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "split-transpose-from-matmul"
    preconditions = (
        "float or double; the Transpose swaps the last two axes and nothing else; it stays if something else "
        "reads it. The result is not portable (com.microsoft)."
    )
    evidence = "ORT's own pass at BASIC and above does it: absorbed at ALL."
    anchors = ("MatMul", FUSED)
    portable = False
    dtypes = FLOAT_OR_DOUBLE

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """One match per operand that is a Transpose."""
        if any(node.attributes.get_int(flag, 0) for flag in _BATCH_FLAGS):
            return
        for position, flag in enumerate(_FLAGS):
            transpose = producer(operand(node, position), "Transpose")
            if transpose is None or not swaps_last_two(transpose):
                continue
            summary = f"{text(transpose.outputs[0])} is read untransposed, {flag} is flipped"
            bindings = {"position": position, "transpose": transpose}
            yield Match((*absorbed(transpose), node), (node.outputs[0],), bindings, flag, summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One product with a flag."""
        node, position = match.nodes[-1], match["position"]
        inputs = list(node.inputs)
        inputs[position] = match["transpose"].inputs[0]
        flag = {_FLAGS[position]: 1 - (node.attributes.get_int(_FLAGS[position], 0) or 0)}
        return [product(inputs, attributes_of(node, **flag), match.outputs[0], build)]


class SplitTransposeFromMatMul(Rule):
    """FusedMatMul(A, B, transB=1) becomes MatMul(A, Transpose(B))."""

    name = "split-transpose-from-matmul"
    family = "D3"
    title = "Transpose an operand of FusedMatMul in a node of its own"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "fuse-transpose-into-matmul"
    preconditions = "transBatchA = transBatchB = 0; the rank of the operand is known."
    evidence = "The reverse of D3: what is left is portable once alpha is 1 too."
    anchors = (FUSED,)

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """One match per transposed operand."""
        for position, flag in enumerate(_FLAGS):
            value = operand(node, position)
            if not node.attributes.get_int(flag, 0):
                continue
            batched = next((f for f in _BATCH_FLAGS if node.attributes.get_int(f, 0)), None)
            refuse_unless(batched is None, f"{batched} is set")
            refuse_unless((rank(value) or 0) >= 2, f"the rank of {text(value)} is unknown")
            summary = f"{text(value)} is transposed by a node of its own"
            yield Match((node,), (node.outputs[0],), {"position": position}, flag, summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Transpose, then the product."""
        (node,), position = match.nodes, match["position"]
        inputs = list(node.inputs)
        perm = last_two_swapped(rank(inputs[position]) or 2)
        inputs[position] = build.op(
            "Transpose", [inputs[position]], {"perm": perm}, dtype=match.outputs[0].dtype
        )
        return [product(inputs, attributes_of(node, **{_FLAGS[position]: 0}), match.outputs[0], build)]


class FuseScaleIntoMatMul(Rule):
    """c * (A @ B), (c * A) @ B and A @ (c * B) become FusedMatMul(A, B, alpha=c)."""

    name = "fuse-scale-into-matmul"
    family = "D13"
    title = "Fuse a scalar factor into MatMul (FusedMatMul)"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "split-scale-from-matmul"
    preconditions = (
        "float or double; multiplied or divided by a one-element constant that does not enlarge the operand and "
        "that float32 can hold. The result is not portable (com.microsoft)."
    )
    evidence = "ORT's own pass at EXTENDED and above does it: absorbed at ALL."
    anchors = ("MatMul", FUSED)
    portable = False
    dtypes = FLOAT_OR_DOUBLE

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """The factor behind the product, and those in front of it."""
        for reader, _ in uses_of(node.outputs[0]):
            found = factor_of(reader)
            if found is not None and found[0] is node.outputs[0]:
                summary = f"the factor {found[1]:g} of {text(reader.outputs[0])} becomes alpha"
                yield self._match(node, found[1], "output", (node, reader), reader.outputs[0], None, summary)
        for position, variant in enumerate(_FLAGS):
            value = operand(node, position)
            scale = producer(value, "Mul", "Div")
            found = factor_of(scale)
            if scale is None or found is None:
                continue
            summary = f"the factor {found[1]:g} in {text(value)} becomes alpha"
            nodes, bare = (*absorbed(scale), node), (position, found[0])
            yield self._match(node, found[1], variant[-1], nodes, node.outputs[0], bare, summary)

    def _match(
        self,
        node: ir.Node,
        factor: float,
        variant: str,
        nodes: tuple[ir.Node, ...],
        output: ir.Value,
        bare: tuple[int, ir.Value] | None,
        summary: str,
    ) -> Match | Refusal:
        alpha = alpha_of(node) * factor
        if node.outputs[0].dtype == ir.DataType.DOUBLE and not is_float32(alpha):
            return Refusal(f"the factor {alpha!r} would be rounded to float32")
        scale = nodes[-1] if variant == "output" else nodes[0]
        drops = scale.inputs if scale is not node and len(nodes) > 1 else ()
        return Match(
            nodes, (output,), {"node": node, "alpha": alpha, "bare": bare}, variant, summary, 0, tuple(drops)
        )

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One product with alpha."""
        node, bare = match["node"], match["bare"]
        inputs = list(node.inputs)
        if bare is not None:
            inputs[bare[0]] = bare[1]
        return [product(inputs, attributes_of(node, alpha=match["alpha"]), match.outputs[0], build)]


class SplitScaleFromMatMul(PatternRule):
    """FusedMatMul(A, B, alpha=c) becomes c * (A @ B)."""

    name = "split-scale-from-matmul"
    family = "D13"
    title = "Scale a FusedMatMul in a node of its own"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "fuse-scale-into-matmul"
    preconditions = "alpha is not 1."
    evidence = "The reverse of D13: what is left is portable once the flags are 0 too."
    anchors = (FUSED,)

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A FusedMatMul with a scale."""
        if alpha_of(node) == 1.0:
            return None
        summary = f"{text(node.outputs[0])} is scaled by a Mul"
        return Match((node,), (node.outputs[0],), summary=summary, new_bytes=element_bytes(node.outputs[0]))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The product, then Mul."""
        (node,), like = match.nodes, match.outputs[0]
        value = product(node.inputs, attributes_of(node, alpha=1.0), like, build)
        return [build.op("Mul", [value, number_like(build, alpha_of(node), like, "alpha")], like=like)]


RULES = (
    FuseTransposeIntoMatMul(),
    SplitTransposeFromMatMul(),
    FuseScaleIntoMatMul(),
    SplitScaleFromMatMul(),
)
