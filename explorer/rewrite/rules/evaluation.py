"""Which operators are computed from constants, and the sizes of their results before they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
import onnx_ir as ir

from explorer.graph.reference import reference_values
from explorer.rewrite.context import dims, text
from explorer.rewrite.rule import Refusal

EVALUATED = frozenset(
    """Abs Add And Cast Ceil Clip Concat ConstantOfShape Cos CumSum Div Equal Erf Exp Expand Flatten Floor Gather
    GatherElements GatherND Gemm Greater GreaterOrEqual Identity Less LessOrEqual Log MatMul Max Min Mul Neg Not Or
    Pad Pow Range Reciprocal ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum Relu Reshape ScatterND Shape Sigmoid
    Sign Sin Size Slice Softmax Split Sqrt Squeeze Sub Tanh Tile Transpose Trilu Unsqueeze Where Xor""".split()
)


def static_bytes(value: ir.Value) -> int | None:
    """Bytes of a value of known type and static shape; None otherwise."""
    size = dims(value)
    if size is None or value.dtype is None or value.dtype == ir.DataType.STRING:
        return None
    return (prod(size) * value.dtype.bitwidth + 7) // 8


def evaluate(
    nodes: Sequence[ir.Node], outputs: Sequence[ir.Value], opset_imports: Mapping[str, int]
) -> list[np.ndarray]:
    """The values of ``outputs``, as ``reference_values``.

    Raises:
        Refusal: they cannot be computed, or are not what shape inference said.
    """
    try:
        arrays = reference_values(nodes, outputs, opset_imports)
    except ValueError as problem:
        raise Refusal(f"the reference evaluator fails on {nodes[-1].op_type}: {problem}") from None
    for value, result in zip(outputs, arrays, strict=True):
        if result.shape != dims(value) or value.dtype is None or result.dtype != value.dtype.numpy():
            found = f"{result.dtype}{list(result.shape)}"
            raise Refusal(f"{text(value)} would be {found}, not what shape inference says")
    return arrays
