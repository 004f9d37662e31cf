"""Shape inference and the ONNX checker, on a copy without large weights.

Both need a protobuf; weights larger than a kilobyte are handed over as inputs (their values never decide
a shape), so that a 2 GB model is checked as quickly as its structure.
"""

from __future__ import annotations

import onnx
import onnx_ir as ir

from explorer.graph.external import embed
from explorer.graph.graph import bodies_of, constant_tensor
from explorer.graph.names import node_label
from explorer.graph.shape_values import known_vectors

_LARGE_BYTES = 1024
_MOVES_VALUES = set(
    """Add Cast Concat Div Gather Identity Max Min Mul Neg Slice Split Squeeze Sub Unsqueeze Where""".split()
)
_MAX_RANK = 64
_MAX_PROPAGATED = 100_000
_MAX_ROUNDS = 50
_MAX_VISITS = 1_000_000


def light_proto(model: ir.Model) -> onnx.ModelProto:
    """The model as a protobuf without external data, in which large initializers are graph inputs."""
    clone = model.clone()
    names = set(ir.convenience.create_value_mapping(clone.graph))
    for graph in clone.graphs():
        for name, value in list(graph.initializers.items()):
            tensor = value.const_value
            if tensor is None or tensor.nbytes <= _LARGE_BYTES:
                value.const_value = None if tensor is None else embed(tensor)
                continue
            value.shape = ir.Shape(tuple(tensor.shape.numpy()))
            value.dtype = tensor.dtype
            graph.initializers.pop(name)
            value.const_value = None
            if not value.is_graph_input():
                if graph is not clone.graph:
                    value.name = _fresh(name, names)
                clone.graph.inputs.append(value)
    proto = ir.serde.serialize_model(clone)
    proto.ir_version = max(proto.ir_version, 4)  # before IR 4 every initializer must be an input
    return proto


def infer_shapes(model: ir.Model) -> str | None:
    """Fill in types and shapes in place.

    Returns:
        None, or one sentence that says why (some) shapes stay unknown.
    """
    return _infer(model)[0]


def infer_and_check(model: ir.Model) -> tuple[str | None, str | None]:
    """Fill in types and shapes in place and run the ONNX checker on the result.

    Returns:
        What ``infer_shapes`` and ``check`` return.
    """
    problem, proto = _infer(model)
    return problem, check(model) if proto is None else _check(proto)


def check(model: ir.Model) -> str | None:
    """Run the ONNX checker; returns None, or its complaint in one line."""
    try:
        return _check(light_proto(model))
    except Exception as error:  # noqa: BLE001 (serialisation wraps what it meets in several kinds)
        return _first_line(error)


def _check(proto: onnx.ModelProto) -> str | None:
    try:
        onnx.checker.check_model(proto, full_check=False)
    except Exception as error:  # noqa: BLE001 (the C++ side raises several kinds)
        return _first_line(error)
    return None


def _infer(model: ir.Model) -> tuple[str | None, onnx.ModelProto | None]:
    """The sentence of ``infer_shapes``, and the model as a protobuf with all shapes found."""
    try:
        proto = light_proto(model)
    except Exception as error:  # noqa: BLE001 (serialisation wraps what it meets in several kinds)
        return f"Shapes are unknown: the model cannot be written down ({_first_line(error)}).", None
    propagate = _propagates_little(model)
    inferred, problem = _infer_once(proto, propagate)
    if inferred is None:
        return f"Some shapes are unknown: shape inference failed ({problem}).", proto
    _merge(model.graph, inferred.graph)
    folded = _follow_shape_arithmetic(model, proto, propagate)
    if problem:
        problem = f"Some shapes are unknown: strict shape inference failed ({problem})."
    return problem or _unknown_shapes(model), None if folded else inferred


def _infer_once(proto: onnx.ModelProto, propagate: bool) -> tuple[onnx.ModelProto | None, str | None]:
    """The result, strict if possible, and why it is not strict."""
    problem = None
    for strict in (True, False):
        try:
            return onnx.shape_inference.infer_shapes(
                proto, check_type=strict, strict_mode=strict, data_prop=propagate
            ), problem
        except Exception as error:  # noqa: BLE001 (the C++ side raises several kinds)
            problem = _first_line(error)
    return None, problem


