"""Family C: averages as pools, depthwise convolutions and reductions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import (
    Context,
    array,
    dim,
    dims,
    element_bytes,
    ints,
    operand,
    rank,
    sole_reader,
    tensor,
    text,
)
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, Rule, refuse_unless
from explorer.rewrite.rules.axes import axes_bytes, build_with_axes, given_axes, normalise
from explorer.rewrite.rules.conv_parts import explicit_pads, group_of, weight_of
from explorer.rewrite.rules.patterns import FLOAT_OR_HALF

_LARGEST_SCAN = 65536


class AveragePoolToConv(PatternRule):
    """AveragePool becomes a depthwise Conv whose weights are 1 / k."""

    name = "average-pool-to-depthwise-conv"
    family = "C11"
    title = "AveragePool to depthwise convolution"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "depthwise-conv-to-average-pool"
    preconditions = "No pads or count_include_pad = 1; ceil_mode = 0; explicit pads or VALID; a static number of channels."
    evidence = "ORT 1.32 CPU: -73 % at DISABLE, 0 to -1 % at ALL."
    anchors = ("AveragePool",)
    dtypes = FLOAT_OR_HALF

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """An AveragePool whose divisor is always the size of its kernel."""
        kernel = ints(node, "kernel_shape", ())
        _refuse_uneven_windows(node, len(kernel))
        channels = dim(operand(node, 0), 1)
        if not isinstance(channels, int):
            raise Refusal(f"the channels of {text(operand(node, 0))} are not static")
        summary = f"{text(node.outputs[0])} is a depthwise convolution with weights 1 / {prod(kernel)}"
        bindings = {"shape": (channels, 1, *kernel)}
        size = channels * prod(kernel) * element_bytes(node.outputs[0])
        return Match((node,), (node.outputs[0],), bindings, "", summary, size)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """A Conv with as many groups as channels."""
        (pool,), like, shape = match.nodes, match.outputs[0], match["shape"]
        dtype = (like.dtype or ir.DataType.FLOAT).numpy()
        weight = build.constant(np.full(shape, 1 / prod(shape[2:])).astype(dtype), "average")
        attributes = attributes_of(pool, "count_include_pad", "ceil_mode", group=shape[0])
        return [build.op("Conv", [pool.inputs[0], weight], attributes, like=like)]


class ConvToAveragePool(PatternRule):
    """A depthwise Conv whose weights are all 1 / k becomes AveragePool."""

    name = "depthwise-conv-to-average-pool"
    family = "C11"
    title = "Depthwise convolution with equal weights to AveragePool"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "average-pool-to-depthwise-conv"
    preconditions = (
        "As many groups and filters as channels; every weight 1 / (kernel size), rounded; no bias; explicit pads "
        "smaller than the kernel; dilation 1."
    )
    evidence = "ORT 1.32 CPU: 0 to +1 % at ALL."
    anchors = ("Conv",)
    min_opset = 7
    dtypes = FLOAT_OR_HALF

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A depthwise Conv that averages."""
        shape = dims(operand(node, 1))
        if shape is None or len(shape) < 3 or not group_of(node) == shape[0] == dim(operand(node, 0), 1):
            return None
        if shape[1] != 1 or not _averages(node.inputs[1], prod(shape[2:])):
            return None
        weight, kernel = weight_of(node), shape[2:]
        refuse_unless(operand(node, 2) is None, f"the convolution has a bias, {text(operand(node, 2))}")
        refuse_unless(set(ints(node, "dilations", (1,))) == {1}, "the convolution is dilated")
        pads = explicit_pads(node, len(kernel))
        fits = pads is not None and all(p < k for p, k in zip(pads, kernel * 2, strict=True))
        refuse_unless(fits, f"the pads are not explicit, or not smaller than the kernel {list(kernel)}")
        summary, bindings = f"{text(node.outputs[0])} is an average", {"kernel": kernel, "pads": pads}
        return Match((node,), (node.outputs[0],), bindings, "", summary, 0, (weight,))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """An AveragePool that counts its padding."""
        (conv,), attributes = match.nodes, attributes_of(match.nodes[0], "group", "dilations")
        attributes["kernel_shape"] = list(match["kernel"])
        attributes["count_include_pad"] = 1
        if build.opset >= 10:
            attributes["ceil_mode"] = 0  # written out, as exporters do
        return [build.op("AveragePool", [conv.inputs[0]], attributes, like=match.outputs[0])]


