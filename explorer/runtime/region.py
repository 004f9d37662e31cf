"""Parts of a graph cut out as models of their own, with the shapes and weights they have there."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from explorer.errors import RuntimeFailure

if TYPE_CHECKING:
    import onnx_ir as ir

    from explorer.graph import Feeds, Graph


def with_sizes(graph: Graph, feeds: Feeds) -> Graph:
    """The graph with the sizes that its inputs have in ``feeds``; itself if nothing is dynamic."""
    import onnx_ir as ir

    from explorer.graph.shapes import infer_shapes
    from explorer.graph.statistics import static_dims

    if all(static_dims(value) is not None for value in graph.inputs):
        return graph
    draft = graph.clone()
    for value in draft.inputs:
        if value.name in feeds:
            value.shape = ir.Shape(feeds[value.name].shape)
    for node in draft.nodes:
        for output in node.outputs:
            if static_dims(output) is None:
                output.shape = None
    infer_shapes(draft.model)
    return draft.renumbered()


def cut_out(graph: Graph, nodes: Collection[str], name: str) -> Graph:
    """A model of some nodes of the main graph.

    What they read from outside becomes an input (weights stay weights, shared), what others read of them or
    the graph returns becomes an output. A node in the body of an If, Loop or Scan stands for the node that
    holds it.

    Args:
        graph: where to cut; see ``with_sizes`` if it has dynamic dims.
        nodes: ids; at least one.
        name: what to call the part in messages.

    Raises:
        RuntimeFailure: the type or rank of a value on the boundary is unknown.
    """
    import onnx_ir as ir

    from explorer.graph import Graph as GraphType
    from explorer.graph import is_constant_node

    draft = graph.clone()
    members = set(_members(draft, nodes))
    constants = {v.producer() for node in members for v in _reads(node) if is_constant_node(v.producer())}
    inside = members | {node for node in constants if node is not None}
    ordered = [node for node in draft.model.graph if node in inside]
    outputs = [v for n in ordered if n in members for v in n.outputs if v.name and _leaves(v, inside)]
    draft.model.graph.outputs.clear()
    read = dict.fromkeys(v for node in ordered for v in _reads(node) if v.producer() not in inside)
    weights = [v for v in read if v.is_initializer() and not v.is_graph_input()]
    inputs = [_boundary(v, graph.name) for v in read if v not in set(weights)]
    for output in outputs:
        _check_known(output, graph.name)
    draft.model.graph.remove(ordered)
    draft.model.graph.inputs.clear()
    for value in weights:
        draft.model.graph.initializers.pop(value.name or "")
    part = ir.Graph(
        inputs,
        outputs,
        nodes=ordered,
        initializers=[*weights, *(v for v in inputs if v.const_value is not None)],
        opset_imports=dict(draft.model.opset_imports),
        name=name,
    )
    model = ir.Model(part, ir_version=draft.model.ir_version, functions=list(draft.model.functions.values()))
    return GraphType(model, name=name, next_id=graph.next_id, passes_checker=graph.passes_checker)


def neighbourhood(graph: Graph, nodes: Iterable[str], hops: int) -> set[str]:
    """The nodes and those up to ``hops`` edges before or after them, constants left out."""
    from explorer.graph import is_constant_node, node_id

    found = set(_members(graph, nodes))
    for _ in range(hops):
        around = {v.producer() for n in found for v in _reads(n)}
        around |= {use.node for n in found for v in n.outputs for use in v.uses()}
        found |= {_outermost(n) for n in around if n is not None and not is_constant_node(n)}
    return {node_id(node) for node in found}


def changed_regions(before: Graph, after: Graph, hops: int = 1) -> tuple[set[str], set[str]]:
    """Ids of the nodes in which two versions of a graph differ, with what surrounds them.

    Returns:
        The nodes of ``before`` and those of ``after``; both with ``hops`` edges of context, so that a
        runtime can fuse across the border as it does in the whole model.
    """
    from explorer.graph import diff, node_id

    found = diff(before, after)
    old, new = {*found.removed, *found.changed}, {*found.added, *found.changed}
    old_ids, new_ids = ({node_id(n) for n in g.nodes} for g in (before, after))
    for _ in range(hops):
        old_around = neighbourhood(before, old, 1) | (neighbourhood(after, new, 1) & old_ids)
        new_around = neighbourhood(after, new, 1) | (neighbourhood(before, old, 1) & new_ids)
        old, new = old_around, new_around
    return old, new


def boundary_feeds(graphs: Iterable[Graph], seed: int = 0) -> Feeds:
    """Seeded inputs for several parts; an input that two of them share by name has the same values."""
    from explorer.graph import make_feeds

    feeds: dict[str, object] = {}
    for part in graphs:
        feeds = {**make_feeds(part, seed), **feeds}
    return feeds  # type: ignore[return-value]  # a union of what make_feeds returns


def _members(graph: Graph, nodes: Iterable[str]) -> list[ir.Node]:
    return list(dict.fromkeys(_outermost(graph.node(identifier)) for identifier in nodes))


def _outermost(node: ir.Node) -> ir.Node:
    from explorer.graph import holder_of

    holder = holder_of(node)
    return node if holder is None else _outermost(holder)


def _reads(node: ir.Node) -> list[ir.Value]:
    """Values a node reads, those that its bodies capture included."""
    from explorer.graph import bodies_of

    found = [value for value in node.inputs if value is not None]
    for attribute in node.attributes.values():
        for body in bodies_of(attribute):
            inner = [v for n in body.all_nodes() for v in n.inputs if v is not None]
            found += [v for v in (*inner, *body.outputs) if _home(v) is node.graph]
    return found


def _home(value: ir.Value) -> object:
    producer = value.producer()
    return producer.graph if producer is not None else value.graph


def _leaves(value: ir.Value, inside: set[ir.Node]) -> bool:
    return value.is_graph_output() or any(_outermost(use.node) not in inside for use in value.uses())


def _boundary(value: ir.Value, graph_name: str) -> ir.Value:
    """A graph input in place of a value from outside; a default that callers may replace stays one."""
    import onnx_ir as ir

    _check_known(value, graph_name)
    new = ir.Value(name=value.name, shape=value.shape, type=value.type, const_value=value.const_value)
    ir.convenience.replace_all_uses_with(value, new)
    return new


def _check_known(value: ir.Value, graph_name: str) -> None:
    if value.type is None or value.shape is None:
        raise RuntimeFailure(
            f"The type or shape of '{value.name}' in '{graph_name}' is unknown, so that the part around it "
            "cannot be timed alone; run shape inference or declare it."
        )
