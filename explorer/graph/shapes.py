"""Shape inference and the ONNX checker, on a copy without large weights.

Both need a protobuf; weights larger than a kilobyte are handed over as inputs (their values never decide
a shape), so that a 2 GB model is checked as quickly as its structure.
"""

from __future__ import annotations

import onnx
import onnx_ir as ir

_LARGE_BYTES = 1024


def light_proto(model: ir.Model) -> onnx.ModelProto:
    """The model as a protobuf in which large initializers have become graph inputs."""
    clone = model.clone()
    graph = clone.graph
    for name, value in list(graph.initializers.items()):
        tensor = value.const_value
        if tensor is None or tensor.nbytes <= _LARGE_BYTES:
            continue
        value.shape = ir.Shape(tuple(tensor.shape.numpy()))
        value.dtype = tensor.dtype
        graph.initializers.pop(name)
        value.const_value = None
        if not value.is_graph_input():
            graph.inputs.append(value)
    proto = ir.serde.serialize_model(clone)
    proto.ir_version = max(proto.ir_version, 4)  # before IR 4 every initializer must be an input
    return proto


def infer_shapes(model: ir.Model) -> str | None:
    """Fill in types and shapes in place.

    Returns:
        None, or one sentence that says why (some) shapes stay unknown.
    """
    for strict in (True, False):
        try:
            inferred = onnx.shape_inference.infer_shapes(
                light_proto(model), check_type=strict, strict_mode=strict, data_prop=True
            )
        except Exception as error:  # noqa: BLE001 (the C++ side raises several kinds)
            problem = _first_line(error)
            continue
        _merge(model, inferred)
        if strict:
            return None
    return f"Some shapes are unknown: strict shape inference failed ({problem})."


def check(model: ir.Model) -> str | None:
    """Run the ONNX checker; returns None, or its complaint in one line."""
    try:
        onnx.checker.check_model(light_proto(model), full_check=False)
    except Exception as error:  # noqa: BLE001 (the C++ side raises several kinds)
        return _first_line(error)
    return None


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__


def _merge(model: ir.Model, proto: onnx.ModelProto) -> None:
    inferred_model = ir.serde.deserialize_model(proto)
    for graph, inferred in zip(model.graphs(), inferred_model.graphs(), strict=True):
        known = ir.convenience.create_value_mapping(inferred)
        for name, value in ir.convenience.create_value_mapping(graph).items():
            other = known.get(name)
            if other is None or value.is_initializer():
                continue
            if other.type is not None and value.type is None:
                value.type = other.type
            if other.shape is not None and _is_more_exact(other.shape, value.shape):
                value.shape = other.shape.copy()


def _is_more_exact(new: ir.Shape, old: ir.Shape | None) -> bool:
    if old is None:
        return True
    if len(new) != len(old):
        return False
    return sum(isinstance(d, int) for d in new) > sum(isinstance(d, int) for d in old)
