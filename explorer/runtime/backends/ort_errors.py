"""ONNX Runtime's exceptions in words: which model, at which level, why, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from explorer.errors import RuntimeFailure
from explorer.runtime.backend import model_label
from explorer.runtime.target import Target

if TYPE_CHECKING:
    import onnx

_UNREGISTERED = re.compile(r"(?P<domain>[\w.\-]*):(?P<op>\w+)\([^)]*\) is not a registered function")
_MEMORY = re.compile(r"Failed to allocate memory|bad[ _]alloc|Unable to allocate", re.IGNORECASE)
_OPTIMIZER = re.compile(r"/core/optimizer/|graph_transformer|GraphTransformer")
_STATUS = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ")
_PREAMBLES = (
    re.compile(r"^Load model from .*? failed:\s*"),
    re.compile(r"^Exception during initialization:\s*"),
    re.compile(r"^Fatal error:\s*"),
    re.compile(r"^Non-zero status code returned while running "),
)
_SOURCE = re.compile(r"/?\S*onnxruntime\S*\.(?:cc|h):\d+ .*?\)(?: const)? (?=\S)")
_LONGEST = 300


@cache
def ort_exceptions() -> tuple[type[Exception], ...]:
    """Everything a session raises when a model cannot be loaded or run."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    own = [t for t in vars(state).values() if isinstance(t, type) and issubclass(t, Exception)]
    return (*own, RuntimeError, ValueError, TypeError)


def failure(
    error: Exception, path: Path, target: Target, *, running: bool = False
) -> RuntimeFailure | MemoryError:
    """The error to raise instead of ``error``, which ONNX Runtime raised for a model.

    Args:
        error: what ONNX Runtime raised.
        path: the model file.
        target: where it was to run.
        running: True if the model was loaded and a run failed.

    Returns:
        RuntimeFailure with one or two sentences; MemoryError if an allocation failed, which the
        worker reports with its limit.
    """
    text = str(error)
    if _MEMORY.search(text):
        return MemoryError(f"running '{model_label(path)}': {shorten(text)}")
    unknown = _UNREGISTERED.search(text)
    if unknown:
        return RuntimeFailure(_unknown_operator(path, unknown["domain"], unknown["op"]))
    verb = "run" if running else "load"
    advice = ""
    if target.level != "disable" and _OPTIMIZER.search(text):
        verb, advice = "optimise", " The model may be valid: try level=disable."
    return RuntimeFailure(
        f"ONNX Runtime could not {verb} '{model_label(path)}' at level={target.level}: "
        f"{shorten(text).rstrip('. ')}.{advice}"
    )


def shorten(text: str) -> str:
    """The useful part of a message: without status code, source file and C++ signature."""
    text = _STATUS.sub("", " ".join(text.split()))
    for preamble in _PREAMBLES:
        text = preamble.sub("", text)
    text = _SOURCE.sub("", text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _unknown_operator(path: Path, domain: str, op_type: str) -> str:
    name = f"{domain or 'ai.onnx'}::{op_type}"
    places = [f"'{node.name or node.output[0]}'" for node in _nodes(path, domain, op_type)]
    where = f"node {', '.join(places[:3])}" if places else "a node"
    more = f" and {len(places) - 3} more" if len(places) > 3 else ""
    return (
        f"ONNX Runtime has no operator {name}, used by {where}{more} of '{model_label(path)}': "
        "the model can be looked at and rewritten, but not run or measured "
        "(custom operator libraries are never loaded)."
    )


def _nodes(path: Path, domain: str, op_type: str) -> list[onnx.NodeProto]:
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load(str(path), load_external_data=False)
    except (OSError, DecodeError):
        return []
    return [n for n in all_nodes(model.graph) if n.op_type == op_type and n.domain == domain]


def all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Every node, those of bodies after the node that holds them."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from all_nodes(body)
