"""Family F: group normalisation written with InstanceNormalization between Reshapes, as one node, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import (
    Context,
    array,
    constants_of,
    dim,
    dims,
    element_bytes,
    is_const,
    operand,
    producer,
    rank,
    shape_of,
    sole_reader,
    text,
    uniform,
)
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, refuse_unless
from explorer.rewrite.rules.affine import epsilon_of
from explorer.rewrite.rules.attention_parts import going
from explorer.rewrite.rules.patterns import (
    FLOAT_OR_HALF,
    both_orders,
    describe_dims,
    reader_of,
    reshaped_dims,
)


@dataclass(frozen=True)
class _GroupNorm:
    source: ir.Value
    output: ir.Value
    nodes: tuple[ir.Node, ...]
    channels: int
    groups: int
    scale: ir.Value | None = None
    bias: ir.Value | None = None


class FuseGroupNorm(PatternRule):
    """Reshape, InstanceNormalization, Reshape, scale and bias become GroupNormalization."""

    name = "fuse-groupnorm"
    family = "F9"
    title = "Fuse the parts of GroupNorm"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "split-groupnorm"
    preconditions = (
        "The first Reshape gives [batch, groups, ...] with static groups that divide the static channels; the scale "
        "of the InstanceNormalization all ones and its bias zeros; the second Reshape restores the shape; scale and "
        "bias constants that vary over channels only (ones and zeros if there are none)."
    )
    evidence = (
        "ORT 1.32 CPU, 64 x 32 x 32 in 8 groups: +100 %: there is no kernel and the operator is expanded into 29 "
        "nodes. For runtimes that have one."
    )
    anchors = ("InstanceNormalization",)
    min_opset = 21
    dtypes = FLOAT_OR_HALF

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """An InstanceNormalization between two Reshapes."""
        found = _read(node)
        if found is None:
            return None
        summary = f"{text(found.output)}: {found.channels} channels are normalised in {found.groups} groups"
        size = 2 * found.channels * element_bytes(found.output)
        drops = constants_of(found.nodes)
        bindings = {"norm": found, "epsilon": epsilon_of(node)}
        return Match(found.nodes, (found.output,), bindings, "", summary, size, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One GroupNormalization."""
        found, like = match["norm"], match.outputs[0]
        parameters = []
        for value, neutral, hint in ((found.scale, 1, "scale"), (found.bias, 0, "bias")):
            full = (
                np.full((), neutral, array(found.nodes[0].inputs[1]).dtype) if value is None else array(value)
            )
            row = np.broadcast_to(full.ravel(), (found.channels,))
            parameters.append(build.constant(row.copy(), hint))
        attributes = {"num_groups": found.groups, "epsilon": match["epsilon"]}
        return [build.op("GroupNormalization", [found.source, *parameters], attributes, like=like)]


def _read(node: ir.Node) -> _GroupNorm | None:
    before, after = producer(operand(node, 0), "Reshape"), reader_of(node.outputs[0], "Reshape")
    source = None if before is None else operand(before, 0)
    if before is None or after is None or source is None or after.inputs[0] is not node.outputs[0]:
        return None
    grouped, restored = reshaped_dims(before) or (), reshaped_dims(after)
    channels, groups = dim(source, 1), grouped[1] if len(grouped) > 2 else None
    if not isinstance(channels, int) or not isinstance(groups, int):
        raise Refusal(f"channels or groups of {text(source)} {describe_dims(source)} are not static")
    same_batch = dim(source, 0) is not None and dim(source, 0) == grouped[0]
    refuse_unless(
        same_batch and channels % groups == 0,
        f"{text(before.outputs[0])} {list(grouped)} does not group the channels of {text(source)} "
        f"{describe_dims(source)}",
    )
    refuse_unless(
        restored is not None and None not in restored and restored == shape_of(source),
        f"{text(after.outputs[0])} does not have the shape of {text(source)}",
    )
    refuse_unless(
        uniform(operand(node, 1)) == 1 and uniform(operand(node, 2)) == 0,
        "scale and bias of the InstanceNormalization are not constant ones and zeros",
    )
    nodes = (node, after, *going([before], [node]))
    return _with_affine(_GroupNorm(source, after.outputs[0], nodes, channels, groups))


