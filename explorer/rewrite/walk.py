"""Steps from node to node that are noted, so that a scan knows what each answer depends on.

Whatever decides whether a rule applies must move through the graph with these functions (or those of ``context``
that are made of them), never with ``Value.producer()`` or ``Value.uses()``: a step that is not noted would let an
answer go stale after a rewrite. ``tests/test_architecture.py`` holds the rules to that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import onnx_ir as ir

from explorer.graph import node_id


class _Notes(threading.local):
    """Nodes whose operator, attributes, operands or results were looked at; values whose readers were."""

    seen: set[ir.Node | ir.Value] | None = None


_notes = _Notes()


@contextmanager
def noting() -> Iterator[None]:
    """Within it, ``fresh_notes`` can be taken in this thread."""
    outer = _notes.seen
    try:
        yield
    finally:
        _notes.seen = outer


def fresh_notes() -> set[ir.Node | ir.Value]:
    """What is walked over from now on, until the next fresh notes or the end of ``noting``."""
    seen: set[ir.Node | ir.Value] = set()
    _notes.seen = seen
    return seen


def look_at(nodes: Iterable[ir.Node]) -> None:
    """Note nodes that were reached by other means (a walk of another package)."""
    seen = _notes.seen
    if seen is not None:
        seen.update(nodes)


def source_of(value: ir.Value) -> ir.Node | None:
    """The node that computes a value; None for graph inputs and initializers."""
    node = value.producer()
    if node is not None:
        seen = _notes.seen
        if seen is not None:
            seen.add(node)
    return node


def uses_of(value: ir.Value) -> tuple[tuple[ir.Node, int], ...]:
    """The (reader, operand position) pairs of a value, those inside bodies included; the readers are looked at.

    In the order of the nodes' ids: the library's own order depends on how a version of the graph came about.
    """
    found, seen = value.uses(), _notes.seen
    if len(found) > 1:
        found = sorted(found, key=_by_id)
    if seen is not None:
        seen.add(value)
        seen.update([reader for reader, _ in found])
    return tuple(found)


def whereabouts(value: ir.Value) -> tuple[ir.Node, ...]:
    """The nodes that read a value, once per operand: to ask only who they are and where, not what they do."""
    seen = _notes.seen
    if seen is not None:
        seen.add(value)
    return tuple([reader for reader, _ in value.uses()])


def _by_id(use: tuple[ir.Node, int]) -> tuple[int, int]:
    return int(node_id(use[0])[1:]), use[1]


def is_read_outside(value: ir.Value, is_inside: Callable[[ir.Node], bool]) -> bool:
    """Whether a node reads a value that is not inside a group of nodes.

    If one does, that reader alone is looked at: as long as it reads the value, others may come and go (a number
    that all layers share). It is the next one behind the group, so that different groups rely on different readers.
    """
    readers = [reader for reader, _ in value.uses()]
    insides = [is_inside(reader) for reader in readers]
    if all(insides):
        whereabouts(value)
        return False
    first = insides.index(True) if any(insides) else 0
    behind = (first + insides[first:].index(False)) if not all(insides[first:]) else insides.index(False)
    look_at([readers[behind]])
    return True


def readers_key(name: str | None, source: str | None, position: int | None) -> str:
    """What stands for "who reads this value", beside the ids of nodes.

    Args:
        name: of the value, if it has one.
        source: id of the node that computes it.
        position: its place among that node's outputs.
    """
    return f"readers of {name or (source, position)}"


class Keys(dict[ir.Node | ir.Value, str]):
    """What stands for nodes and for the readers of values: the same on every version of a graph."""

    def __missing__(self, thing: ir.Node | ir.Value) -> str:
        """The id of a node, the ``readers_key`` of a value."""
        if isinstance(thing, ir.Node):
            key = node_id(thing)
        else:
            node = thing.producer()
            key = readers_key(thing.name, None if node is None else node_id(node), thing.index())
        self[thing] = key
        return key
