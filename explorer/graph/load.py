"""Open a model: from a path, bytes, a protobuf or the name of a sample; repaired, numbered, with shapes."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx_ir as ir
import psutil
from google.protobuf.message import DecodeError

from explorer.errors import InputError, ModelError
from explorer.graph.external import locate_external_data, refuse_external_data
from explorer.graph.fill import fill_bytes
from explorer.graph.fill import fill_weights as fill_weights_of
from explorer.graph.freeze import OVERRIDABLE_NOTICE
from explorer.graph.functions import inline_functions
from explorer.graph.graph import Graph
from explorer.graph.names import quoted
from explorer.graph.repair import repair
from explorer.graph.samples import is_sample, sample_names, sample_path
from explorer.graph.save import FILE_LIMIT_BYTES
from explorer.graph.shapes import infer_and_check
from explorer.graph.validate import check_contents, check_structure

_LFS_POINTER = b"version https://git-lfs"


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
        fill_weights: seed (0 or more) for the float weights that are graph inputs (structures without
            weights). Samples are filled with seed 0 if this is None.
        name: what to call the model; the file's stem by default.

    Raises:
        ModelError: one sentence that names the file and what is wrong with it.
        InputError: the seed is negative.
    """
    if fill_weights is not None and fill_weights < 0:
        raise InputError(f"The seed for the weights must be 0 or more, not {fill_weights}.")
    if isinstance(source, str) and is_sample(source):
        seed = 0 if fill_weights is None else fill_weights
        return _open(sample_path(source), name or source, seed)
    if isinstance(source, str | Path):
        return _open(Path(source), name, fill_weights)
    what = name or "the uploaded model"
    model, notices = _from_memory(source, what)
    return _finish(model, what, notices, fill_weights, name=name or "model")


def _open(path: Path, name: str | None, seed: int | None) -> Graph:
    what = str(path)
    try:
        path = path.expanduser()
        data = _read(path)
    except (OSError, RuntimeError, ValueError) as error:  # also: no such home folder, a NUL in the path
        reason = getattr(error, "strerror", None) or error
        raise ModelError(f"{quoted(what)} cannot be read: {reason}.") from error
    model, notices = _admit(_parse(data, what), what)
    locate_external_data(model, path)
    return _finish(model, what, notices, seed, name=name or path.stem, path=path)


def _read(path: Path) -> bytes:
    if not path.exists():
        known = ", ".join(sample_names())
        raise ModelError(f"{quoted(path)} is neither a file nor a sample model; samples are: {known}.")
    if not path.is_file():
        raise ModelError(f"{quoted(path)} is not a file; give the path of an .onnx file.")
    if path.stat().st_size > FILE_LIMIT_BYTES:
        raise ModelError(
            f"{quoted(path)} is larger than 2 GB, more than one ONNX file can hold; "
            "save it with external data."
        )
    return path.read_bytes()


def _from_memory(source: bytes | onnx.ModelProto | ir.Model, what: str) -> tuple[ir.Model, tuple[str, ...]]:
    if isinstance(source, ir.Model):
        if not source.functions:
            return source, ()
        source = ir.serde.serialize_model(source)
    proto = source if isinstance(source, onnx.ModelProto) else _parse(source, what)
    refuse_external_data(proto, what)
    return _admit(proto, what)


def _parse(data: bytes, what: str) -> onnx.ModelProto:
    if not data:
        raise ModelError(f"{quoted(what)} is empty; export the model again.")
    if data.startswith(_LFS_POINTER):
        raise ModelError(
            f"{quoted(what)} is a Git LFS pointer, not the model itself; fetch it with `git lfs pull`."
        )
    try:
        proto: onnx.ModelProto = onnx.ModelProto.FromString(data)
    except DecodeError:
        raise ModelError(
            f"{quoted(what)} is not an ONNX model (not a valid protobuf); give an .onnx file."
        ) from None
    if not proto.HasField("graph"):
        raise ModelError(f"{quoted(what)} is not an ONNX model (it holds no graph); give an .onnx file.")
    return proto


def _admit(proto: onnx.ModelProto, what: str) -> tuple[ir.Model, tuple[str, ...]]:
    """Refuse what is not safe or not valid; the rest as an onnx_ir model without functions."""
    notices = []
    check_contents(proto, what)
    proto, inlined = inline_functions(proto, what)
    if inlined:
        notices.append(f"{inlined} model-local function(s) were inlined.")
    check_structure(proto, what)
    if proto.training_info:
        notices.append("The file's training information is not kept.")
    try:
        return ir.serde.deserialize_model(proto), tuple(notices)
    except Exception as error:
        raise ModelError(f"{quoted(what)} is damaged and cannot be read ({quoted(_root(error))}).") from error


def _root(error: BaseException) -> BaseException:
    """What went wrong first: onnx_ir wraps it several times."""
    while (earlier := error.__cause__ or error.__context__) is not None:
        error = earlier
    return error


def _finish(
    model: ir.Model,
    what: str,
    notices: tuple[str, ...],
    seed: int | None,
    *,
    name: str,
    path: Path | None = None,
) -> Graph:
    repairs = repair(model, what)
    shapes, checker = infer_and_check(model)  # before filling, which follows variances through shapes
    filled = 0 if seed is None else _fill(model, what, seed)
    found = (
        *notices,
        *repairs,
        f"{filled} weights were filled with seeded random values (seed {seed}): "
        "timings are real, predictions of the model are not."
        if filled
        else None,
        shapes,
        f"The ONNX checker objects to this model: {checker}." if checker else None,
        OVERRIDABLE_NOTICE if any(v.is_initializer() for v in model.graph.inputs) else None,
    )
    kept = tuple(notice for notice in found if notice)
    return Graph(model, name=name, source=path, notices=kept, passes_checker=checker is None)


def _fill(model: ir.Model, what: str, seed: int) -> int:
    needed, present = fill_bytes(model), psutil.virtual_memory().total
    if needed > present:
        raise ModelError(
            f"The weights of {quoted(what)} would take {needed / 1e9:,.0f} GB, more than the "
            f"{present / 1e9:,.0f} GB of this machine; open it without filling them."
        )
    return fill_weights_of(model, seed)
