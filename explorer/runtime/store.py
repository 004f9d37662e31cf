"""``ModelStore``: graphs as ONNX files for a runtime, with weights written once and shared.

A rewrite changes a few nodes of a model whose weights may be hundreds of megabytes. So every large
weight becomes an external-data file named after its content, next to the models, and a variant costs
only its structure and the weights it really changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import threading
import uuid
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self

from explorer.errors import RuntimeFailure
from explorer.runtime.backend import stored_name

if TYPE_CHECKING:
    import onnx_ir as ir

    from explorer.graph import Graph

EXTERNAL_FROM_BYTES = 1024  # runtimes want shape constants, which are smaller, inside the model


class ModelStore:
    """A folder of models, removed when the store is closed.

    Args:
        parent: folder to create it in; the system's temporary folder by default.
    """

    def __init__(self, parent: Path | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="explorer-models-", dir=parent))
        self._paths: dict[str, Path] = {}
        self._lock = threading.Lock()
        self._finalizer = weakref.finalize(self, _remove, self.folder, os.getpid())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def put(self, graph: Graph) -> Path:
        """Write a graph unless one with the same fingerprint has been written.

        Returns:
            Path of the ONNX file. It stays valid until the store is closed.

        Raises:
            RuntimeFailure: the file cannot be written.
        """
        with self._lock:
            return self._put(graph, graph.fingerprint(), lambda: graph.model)

    def put_marked(self, graph: Graph) -> Path:
        """As ``put``, but the names of nodes and values carry the node ids (see ``marked``).

        Ids count here, which fingerprints ignore, so that each graph object is written for itself.
        """
        from explorer.graph import node_id
        from explorer.runtime.marked import marked_model

        ids = hashlib.sha256(" ".join(node_id(node) for node in graph.nodes).encode()).hexdigest()
        with self._lock:
            return self._put(graph, f"{ids[:16]}{graph.fingerprint()}", lambda: marked_model(graph))

    def _put(self, graph: Graph, key: str, model: Callable[[], ir.Model]) -> Path:
        if key not in self._paths:
            path = self.folder / stored_name(graph.name, key)
            try:
                self._write(model(), path)
            except OSError as error:
                raise RuntimeFailure(
                    f"'{graph.name}' cannot be written to '{self.folder}' for the runtime: "
                    f"{error.strerror or error}; free some space or set TMPDIR."
                ) from error
            self._paths[key] = path
        return self._paths[key]

    def close(self) -> None:
        """Remove the folder; safe to call twice."""
        with self._lock:
            self._paths.clear()
            self._finalizer()

    def _write(self, original: ir.Model, path: Path) -> None:
        import onnx_ir as ir

        model = original.clone()
        for graph in model.graphs():
            for value in graph.initializers.values():
                if value.const_value is not None:
                    value.const_value = self._stored(value.const_value, value.name or "")
        with self._appearing(path) as partial:
            ir.save(model, partial, format="protobuf")

    def _stored(self, tensor: ir.TensorProtocol, name: str) -> ir.TensorProtocol:
        """Large ones beside the model, small ones inside, wherever the tensor lay before."""
        from explorer.graph.external import embed

        return self._external(tensor, name) if _is_external(tensor) else embed(tensor)

    def _external(self, tensor: ir.TensorProtocol, name: str) -> ir.ExternalTensor:
        import onnx_ir as ir

        from explorer.graph.fingerprint import tensor_digest

        location = f"{tensor_digest(tensor)}.bin"
        if not (self.folder / location).exists():
            with self._appearing(self.folder / location) as partial, partial.open("wb") as file:
                _write_content(tensor, file)
        return ir.ExternalTensor(
            location,
            0,
            tensor.nbytes,
            tensor.dtype,
            shape=ir.Shape(tensor.shape.numpy()),
            name=name,
            base_dir=self.folder,
        )

    @contextlib.contextmanager
    def _appearing(self, path: Path) -> Iterator[Path]:
        """A name to write to; the file gets its own name only when it is complete."""
        partial = self.folder / f"partial-{uuid.uuid4().hex}"
        try:
            yield partial
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


def _is_external(tensor: ir.TensorProtocol) -> bool:
    import onnx_ir as ir

    return tensor.dtype != ir.DataType.STRING and tensor.nbytes >= EXTERNAL_FROM_BYTES


def _write_content(tensor: ir.TensorProtocol, file: BinaryIO) -> None:
    """Stream where the tensor can; onnx_ir asks for ``tofile`` only of its own tensors."""
    stream = getattr(tensor, "tofile", None)
    if stream is None:
        file.write(tensor.tobytes())
    else:
        stream(file)


def _remove(folder: Path, owner_pid: int) -> None:
    if os.getpid() == owner_pid:  # a forked child must not tidy up after its parent
        shutil.rmtree(folder, ignore_errors=True)