def _with_affine(found: _GroupNorm) -> _GroupNorm:
    scaled = _beside(found, "Mul")
    if scaled is not None:
        node, scale = scaled
        found = replace(found, output=node.outputs[0], nodes=(*found.nodes, node), scale=scale)
    shifted = _beside(found, "Add")
    if shifted is not None:
        node, bias = shifted
        found = replace(found, output=node.outputs[0], nodes=(*found.nodes, node), bias=bias)
    return found


def _beside(found: _GroupNorm, op_type: str) -> tuple[ir.Node, ir.Value] | None:
    """The only reader of the result so far, if it is this operator with a constant per channel."""
    node = sole_reader(found.output, op_type)
    if node is None or node.graph is not found.nodes[0].graph:
        return None
    others = (b for a, b in both_orders(node) if a is found.output and _is_per_channel(b, found))
    other = next(others, None)
    return None if other is None else (node, other)


def _is_per_channel(value: ir.Value, found: _GroupNorm) -> bool:
    shape, size = dims(value), rank(found.source)
    if not is_const(value) or shape is None or size is None or len(shape) > size:
        return False
    place = len(shape) - (size - 1)  # of the channel axis
    return prod(shape) == 1 or (place >= 0 and shape[place] == prod(shape) == found.channels)


class SplitGroupNorm(PatternRule):
    """GroupNormalization becomes Reshape, InstanceNormalization, Reshape, Mul and Add."""

    name = "split-groupnorm"
    family = "F9"
    title = "GroupNormalization to InstanceNormalization"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "fuse-groupnorm"
    preconditions = "Opset 21 on (before that scale and bias were per group); rank of x known, 3 or more; scale and bias constant."
    evidence = "ORT 1.32 CPU: -50 %, the reverse of F9: one kernel instead of the 29 nodes of the expansion."
    anchors = ("GroupNormalization",)
    min_opset = 21
    dtypes = FLOAT_OR_HALF

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A GroupNormalization with constant parameters."""
        source, groups = operand(node, 0), node.attributes.get_int("num_groups", 0) or 0
        refuse_unless((rank(source) or 0) >= 3, f"the rank of {text(source)} is {rank(source)}")
        for value in node.inputs[1:3]:
            refuse_unless(is_const(value), f"{text(value)} is not a constant")
        element = element_bytes(node.outputs[0])
        channels = prod(dims(operand(node, 1)) or ())
        static = dims(source)
        size = 2 * (groups + channels) * element + 8 * 3 + (8 * len(static) if static else 0)
        summary = f"{text(node.outputs[0])}: groups become instances"
        drops = tuple(node.inputs[1:3])
        return Match((node,), (node.outputs[0],), {"groups": groups}, "", summary, size, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Five nodes, six where the shape has to be read at run time."""
        (node,), like, groups = match.nodes, match.outputs[0], match["groups"]
        source = node.inputs[0]
        scale, bias = (array(value) for value in node.inputs[1:3])
        flat = build.op("Reshape", [source, build.ints([0, groups, -1], "group_shape")], dtype=like.dtype)
        ones, zeros = np.ones(groups, scale.dtype), np.zeros(groups, scale.dtype)
        inputs = [flat, build.constant(ones, "ones"), build.constant(zeros, "zeros")]
        value = build.op("InstanceNormalization", inputs, {"epsilon": epsilon_of(node)}, dtype=like.dtype)
        static = dims(source)
        shape = (
            build.ints(static, "shape") if static else build.op("Shape", [source], dtype=ir.DataType.INT64)
        )
        value = build.op("Reshape", [value, shape], like=like)
        column = (-1,) + (1,) * ((rank(source) or 3) - 2)
        value = build.op("Mul", [value, build.constant(scale.reshape(column), "scale")], like=like)
        return [build.op("Add", [value, build.constant(bias.reshape(column), "bias")], like=like)]


RULES = (FuseGroupNorm(), SplitGroupNorm())
