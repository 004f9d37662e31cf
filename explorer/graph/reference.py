"""Compute nodes whose inputs are all constants with ONNX's reference evaluator (numpy, no runtime)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
import onnx
import onnx_ir as ir

from explorer.graph.graph import constant_tensor


def reference_values(
    nodes: Sequence[ir.Node], outputs: Sequence[ir.Value], opset_imports: Mapping[str, int]
) -> list[np.ndarray]:
    """The values of ``outputs``, computed from constants.

    Args:
        nodes: in topological order, without bodies; all they read is constant or computed by them.
        outputs: values of theirs.
        opset_imports: version by domain, of the model.

    Raises:
        ValueError: the evaluator cannot compute them; its first line of complaint.
    """
    from onnx.reference import ReferenceEvaluator  # half a second to load, and most graphs need none

    names: dict[ir.Value, str] = {}
    for value in (v for node in nodes for v in (*node.inputs, *node.outputs) if v is not None):
        names.setdefault(value, f"v{len(names)}" if value.name else "")
    tensors = {value: constant_tensor(value) for value in names}
    feeds = {names[value]: tensor.numpy() for value, tensor in tensors.items() if tensor is not None}
    model = _model(nodes, feeds, [names[value] for value in outputs], names, opset_imports)
    try:
        with np.errstate(all="ignore"):
            results = ReferenceEvaluator(model, new_ops=_replacements()).run(None, feeds)
    except Exception as error:
        lines = str(error).splitlines() or [type(error).__name__]
        raise ValueError(lines[0]) from error
    return [np.asarray(result) for result in results]


@cache
def _replacements() -> list[type]:
    """Operators that the evaluator of onnx 1.23 computes for small tensors only."""
    from onnx.reference.op_run import OpRun

    class GatherElements(OpRun):
        op_domain = ""

        def _run(self, data: np.ndarray, indices: np.ndarray, axis: int | None = None) -> tuple[np.ndarray]:
            along = (axis or 0) % data.ndim
            sizes = [slice(None if i == along else size) for i, size in enumerate(indices.shape)]
            return (np.take_along_axis(data[tuple(sizes)], indices, axis=along),)

    return [GatherElements]


def _model(
    nodes: Sequence[ir.Node],
    feeds: Mapping[str, np.ndarray],
    outputs: Sequence[str],
    names: Mapping[ir.Value, str],
    opset_imports: Mapping[str, int],
) -> onnx.ModelProto:
    protos = [ir.serde.serialize_node(node) for node in nodes]
    for proto, node in zip(protos, nodes, strict=True):
        proto.ClearField("input")
        proto.ClearField("output")
        proto.input.extend("" if value is None else names[value] for value in node.inputs)
        proto.output.extend(names[value] for value in node.outputs)
    inputs = [_described(name, array) for name, array in feeds.items()]
    results = [onnx.helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = onnx.helper.make_graph(protos, "constants", inputs, results)
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in opset_imports.items()]
    return onnx.helper.make_model(graph, opset_imports=imports)


def _described(name: str, array: np.ndarray) -> onnx.ValueInfoProto:
    dtype = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
    return onnx.helper.make_tensor_value_info(name, dtype, array.shape)
