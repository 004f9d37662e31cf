"""Matrix products: rows of the first operand stream, the second is weights or is held on chip."""

from __future__ import annotations

from explorer.fusion.streaming import Case, Mode, Streaming, View, whole


def matmul(case: Case) -> Streaming:
    """A [..., M, K] times B [..., K, N]; a batch axis that both stream along is a join."""
    rank = len(case.result)
    if rank < 2 or case.positions not in {(0,), (1,), (0, 1)}:
        return whole(case)
    if case.positions == (1,):
        return _second_only(case.views[0], rank)
    first = case.views[0]
    if first.rows == 1 and not first.is_scattered:
        axis: int | None = rank - 2
    else:
        axis = first.axis_in(rank)
    if first.is_scattered or (axis == rank - 1 and first.rows > 1):
        return whole(case)
    if case.positions == (0,):
        return Streaming((Mode.STREAM,), (axis,))
    second = case.views[1]
    shares_batch = second.axis_in(rank) == axis and axis is not None and axis < rank - 2 and second.rows > 1
    return Streaming((Mode.STREAM, Mode.STREAM if shares_batch else Mode.HELD), (axis,))


def _second_only(view: View, rank: int) -> Streaming:
    """Weights times activations: columns or batches stream, rows are summed over."""
    axis = view.axis_in(rank)
    if view.is_scattered or axis is None or axis == rank - 2:
        mode = Mode.HELD if view.rows > 1 or view.is_scattered else Mode.STREAM
        return Streaming((mode,), (rank - 2,))
    return Streaming((Mode.STREAM,), (axis,))


def gemm(case: Case) -> Streaming:
    """A [M, K] times weights [K, N] plus C; a computed B is held, a computed C joins."""
    if case.positions[0] != 0:
        return whole(case)
    first = case.views[0]
    row_axis = 1 if case.op.integer("transA", 0) else 0
    streams = not first.is_scattered and (first.rows == 1 or first.axis == row_axis)
    modes = [Mode.STREAM if streams else Mode.WHOLE]
    for position, view in zip(case.positions[1:], case.views[1:], strict=True):
        joins = position == 2 and view.axis == 0 and view.dims[:1] == case.result[:1]
        modes.append(Mode.STREAM if joins else Mode.HELD)
    return Streaming(tuple(modes), (0,))
