"""Family F: LayerNorm written out, as one node, and back."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import Context, element_bytes, is_used, operand, rank, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, refuse_unless
from explorer.rewrite.rules.affine import epsilon_of
from explorer.rewrite.rules.axes import axes_are_input, axes_bytes
from explorer.rewrite.rules.norm_parts import read_norm, refuse_odd_parameters
from explorer.rewrite.rules.patterns import FLOAT_HALF_DOUBLE, FLOAT_OR_DOUBLE, number_like


class FuseLayerNorm(PatternRule):
    """(x - mean) / sqrt(variance + epsilon) * scale + bias becomes LayerNormalization."""

    name = "fuse-layernorm"
    family = "F1"
    title = "Fuse the parts of LayerNorm"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "split-layernorm"
    preconditions = (
        "Both means over the same trailing axes with keepdims=1, of the same x; square by Pow or Mul; epsilon a "
        "one-element constant (that float32 can hold, for double); scale and bias constants or inputs that vary over "
        "the normalised axes only; a missing scale becomes ones; inner values read by nothing else."
    )
    evidence = (
        "ORT 1.32 CPU: -60 to -65 % at DISABLE. ORT's own pass at EXTENDED and above knows squares written with Pow "
        "only: the Mul form gains -60 % at ALL too."
    )
    anchors = ("ReduceMean",)
    min_opset = 17
    dtypes = FLOAT_HALF_DOUBLE

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """The ReduceMean of the squared differences."""
        norm = read_norm(node)
        if norm is None or not norm.centred:
            return None
        refuse_odd_parameters(norm)
        summary = f"{text(norm.output)} = LayerNormalization({text(norm.source)})"
        size = norm.parameter_bytes(scale=True, bias=True)
        return Match(norm.nodes, (norm.output,), {"norm": norm}, "", summary, size, norm.dropped())

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One LayerNormalization."""
        norm, like = match["norm"], match.outputs[0]
        operands = [norm.source, norm.parameter(norm.scale, build)]
        if norm.bias is not None:
            operands.append(norm.parameter(norm.bias, build))
        attributes = {"axis": -norm.axes, "epsilon": norm.epsilon}
        return [build.op("LayerNormalization", operands, attributes, like=like)]


class SplitLayerNorm(PatternRule):
    """LayerNormalization becomes mean, difference, square, mean, root, division, scale and bias."""

    name = "split-layernorm"
    family = "F1"
    title = "LayerNormalization to its parts"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "fuse-layernorm"
    preconditions = (
        "float or double (half precision is computed in float inside the operator); the rank of x known; mean and "
        "standard deviation not used."
    )
    evidence = "The reverse of F1: 2.5 to 3 times slower; the form that ORT's own pass recognises."
    anchors = ("LayerNormalization",)
    dtypes = FLOAT_OR_DOUBLE

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A LayerNormalization with one used output."""
        return match_written_out(node, context)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Nine nodes, eight without a bias."""
        (node,), like, axes = match.nodes, match.outputs[0], match["axes"]
        source = node.inputs[0]
        if source is None:
            return []
        mean = Means(axes, build)
        centred = build.op("Sub", [source, mean.of(source)], like=like)
        value = normalise(epsilon_of(node), centred, mean, build)
        value = build.op("Mul", [value, node.inputs[1]], like=like)
        bias = operand(node, 2)
        return [value if bias is None else build.op("Add", [value, bias], like=like)]


def match_written_out(node: ir.Node, context: Context) -> Match:
    """The match of a normalisation that becomes its parts; refuses one of which another output is used."""
    axes = normalised_axes(node)
    for value in node.outputs[1:]:
        refuse_unless(not is_used(value), f"{text(value)} is used too")
    size = 2 * element_bytes(node.outputs[0]) + axes_bytes("ReduceMean", axes, context)
    summary = f"{text(node.outputs[0])} is written out"
    return Match((node,), (node.outputs[0],), {"axes": axes}, "", summary, size)


def normalised_axes(node: ir.Node) -> tuple[int, ...]:
    """The trailing axes of a LayerNormalization or RMSNormalization, counted from the end."""
    axis, size = node.attributes.get_int("axis", -1), rank(operand(node, 0))
    axis = -1 if axis is None else axis
    if axis >= 0:
        refuse_unless(size is not None, f"the rank of {text(operand(node, 0))} is unknown")
        axis -= size or 0
    return tuple(range(axis, 0))


class Means:
    """Means over the same axes, which share the constant that holds them where it is an input."""

    def __init__(self, axes: Sequence[int], build: Builder) -> None:
        self.build = build
        as_input = axes_are_input("ReduceMean", build.opset)
        self.inputs = [build.ints(axes, "axes")] if as_input else []
        self.attributes = {} if as_input else {"axes": list(axes)}

    def of(self, value: ir.Value) -> ir.Value:
        """The mean of a tensor, axes kept."""
        return self.build.op("ReduceMean", [value, *self.inputs], self.attributes, dtype=value.dtype)


def normalise(epsilon: float, value: ir.Value, mean: Means, build: Builder) -> ir.Value:
    """``value`` over the root of its mean square, in the form that ORT's own passes recognise."""
    square = build.op("Pow", [value, number_like(build, 2.0, value, "two")], like=value)
    number = number_like(build, epsilon, value, "epsilon")
    shifted = build.op("Add", [mean.of(square), number], dtype=value.dtype)
    return build.op("Div", [value, build.op("Sqrt", [shifted], dtype=value.dtype)], like=value)


RULES = (FuseLayerNorm(), SplitLayerNorm())
