"""Write a graph as an ONNX file that the checker accepts, with an unchanged interface."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import onnx_ir as ir
from google.protobuf.message import EncodeError

from explorer.errors import ModelError, RewriteError
from explorer.graph.external import embed
from explorer.graph.graph import Graph
from explorer.graph.names import quoted
from explorer.graph.shapes import check

EMBED_LIMIT_BYTES = 2_000_000_000  # a protobuf file ends at 2 GiB; leave room for the structure

FILE_LIMIT_BYTES = 2**31 - 1
_ALWAYS_EMBEDDED_BYTES = 1024


def weights_bytes(graph: Graph) -> int:
    """Bytes of all weights, counted once per tensor."""
    tensors = {id(v.const_value): v.const_value for v in graph.initializers() if v.const_value is not None}
    return sum(tensor.nbytes for tensor in tensors.values())


def save(graph: Graph, path: str | Path, *, embed_limit_bytes: int = EMBED_LIMIT_BYTES) -> Path:
    """Write the model; weights beyond ``embed_limit_bytes`` in total go to ``<name>.data`` beside it.

    The file appears whole or not at all: it is written in a temporary folder and moved into place.

    Raises:
        RewriteError: the ONNX checker refuses the graph, with its reason, although it passed on opening.
        ModelError: the place cannot be written, or holds the weights that this very model reads.
    """
    path = Path(path).expanduser()
    problem = check(graph.model) if graph.passes_checker else None
    if problem:
        raise RewriteError(f"{quoted(graph.name)} was not saved: the ONNX checker says: {problem}.")
    external = weights_bytes(graph) > embed_limit_bytes
    if path.is_dir():
        raise ModelError(f"{quoted(path)} is a folder; add a file name.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if external:
            _protect_source(graph, path)
        _write(graph, path, external=external)
    except OSError as error:
        raise ModelError(f"{quoted(path)} cannot be written: {error.strerror or error}.") from error
    except EncodeError as error:
        raise _too_large(path) from error
    return path


def _too_large(path: Path) -> ModelError:
    return ModelError(
        f"{quoted(path)} was not written: it would be larger than 2 GB, more than one file can hold."
    )


def _side_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.data")


def _protect_source(graph: Graph, path: Path) -> None:
    """Weights are read when needed: replacing the file they come from would change this model."""
    side = _side_file(path)
    sources = {Path(tensor.path) for tensor in _external_tensors(graph)}
    if graph.source is not None and path.exists() and path.samefile(graph.source):
        sources.add(side)
    if side.exists() and any(source.exists() and source.samefile(side) for source in sources):
        raise ModelError(
            f"{quoted(path)} was not saved: {quoted(side.name)} holds the weights of the model that is "
            "open; choose another name."
        )


def _external_tensors(graph: Graph) -> Iterator[ir.ExternalTensor]:
    return (v.const_value for v in graph.initializers() if isinstance(v.const_value, ir.ExternalTensor))


def _write(graph: Graph, path: Path, *, external: bool) -> None:
    model = graph.model.clone()
    for body in model.graphs():
        for value in body.initializers.values():
            tensor = value.const_value
            if tensor is not None and (tensor.nbytes <= _ALWAYS_EMBEDDED_BYTES or not external):
                value.const_value = embed(tensor)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".explorer-") as name:
        folder, side = Path(name), _side_file(path)
        ir.save(
            model,
            folder / path.name,
            format="protobuf",
            external_data=side.name if external else None,
            size_threshold_bytes=_ALWAYS_EMBEDDED_BYTES,
        )
        if (folder / path.name).stat().st_size > FILE_LIMIT_BYTES:
            raise _too_large(path)
        if external and (folder / side.name).exists():
            (folder / side.name).replace(side)
        (folder / path.name).replace(path)
