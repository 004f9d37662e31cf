"""What matchers can see of a graph, to be compared with a later version of it.

Rewrites change a graph in a few places, and a node keeps its id: so the parts of two views that differ say which
answers of a scan may differ (together with what each of them walked over, see ``walk``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import onnx_ir as ir

from explorer.graph import bodies_of, constant_tensor, holder_of, node_id
from explorer.rewrite.context import Context
from explorer.rewrite.walk import readers_key

_State = tuple[object, ...]
_GRAPHS = {ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS}


@dataclass(frozen=True)
class View:
    """All nodes by id, in graph order: what they look like, and which node holds them in a body."""

    opset: int
    states: dict[str, _State]
    holders: dict[str, str]

    @classmethod
    def of(cls, context: Context) -> View:
        """Look at every node once."""
        values: dict[ir.Value | None, _State | None] = {None: None}
        states: dict[str, _State] = {}
        holders: dict[str, str] = {}
        main, constant_nodes = context.graph.model.graph, context.constant_nodes
        for node in context.graph.nodes:
            identifier = node_id(node)
            if node.graph is not main and (holder := holder_of(node)) is not None:
                holders[identifier] = node_id(holder)
            inputs, outputs = _look(node.inputs, values), _look(node.outputs, values)
            attributes = _attributes(node, values) if node.attributes else ()
            states[identifier] = (inputs, outputs, attributes, node.name, node in constant_nodes)
        return cls(context.opset, states, holders)

    def reads(self, identifier: str) -> list[str]:
        """For each operand of a node, what stands for its readers; [] for a node that is not there."""
        operands: Any = self.states[identifier][0] if identifier in self.states else ()
        return [readers_key(*operand[:3]) for operand in operands if operand is not None]


@dataclass(frozen=True)
class Change:
    """What may change an answer between two views.

    Attributes:
        keys: ids of nodes that came, went or look different, and of the nodes that hold them; for values that
            gained or lost a reader, their ``walk.readers_key``.
        moved: ids of nodes among which the order is another one.
    """

    keys: frozenset[str]
    moved: frozenset[str]


def changes(before: View, after: View) -> Change:
    """Compare the views of two versions of one model."""
    old, new = before.states, after.states
    differ = [i for i, state in new.items() if old.get(i) != state]
    differ += [i for i in old if i not in new]
    keys = set(differ)
    for identifier in differ:
        pairs = zip_longest(before.reads(identifier), after.reads(identifier), fillvalue="")
        keys.update(key for pair in pairs if pair[0] != pair[1] for key in pair)
        keys.update(_holders(identifier, before))
        keys.update(_holders(identifier, after))
    return Change(frozenset(keys), _moved(before, after))


def _holders(identifier: str, view: View) -> Iterator[str]:
    while identifier in view.holders:
        identifier = view.holders[identifier]
        yield identifier


def _moved(before: View, after: View) -> frozenset[str]:
    """The nodes from the first to the last that has another place among those that stayed."""
    old = [i for i in before.states if i in after.states]
    new = [i for i in after.states if i in before.states]
    if old == new:
        return frozenset()
    places = [place for place, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
    return frozenset(new[places[0] : places[-1] + 1])


def _look(
    values: Iterable[ir.Value | None], known: dict[ir.Value | None, _State | None]
) -> tuple[_State | None, ...]:
    for value in values:
        if value not in known:
            known[value] = None if value is None else _state(value)
    return tuple([known[value] for value in values])


def _state(value: ir.Value) -> _State:
    node, shape = value.producer(), value.shape
    return (
        value.name,
        None if node is None else node_id(node),
        value.index(),
        value.type,
        None if shape is None else shape.dims,
        constant_tensor(value),
        value.is_initializer(),
        value.is_graph_input(),
        value.is_graph_output(),
    )


def _attributes(node: ir.Node, known: dict[ir.Value | None, _State | None]) -> _State:
    """Attributes as they are shared between versions; of bodies what they return (their nodes have states)."""
    found: list[object] = []
    for attribute in node.attributes.values():
        if attribute.type in _GRAPHS:
            found += [_look((*body.inputs, *body.outputs), known) for body in bodies_of(attribute)]
        else:
            found.append(attribute)
    return tuple(found)
