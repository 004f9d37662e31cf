"""External weight files of models from strangers: they may not lead out of the model's folder."""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath

import onnx
import onnx_ir as ir

from explorer.errors import ModelError
from explorer.graph.names import quoted
from explorer.graph.validate import holders, stored_tensors


def locate_external_data(model: ir.Model, path: Path) -> None:
    """Tie external data to the folder of ``path``; what attributes keep there is read at once.

    Raises:
        ModelError: data is missing, too short, or outside the folder; names the tensor, the side file
            and what to do.
    """
    folder = path.resolve().parent
    ir.external_data.set_base_dir(model.graph, folder)
    for graph in model.graphs():
        for value in graph.initializers.values():
            if isinstance(value.const_value, ir.ExternalTensor):
                _check_tensor(value.const_value, folder, path.name)
    for node in model.graph.all_nodes():
        for name, attribute in list(node.attributes.items()):
            if isinstance(attribute.value, ir.ExternalTensor):
                _check_tensor(attribute.value, folder, path.name)
                node.attributes[name] = ir.AttrTensor(name, embed(attribute.value))


def refuse_external_data(model: onnx.ModelProto, what: str) -> None:
    """A model without a file has no folder in which external data could lie.

    Raises:
        ModelError: names the first tensor with external data.
    """
    for holder in holders(model, what):
        for tensor, _ in stored_tensors(holder):
            if tensor.data_location == onnx.TensorProto.EXTERNAL:
                raise ModelError(
                    f"{quoted(what)} keeps tensor {quoted(tensor.name)} in a file of its own; "
                    "open it by its path, or save it with the weights inside."
                )


def embed(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    """The same tensor in memory; other tensors than external ones as they are."""
    if not isinstance(tensor, ir.ExternalTensor):
        return tensor
    return ir.Tensor(tensor.numpy().copy(), name=tensor.name, dtype=tensor.dtype)


def _check_tensor(tensor: ir.ExternalTensor, folder: Path, model_name: str) -> None:
    location = str(tensor.location)
    what = f"{quoted(model_name)}: tensor {quoted(tensor.name)} keeps its data in {quoted(location)}"
    if _leads_out(location):
        raise ModelError(f"{what}, which is not inside the model's folder; move the file beside the model.")
    target = folder / location
    try:
        if not target.is_file():
            raise ModelError(f"{what}, which is missing; put that file beside the model.")
        inside, status = target.resolve().is_relative_to(folder), target.stat()
    except (OSError, ValueError) as error:
        raise ModelError(f"{what}, which cannot be opened; put that file beside the model.") from error
    if not inside:
        raise ModelError(
            f"{what}, a link that leads out of the model's folder; replace it by the file itself."
        )
    if status.st_nlink > 1:
        raise ModelError(
            f"{what}, a file with several names (hard links), which could lie outside the model's "
            "folder; replace it by a copy."
        )
    _check_extent(tensor, status.st_size, what)


def _check_extent(tensor: ir.ExternalTensor, size: int, what: str) -> None:
    offset, length = tensor.offset or 0, tensor.length or tensor.nbytes
    if length != tensor.nbytes:
        raise ModelError(
            f"{what}, with {length} bytes where {tensor.nbytes} are needed; export the model again."
        )
    if size < offset + length:
        raise ModelError(
            f"{what}, which is too short ({size} bytes, {offset + length} needed); download it again."
        )


def _leads_out(location: str) -> bool:
    posix, windows = PurePosixPath(location), PureWindowsPath(location)
    absolute = posix.is_absolute() or windows.is_absolute() or bool(windows.drive or windows.root)
    return not location or absolute or ".." in posix.parts or ".." in windows.parts
