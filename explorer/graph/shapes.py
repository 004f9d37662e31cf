"""Shape inference and the ONNX checker, on a copy without large weights.

Both need a protobuf; weights larger than a kilobyte are handed over as inputs (their values never decide
a shape), so that a 2 GB model is checked as quickly as its structure.
"""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir

from explorer.graph.external import embed
from explorer.graph.graph import bodies_of
from explorer.graph.names import node_label
from explorer.graph.shape_targets import Dims, computed_shapes
from explorer.graph.shape_values import known_vectors

_LARGE_BYTES = 1024
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
        return _check(_operators_proto(model) if _is_flat(model) else light_proto(model))
    except Exception as error:  # noqa: BLE001 (serialisation wraps what it meets in several kinds)
        return _first_line(error)


def _is_flat(model: ir.Model) -> bool:
    attributes = (attribute for node in model.graph for attribute in node.attributes.values())
    return not model.functions and not any(map(bodies_of, attributes))


def _operators_proto(model: ir.Model) -> onnx.ModelProto:
    """What the checker looks at of a model without bodies: as ``light_proto``, without a copy and inferred shapes."""
    graph, serde = model.graph, ir.serde
    proto = onnx.ModelProto(
        ir_version=max(model.ir_version, 4)
    )  # before it every initializer must be an input
    for domain, version in model.opset_imports.items():
        proto.opset_import.add(domain=domain, version=version)
    proto.graph.name = graph.name or "graph"
    proto.graph.node.extend(map(serde.serialize_node, graph))
    proto.graph.input.extend(map(serde.serialize_value, graph.inputs))
    proto.graph.output.extend(map(serde.serialize_value, graph.outputs))
    for name, value in graph.initializers.items():
        tensor = value.const_value
        if tensor is not None and tensor.nbytes <= _LARGE_BYTES:
            proto.graph.initializer.append(serde.serialize_tensor(embed(tensor)))
            proto.graph.initializer[-1].name = name
        elif not value.is_graph_input():
            info = proto.graph.input.add(name=name)
            if tensor is not None:
                info.type.tensor_type.elem_type = int(tensor.dtype)
                info.type.tensor_type.shape.dim.extend(
                    onnx.TensorShapeProto.Dimension(dim_value=int(d)) for d in tensor.shape.numpy()
                )
    return proto


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
    inferred, problem = _infer_once(proto)
    if inferred is None:
        return f"Some shapes are unknown: shape inference failed ({problem}).", proto
    _merge(model.graph, inferred.graph)
    followed = _follow_shape_arithmetic(model, proto)
    if problem:
        problem = f"Some shapes are unknown: strict shape inference failed ({problem})."
    return problem or _unknown_shapes(model), None if followed else inferred


def _infer_once(proto: onnx.ModelProto) -> tuple[onnx.ModelProto | None, str | None]:
    """The result, strict if possible, and why it is not strict.

    Not with ``data_prop``: it writes down the elements of every vector it meets, a million or 2^40.
    """
    problem = None
    for strict in (True, False):
        try:
            return onnx.shape_inference.infer_shapes(proto, check_type=strict, strict_mode=strict), problem
        except Exception as error:  # noqa: BLE001 (the C++ side raises several kinds)
            problem = _first_line(error)
    return None, problem


def _follow_shape_arithmetic(model: ir.Model, proto: onnx.ModelProto) -> bool:
    """Infer again with computed vectors and shapes written into ``proto``, until nothing new is found.

    Returns:
        Whether anything was written: ``proto`` is then no longer the model.
    """
    graph = model.graph
    written: set[str] = set()
    for _ in range(min(_MAX_ROUNDS, 1 + _MAX_VISITS // max(len(proto.graph.node), 1))):
        if all(_is_exact(output) for node in graph for output in node.outputs if output.name):
            break
        new = _write_vectors(known_vectors(graph), proto.graph, written)
        new |= _write_shapes(computed_shapes(graph), proto.graph)
        written |= new
        inferred = _infer_once(proto)[0] if new else None
        if inferred is None:
            break
        _merge(graph, inferred.graph)
    return bool(written)


def _write_vectors(found: dict[ir.Value, np.ndarray], graph: onnx.GraphProto, written: set[str]) -> set[str]:
    """Put Constant nodes in the place of nodes whose result is known; returns their outputs' names."""
    vectors = {value.name: elements for value, elements in found.items() if value.name not in written}
    new = set()
    for node in graph.node:
        name = node.output[0] if len(node.output) == 1 else ""
        if name in vectors:
            tensor = onnx.numpy_helper.from_array(vectors[name])
            node.CopyFrom(onnx.helper.make_node("Constant", [], [name], value=tensor))
            new.add(name)
    return new


def _write_shapes(found: dict[ir.Value, Dims], graph: onnx.GraphProto) -> set[str]:
    """Note shapes that are more exact than what was known, in the model too; returns the values' names."""
    infos = {info.name: info for info in (*graph.value_info, *graph.output)}
    new = set()
    for value, dims in found.items():
        shape = _improved(value.shape, ir.Shape(dims))
        if value.name and shape is not None:
            value.shape = shape
            info = infos[value.name] if value.name in infos else graph.value_info.add()
            info.CopyFrom(ir.serde.serialize_value(value))
            new.add(value.name)
    return new


def _fresh(name: str, names: set[str]) -> str:
    while name in names:
        name += "_"
    names.add(name)
    return name


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".")[:300] if lines else type(error).__name__


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
    better = None if inferred.shape is None else _improved(value.shape, inferred.shape)
    if better is not None:
        value.shape = better


def _improved(old: ir.Shape | None, new: ir.Shape) -> ir.Shape | None:
    """The better known dim at each place; None if ``new`` says nothing new or contradicts the rank."""
    if old is None:
        return new
    if len(new) != len(old):
        return None
    pairs = list(zip(old, new, strict=True))
    better = [_exactness(b) > _exactness(a) for a, b in pairs]
    return (
        ir.Shape([b if wins else a for wins, (a, b) in zip(better, pairs, strict=True)])
        if any(better)
        else None
    )


def _exactness(dim: int | ir.SymbolicDim) -> int:
    """An integer says more than a name; a name made up by inference says nothing."""
    if isinstance(dim, int):
        return 2
    return 0 if dim.value is None or dim.value.startswith("unk__") else 1
