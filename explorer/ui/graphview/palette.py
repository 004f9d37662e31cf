"""Colours, once for the canvas and the SVG writer. Safe for colour-blind eyes (Okabe and Ito)."""

from __future__ import annotations

BLUE, ORANGE, GREEN, PINK = "#0072B2", "#E69F00", "#009E73", "#CC79A7"
SKY, RED, YELLOW, GREY = "#56B4E9", "#D55E00", "#B8A200", "#7A8794"
VIOLET, SLATE = "#6A5ACD", "#52616F"

#: Operator families: key -> (what the legend says, colour).
FAMILIES: dict[str, tuple[str, str]] = {
    "conv": ("Convolution", BLUE),
    "matmul": ("Matrix product", VIOLET),
    "norm": ("Normalisation", PINK),
    "activation": ("Activation", ORANGE),
    "pool": ("Pooling, reduction", SKY),
    "arith": ("Elementwise", GREEN),
    "shape": ("Shape and layout", GREY),
    "control": ("Control flow", RED),
    "quant": ("Quantisation", YELLOW),
    "io": ("Input, output", SLATE),
    "other": ("Other", GREY),
}

#: For groups and categories without a colour of their own, in order of use.
CATEGORIES: tuple[str, ...] = (BLUE, ORANGE, GREEN, PINK, SKY, RED, VIOLET, YELLOW)

#: Sequential scales, low to high, monotone in lightness (light theme: ColorBrewer's YlOrBr).
SEQUENTIAL_LIGHT: tuple[str, ...] = (
    "#fffbe3", "#fff0b5", "#fedb84", "#fdb94d", "#f68f2b", "#dd6613", "#b34506", "#7f2a05",
)  # fmt: skip
SEQUENTIAL_DARK: tuple[str, ...] = (
    "#2a2a2c", "#3f3128", "#5d3b22", "#84491a", "#b05e17", "#d97f2a", "#f3a757", "#ffd49c",
)  # fmt: skip

ADDED, REMOVED, CHANGED = GREEN, RED, BLUE

_FAMILY_OF: dict[str, str] = {
    op: family
    for family, ops in {
        "conv": "Conv ConvTranspose ConvInteger FusedConv DeformConv QLinearConv NhwcConv",
        "matmul": "MatMul Gemm FusedMatMul FusedGemm Einsum MatMulInteger QLinearMatMul Attention "
        "MultiHeadAttention QAttention LSTM GRU RNN TransposeMatMul GroupQueryAttention",
        "norm": "BatchNormalization LayerNormalization InstanceNormalization GroupNormalization "
        "LRN LpNormalization SimplifiedLayerNormalization SkipLayerNormalization "
        "RMSNormalization MeanVarianceNormalization SkipSimplifiedLayerNormalization",
        "activation": "Relu LeakyRelu PRelu Sigmoid HardSigmoid HardSwish Tanh Softmax LogSoftmax "
        "Gelu FastGelu BiasGelu QuickGelu Elu Selu Celu Mish Swish Softplus Softsign Erf Clip "
        "ThresholdedRelu Hardmax Dropout",
        "pool": "MaxPool AveragePool GlobalAveragePool GlobalMaxPool LpPool ReduceMean ReduceSum "
        "ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSumExp ReduceSumSquare ArgMax "
        "ArgMin TopK CumSum GlobalLpPool MaxUnpool",
        "arith": "Add Sub Mul Div Pow Sqrt Exp Log Neg Abs Max Min Sum Mean Reciprocal Floor Ceil "
        "Round Mod And Or Not Xor Equal Less Greater LessOrEqual GreaterOrEqual Where Sin Cos "
        "Sign BitShift BitwiseAnd BitwiseOr BitwiseNot BitwiseXor IsNaN IsInf",
        "shape": "Reshape Transpose Flatten Squeeze Unsqueeze Concat Split Slice Gather GatherND "
        "GatherElements Scatter ScatterND ScatterElements Expand Tile Pad Shape Size Cast CastLike "
        "Identity Constant ConstantOfShape Range Resize Upsample DepthToSpace SpaceToDepth "
        "NonZero Trilu OneHot EyeLike ReverseSequence Compress",
        "control": "If Loop Scan SequenceMap Optional",
        "quant": "QuantizeLinear DequantizeLinear DynamicQuantizeLinear",
    }.items()
    for op in ops.split()
}


def family_of(op_type: str) -> str:
    """The colour family of an operator type; ``"other"`` where it is not known."""
    return _FAMILY_OF.get(op_type, "other")