def _follow_shape_arithmetic(model: ir.Model, proto: onnx.ModelProto, propagate: bool) -> bool:
    """Infer again with computed shapes written down as constants, until nothing new is found."""
    places = {node.output[0]: node for node in proto.graph.node if len(node.output) == 1}
    done: set[str] = set()
    for _ in range(min(_MAX_ROUNDS, 1 + _MAX_VISITS // max(len(places), 1))):
        if all(_is_exact(output) for node in model.graph for output in node.outputs if output.name):
            break
        found = {value.name or "": elements for value, elements in known_vectors(model.graph).items()}
        new = [name for name in found if name in places and name not in done]
        if not new:
            break
        for name in new:
            tensor = onnx.numpy_helper.from_array(found[name])
            places[name].CopyFrom(onnx.helper.make_node("Constant", [], [name], value=tensor))
        done.update(new)
        inferred, _ = _infer_once(proto, propagate)
        if inferred is None:
            break
        _merge(model.graph, inferred.graph)
    return bool(done)


def _fresh(name: str, names: set[str]) -> str:
    while name in names:
        name += "_"
    names.add(name)
    return name


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".")[:300] if lines else type(error).__name__


def _propagates_little(model: ir.Model) -> bool:
    """Whether computed shapes stay small: Concat(s, s) thirty times over would fill the memory."""
    lengths: dict[ir.Value, int] = {}
    for node in model.graph.all_nodes():
        if node.op_type not in _MOVES_VALUES:
            continue
        operands = [lengths[v] if v in lengths else _length(v) for v in node.inputs if v is not None]
        length = sum(operands) if node.op_type == "Concat" else max(operands, default=0)
        if length > _MAX_PROPAGATED:
            return False
        lengths.update(dict.fromkeys(node.outputs, length))
    return True


def _length(value: ir.Value) -> int:
    tensor = constant_tensor(value)
    if tensor is None:
        return _MAX_RANK
    return tensor.size if len(tensor.shape) <= 1 and not tensor.dtype.is_floating_point() else 1


def _unknown_shapes(model: ir.Model) -> str | None:
    unknown = [
        node
        for node in model.graph.all_nodes()
        for value in node.outputs
        if value.name and value.shape is None and isinstance(value.type, ir.TensorType | None)
    ]
    if not unknown:
        return None
    first = node_label(unknown[0].name, unknown[0].op_type, unknown[0].domain)
    count = "1 tensor has" if len(unknown) == 1 else f"{len(unknown)} tensors have"
    return f"{count} no known shape, beginning after {first}."


def _merge(graph: ir.Graph, proto: onnx.GraphProto) -> None:
    infos = {info.name: info for info in (*proto.input, *proto.value_info, *proto.output)}
    for value in (*graph.inputs, *(output for node in graph for output in node.outputs)):
        info = infos.get(value.name or "")
        if info is not None and not value.is_initializer() and not _is_exact(value):
            _refine(value, ir.serde.deserialize_value_info_proto(info, None))
    for node, node_proto in zip(graph, proto.node, strict=True):
        for attribute in node_proto.attribute:
            inferred = [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else attribute.graphs
            if inferred:
                for body, body_proto in zip(
                    bodies_of(node.attributes[attribute.name]), inferred, strict=True
                ):
                    _merge(body, body_proto)


def _is_exact(value: ir.Value) -> bool:
    return value.type is not None and value.shape is not None and all(isinstance(d, int) for d in value.shape)


def _refine(value: ir.Value, inferred: ir.Value) -> None:
    if inferred.type is not None and value.type is None:
        value.type = inferred.type
    if inferred.shape is not None and _is_more_exact(inferred.shape, value.shape):
        value.shape = inferred.shape


def _is_more_exact(new: ir.Shape, old: ir.Shape | None) -> bool:
    if old is None:
        return True
    if len(new) != len(old):
        return False
    return sum(isinstance(d, int) for d in new) > sum(isinstance(d, int) for d in old)
