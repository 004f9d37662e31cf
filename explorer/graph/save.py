"""Write a graph as an ONNX file that the checker accepts, with an unchanged interface."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import onnx_ir as ir

from explorer.errors import ModelError, RewriteError
from explorer.graph.graph import Graph
from explorer.graph.shapes import check

EMBED_LIMIT_BYTES = 2_000_000_000  # a protobuf file ends at 2 GiB; leave room for the structure


def weights_bytes(graph: Graph) -> int:
    """Bytes of all weights, counted once per tensor."""
    tensors = {id(v.const_value): v.const_value for v in graph.initializers() if v.const_value}
    return sum(tensor.nbytes for tensor in tensors.values())


def save(graph: Graph, path: str | Path, *, embed_limit_bytes: int = EMBED_LIMIT_BYTES) -> Path:
    """Write the model; weights beyond ``embed_limit_bytes`` in total go to ``<name>.data`` beside it.

    The file appears whole or not at all: it is written in a temporary folder and moved into place.

    Raises:
        RewriteError: the ONNX checker refuses the graph, with its reason.
        ModelError: the place cannot be written.
    """
    path = Path(path).expanduser()
    problem = check(graph.model)
    if problem and not _was_already_invalid(graph):
        raise RewriteError(f"'{graph.name}' was not saved: the ONNX checker says: {problem}.")
    external = weights_bytes(graph) > embed_limit_bytes
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(graph, path, external=external)
    except OSError as error:
        raise ModelError(f"'{path}' cannot be written: {error.strerror or error}.") from error
    return path


def _was_already_invalid(graph: Graph) -> bool:
    """A model with operators the checker does not know fails before and after; let it pass."""
    known = {"", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training"}
    return any(node.domain not in known for node in graph.nodes)


def _write(graph: Graph, path: Path, *, external: bool) -> None:
    model = graph.model.clone()
    _embed_external(model)
    side = f"{path.name}.data"
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".explorer-") as folder:
        ir.save(
            model,
            Path(folder) / path.name,
            format="protobuf",
            external_data=side if external else None,
        )
        if external:
            shutil.move(Path(folder) / side, path.parent / side)
        shutil.move(Path(folder) / path.name, path)


def _embed_external(model: ir.Model) -> None:
    """Read the original's side files: the new file must never refer to them."""
    for graph in model.graphs():
        for value in graph.initializers.values():
            if isinstance(value.const_value, ir.ExternalTensor):
                embedded = ir.external_data.convert_tensors_from_external([value.const_value])
                value.const_value = embedded[0]
