"""Family C: a 1x1 convolution as a matrix product over positions, and back."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import (
    Context,
    array,
    dim,
    dims,
    is_const,
    nbytes,
    operand,
    producer,
    rank,
    shape_of,
    split_operands,
    text,
)
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, refuse_unless
from explorer.rewrite.rules.axes import reshape_target
from explorer.rewrite.rules.conv_parts import group_of, is_pointwise, refuse_variable_bias, weight_of
from explorer.rewrite.rules.patterns import FLOAT_OR_HALF


class PointwiseConvToMatMul(PatternRule):
    """Conv1x1(x, W, b) becomes Reshape(W @ Reshape(x) + b)."""

    name = "pointwise-conv-to-matmul"
    family = "C9"
    title = "1x1 convolution to a matrix product"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "matmul-to-pointwise-conv"
    preconditions = (
        "Kernel 1, stride 1, no pads, group 1; weight and bias constant; at most one dynamic spatial dim (the batch may "
        "be dynamic as well)."
    )
    evidence = (
        "ORT 1.32 CPU: 64 to 256 channels at 56x56 +26 % at DISABLE, 0 to +3 % at ALL; at 7x7 +45 % at ALL."
    )
    anchors = ("Conv",)
    min_opset = 5

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A 1x1 Conv."""
        if not is_pointwise(node) or group_of(node) != 1:
            return None
        weight, source, result = weight_of(node), operand(node, 0), node.outputs[0]
        refuse_variable_bias(node)
        sizes, before = shape_of(result), shape_of(source)
        filters, channels = (dims(weight) or (0, 0))[:2]
        product = None if before is None else (before[0], filters, None)
        closing = None if sizes is None or product is None else reshape_target(sizes, product)
        if closing is None:
            raise Refusal(f"more than one spatial dim of {text(result)} is dynamic")
        opening = (0, channels, -1)
        summary = f"{text(result)} = {text(weight)} times {text(source)} as a matrix of {channels} rows"
        size = nbytes(weight) + nbytes(operand(node, 2)) + 8 * (len(opening) + len(closing))
        bindings = {"opening": opening, "closing": closing, "filters": filters}
        return Match((node,), (result,), bindings, "", summary, size, tuple(node.inputs[1:]))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Reshape, MatMul, Add of the bias, Reshape."""
        (conv,), like = match.nodes, match.outputs[0]
        opening, closing = build.ints(match["opening"], "columns"), build.ints(match["closing"], "shape")
        matrix = build.op("Reshape", [conv.inputs[0], opening], dtype=like.dtype)
        weight = array(conv.inputs[1])
        kernel = build.constant(weight.reshape(weight.shape[:2]), "kernel")
        value = build.op("MatMul", [kernel, matrix], dtype=like.dtype)
        if operand(conv, 2) is not None:
            bias = build.constant(array(conv.inputs[2]).reshape(-1, 1), "bias")
            value = build.op("Add", [value, bias], dtype=like.dtype)
        return [build.op("Reshape", [value, closing], like=like)]


class MatMulToPointwiseConv(PatternRule):
    """Reshape(W @ Reshape(x) + b) becomes Conv1x1(x, W, b)."""

    name = "matmul-to-pointwise-conv"
    family = "C9"
    title = "Matrix product over positions to a 1x1 convolution"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "pointwise-conv-to-matmul"
    preconditions = (
        "The first Reshape joins the spatial dims, the last one restores them; W constant of rank 2; b absent or one "
        "constant per row; values between them read by nothing else."
    )
    evidence = "The reverse of C9: up to -31 % at ALL."
    anchors = ("Reshape",)
    dtypes = FLOAT_OR_HALF

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Reshape of a product of a constant matrix and a Reshape."""
        inner = producer(operand(node, 0), "Add", "MatMul")
        add = inner if inner is not None and inner.op_type == "Add" else None
        operands = None if add is None else split_operands(add)
        matmul = inner if add is None else producer(operands[0] if operands else None, "MatMul")
        opening = None if matmul is None else producer(operand(matmul, 1), "Reshape")
        if matmul is None or opening is None or not is_const(matmul.inputs[0]) or rank(matmul.inputs[0]) != 2:
            return None
        weight, bias = matmul.inputs[0], operands[1] if operands else None
        source, result = opening.inputs[0], node.outputs[0]
        if (rank(source) or 0) < 3 or rank(result) != rank(source) or rank(opening.outputs[0]) != 3:
            return None
        _refuse_other_shapes(source, opening.outputs[0], result, weight)
        filters = dim(weight, 0)
        refuse_unless(
            bias is None or dims(bias) in {(filters, 1), (1, filters, 1)},
            f"{text(bias)} is not one number per row",
        )
        summary = f"{text(result)} is a 1x1 convolution of {text(source)}"
        nodes = tuple(n for n in (opening, matmul, add, node) if n is not None)
        bindings = {"source": source, "weight": weight, "bias": bias}
        drops = (weight, bias, opening.inputs[1], node.inputs[1])
        return Match(nodes, (result,), bindings, "", summary, nbytes(weight) + nbytes(bias), drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Conv with a kernel of ones."""
        weight, source = array(match["weight"]), match["source"]
        spatial = (1,) * ((rank(source) or 0) - 2)
        attributes: dict[str, object] = {
            "kernel_shape": spatial,
            "strides": spatial,
            "dilations": spatial,
            "group": 1,
        }
        attributes["pads"] = (0,) * (2 * len(spatial))  # written out in full, as exporters do
        operands = [source, build.constant(weight.reshape(*weight.shape, *spatial), "pointwise")]
        if match["bias"] is not None:
            operands.append(build.constant(array(match["bias"]).ravel(), "pointwise_bias"))
        return [build.op("Conv", operands, attributes, like=match.outputs[0])]


def _refuse_other_shapes(
    source: ir.Value | None, matrix: ir.Value, result: ir.Value, weight: ir.Value | None
) -> None:
    """The Reshapes only join and restore the spatial dims (G6)."""
    channels, filters = dim(weight, 1), dim(weight, 0)
    kept = dim(source, 0) is not None and dim(source, 0) == dim(matrix, 0) == dim(result, 0)
    refuse_unless(kept, f"axis 0 of {text(source)} is not known to stay the same")
    joined = dim(source, 1) == channels and dim(matrix, 1) == channels and dim(result, 1) == filters
    refuse_unless(joined, f"axis 1 of {text(source)} is not the {channels} channels of {text(weight)}")
    for axis in range(2, rank(source) or 0):
        size = dim(source, axis)
        same = size is not None and size == dim(result, axis)
        refuse_unless(same, f"axis {axis} of {text(result)} is not known to equal that of {text(source)}")


RULES = (PointwiseConvToMatMul(), MatMulToPointwiseConv())
