"""Open a model: from a path, bytes, a protobuf or the name of a sample; repaired, numbered, with shapes."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError
from onnx_ir.passes.common import InlinePass

from explorer.errors import ModelError
from explorer.graph.external import check_external_data
from explorer.graph.fill import fill_weights as fill
from explorer.graph.graph import Graph
from explorer.graph.samples import is_sample, sample_names, sample_path
from explorer.graph.shapes import infer_shapes

_PROTOBUF_LIMIT_BYTES = 2**31 - 1


def load(
    source: str | Path | bytes | onnx.ModelProto | ir.Model,
    *,
    fill_weights: int | None = None,
    name: str | None = None,
) -> Graph:
    """Open a model.

    Args:
        source: a path, the bytes of an ONNX file, a protobuf, an onnx_ir model, or a sample's name.
            A name that is both a sample and an existing file means the file only if it has a suffix.
        fill_weights: seed for the float weights that are graph inputs (structures without weights).
            Samples are filled with seed 0 if this is None.
        name: what to call the model; the file's stem by default.

    Raises:
        ModelError: one sentence that names the file and what is wrong with it.
    """
    if isinstance(source, str) and is_sample(source):
        seed = 0 if fill_weights is None else fill_weights
        return _open(sample_path(source), name or source, seed)
    if isinstance(source, str | Path):
        path = Path(source).expanduser()
        return _open(path, name or path.stem, fill_weights)
    return _finish(_from_memory(source), name or "model", None, fill_weights)


def _open(path: Path, name: str, seed: int | None) -> Graph:
    if not path.exists():
        known = ", ".join(sample_names())
        raise ModelError(f"'{path}' is neither a file nor a sample model; samples are: {known}.")
    if not path.is_file():
        raise ModelError(f"'{path}' is not a file; give the path of an .onnx file.")
    try:
        data = path.read_bytes() if path.stat().st_size <= _PROTOBUF_LIMIT_BYTES else None
    except OSError as error:
        raise ModelError(f"'{path}' cannot be read: {error.strerror}.") from error
    if data is None:
        raise ModelError(
            f"'{path}' is larger than 2 GB, more than one ONNX file can hold; save it with external data."
        )
    model = _deserialize(_parse(data, str(path)), str(path))
    ir.external_data.set_base_dir(model.graph, path.resolve().parent)
    check_external_data(model, path)
    return _finish(model, name, path, seed)


def _from_memory(source: bytes | onnx.ModelProto | ir.Model) -> ir.Model:
    if isinstance(source, ir.Model):
        return source
    proto = source if isinstance(source, onnx.ModelProto) else _parse(source, "the uploaded model")
    for tensor in onnx.external_data_helper._get_all_tensors(proto):  # noqa: SLF001 (no public walk over all tensors)
        if onnx.external_data_helper.uses_external_data(tensor):
            raise ModelError(
                f"The uploaded model keeps tensor '{tensor.name}' in a file of its own; "
                "open it by its path, or save it with the weights inside."
            )
    return _deserialize(proto, "the uploaded model")


def _parse(data: bytes, what: str) -> onnx.ModelProto:
    if not data:
        raise ModelError(f"'{what}' is empty; export the model again.")
    try:
        proto: onnx.ModelProto = onnx.ModelProto.FromString(data)
    except DecodeError:
        raise ModelError(
            f"'{what}' is not an ONNX model (not a valid protobuf); give an .onnx file."
        ) from None
    if not proto.HasField("graph"):
        raise ModelError(f"'{what}' is not an ONNX model (it holds no graph); give an .onnx file.")
    return proto


def _deserialize(proto: onnx.ModelProto, what: str) -> ir.Model:
    try:
        return ir.serde.deserialize_model(proto)
    except Exception as error:
        cause = error.__cause__ or error
        text = str(cause).splitlines()[0] if str(cause) else type(cause).__name__
        raise ModelError(f"'{what}' is damaged and cannot be read: {text}.") from error


def _finish(model: ir.Model, name: str, path: Path | None, seed: int | None) -> Graph:
    notices: list[str] = []
    _inline_functions(model, notices)
    _sort(model, name, notices)
    if seed is not None:
        problem = infer_shapes(model)  # the fill follows variances through known shapes
        filled = fill(model, seed)
        if filled:
            notices.append(
                f"{filled} weights were filled with seeded random values (seed {seed}): "
                "timings are real, predictions of the model are not."
            )
    problem = infer_shapes(model)
    if problem:
        notices.append(problem)
    if any(v.is_initializer() for v in model.graph.inputs):
        notices.append(
            "Some weights are also graph inputs (callers may override them), so they are not treated "
            "as constants and the runtime cannot fold them."
        )
    return Graph(model, name=name, source=path, notices=tuple(notices))


def _inline_functions(model: ir.Model, notices: list[str]) -> None:
    if not model.functions:
        return
    count = len(model.functions)
    InlinePass()(model)
    notices.append(f"{count} model-local function(s) were inlined.")


def _sort(model: ir.Model, name: str, notices: list[str]) -> None:
    before = [id(node) for node in model.graph.all_nodes()]
    if _is_sorted(model):
        return
    try:
        model.graph.sort()
    except ValueError:
        raise ModelError(
            f"'{name}' has a cycle: some node depends on its own output; export the model again."
        ) from None
    if before != [id(node) for node in model.graph.all_nodes()]:
        notices.append("The node list was not in topological order; it was sorted on opening.")


def _is_sorted(model: ir.Model) -> bool:
    seen: set[ir.Node] = set()
    for node in model.graph.all_nodes():
        for value in node.inputs:
            producer = None if value is None else value.producer()
            if producer is not None and producer not in seen:
                return False
        seen.add(node)
    return True
