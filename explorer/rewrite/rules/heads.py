"""Queries, keys and values by head, in the axis orders in which exporters leave them.

``b n s d``: batch, heads, positions, size of a head; ``b s n d`` before the usual Transpose; ``b n d s`` for keys that
are transposed already; ``flat``: ``[b, s, n * d]`` before the heads are split.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import dim, operand, producer, rank, text
from explorer.rewrite.rule import Refusal
from explorer.rewrite.rules.axes import perm_of
from explorer.rewrite.rules.patterns import describe_dims

Dim = int | str | None
MOST_MOVES = 3  # Transposes and Reshapes between a projection and the product with it


class Layout(StrEnum):
    """Order of the axes."""

    FLAT = "flat"
    BSND = "bsnd"
    BNSD = "bnsd"
    BNDS = "bnds"


_AXES = {Layout.BSND: (0, 2, 1, 3), Layout.BNSD: (0, 1, 2, 3), Layout.BNDS: (0, 1, 3, 2)}  # where b n s d are


@dataclass(frozen=True)
class Heads:
    """A tensor split into heads.

    Attributes:
        value: the tensor.
        layout: the order of its axes.
        heads: number of heads.
        size: size of one head.
        nodes: what was peeled off, the last node first.
    """

    value: ir.Value
    layout: Layout
    heads: int
    size: int
    nodes: tuple[ir.Node, ...] = ()

    @property
    def batch(self) -> Dim:
        """Size of the batch."""
        return dim(self.value, 0)

    @property
    def positions(self) -> Dim:
        """Number of positions."""
        return dim(self.value, self.position_axis)

    @property
    def position_axis(self) -> int:
        """The axis of the positions."""
        return 1 if self.layout is Layout.FLAT else _AXES[self.layout][2]

    def transposes(self, wanted: Layout) -> int:
        """How many transposes ``to`` needs."""
        same = {Layout.FLAT: Layout.BSND}
        return int(same.get(self.layout, self.layout) != same.get(wanted, wanted))

    def peeled(self, steps: int = MOST_MOVES) -> Heads:
        """The same tensor further up: before its Transpose, and before the heads were split."""
        if not steps:
            return self
        node = producer(self.value, "Transpose", "Reshape")
        source = None if node is None else operand(node, 0)
        if node is None or source is None or node.graph is not self.value.graph:
            return self
        layout = self._before(node) if node.op_type == "Transpose" else self._unsplit(source)
        if layout is None:
            return self
        return Heads(source, layout, self.heads, self.size, (*self.nodes, node)).peeled(steps - 1)

    def _before(self, transpose: ir.Node) -> Layout | None:
        """The layout that a Transpose turns into this one."""
        perm, own = perm_of(transpose), _AXES.get(self.layout)
        if perm is None or own is None or len(perm) != len(own):
            return None
        axes = tuple(perm[axis] for axis in own)
        return next((layout for layout, order in _AXES.items() if order == axes), None)

    def _unsplit(self, source: ir.Value) -> Layout | None:
        if self.layout is not Layout.BSND or rank(source) != 3 or dim(source, 2) != self.heads * self.size:
            return None
        same = all(
            dim(source, axis) is not None and dim(source, axis) == dim(self.value, axis) for axis in (0, 1)
        )
        return Layout.FLAT if same else None

    def to(self, wanted: Layout, build: Builder) -> ir.Value:
        """The tensor in another layout."""
        if wanted is self.layout:
            return self.value
        if wanted is Layout.FLAT:
            value = self.to(Layout.BSND, build)
            target = build.ints([0, 0, self.heads * self.size], "flat_shape")
            shape = [self.batch, self.positions, self.heads * self.size]
            return build.op("Reshape", [value, target], dtype=value.dtype, shape=shape)
        if self.layout is Layout.FLAT:
            return split_heads(self.value, self.heads, self.size, build).to(wanted, build)
        have = _AXES[self.layout]
        perm = [0] * len(have)
        for role, axis in enumerate(_AXES[wanted]):
            perm[axis] = have[role]
        shape = [dim(self.value, axis) for axis in perm]
        return build.op("Transpose", [self.value], {"perm": perm}, dtype=self.value.dtype, shape=shape)

    def shape_bytes(self, wanted: Layout) -> int:
        """Bytes of the constants that ``to`` creates."""
        if wanted is self.layout:
            return 0
        return 8 * 3 if wanted is Layout.FLAT else 8 * 4 if self.layout is Layout.FLAT else 0


def split_heads(value: ir.Value, heads: int, size: int, build: Builder) -> Heads:
    """``[b, s, heads * size]`` as ``[b, s, heads, size]``."""
    target = build.ints([0, 0, heads, size], "heads_shape")
    shape = [dim(value, 0), dim(value, 1), heads, size]
    split = build.op("Reshape", [value, target], dtype=value.dtype, shape=shape)
    return Heads(split, Layout.BSND, heads, size)


def read_heads(value: ir.Value | None, layout: Layout) -> Heads | None:
    """A four-dimensional operand of attention; None if it has another rank.

    Raises:
        Refusal: the number of heads or their size is not static.
    """
    if value is None or rank(value) != 4:
        return None
    axes = _AXES[layout]
    heads, size = dim(value, axes[1]), dim(value, axes[3])
    if not isinstance(heads, int) or not isinstance(size, int):
        raise Refusal(f"heads and head size of {text(value)} {describe_dims(value)} are not static")
    return Heads(value, layout, heads, size)