class ReduceMeanToGlobalAveragePool(PatternRule):
    """ReduceMean over all spatial axes becomes GlobalAveragePool (and Flatten where the dims were dropped)."""

    name = "reduce-mean-to-global-average-pool"
    family = "C12"
    title = "ReduceMean over the spatial axes to GlobalAveragePool"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "global-average-pool-to-reduce-mean"
    preconditions = "Constant axes: all but the first two; known rank, at least 4 (of a sequence of vectors, axis 2 is no space)."
    evidence = "ORT 1.32 CPU: +8 % at DISABLE, +35 % at ALL (layout reorders)."
    anchors = ("ReduceMean",)
    dtypes = FLOAT_OR_HALF

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A ReduceMean over the axes from 2 on."""
        size, axes = rank(operand(node, 0)), given_axes(node)
        if size is None or size < 4 or not axes or normalise(axes, size) != tuple(range(2, size)):
            return None
        keepdims = node.attributes.get_int("keepdims", 1) == 1
        summary = f"{text(node.outputs[0])} is a global average"
        bindings = {"keepdims": keepdims}
        return Match((node,), (node.outputs[0],), bindings, "", summary, 0, tuple(node.inputs[1:]))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """GlobalAveragePool, then Flatten if the spatial dims are to go."""
        (node,), like = match.nodes, match.outputs[0]
        if match["keepdims"]:
            return [build.op("GlobalAveragePool", [node.inputs[0]], like=like)]
        value = build.op("GlobalAveragePool", [node.inputs[0]], dtype=like.dtype)
        return [build.op("Flatten", [value], {"axis": 1}, like=like)]


class GlobalAveragePoolToReduceMean(Rule):
    """GlobalAveragePool becomes ReduceMean; with the Flatten after it, ReduceMean that drops the dims."""

    name = "global-average-pool-to-reduce-mean"
    family = "C12"
    title = "GlobalAveragePool to ReduceMean"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "reduce-mean-to-global-average-pool"
    preconditions = "Known rank; the variant without Flatten needs axis 1 and the pool read by nothing else."
    evidence = "The reverse of C12: pays at ALL."
    anchors = ("GlobalAveragePool",)

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """The pool alone, and together with a Flatten."""
        size = rank(operand(node, 0))
        if size is None or size < 3:
            raise Refusal(f"the rank of {text(operand(node, 0))} is {size or 'unknown'}")
        axes = tuple(range(2, size))
        new_bytes = axes_bytes("ReduceMean", axes, context)
        summary = f"{text(node.outputs[0])} is a mean over axes {list(axes)}"
        yield Match((node,), (node.outputs[0],), {"axes": axes}, "", summary, new_bytes)
        flatten = sole_reader(node.outputs[0], "Flatten")
        if flatten is not None and flatten.attributes.get_int("axis", 1) == 1:
            nodes, outputs = (node, flatten), (flatten.outputs[0],)
            summary = f"{text(flatten.outputs[0])} is a mean over axes {list(axes)}"
            yield Match(nodes, outputs, {"axes": axes}, "flat", summary, new_bytes)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One ReduceMean."""
        source, keepdims = match.nodes[0].inputs[0], int(len(match.nodes) == 1)
        if source is None:
            raise Refusal("the pool has no input")
        like = match.outputs[0]
        return [build_with_axes("ReduceMean", source, match["axes"], build, keepdims=keepdims, like=like)]


def _refuse_uneven_windows(pool: ir.Node, spatial: int) -> None:
    """Every window divides by the size of the kernel."""
    refuse_unless(not pool.attributes.get_int("ceil_mode", 0), "the pool rounds its size up (ceil_mode = 1)")
    pads = explicit_pads(pool, spatial)
    if pads is None:
        raise Refusal("auto_pad is not explicit; make the pads explicit first")
    counted = pool.attributes.get_int("count_include_pad", 0) == 1
    refuse_unless(counted or not any(pads), "the pool leaves its padding out of the average")


def _averages(weight: ir.Value | None, count: int) -> bool:
    """Whether every weight is 1 / count, rounded to its type; ordinary weights are told by the first."""
    found = tensor(weight)
    if found is None or not found.dtype.is_floating_point() or not 0 < found.size <= _LARGEST_SCAN:
        return False
    values = array(weight)
    wanted = np.array(1 / count).astype(values.dtype)
    return bool(values.ravel()[0] == wanted) and bool((values == wanted).all())


RULES = (
    AveragePoolToConv(),
    ConvToAveragePool(),
    ReduceMeanToGlobalAveragePool(),
    GlobalAveragePoolToReduceMean(),
)
