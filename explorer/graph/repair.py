"""What is set right while a model is opened; each repair is a sentence for the user."""

from __future__ import annotations

from itertools import count

import onnx_ir as ir

from explorer.errors import ModelError
from explorer.graph.freeze import names_text
from explorer.graph.graph import bodies_of
from explorer.graph.names import quoted

_FIRST_IR_WITH_DEFAULTS = 4


def repair(model: ir.Model, what: str) -> tuple[str, ...]:
    """Sort the nodes, forget impossible dims, and read IR 3 files as ONNX Runtime does; in place.

    Args:
        model: the model as it was read.
        what: the file, as messages name it.

    Returns:
        One sentence per kind of repair.

    Raises:
        ModelError: the nodes depend on each other in a circle.
    """
    done = []
    if _sort(model, what):
        done.append("The node list was not in topological order; it was sorted on opening.")
    renamed = _rename_repeated_nodes(model)
    if renamed:
        done.append(f"Nodes with the name of another node were renamed: {names_text(renamed)}.")
    if _forget_negative_dims(model):
        done.append("Negative dimensions in the file were taken as unknown.")
    if _separate_weights(model):
        done.append(
            "The file is of an old format that lists weights among the inputs; they are constants to "
            "ONNX Runtime and are treated so."
        )
    reshaped = _believe_data(model)
    if reshaped:
        done.append(
            f"The data of these weights have another shape than declared, and count: {names_text(reshaped)}."
        )
    return tuple(done)


def _sort(model: ir.Model, what: str) -> bool:
    if _is_sorted(model.graph, set()):
        return False
    try:
        model.graph.sort()
    except ValueError:
        raise ModelError(
            f"{quoted(what)} has a cycle: some node depends on its own output; export the model again."
        ) from None
    return True


def _is_sorted(graph: ir.Graph, ready: set[ir.Node]) -> bool:
    """Whether every producer, also of values that bodies capture, comes before its readers."""
    for node in graph:
        producers = (value.producer() for value in node.inputs if value is not None)
        if any(producer is not None and producer not in ready for producer in producers):
            return False
        bodies = (body for attribute in node.attributes.values() for body in bodies_of(attribute))
        if not all(_is_sorted(body, ready) for body in bodies):
            return False
        ready.add(node)
    return True


def _rename_repeated_nodes(model: ir.Model) -> list[str]:
    """ONNX Runtime opens no graph in which two nodes have one name; returns the names that were repeated."""
    repeated: list[str] = []
    for graph in model.graphs():
        taken = {node.name for node in graph if node.name}
        seen: set[str] = set()
        for node in graph:
            if node.name in seen:
                repeated.append(node.name)
                node.name = _unused(node.name, taken)
                taken.add(node.name)
            elif node.name:
                seen.add(node.name)
    return list(dict.fromkeys(repeated))


def _unused(name: str, taken: set[str]) -> str:
    return next(f"{name}_{i}" for i in count(2) if f"{name}_{i}" not in taken)


def _forget_negative_dims(model: ir.Model) -> bool:
    found = False
    for graph in model.graphs():
        values = [*graph.inputs, *graph.outputs, *(v for node in graph for v in node.outputs)]
        for value in values:
            if value.shape is not None and any(isinstance(d, int) and d < 0 for d in value.shape):
                dims = [None if isinstance(d, int) and d < 0 else d for d in value.shape]
                value.shape, found = ir.Shape(dims), True
    return found


def _separate_weights(model: ir.Model) -> bool:
    """Before IR version 4 initializers had to be listed as inputs and could not be overridden."""
    if model.ir_version >= _FIRST_IR_WITH_DEFAULTS:
        return False
    listed = list(model.graph.inputs)
    data = [value for value in listed if not value.is_initializer()]
    model.graph.inputs.clear()
    model.graph.inputs.extend(data)
    model.ir_version = _FIRST_IR_WITH_DEFAULTS
    return len(data) < len(listed)


def _believe_data(model: ir.Model) -> list[str]:
    """A weight that is a graph output may be declared there with other dims; returns the names of such weights."""
    found = []
    for graph in model.graphs():
        for value in graph.initializers.values():
            data = value.const_value
            if data is None or value.shape is None or value.is_graph_input() or value.shape == data.shape:
                continue
            value.shape = ir.Shape(data.shape.numpy())
            found.append(value.name or "")
    return found
