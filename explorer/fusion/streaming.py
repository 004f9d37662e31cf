"""How an operator reads its operands when feature maps stream through the chip row by row.

Each tensor has a *row axis*: the height of an image [N, C, H, W], the positions of a sequence
[N, L, D]. The axis is followed through Transpose and Reshape. An operator that works row by row, however
much it mixes inside a row, streams: a convolution, a ReLU, but also a LayerNormalization or Softmax over
the features and a product with a weight matrix. An operator that needs a tensor whole before its first
result (GlobalAveragePool, a Softmax over positions, the second operand of a product of two activations)
reads that tensor from DRAM: its producer lies in another group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import prod

from explorer.fusion.reading import RawOp
from explorer.fusion.window import Window


class OpClass(Enum):
    """What an operator asks of a group."""

    WINDOWED = "windowed"
    """Sees several rows at once: needs a line buffer."""
    ELEMENTWISE = "element-wise"
    """Works row by row: activations, 1x1 convolutions, normalisation over features."""
    JOIN = "join"
    """Row by row on several tensors: Add, Mul, Concat. Early operands wait in a FIFO."""
    FULL = "full-tensor"
    """Needs an operand whole, so the producer of that operand lies in another group."""
    SOLO = "solo"
    """Always a group of its own: control flow and operators whose access is unknown."""


class Mode(Enum):
    """How one operand is read."""

    STREAM = "stream"
    BROADCAST = "broadcast"
    """One row, used for all rows."""
    WHOLE = "whole"
    """All of it, in any order, from DRAM."""
    HELD = "held"
    """All of it, for every row: it stays on chip."""


@dataclass(frozen=True)
class View:
    """Dims of a tensor as one node sees them, and its row axis (None: a single row).

    ``is_scattered``: the tensor has rows, but a Reshape tore them apart; it cannot be streamed any more.
    """

    dims: tuple[int, ...]
    axis: int | None
    is_scattered: bool = False

    @property
    def rows(self) -> int:
        """Number of rows; 1 where there is no row axis."""
        return 1 if self.axis is None else self.dims[self.axis]

    def axis_in(self, rank: int) -> int | None:
        """The row axis after broadcasting to ``rank`` dims."""
        return None if self.axis is None else self.axis + rank - len(self.dims)


@dataclass(frozen=True)
class Streaming:
    """The verdict on one node.

    Attributes:
        modes: how each data operand is read, in the order of the operands given.
        axes: the row axis of each result.
        kernel_rows: rows of the operand that one row of the result sees.
        stride_rows: rows of the operand per row of the result (below 1 for upsampling).
        pad_rows: rows that a Pad puts in front.
        is_solo: always a group of its own.
    """

    modes: tuple[Mode, ...]
    axes: tuple[int | None, ...]
    kernel_rows: int = 1
    stride_rows: float = 1.0
    pad_rows: int = 0
    is_solo: bool = False

    @property
    def op_class(self) -> OpClass:
        """The class that follows from the access."""
        if self.is_solo:
            return OpClass.SOLO
        if Mode.WHOLE in self.modes or Mode.HELD in self.modes:
            return OpClass.FULL
        if self.kernel_rows > 1:
            return OpClass.WINDOWED
        return OpClass.JOIN if len(self.modes) > 1 else OpClass.ELEMENTWISE


@dataclass(frozen=True)
class Case:
    """One node to classify: its data operands (position and view) and the dims of its results."""

    op: RawOp
    positions: tuple[int, ...]
    views: tuple[View, ...]
    results: tuple[tuple[int, ...], ...]
    window: Window | None
    constant_dims: tuple[tuple[int, ...] | None, ...]
    values: Callable[[int], tuple[int, ...] | None]

    @property
    def result(self) -> tuple[int, ...]:
        """Dims of the first result."""
        return self.results[0]


def default_axis(dims: Sequence[int]) -> int | None:
    """The row axis of a tensor that nothing else decides: height, position, or sample of a matrix."""
    return None if len(dims) < 2 else min(len(dims) - 2, 2)


def whole(case: Case, axes: tuple[int | None, ...] | None = None) -> Streaming:
    """Every operand that has rows is needed whole; results start new rows."""
    modes = tuple(Mode.WHOLE if v.rows > 1 or v.is_scattered else Mode.STREAM for v in case.views)
    return Streaming(modes, axes or tuple(default_axis(dims) for dims in case.results))


def solo(case: Case) -> Streaming:
    """A group of its own, whatever the operands."""
    return replace(whole(case), is_solo=True)


def reshaped_axis(view: View, dims: tuple[int, ...]) -> View:
    """The view after a Reshape: the row axis is the dim of equal size with as much before it."""
    if view.axis is None or view.is_scattered:
        return View(dims, None, view.is_scattered)
    before, rows = prod(view.dims[: view.axis]), view.rows
    for axis, size in enumerate(dims):
        if size == rows and prod(dims[:axis]) == before:
            return View(dims, axis)
    return View(dims, None, is_scattered=rows > 1)
