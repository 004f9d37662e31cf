"""Family F: a residual Add and the normalisation after it as one com.microsoft node, and back."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from explorer.rewrite.builder import MICROSOFT, Builder
from explorer.rewrite.context import (
    Context,
    dim,
    element_bytes,
    is_const,
    is_used,
    operand,
    producer,
    rank,
    readers,
    same_shape,
    text,
)
from explorer.rewrite.rule import Match, NumericClass, PatternRule, refuse_unless
from explorer.rewrite.rules.affine import epsilon_of
from explorer.rewrite.rules.axes import axes_bytes
from explorer.rewrite.rules.layernorm import Means, normalise, normalised_axes
from explorer.rewrite.rules.norm_parts import read_norm
from explorer.rewrite.rules.patterns import FLOAT_OR_HALF, describe_dims
from explorer.rewrite.walk import source_of

SKIP_LAYERNORM = "com.microsoft::SkipLayerNormalization"
SKIP_RMSNORM = "com.microsoft::SkipSimplifiedLayerNormalization"
_SUM = 3  # which output of the fused operators is the sum
_DEFAULT_EPSILON = 1e-12  # of both fused operators, unlike everywhere else
_RUNTIME_RMSNORM = "SimplifiedLayerNormalization"


@dataclass(frozen=True)
class _Normalisation:
    """A normalisation over the last axis, one node or several."""

    source: ir.Value
    output: ir.Value
    nodes: tuple[ir.Node, ...]
    parameters: tuple[ir.Value, ...]
    epsilon: float
    drops: tuple[ir.Value, ...] = ()


class _FuseSkip(PatternRule):
    """Add and a normalisation become one node, whose fourth output is the sum."""

    numeric_class = NumericClass.REASSOCIATED
    portable = False
    dtypes = FLOAT_OR_HALF
    preconditions = (
        "Rank 2 or 3, both terms of the sum of the same shape; normalised over the last axis only; scale and bias of "
        "rank 1, not computed. Where the sum has other readers the node's fourth output takes its place."
    )
    op_type: str

    def fused(self, norm: _Normalisation) -> Match | None:
        """The match, if the normalisation follows a residual Add."""
        add = producer(norm.source, "Add")
        terms = () if add is None else tuple(value for value in add.inputs if value is not None)
        if add is None or add.graph is not norm.nodes[0].graph or any(is_const(term) for term in terms):
            return None
        if any((rank(term) or 0) < (rank(norm.source) or 0) for term in terms):
            return None
        refuse_unless(rank(norm.source) in {2, 3}, f"{text(norm.source)} has rank {rank(norm.source)}", add)
        for term in terms:
            shapes = f"{describe_dims(term)} and {describe_dims(norm.source)}"
            refuse_unless(
                same_shape(term, norm.source),
                f"{text(term)} and {text(norm.source)} have different shapes: {shapes}",
                add,
            )
        for value in norm.parameters:
            fits = rank(value) == 1 and dim(value, 0) == dim(norm.source, -1) and dim(value, 0) is not None
            refuse_unless(
                fits, f"{text(value)} {describe_dims(value)} is not one row of the normalised tensor", add
            )
            refuse_unless(source_of(value) is None or is_const(value), f"{text(value)} is computed", add)
        inside = {add, *norm.nodes}
        total = add.outputs[0]
        used = total.is_graph_output() or any(reader not in inside for reader in readers(total))
        outputs = (norm.output, total) if used else (norm.output,)
        summary = f"{text(total)} and its normalisation become one node"
        bindings = {"norm": norm, "terms": terms}
        return Match((add, *norm.nodes), outputs, bindings, "", summary, 0, norm.drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One node with one output, or with the sum as its fourth."""
        norm: _Normalisation = match["norm"]
        inputs, attributes = [*match["terms"], *norm.parameters], {"epsilon": norm.epsilon}
        if len(match.outputs) == 1:
            return [build.op(self.op_type, inputs, attributes, like=match.outputs[0], domain=MICROSOFT)]
        results = build.ops(self.op_type, inputs, attributes, outputs=_SUM + 1, domain=MICROSOFT)
        for unused in results[1:_SUM]:
            unused.name = ""  # ONNX for an output that is left out
        for result, old in zip((results[0], results[_SUM]), match.outputs, strict=True):
            result.type, result.shape = old.type, old.shape.copy() if old.shape is not None else None
        return [results[0], results[_SUM]]


