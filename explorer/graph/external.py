"""External weight files of models from strangers: they may not lead out of the model's folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath

import onnx_ir as ir

from explorer.errors import ModelError


def check_external_data(model: ir.Model, path: Path) -> None:
    """Refuse external data that is missing, too short, or outside the folder of ``path``.

    Raises:
        ModelError: names the tensor, the side file and what to do.
    """
    folder = path.resolve().parent
    for tensor in _external_tensors(model):
        _check_tensor(tensor, folder, path.name)


def _external_tensors(model: ir.Model) -> Iterator[ir.ExternalTensor]:
    for graph in model.graphs():
        for value in graph.initializers.values():
            if isinstance(value.const_value, ir.ExternalTensor):
                yield value.const_value
    for node in model.graph.all_nodes():
        for attribute in node.attributes.values():
            if attribute.is_ref():
                continue
            tensors = attribute.value if attribute.type == ir.AttributeType.TENSORS else ()
            if attribute.type == ir.AttributeType.TENSOR:
                tensors = (attribute.value,)
            yield from (t for t in tensors if isinstance(t, ir.ExternalTensor))


def _check_tensor(tensor: ir.ExternalTensor, folder: Path, model_name: str) -> None:
    location = str(tensor.location)
    what = f"'{model_name}': tensor '{tensor.name}' keeps its data in '{location}'"
    if _leads_out(location):
        raise ModelError(f"{what}, which is not inside the model's folder; move the file beside the model.")
    target = folder / location
    if not target.is_file():
        raise ModelError(f"{what}, which is missing; put that file beside the model.")
    if not target.resolve().is_relative_to(folder):
        raise ModelError(
            f"{what}, a link that leads out of the model's folder; replace it by the file itself."
        )
    end = (tensor.offset or 0) + (tensor.length or tensor.nbytes)
    if target.stat().st_size < end:
        raise ModelError(
            f"{what}, which is too short ({target.stat().st_size} bytes, {end} needed); download it again."
        )


def _leads_out(location: str) -> bool:
    posix, windows = PurePosixPath(location), PureWindowsPath(location)
    absolute = posix.is_absolute() or windows.is_absolute() or bool(windows.drive)
    return not location or absolute or ".." in posix.parts or ".." in windows.parts
