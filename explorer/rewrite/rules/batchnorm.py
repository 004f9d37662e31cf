"""Family B: BatchNormalization folded into the linear node before or after it, or written as Mul + Add."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import Context, dim, element_bytes, operand, producer, rank, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal
from explorer.rewrite.rules.affine import batchnorm_affine, channel_vector, constant_operand
from explorer.rewrite.rules.folds import FoldIntoProducer, FoldIntoReaders
from explorer.rewrite.rules.linear import PRODUCTS, rounded

_INFERENCE = (
    "BatchNormalization in inference mode with one output; scale, bias, mean and variance constant, one element per "
    "channel; variance + epsilon > 0. Weight and bias constant; the value between them read by nothing else."
)


class FoldBatchNormIntoConv(FoldIntoProducer):
    """BN(Conv(x)) becomes one Conv with weight W * s / sqrt(v + eps) and an adapted bias."""

    name = "fold-batchnorm-into-conv"
    family = "B1"
    title = "Fold BatchNormalization into Conv"
    preconditions = _INFERENCE
    evidence = "ORT 1.32 CPU: -1 to -2 % per layer at DISABLE, absorbed at BASIC and above."
    anchors = ("BatchNormalization",)
    operators = ("Conv",)


class FoldBatchNormIntoConvTranspose(FoldIntoProducer):
    """BN(ConvTranspose(x)) becomes one ConvTranspose; its weight has the output channels on axis 1."""

    name = "fold-batchnorm-into-conv-transpose"
    family = "B1t"
    title = "Fold BatchNormalization into ConvTranspose"
    preconditions = _INFERENCE
    evidence = "As B1; not measured on its own."
    anchors = ("BatchNormalization",)
    operators = ("ConvTranspose",)


class FoldBatchNormIntoGemm(FoldIntoProducer):
    """BN(Gemm(x)) or BN(MatMul(x) [+ b]) becomes one product with adapted weight and bias."""

    name = "fold-batchnorm-into-gemm"
    family = "B1g"
    title = "Fold BatchNormalization into Gemm or MatMul"
    preconditions = _INFERENCE + " The product has rank 2."
    evidence = "ORT 1.32 CPU: absorbed at ALL (MatmulBNFusion)."
    anchors = ("BatchNormalization",)
    operators = PRODUCTS


class FoldBatchNormIntoNextConv(FoldIntoReaders):
    """Conv(BN(x)) becomes one Conv: the scale goes to the weight's input channels, the shift to the bias."""

    name = "fold-batchnorm-into-next-conv"
    family = "B2"
    title = "Fold BatchNormalization into the Conv after it"
    preconditions = _INFERENCE + " Every pad is 0, or the normalisation does not shift."
    evidence = "ORT does not do this itself, so the normalisation's time is really saved."
    anchors = ("BatchNormalization",)
    operators = ("Conv", "ConvTranspose")


class FoldBatchNormIntoNextGemm(FoldIntoReaders):
    """Gemm(BN(x)) or MatMul(BN(x)) of a matrix becomes one product."""

    name = "fold-batchnorm-into-next-gemm"
    family = "B2"
    title = "Fold BatchNormalization into the product after it"
    preconditions = _INFERENCE + " Its input has rank 2."
    evidence = "ORT does not do this itself; not measured."
    anchors = ("BatchNormalization",)
    operators = PRODUCTS