class FuseSkipLayerNorm(_FuseSkip):
    """LayerNormalization(x + skip) becomes com.microsoft SkipLayerNormalization(x, skip)."""

    name = "fuse-skip-layernorm"
    family = "F3"
    title = "Fuse residual Add and LayerNormalization (SkipLayerNormalization)"
    inverse = "split-skip-layernorm"
    evidence = (
        "ORT 1.32 CPU: hurts: +16 % at sequence length 1, +270 % at 128, +160 % at 512. ORT applies it by itself at "
        "ALL; what would undo it is disabling SkipLayerNormFusion (0.60 to 0.12 ms)."
    )
    anchors = ("LayerNormalization",)
    op_type = "SkipLayerNormalization"

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A LayerNormalization of a sum."""
        source = operand(node, 0)
        if source is None or producer(source, "Add") is None:
            return None
        axes = normalised_axes(node)
        refuse_unless(axes == (-1,), f"axes {list(axes)} are normalised, not the last one only")
        for value in node.outputs[1:]:
            refuse_unless(not is_used(value), f"{text(value)} is used too")
        parameters = tuple(value for value in node.inputs[1:] if value is not None)
        return self.fused(_Normalisation(source, node.outputs[0], (node,), parameters, epsilon_of(node)))


class FuseSkipRmsNorm(_FuseSkip):
    """RMSNorm(x + skip), one node or written out, becomes com.microsoft SkipSimplifiedLayerNormalization."""

    name = "fuse-skip-rmsnorm"
    family = "F4"
    title = "Fuse residual Add and RMSNorm (SkipSimplifiedLayerNormalization)"
    inverse = "split-skip-rmsnorm"
    evidence = (
        "ORT 1.32 CPU, 128 x 512, from the written-out form: within 8 % either way, where ORT's RMSNorm alone gives "
        "-59 % (mul-reciprocal-to-div); the kernel is slow, as that of F3."
    )
    anchors = ("RMSNormalization", _RUNTIME_RMSNORM, "ReduceMean")
    op_type = "SkipSimplifiedLayerNormalization"

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """An RMSNormalization of a sum, or the mean of the squares of one."""
        if node.op_type == "ReduceMean":
            return self._written_out(node)
        source, scale = operand(node, 0), operand(node, 1)
        if source is None or scale is None or producer(source, "Add") is None:
            return None
        axes = normalised_axes(node)
        refuse_unless(axes == (-1,), f"axes {list(axes)} are normalised, not the last one only")
        for value in node.outputs[1:]:
            refuse_unless(not is_used(value), f"{text(value)} is used too")
        return self.fused(_Normalisation(source, node.outputs[0], (node,), (scale,), epsilon_of(node)))

    def _written_out(self, node: ir.Node) -> Match | None:
        norm = read_norm(node)
        if norm is None or norm.centred or producer(norm.source, "Add") is None:
            return None
        refuse_unless(norm.axes == 1, f"the last {norm.axes} axes are normalised, not the last one only")
        if norm.scale is None:
            return None
        drops = norm.dropped()
        return self.fused(
            _Normalisation(norm.source, norm.output, norm.nodes, (norm.scale,), norm.epsilon, drops)
        )


class _SplitSkip(PatternRule):
    """One of the fused nodes becomes Add and a normalisation."""

    numeric_class = NumericClass.REASSOCIATED
    preconditions = "Mean and standard deviation not used. A bias becomes an Add of its own."
    bias_position: int

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """Any such node."""
        for value in node.outputs[1:_SUM]:
            refuse_unless(not is_used(value), f"{text(value)} is used too")
        total = node.outputs[_SUM] if len(node.outputs) > _SUM else None
        used = total is not None and is_used(total)
        outputs = (node.outputs[0], total) if total is not None and used else (node.outputs[0],)
        summary = f"{text(node.outputs[0])} becomes a sum and a normalisation"
        return Match((node,), outputs, {}, "", summary, self.new_bytes(node, context))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Add (twice with a bias), then the normalisation."""
        (node,), like = match.nodes, match.outputs[0]
        total = build.op("Add", node.inputs[:2], like=like)
        bias = operand(node, self.bias_position)
        if bias is not None:
            total = build.op("Add", [total, bias], like=like)
        return [self.normalised(node, total, like, build), total][: len(match.outputs)]

    def new_bytes(self, node: ir.Node, context: Context) -> int:
        """Bytes of the constants that ``normalised`` creates."""
        return 0

    @abstractmethod
    def normalised(self, node: ir.Node, total: ir.Value, like: ir.Value, build: Builder) -> ir.Value:
        """The normalisation of the sum."""


