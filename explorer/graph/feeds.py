"""Seeded inputs for a graph: indices stay in range, strings are strings, dynamic dims take a size.

The same graph, seed and style always give the same arrays. Used for numerical checks (several styles, two
sizes) and for measuring (one realistic size).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import prod

import numpy as np
import onnx_ir as ir
import psutil

from explorer.errors import InputError
from explorer.graph.graph import Graph, bodies_of, constant_tensor
from explorer.graph.statistics import static_dims

Feeds = dict[str, np.ndarray]
_DEFAULT_LIMIT = 8
_DRAWN_BYTES = 8  # per element, while it is drawn
_LARGEST_SHARE = 1 / 8
_PASSING = {"Cast", "Reshape", "Unsqueeze", "Squeeze", "Identity", "Transpose", "Expand", "Concat", "Slice"}
_INDEXED_AXIS = {"Gather": 0, "GatherElements": 0, "ScatterElements": 0, "GatherND": None, "ScatterND": None}


class Style(StrEnum):
    """How float inputs are drawn."""

    NORMAL = "normal"
    ZEROS = "zeros"
    LARGE = "large"
    NEGATIVE = "negative"


@dataclass(frozen=True)
class Sizes:
    """Sizes that dynamic dims take: the first axis, spatial axes of rank 4 and 5, and others."""

    batch: int
    spatial: int
    sequence: int


CHECK_SIZES = (Sizes(2, 64, 8), Sizes(3, 96, 12))
MEASURE_SIZES = Sizes(1, 224, 128)


@dataclass(frozen=True)
class FeedSet:
    """One set of inputs and how it was made, e.g. "normal, seed 1"."""

    label: str
    feeds: Feeds


def make_feeds(
    graph: Graph,
    seed: int = 0,
    *,
    style: Style = Style.NORMAL,
    sizes: Sizes = MEASURE_SIZES,
    dims: Mapping[str, int] | None = None,
    override: bool = False,
) -> Feeds:
    """Draw one array per graph input.

    Args:
        graph: the graph to feed.
        seed: seed of every array, together with the input's name.
        style: how floats are drawn.
        sizes: sizes for dynamic dims that ``dims`` does not name.
        dims: sizes of named dynamic dims.
        override: also feed initializers that are graph inputs, with their default slightly changed.

    Raises:
        InputError: an input is not a tensor, its rank is unknown, or it would not fit into memory.
    """
    feeds: Feeds = {}
    known = dict(dims or {})
    for value in graph.inputs:
        shape = _concrete_shape(value, sizes, known)
        _refuse_too_large(value, shape)
        rng = np.random.default_rng([seed, zlib.crc32((value.name or "").encode())])
        feeds[value.name or ""] = _draw(graph, value, shape, rng, style)
    if override:
        feeds.update(_overrides(graph, seed))
    return feeds


def check_feeds(
    graph: Graph, *, dims: Mapping[str, int] | None = None, override: bool = True
) -> Iterator[FeedSet]:
    """Inputs for a numerical check: several seeds and styles, a second size, overridden defaults.

    Args:
        graph: the graph to feed.
        dims: sizes of named dynamic dims.
        override: whether callers may replace weights that are graph inputs; then one set does.
    """
    small = CHECK_SIZES[0]
    for seed in (0, 1):
        feeds = make_feeds(graph, seed, sizes=small, dims=dims)
        yield FeedSet(f"normal values, seed {seed}", feeds)
    for style in (Style.ZEROS, Style.LARGE, Style.NEGATIVE):
        yield FeedSet(f"{style} values", make_feeds(graph, 2, style=style, sizes=small, dims=dims))
    if any(static_dims(value) is None for value in graph.inputs):
        feeds = make_feeds(graph, 3, sizes=CHECK_SIZES[1], dims=dims)
        yield FeedSet("a second size of the dynamic dims", feeds)
    if override and graph.overridable:
        feeds = make_feeds(graph, 4, sizes=small, dims=dims, override=True)
        yield FeedSet("overridden default weights", feeds)


def _concrete_shape(value: ir.Value, sizes: Sizes, known: dict[str, int]) -> tuple[int, ...]:
    """Sizes for all dims; a symbol has one size everywhere, chosen where it first appears."""
    if not isinstance(value.type, ir.TensorType):
        raise InputError(
            f"Input '{value.name}' is not a tensor (it is a sequence, map or optional), so no values can be "
            "made for it; measuring and numerical checks need tensor inputs."
        )
    if value.shape is None:
        raise InputError(f"Input '{value.name}' has no declared rank; declare its shape in the model.")
    rank = len(value.shape)
    shape = []
    for axis, dim in enumerate(value.shape):
        size = dim if isinstance(dim, int) else _size(axis, rank, sizes)
        symbol = None if isinstance(dim, int) else dim.value
        shape.append(size if symbol is None else known.setdefault(symbol, size))
    return tuple(shape)


def _refuse_too_large(value: ir.Value, shape: tuple[int, ...]) -> None:
    """A check holds several such inputs and drawing one takes a copy, hence a part of the memory."""
    needed, present = _DRAWN_BYTES * prod(shape), psutil.virtual_memory().total
    if needed > present * _LARGEST_SHARE:
        raise InputError(
            f"Input '{value.name}' of shape {list(shape)} would take {needed / 1e9:,.0f} GB, too much for the "
            f"{present / 1e9:,.0f} GB of this machine; give its dims smaller sizes."
        )


def _size(axis: int, rank: int, sizes: Sizes) -> int:
    if axis == 0:
        return sizes.batch
    return sizes.spatial if rank >= 4 and axis >= 2 else sizes.sequence


def _draw(
    graph: Graph, value: ir.Value, shape: tuple[int, ...], rng: np.random.Generator, style: Style
) -> np.ndarray:
    dtype = value.dtype
    if dtype == ir.DataType.STRING:
        words = _vocabulary(graph)
        picked = rng.integers(0, len(words), shape)
        return np.array([words[i] for i in picked.ravel()], dtype=object).reshape(shape)
    if dtype == ir.DataType.BOOL:
        return _booleans(rng, shape, style)
    if dtype is None or dtype == ir.DataType.UNDEFINED:
        raise InputError(f"Input '{value.name}' has no declared element type; declare it in the model.")
    if dtype.is_floating_point():
        return _floats(rng, shape, style).astype(dtype.numpy())
    if dtype in {ir.DataType.COMPLEX64, ir.DataType.COMPLEX128}:
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype.numpy())
    return _integers(value, shape, rng, style).astype(dtype.numpy())


def _booleans(rng: np.random.Generator, shape: tuple[int, ...], style: Style) -> np.ndarray:
    if style == Style.NORMAL:
        return np.asarray(rng.random(shape) < 0.5)
    return np.full(shape, style == Style.LARGE)


def _floats(rng: np.random.Generator, shape: tuple[int, ...], style: Style) -> np.ndarray:
    array = rng.standard_normal(shape, dtype=np.float32)
    if style == Style.ZEROS:
        return np.zeros_like(array)
    if style == Style.LARGE:
        return 10 * array
    return -np.abs(array) if style == Style.NEGATIVE else array


def _integers(value: ir.Value, shape: tuple[int, ...], rng: np.random.Generator, style: Style) -> np.ndarray:
    limit = _index_limit(value)
    if limit == 0 or style == Style.ZEROS:
        return np.zeros(shape, dtype=np.int64)
    return rng.integers(0, _DEFAULT_LIMIT if limit is None else limit, shape)


def _index_limit(value: ir.Value, depth: int = 8) -> int | None:
    """Exclusive upper bound that the readers of an integer value set; 0 for "zeros only"."""
    limits = []
    for node, position in value.uses():
        limit = _reader_limit(node, position)
        if limit is None and node.op_type in _PASSING and position == 0 and depth:
            limit = _index_limit(node.outputs[0], depth - 1)
        if limit is not None:
            limits.append(limit)
    return min(limits) if limits else None


def _reader_limit(node: ir.Node, position: int) -> int | None:
    op = node.op_type
    if op in _INDEXED_AXIS and position == 1:
        dims = static_dims(node.inputs[0])
        axis = node.attributes.get_int("axis", 0) if _INDEXED_AXIS[op] is not None else 0
        return 1 if not dims else max(dims[axis or 0], 1)
    if op == "Loop" and position == 0:
        return 5
    if op == "OneHot" and position == 0:
        depth = constant_tensor(node.inputs[1])
        return None if depth is None else max(int(depth.numpy().ravel()[0]), 1)
    if op == "TopK" and position == 1:
        return 1
    is_shape = (op in {"Reshape", "Expand", "Tile"} and position == 1) or op == "ConstantOfShape"
    return 0 if is_shape else None


def _vocabulary(graph: Graph) -> list[str]:
    """Strings the model itself mentions, so that look-ups hit as well as miss."""
    words = {"explorer", ""}
    for value in graph.initializers():
        if value.const_value is not None and value.const_value.dtype == ir.DataType.STRING:
            words.update(_text(item) for item in value.const_value.numpy().ravel()[:64])
    for node in graph.nodes:
        for attribute in node.attributes.values():
            if not bodies_of(attribute) and attribute.type == ir.AttributeType.STRINGS:
                words.update(_text(item) for item in attribute.value[:64])
    return sorted(words)


def _text(item: object) -> str:
    return item.decode(errors="replace") if isinstance(item, bytes) else str(item)


def _overrides(graph: Graph, seed: int) -> Feeds:
    feeds = {}
    for value in graph.overridable:
        tensor = value.const_value
        if tensor is None:
            continue
        array = tensor.numpy()
        if tensor.dtype.is_floating_point():
            rng = np.random.default_rng([seed, zlib.crc32((value.name or "").encode())])
            array = (array * (1 + 0.1 * rng.standard_normal(array.shape))).astype(array.dtype)
        feeds[value.name or ""] = array
    return feeds
