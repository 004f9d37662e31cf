"""Model-local functions are inlined on opening, once it is known how large the result becomes.

Functions that call functions ten times, ten levels deep, make a model of 10^10 nodes from a kilobyte.
"""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

import onnx
import onnx.inliner

from explorer.errors import ModelError
from explorer.graph.names import node_label, quoted
from explorer.graph.validate import MAX_NODES, bodies

_Key = tuple[str, str, str]


def inline_functions(model: onnx.ModelProto, what: str) -> tuple[onnx.ModelProto, int]:
    """Replace every call of a model-local function by the function's nodes.

    Args:
        model: the parsed file; not changed.
        what: the file, as messages name it.

    Returns:
        A model without functions, and how many of them were called.

    Raises:
        ModelError: the functions call each other in a circle, are called in a way they do not allow, or
            become too large.
    """
    functions = {(f.domain, f.name, f.overload): f for f in model.functions}
    if not functions:
        return model, 0
    sizes = _sizes(functions, quoted(what))
    called = _called(model.graph, functions)
    if _expanded(model.graph, functions, sizes) > MAX_NODES:
        raise ModelError(
            f"{quoted(what)} has more than {MAX_NODES:,} nodes once its functions are written out, "
            "too many to explore."
        )
    for holder in (model.graph, *functions.values()):
        _check_calls(holder, functions, quoted(what))
    if any(f.attribute_proto for f in functions.values()):
        model = _with_defaults(model)
    try:
        inlined: onnx.ModelProto = onnx.inliner.inline_local_functions(model, convert_version=True)
    except Exception as error:
        raise ModelError(
            f"The functions of {quoted(what)} cannot be written out as plain nodes; "
            "export the model without model-local functions."
        ) from error
    del inlined.functions[:]
    return inlined, len(called)


def _nodes(holder: onnx.GraphProto | onnx.FunctionProto) -> Iterator[onnx.NodeProto]:
    stack = [holder]
    while stack:
        for node in stack.pop().node:
            yield node
            stack.extend(bodies(node))


def _key(node: onnx.NodeProto) -> _Key:
    return (node.domain, node.op_type, node.overload)


def _sizes(functions: dict[_Key, onnx.FunctionProto], what: str) -> dict[_Key, int]:
    """Number of nodes of each function after everything it calls has been written out."""
    calls = {key: {_key(n) for n in _nodes(f)} & functions.keys() for key, f in functions.items()}
    sizes: dict[_Key, int] = {}
    try:
        for key in TopologicalSorter(calls).static_order():
            sizes[key] = _expanded(functions[key], functions, sizes)
    except CycleError as error:
        name = quoted(error.args[1][0][1])
        raise ModelError(f"{what}: function {name} calls itself; export the model again.") from None
    return sizes


def _expanded(
    holder: onnx.GraphProto | onnx.FunctionProto,
    functions: dict[_Key, onnx.FunctionProto],
    sizes: dict[_Key, int],
) -> int:
    return sum(sizes[_key(node)] if _key(node) in functions else 1 for node in _nodes(holder))


def _called(graph: onnx.GraphProto, functions: dict[_Key, onnx.FunctionProto]) -> set[_Key]:
    """Functions that are reached from the main graph."""
    reached: set[_Key] = set()
    waiting: list[onnx.GraphProto | onnx.FunctionProto] = [graph]
    while waiting:
        new = ({_key(node) for node in _nodes(waiting.pop())} & functions.keys()) - reached
        reached |= new
        waiting.extend(functions[key] for key in new)
    return reached


def _with_defaults(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy in which calls give all attributes: the inliner does not know default values."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    functions = {(f.domain, f.name, f.overload): f for f in copy.functions}
    for holder in (copy.graph, *copy.functions):
        for node in _nodes(holder):
            given = {attribute.name for attribute in node.attribute}
            defaults = functions[_key(node)].attribute_proto if _key(node) in functions else ()
            node.attribute.extend(default for default in defaults if default.name not in given)
    return copy


def _check_calls(
    holder: onnx.GraphProto | onnx.FunctionProto, functions: dict[_Key, onnx.FunctionProto], what: str
) -> None:
    for node in _nodes(holder):
        function = functions.get(_key(node))
        if function is None:
            continue
        if len(node.input) > len(function.input) or len(node.output) > len(function.output):
            label = node_label(node.name, node.op_type, node.domain)
            raise ModelError(f"{what}: {label} has more inputs or outputs than the function it calls.")
