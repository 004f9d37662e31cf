"""Family B: Mul, Div, Add and Sub by constants folded into the Conv, Gemm or MatMul beside them."""

from __future__ import annotations

from explorer.rewrite.rules.affine import SCALES, SHIFTS
from explorer.rewrite.rules.folds import FoldIntoProducer, FoldIntoReaders
from explorer.rewrite.rules.linear import CONVOLUTIONS, PRODUCTS

_PER_CHANNEL = (
    "The other operand a constant with one element or one per channel that does not enlarge the result; weight and "
    "bias constant; the value between them read by nothing else."
)


class FoldScaleIntoConv(FoldIntoProducer):
    """Conv(x) * c and Conv(x) / c become one Conv."""

    name = "fold-scale-into-conv"
    family = "B3"
    title = "Fold a scale into the Conv before it"
    preconditions = _PER_CHANNEL + " A divisor has no zeros."
    evidence = "ORT 1.32 CPU: -3 to -5 % at DISABLE, absorbed at ALL."
    anchors = SCALES
    operators = CONVOLUTIONS
    min_opset = 7


class FoldShiftIntoConv(FoldIntoProducer):
    """Conv(x) + c, Conv(x) - c and c - Conv(x) become one Conv; also for ConvTranspose and Gemm."""

    name = "fold-shift-into-conv"
    family = "B4"
    title = "Fold an added constant into the bias of Conv or Gemm"
    preconditions = _PER_CHANNEL + " A constant for every position is not a bias."
    evidence = "ORT 1.32 CPU: absorbed (onnxruntime#12498 folded a full constant wrongly for group > 1)."
    anchors = SHIFTS
    operators = (*CONVOLUTIONS, "Gemm")
    min_opset = 7


class FoldScaleIntoNextConv(FoldIntoReaders):
    """Conv(x * c) and Conv(x / c) become one Conv; pads do not matter, zeros stay zeros."""

    name = "fold-scale-into-next-conv"
    family = "B5"
    title = "Fold a scale into the Conv after it"
    preconditions = _PER_CHANNEL + " A divisor has no zeros; every reader is such a Conv."
    evidence = "ORT 1.32 CPU: -2 to -3 % at DISABLE, -3 % at ALL (ORT does not absorb it)."
    anchors = SCALES
    operators = CONVOLUTIONS
    min_opset = 7


class FoldShiftIntoNextConv(FoldIntoReaders):
    """Conv(x + c) and Conv(x - c) become one Conv with another bias."""

    name = "fold-shift-into-next-conv"
    family = "B5"
    title = "Fold an added constant into the Conv after it"
    preconditions = _PER_CHANNEL + " Every pad is 0; every reader is such a Conv."
    evidence = "As B5; ORT does not absorb it."
    anchors = SHIFTS
    operators = ("Conv",)
    min_opset = 7


class FoldScaleIntoMatMul(FoldIntoProducer):
    """(x @ W [+ b]) * c and / c become x @ (W * c) [+ b * c]; also for Gemm."""

    name = "fold-scale-into-matmul"
    family = "B6"
    title = "Fold a scale into the product before it"
    preconditions = _PER_CHANNEL + " The weight has rank 2; a divisor has no zeros."
    evidence = "ORT 1.32 CPU: -4.5 % at DISABLE, -1 to -3 % at ALL."
    anchors = SCALES
    operators = PRODUCTS
    min_opset = 7


class FoldScaleIntoNextMatMul(FoldIntoReaders):
    """(x * c) @ W becomes x @ (diag(c) W), for every product that reads it: the gain of an RMSNorm, for one."""

    name = "fold-scale-into-next-matmul"
    family = "B10"
    title = "Fold a scale into the products after it"
    preconditions = _PER_CHANNEL + " The weights have rank 2; every reader is such a product."
    evidence = (
        "Removes one pass over the activation. Not measured; hides an RMSNorm written as primitives from ORT's matcher, "
        "which looks for its gain (F2)."
    )
    anchors = SCALES
    operators = PRODUCTS
    min_opset = 7


class FoldShiftIntoNextMatMul(FoldIntoReaders):
    """(x + c) @ W becomes x @ W + c @ W, for every product that reads it."""

    name = "fold-shift-into-next-matmul"
    family = "B10"
    title = "Fold an added constant into the products after it"
    preconditions = _PER_CHANNEL + " The weights have rank 2; every reader is such a product."
    evidence = "Free where the products have a bias already; neutral elsewhere."
    anchors = SHIFTS
    operators = PRODUCTS
    min_opset = 7


RULES = (
    FoldScaleIntoConv(),
    FoldShiftIntoConv(),
    FoldScaleIntoNextConv(),
    FoldShiftIntoNextConv(),
    FoldScaleIntoMatMul(),
    FoldScaleIntoNextMatMul(),
    FoldShiftIntoNextMatMul(),
)
