"""Swap old values for new ones while graph outputs keep their names (G3), and clear what became unused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import onnx_ir as ir

from explorer.graph import bodies_of, is_constant_node
from explorer.rewrite.builder import Builder


def replace_outputs(old: Sequence[ir.Value], new: Sequence[ir.Value], build: Builder) -> None:
    """Let every reader of ``old[i]`` read ``new[i]``; graph outputs stay where and what they are called."""
    for before, after in zip(old, new, strict=True):
        _inherit(before, after, is_new=after.producer() in build.nodes)
        if before.is_graph_output():
            _take_over_output(before, after, build)
        else:
            before.replace_all_uses_with(after)


def _inherit(before: ir.Value, after: ir.Value, *, is_new: bool) -> None:
    """Types and shapes known for the old value hold for the new one."""
    if after.type is None:
        after.type = before.type
    if before.shape is not None and (after.shape is None or is_new):
        after.shape = before.shape.copy()


def _take_over_output(before: ir.Value, after: ir.Value, build: Builder) -> None:
    name = before.name
    if takeover_obstacle(before, after) is not None:
        after = _identity(after, before, build)
    before.replace_all_uses_with(after, replace_graph_outputs=True)
    before.name = build.fresh(f"{name}_old")
    after.name = name


def takeover_obstacle(before: ir.Value, after: ir.Value) -> str | None:
    """Why ``after`` cannot take over the name of the graph output ``before``; None if it can (G3).

    Inputs, weights and other graph outputs have names that others rely on, and a body's output must be
    computed in that body.
    """
    if not before.is_graph_output():
        return None
    if after.is_graph_input():
        return f"output '{before.name}' would be the graph input '{after.name}' itself"
    if after.is_initializer():
        return f"output '{before.name}' would be the weight '{after.name}' itself"
    if after.is_graph_output():
        return f"outputs '{before.name}' and '{after.name}' would be the same tensor"
    if after.graph is not before.graph:
        return f"output '{before.name}' of a body would be computed outside of it"
    return None


def _identity(value: ir.Value, like: ir.Value, build: Builder) -> ir.Value:
    node = ir.node("Identity", inputs=[value], name=build.fresh("identity"))
    (output,) = node.outputs
    output.type, output.shape = like.type, like.shape.copy() if like.shape is not None else None
    build.home.append(node)
    return output


def remove_nodes(nodes: Sequence[ir.Node], drops: Iterable[ir.Value | None]) -> None:
    """Remove nodes with their bodies, then the constants among their operands and ``drops`` that nobody reads.

    Raises:
        ValueError: something still reads an output of theirs.
    """
    operands = [value for node in nodes for value in node.inputs]
    for body in (b for node in nodes for attribute in node.attributes.values() for b in bodies_of(attribute)):
        operands += [value for inner in body.all_nodes() for value in inner.inputs]
        body.outputs.clear()
        remove_nodes(tuple(body), ())
    home = nodes[0].graph if nodes else None
    if isinstance(home, ir.Graph):
        home.remove(nodes, safe=True)
    remove_unused(value for value in (*operands, *drops) if value is not None)


def remove_unused(values: Iterable[ir.Value]) -> None:
    """Drop those of the values that are constants nobody reads: initializers and Constant nodes."""
    for value in dict.fromkeys(values):
        if value.uses() or value.is_graph_output() or value.is_graph_input():
            continue
        owner = value.graph
        if value.is_initializer() and isinstance(owner, ir.Graph):
            owner.initializers.pop(value.name or "")
            continue
        node = value.producer()
        if is_constant_node(node) and node is not None and isinstance(node.graph, ir.Graph):
            node.graph.remove(node, safe=True)
