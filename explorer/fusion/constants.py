"""Which constants of a node are weights, and whether they stay on chip or are read as the rows pass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from explorer.fusion.reading import RawGraph, RawOp

_ALL = frozenset(range(1, 16))
# Operands that say what to do rather than being computed with.
_PARAMETERS: dict[str, frozenset[int]] = {
    **dict.fromkeys(["Reshape", "Slice", "Resize", "Upsample", "Pad", "Squeeze", "Unsqueeze"], _ALL),
    **dict.fromkeys(
        ["Expand", "Tile", "TopK", "Split", "Clip", "Gather", "CumSum", "Trilu", "Dropout"], _ALL
    ),
    **dict.fromkeys(["ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"], _ALL),
    **dict.fromkeys(["ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"], _ALL),
    **dict.fromkeys(["OneHot", "Range", "GatherElements", "GatherND"], _ALL),
}
_MATRIX_OPERANDS = {"Conv", "ConvTranspose", "Gemm", "MatMul", "FusedConv", "FusedMatMul"}


@dataclass(frozen=True)
class Weights:
    """Constants of one node, in elements.

    Attributes:
        resident: kept on chip by a line-buffer scheme.
        streamed: read along with the rows (a constant with as many rows as the result), or in part.
        constants: identity and size of each, to count one that several nodes read once.
    """

    resident: int = 0
    streamed: int = 0
    constants: tuple[tuple[str, int], ...] = ()

    def folded(self, channels: int, by: str) -> Weights:
        """With a BatchNormalization folded in: one bias, and values that no other node shares."""
        largest = max((size for _, size in self.constants), default=0)
        own = (f"{self.constants[0][0] if self.constants else ''}*{by}", largest)
        return replace(self, resident=largest + channels, constants=(own,))


def weights_of(op: RawOp, raw: RawGraph, row_axis: int | None, rows: int | None) -> Weights:
    """The weights of a node.

    A single number is an attribute, not a weight. A stand-alone BatchNormalization needs a scale and a
    shift per channel. A table that is looked up is read as far as the result is long.

    Args:
        op: the node.
        raw: the graph, for sizes.
        row_axis: the row axis of its first result.
        rows: the number of rows of its first result.
    """
    resident = streamed = 0
    constants = []
    skipped = _PARAMETERS.get(op.op_type, frozenset()) if not op.domain else frozenset()
    operands = (*op.operands[:3], *([] if _is_batch_norm(op) else op.operands[3:]), *op.captured)
    for position, key in enumerate(operands):
        if key is None or raw.is_data(key) or position in skipped:
            continue
        dims = raw.dims(key)
        size = prod(dims)
        if size <= 1:
            continue
        if op.op_type == "Gather":
            streamed += min(size, prod(raw.dims(op.results[0])))
            continue
        if op.op_type not in _MATRIX_OPERANDS and _has_rows(dims, raw.dims(op.results[0]), row_axis, rows):
            streamed += size
            continue
        resident += size
        constants.append((raw.values[key].name, size))
    return Weights(resident, streamed, tuple(constants))


def _is_batch_norm(op: RawOp) -> bool:
    return op.op_type == "BatchNormalization" and not op.domain


def _has_rows(dims: tuple[int, ...], result: tuple[int, ...], row_axis: int | None, rows: int | None) -> bool:
    """Whether a constant differs from row to row of the result."""
    if row_axis is None or rows is None or rows <= 1:
        return False
    place = row_axis - len(result) + len(dims)
    return 0 <= place < len(dims) and dims[place] == rows
