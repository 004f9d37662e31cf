"""Compute nodes from constants with ONNX's reference evaluator: numpy, no runtime, a fixed list of operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
import onnx
import onnx_ir as ir

from explorer.rewrite.context import array, dims, is_const, text
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
    """The values of ``outputs``.

    Args:
        nodes: in topological order; all they read is constant or computed by them.
        outputs: values of theirs.
        opset_imports: of the model.

    Raises:
        Refusal: the evaluator cannot compute them, or the result is not what shape inference said.
    """
    from onnx.reference import ReferenceEvaluator

    names: dict[ir.Value, str] = {}
    for value in (v for node in nodes for v in (*node.inputs, *node.outputs) if v is not None):
        names.setdefault(value, f"v{len(names)}" if value.name else "")
    constants = [value for value in names if is_const(value)]
    model = _model(nodes, constants, outputs, names, opset_imports)
    feeds = {names[value]: array(value) for value in constants}
    try:
        with np.errstate(all="ignore"):
            results = ReferenceEvaluator(model).run(None, feeds)
    except Exception as error:  # noqa: BLE001 (numpy and the evaluator raise whatever they like)
        raise Refusal(f"the reference evaluator fails on {nodes[-1].op_type}: {error}") from None
    arrays = [np.asarray(result) for result in results]
    for value, result in zip(outputs, arrays, strict=True):
        _refuse_surprise(value, result)
    return arrays


def _model(
    nodes: Sequence[ir.Node],
    constants: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    names: Mapping[ir.Value, str],
    opset_imports: Mapping[str, int],
) -> onnx.ModelProto:
    protos = [ir.serde.serialize_node(node) for node in nodes]
    for proto, node in zip(protos, nodes, strict=True):
        proto.ClearField("input")
        proto.ClearField("output")
        proto.input.extend("" if value is None else names[value] for value in node.inputs)
        proto.output.extend(names[value] for value in node.outputs)
    inputs = [_info(names[value], array(value)) for value in constants]
    results = [onnx.helper.make_empty_tensor_value_info(names[value]) for value in outputs]
    graph = onnx.helper.make_graph(protos, "constants", inputs, results)
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in opset_imports.items()]
    return onnx.helper.make_model(graph, opset_imports=imports)


def _info(name: str, constant: np.ndarray) -> onnx.ValueInfoProto:
    dtype = onnx.helper.np_dtype_to_tensor_dtype(constant.dtype)
    return onnx.helper.make_tensor_value_info(name, dtype, constant.shape)


def _refuse_surprise(value: ir.Value, result: np.ndarray) -> None:
    if result.shape != dims(value) or value.dtype is None or result.dtype != value.dtype.numpy():
        found = f"{result.dtype}{list(result.shape)}"
        raise Refusal(f"{text(value)} would be {found}, not what shape inference says")
