"""Sizes for the dimensions of a graph that are not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from explorer.errors import InputError
from explorer.graph.graph import Graph
from explorer.graph.shapes import infer_shapes

Dims = Mapping[str, int | Sequence[int]]


def with_dims(graph: Graph, dims: Dims) -> Graph:
    """A copy of a graph with dimensions fixed and the shapes inferred again.

    Args:
        graph: any graph; it is not changed.
        dims: what an unknown dimension is. A key is a symbolic dimension (``{"N": 1}``), one axis of a
            tensor (``{"x:0": 1}``), or a tensor whose shape is not known at all (``{"f": (1, 4, 4)}``).

    Raises:
        InputError: an entry of ``dims`` fits no unknown dimension, or is not a size.
    """
    for key, given in dims.items():
        if not _is_size(given):
            raise InputError(f"Dimension '{key}' cannot be {given!r}; give a whole number, 0 or more.")
    copy, used = fixed(graph, dims)
    unused = sorted(set(dims) - used)
    if unused:
        raise InputError(
            f"'{graph.name}' has no unknown dimension '{unused[0]}'; use a dimension's name, "
            "or TENSOR:AXIS for one that has no name."
        )
    return copy


def fixed(graph: Graph, dims: Dims) -> tuple[Graph, set[str]]:
    """A copy with the dims written in and the shapes inferred again, and the entries that were of use."""
    copy = graph.clone()
    used = _fix(copy, dims)
    infer_shapes(copy.model)
    return copy, used | _fix(copy, dims)


def _is_size(given: object) -> bool:
    sizes = given if isinstance(given, list | tuple) else [given]
    return bool(sizes) and all(isinstance(s, int) and not isinstance(s, bool) and s >= 0 for s in sizes)


def _fix(graph: Graph, dims: Dims) -> set[str]:
    """Write the given sizes into every shape that lacks them; returns the keys that were of use."""
    used: set[str] = set()
    values = {id(v): v for v in (*graph.inputs, *graph.overridable)}
    values.update((id(v), v) for node in graph.nodes for v in node.outputs)
    kind = next((type(v.shape) for v in values.values() if v.shape is not None), None)
    for value in values.values():
        name = value.name or ""
        given = dims.get(name)
        if value.shape is None and kind is not None and given is not None and not isinstance(given, int):
            value.shape = kind(tuple(given))
            used.add(name)
        if value.shape is None:
            continue
        sizes: list[int | None] = []
        for axis, dim in enumerate(value.shape):
            symbol = None if isinstance(dim, int) else (dim.value or "")
            found = {} if symbol is None else _sizes(dims, name, axis, symbol, len(value.shape))
            used.update(found)
            sizes.append(next(iter(found.values()), None))
        if any(size is not None for size in sizes):
            shape = value.shape.copy()
            for axis, size in enumerate(sizes):
                shape[axis] = shape[axis] if size is None else size
            value.shape = shape
    return used


def _sizes(dims: Dims, tensor: str, axis: int, symbol: str, rank: int) -> dict[str, int]:
    """The entries that give the size of one unknown dimension."""
    found = {}
    for key in (f"{tensor}:{axis}", symbol, tensor):
        given = dims.get(key)
        if isinstance(given, int):
            found[key] = given
        elif given is not None and key == tensor and len(given) == rank:
            found[key] = given[axis]
    return found