class BatchNormToMulAdd(PatternRule):
    """BN(x) becomes x * factor + shift."""

    name = "batchnorm-to-mul-add"
    family = "B8"
    title = "BatchNormalization to Mul + Add"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "mul-add-to-batchnorm"
    preconditions = "BatchNormalization in inference mode with constant statistics; the rank of its input known, at least 2."
    evidence = "Slower by itself; exposes the scale to B3 and B5 and the shift to B4."
    anchors = ("BatchNormalization",)
    min_opset = 7

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """Any BatchNormalization in inference mode."""
        size, channels = rank(operand(node, 0)), dim(operand(node, 1), 0)
        if not isinstance(channels, int):
            raise Refusal(f"the number of channels of {text(node.outputs[0])} is unknown")
        affine = batchnorm_affine(node, 1, channels, context)
        if size is None or size < 2:
            raise Refusal(f"the rank of {text(operand(node, 0))} is {size or 'unknown'}")
        summary = f"{text(node.outputs[0])} = {text(operand(node, 0))} * factor + shift"
        bindings = {"affine": affine, "shape": (channels, *(1,) * (size - 2))}
        new_bytes = 2 * channels * element_bytes(node.outputs[0])
        return Match((node,), (node.outputs[0],), bindings, "", summary, new_bytes, affine.constants)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """A Mul and an Add with constants of shape [C, 1, ...]."""
        (bn,), like, affine = match.nodes, match.outputs[0], match["affine"]
        dtype = (like.dtype or ir.DataType.FLOAT).numpy()
        factor, shift = (rounded(v, dtype).reshape(match["shape"]) for v in (affine.factor, affine.shift))
        value = build.op("Mul", [bn.inputs[0], build.constant(factor, "bn_factor")], like=like)
        return [build.op("Add", [value, build.constant(shift, "bn_shift")], like=like)]


class MulAddToBatchNorm(PatternRule):
    """x * c1 + c2, per channel, becomes BatchNormalization with mean 0 and variance 1."""

    name = "mul-add-to-batchnorm"
    family = "B8"
    title = "Mul + Add per channel to BatchNormalization"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "batchnorm-to-mul-add"
    preconditions = (
        "Constants per channel (axis 1; one of them may be a single number); rank at least 2 and a static number of "
        "channels; the product read by nothing else."
    )
    evidence = "One pass instead of two; lets B1 and ORT's own fold see an affine layer."
    anchors = ("Add",)
    min_opset = 7

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """An Add of a constant to a Mul by a constant, operands in any order."""
        shift = constant_operand(node)
        mul = None if shift is None else producer(node.inputs[1 - shift[1]], "Mul")
        factor = None if mul is None or mul.graph is not node.graph else constant_operand(mul)
        if shift is None or mul is None or factor is None:
            return None
        source = mul.inputs[1 - factor[1]]
        size, channels = rank(source), dim(source, 1)
        if size is None or size < 2 or not isinstance(channels, int) or not _varies(factor[0], shift[0]):
            return None
        try:
            vectors = [channel_vector(value, source, 1, channels) for value in (factor[0], shift[0])]
        except Refusal:
            return None  # along another axis it is another normalisation
        summary = f"{text(node.outputs[0])} = BatchNormalization({text(source)})"
        new_bytes = 4 * channels * element_bytes(node.outputs[0])
        bindings = {"source": source, "vectors": vectors, "channels": channels}
        drops = (factor[0], shift[0])
        return Match((mul, node), (node.outputs[0],), bindings, "", summary, new_bytes, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One BatchNormalization with epsilon 0."""
        like, channels = match.outputs[0], match["channels"]
        dtype = (like.dtype or ir.DataType.FLOAT).numpy()
        statistics = [*match["vectors"], np.zeros(1), np.ones(1)]
        operands = [
            build.constant(np.broadcast_to(vector, channels).astype(dtype), f"bn_{hint}")
            for vector, hint in zip(statistics, ("scale", "bias", "mean", "variance"), strict=True)
        ]
        return [build.op("BatchNormalization", [match["source"], *operands], {"epsilon": 0.0}, like=like)]


def _varies(*constants: ir.Value) -> bool:
    """Whether one of the constants has more than one element: scalars alone are no normalisation."""
    return any(size not in {1, None} for value in constants for size in _sizes(value))


def _sizes(value: ir.Value) -> list[int | str | None]:
    return [dim(value, axis) for axis in range(rank(value) or 0)]


RULES = (
    FoldBatchNormIntoConv(),
    FoldBatchNormIntoConvTranspose(),
    FoldBatchNormIntoGemm(),
    FoldBatchNormIntoNextConv(),
    FoldBatchNormIntoNextGemm(),
    BatchNormToMulAdd(),
    MulAddToBatchNorm(),
)
