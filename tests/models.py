"""Small models for tests, written as ONNX text, and their outputs in ONNX Runtime.

graph = load(model("(float[2,3] x) => (float[2,4] y) { y = MatMul(x, w) }", w=np.ones((3, 4), "f4")))
(y,) = run(graph, {"x": ...})
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from explorer.graph import Graph, save

CASES = Path(__file__).resolve().parent / "cases"


def model(
    text: str,
    *,
    opset: int = 17,
    ir_version: int = 8,
    domains: Mapping[str, int] | None = None,
    **weights: np.ndarray,
) -> onnx.ModelProto:
    """Parse ``(inputs) => (outputs) { nodes }``; each keyword is an initializer of that name.

    ``domains`` are further opset imports. Functions may follow the graph, as in ONNX text files.
    """
    imports = {"": opset, **(domains or {})}
    listed = ", ".join(f'"{domain}" : {version}' for domain, version in imports.items())
    proto = onnx.parser.parse_model(f"<ir_version: {ir_version}, opset_import: [{listed}]>\nmain {text}")
    for name, array in weights.items():
        proto.graph.initializer.append(tensor(name, array))
    return proto


def tensor(name: str, array: Any) -> onnx.TensorProto:
    """A named tensor; strings become a STRING tensor."""
    array = np.asarray(array)
    if array.dtype.kind in "OUS":
        values = [str(v).encode() for v in array.ravel()]
        return helper.make_tensor(name, onnx.TensorProto.STRING, array.shape, values)
    return numpy_helper.from_array(array, name)


def chain(length: int, op: str = "Relu") -> onnx.ModelProto:
    """A model of ``length`` nodes of one unary operator, one after the other."""
    nodes = [helper.make_node(op, [f"v{i}"], [f"v{i + 1}"], name=f"{op}_{i}") for i in range(length)]
    values = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 8]) for name in ("v0", f"v{length}")
    ]
    body = helper.make_graph(nodes, "chain", values[:1], values[1:])
    return helper.make_model(body, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def run(
    source: Graph | onnx.ModelProto | Path, feeds: Mapping[str, Any], *, optimised: bool = False
) -> list[Any]:
    """Outputs of a model in ONNX Runtime on one thread, by default without its own optimisations."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    level = ort.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimised else level.ORT_DISABLE_ALL
    with tempfile.TemporaryDirectory() as folder:
        if isinstance(source, Graph):
            source = save(source, Path(folder) / "model.onnx")
        data = str(source) if isinstance(source, Path) else source.SerializeToString()
        session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        outputs: list[Any] = session.run(None, dict(feeds))
    return outputs


def cases() -> list[dict[str, Any]]:
    """The entries of ``cases.json``: name, kind, trigger, right behaviour, comparison, tolerance."""
    entries: list[dict[str, Any]] = json.loads((CASES / "cases.json").read_text())
    return entries


def case_path(name: str) -> Path:
    """The model file of a case."""
    return CASES / f"{name}.onnx"


def case_runs(name: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """All (feeds, expected outputs) of a case; strings as object arrays, as ONNX Runtime wants them."""
    runs = []
    for path in [CASES / f"{name}.npz", *sorted(CASES.glob(f"{name}.*.npz"))]:
        parts: dict[str, dict[str, Any]] = {"in": {}, "out": {}}
        with np.load(path) as arrays:
            for key, array in arrays.items():
                side, _, value = key.partition("|")
                parts[side][value] = array.astype(object) if array.dtype.kind == "U" else array
        runs.append((parts["in"], parts["out"]))
    return runs
