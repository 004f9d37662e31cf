"""Run one optimiser of another project on one file; started as a process of its own, with a time limit.

``python -m explorer.bench.peer_child TOOL IN.onnx OUT.onnx``. The tools are test extras, never dependencies.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def _onnxoptimizer(model: Any) -> Any:  # noqa: ANN401 (a ModelProto; onnx belongs to explorer.graph)
    return import_module("onnxoptimizer").optimize(model)


def _onnxsim(model: Any) -> Any:  # noqa: ANN401 (as above)
    simplified, is_valid = import_module("onnxsim").simplify(model)
    if not is_valid:
        raise RuntimeError("onnxsim's own check failed")
    return simplified


def _onnxslim(model: Any) -> Any:  # noqa: ANN401 (as above)
    return import_module("onnxslim").slim(model)


def _onnxscript(model: Any) -> Any:  # noqa: ANN401 (as above)
    return import_module("onnxscript.optimizer").optimize(model)


TOOLS: dict[str, Callable[[Any], Any]] = {
    "onnxoptimizer": _onnxoptimizer,
    "onnxsim": _onnxsim,
    "onnxslim": _onnxslim,
    "onnxscript": _onnxscript,
}


def main() -> None:
    """Optimise the file named on the command line."""
    tool, source, target = sys.argv[1:4]
    onnx = import_module("onnx")
    onnx.save(TOOLS[tool](onnx.load(source)), target)


if __name__ == "__main__":
    main()