class SplitSkipLayerNorm(_SplitSkip):
    """com.microsoft SkipLayerNormalization(x, skip) becomes LayerNormalization(x + skip)."""

    name = "split-skip-layernorm"
    family = "F3"
    title = "SkipLayerNormalization to Add and LayerNormalization"
    inverse = "fuse-skip-layernorm"
    evidence = (
        "ORT 1.32 CPU: 0.60 to 0.12 ms at sequence length 128, once ORT is told not to fuse again "
        "(disabled_optimizers=SkipLayerNormFusion)."
    )
    anchors = (SKIP_LAYERNORM,)
    min_opset = 17
    dtypes = FLOAT_OR_HALF
    bias_position = 4

    def normalised(self, node: ir.Node, total: ir.Value, like: ir.Value, build: Builder) -> ir.Value:
        """One LayerNormalization."""
        beta = operand(node, 3)
        inputs = [total, node.inputs[2], *([] if beta is None else [beta])]
        attributes = {"axis": -1, "epsilon": _skip_epsilon(node)}
        return build.op("LayerNormalization", inputs, attributes, like=like)


class SplitSkipRmsNorm(_SplitSkip):
    """com.microsoft SkipSimplifiedLayerNormalization(x, skip) becomes RMSNorm(x + skip)."""

    name = "split-skip-rmsnorm"
    family = "F4"
    title = "SkipSimplifiedLayerNormalization to Add and RMSNorm"
    inverse = "fuse-skip-rmsnorm"
    preconditions = (
        "As F3; RMSNormalization from opset 23 on, before that written out (float and double only)."
    )
    evidence = "The reverse of F4."
    anchors = (SKIP_RMSNORM,)
    min_opset = 7
    dtypes = FLOAT_OR_HALF
    bias_position = 3

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """Any such node."""
        half = node.outputs[0].dtype == ir.DataType.FLOAT16
        refuse_unless(
            context.opset >= 23 or not half, "written out, half precision would not be computed in float"
        )
        return super().match(node, context)

    def new_bytes(self, node: ir.Node, context: Context) -> int:
        """Exponent, epsilon and axes of the written-out form."""
        if context.opset >= 23:
            return 0
        return 2 * element_bytes(node.outputs[0]) + axes_bytes("ReduceMean", (-1,), context)

    def normalised(self, node: ir.Node, total: ir.Value, like: ir.Value, build: Builder) -> ir.Value:
        """RMSNormalization, or its parts before opset 23."""
        epsilon = _skip_epsilon(node)
        if build.opset >= 23:
            attributes = {"axis": -1, "epsilon": epsilon}
            return build.op("RMSNormalization", [total, node.inputs[2]], attributes, like=like)
        value = normalise(epsilon, total, Means((-1,), build), build)
        return build.op("Mul", [value, node.inputs[2]], like=like)


def _skip_epsilon(node: ir.Node) -> float:
    found = node.attributes.get_float("epsilon", _DEFAULT_EPSILON)
    return _DEFAULT_EPSILON if found is None else found


RULES = (FuseSkipLayerNorm(), SplitSkipLayerNorm(), FuseSkipRmsNorm(), SplitSkipRmsNorm())
