"""FLOPs, bytes and parameters per node, by operator formula.

A multiply-add counts as two FLOPs. Data movement (Reshape, Transpose, Gather ...) counts none, whatever its
size. Where a dimension or an operator is unknown the answer is None, shown as "unknown", never a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod

import onnx_ir as ir

from explorer.graph.graph import Graph, constant_tensor, is_constant_node

_Formula = Callable[[ir.Node], int | None]

_MOVES = """Cast CastLike Concat Constant ConstantOfShape DepthToSpace Dropout Expand EyeLike Flatten Gather
GatherElements GatherND Identity Pad Reshape ReverseSequence ScatterElements ScatterND Shape Size Slice
SpaceToDepth Split Squeeze Tile Transpose Unsqueeze Where Compress NonZero OneHot Range""".split()
_PER_ELEMENT = {
    1: """Abs Add And BitShift Ceil Clip Div Equal Floor Greater GreaterOrEqual Less LessOrEqual Max Min Mod
    Mul Neg Not Or PRelu Reciprocal Relu LeakyRelu Round Sign Sqrt Sub Sum Mean Xor IsNaN IsInf
    ThresholdedRelu BitwiseAnd BitwiseOr BitwiseNot QuantizeLinear DequantizeLinear""",
    2: "BatchNormalization HardSigmoid",
    3: "HardSwish",
    4: "Exp Log Pow Sigmoid Tanh Erf Elu Selu Celu Softplus Softsign Sin Cos Tan Atan Asin Acos Swish",
    5: "Softmax LogSoftmax LayerNormalization RMSNormalization SimplifiedLayerNormalization QuickGelu",
    6: "InstanceNormalization GroupNormalization LpNormalization Mish SkipLayerNormalization",
    8: "Gelu BiasGelu FastGelu LRN Resize Upsample",
}
_REDUCTIONS = """ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare
ReduceLogSum ReduceLogSumExp GlobalAveragePool GlobalMaxPool ArgMax ArgMin CumSum TopK""".split()


def static_dims(value: ir.Value | None) -> tuple[int, ...] | None:
    """The dims of a value if all of them are known integers, else None."""
    if value is None:
        return None
    if value.shape is None:
        tensor = constant_tensor(value)
        return None if tensor is None else tuple(int(d) for d in tensor.shape.numpy())
    dims = tuple(d for d in value.shape if isinstance(d, int))
    return dims if len(dims) == len(value.shape) else None


def elements(value: ir.Value | None) -> int | None:
    """Number of elements, or None where a dimension is unknown (0 for an absent value).

    Sequences and optional values have no fixed number of elements.
    """
    if value is None:
        return 0
    if not isinstance(value.type, ir.TensorType | None):
        return None
    dims = static_dims(value)
    return None if dims is None else prod(dims)


def value_bytes(value: ir.Value | None) -> int | None:
    """Size of a tensor in bytes; None where unknown or where elements have no fixed size (strings)."""
    count = elements(value)
    if value is None or count is None:
        return count
    if value.dtype is None or value.dtype in {ir.DataType.STRING, ir.DataType.UNDEFINED}:
        return None
    return (count * value.dtype.bitwidth + 7) // 8


def flops(node: ir.Node) -> int | None:
    """Floating-point operations of one execution of a node; None if the operator is unknown.

    If, Loop and Scan have none of their own: which body runs, and how often, is decided at run time, so that
    theirs are unknown too.
    """
    formula = _FORMULAS.get(node.op_type) if node.domain in _DOMAINS else None
    return formula(node) if formula else None


def traffic_bytes(node: ir.Node) -> int | None:
    """Bytes a node reads and writes, each distinct operand once; None where a size is unknown."""
    return sum_if_known(value_bytes(v) for v in {*node.inputs, *node.outputs} if v is not None)


def parameters(graph: Graph) -> int:
    """Number of weight elements: float initializers and Constant nodes, each tensor counted once."""
    constants = (node.outputs[0] for node in graph.nodes if is_constant_node(node))
    found = [v.const_value for v in graph.initializers()] + [constant_tensor(v) for v in constants]
    tensors = {id(tensor): tensor for tensor in found if tensor is not None}
    return sum(t.size for t in tensors.values() if t.dtype.is_floating_point())


def node_parameters(node: ir.Node) -> int:
    """Number of float weight elements a node reads."""
    tensors = [constant_tensor(value) for value in node.inputs]
    return sum(t.size for t in tensors if t is not None and t.dtype.is_floating_point())


def total_flops(graph: Graph) -> int | None:
    """FLOPs of one inference; None if any node's are unknown or depend on control flow."""
    return sum_if_known(flops(node) for node in graph.nodes)


def known_flops(graph: Graph) -> int:
    """FLOPs of the nodes for which they are known, those in bodies once."""
    return sum(flops(node) or 0 for node in graph.nodes)


def sum_if_known(parts: Iterable[int | None]) -> int | None:
    """The sum, or None if any part is None."""
    total = 0
    for part in parts:
        if part is None:
            return None
        total += part
    return total


def _output(factor: int) -> _Formula:
    def formula(node: ir.Node) -> int | None:
        count = elements(node.outputs[0])
        return None if count is None else factor * count

    return formula


def _input(node: ir.Node) -> int | None:
    return elements(node.inputs[0])


def _window(node: ir.Node) -> int | None:
    """Convolution: 2 x outputs x (weights per output channel), plus one add per bias."""
    outputs, weight = elements(node.outputs[0]), static_dims(node.inputs[1])
    if outputs is None or weight is None:
        return None
    bias = node.op_type != "ConvInteger" and _present(node, 2)
    return outputs * (2 * prod(weight[1:]) + (1 if bias else 0))


def _transposed_window(node: ir.Node) -> int | None:
    inputs, weight = elements(node.inputs[0]), static_dims(node.inputs[1])
    return None if inputs is None or weight is None else 2 * inputs * prod(weight[1:])


def _pool(node: ir.Node) -> int | None:
    outputs = elements(node.outputs[0])
    kernel = node.attributes.get_ints("kernel_shape", ())
    return None if outputs is None else outputs * prod(kernel or ())


def _matmul(node: ir.Node) -> int | None:
    outputs, a = elements(node.outputs[0]), node.inputs[0]
    if outputs is None or a is None or a.shape is None or not len(a.shape):
        return None
    transposed = len(a.shape) > 1 and bool(node.attributes.get_int("transA", 0))
    inner = a.shape[-2 if transposed else -1]
    if not isinstance(inner, int):
        return None
    bias = node.op_type in {"Gemm", "FusedGemm"} and _present(node, 2)
    return outputs * (2 * inner + (1 if bias else 0))


def _present(node: ir.Node, position: int) -> bool:
    return position < len(node.inputs) and node.inputs[position] is not None


_DOMAINS = {"", "ai.onnx", "com.microsoft"}
_FORMULAS: dict[str, _Formula] = {
    **dict.fromkeys(_MOVES, lambda _: 0),
    **{op: _output(factor) for factor, ops in _PER_ELEMENT.items() for op in ops.split()},
    **dict.fromkeys(_REDUCTIONS, _input),
    **dict.fromkeys(["AveragePool", "MaxPool", "LpPool"], _pool),
    **dict.fromkeys(["MatMul", "MatMulInteger", "Gemm", "FusedMatMul", "FusedGemm"], _matmul),
    **dict.fromkeys(["Conv", "FusedConv", "ConvInteger"], _window),
    "ConvTranspose": _transposed_window,
}
