"""The integer arithmetic with which exporters compute slices and shapes, evaluated where it is constant.

ONNX shape inference gives up at some of it (a division, for instance), and everything behind is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from explorer.fusion.reading import RawGraph, RawOp

_Array = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
_ELEMENTWISE: dict[str, Callable[[_Array, _Array], _Array]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Max": np.maximum,
    "Min": np.minimum,
}


def solved_dims(raw: RawGraph) -> dict[str, tuple[int, ...]]:
    """Dims of tensors that shape inference left unknown although constants decide them, by tensor name."""
    known: dict[int, _Array] = {}
    solved = {}
    for op in raw.ops:
        if op.domain or not op.results:
            continue
        result = raw.values[op.results[0]]
        if op.is_constant:
            array = _evaluated(raw, op, known)
            if array is not None:
                known[op.results[0]] = array
        elif result.static_dims is None and result.name:
            dims = _result_dims(raw, op, known)
            if dims is not None:
                solved[result.name] = dims
    return solved


def _array(raw: RawGraph, key: int | None, known: Mapping[int, _Array]) -> _Array | None:
    if key is None:
        return None
    if key in known:
        return known[key]
    value = raw.values[key]
    if value.values is None or value.static_dims is None:
        return None
    return np.array(value.values, dtype=np.int64).reshape(value.static_dims)


def _evaluated(raw: RawGraph, op: RawOp, known: Mapping[int, _Array]) -> _Array | None:
    if op.op_type == "Shape" and op.operands[0] is not None:
        dims = raw.values[op.operands[0]].static_dims or ()
        end = op.integer("end", len(dims))
        return np.array(dims[op.integer("start", 0) : end], dtype=np.int64)
    arrays = [_array(raw, key, known) for key in op.operands]
    present = [a for a in arrays if a is not None]
    if not present or len(present) < len(arrays):
        return None
    first = present[0]
    if op.op_type in _ELEMENTWISE and len(present) == 2:
        return _ELEMENTWISE[op.op_type](first, present[1])
    if op.op_type == "Div" and np.all(present[1] != 0):
        return np.trunc(first / present[1]).astype(np.int64)
    return _moved(op, first, present)


def _moved(op: RawOp, first: _Array, present: Sequence[_Array]) -> _Array | None:
    axes = tuple(present[1].reshape(-1).tolist()) if len(present) > 1 else op.ints("axes")
    if op.op_type in {"Identity", "Cast"}:
        return first
    if op.op_type == "Gather":
        return np.take(first, present[1], axis=op.integer("axis", 0))
    if op.op_type == "Concat":
        return np.concatenate(present, axis=op.integer("axis", 0))
    if op.op_type == "Unsqueeze":
        return np.expand_dims(first, axes)
    if op.op_type == "Squeeze":
        return np.squeeze(first, axes or None)
    if op.op_type == "Slice" and first.ndim == 1 and len(present) >= 3:
        step = int(present[4].item()) if len(present) > 4 else 1
        return first[slice(int(present[1].item()), int(present[2].item()), step)]
    return None


def _result_dims(raw: RawGraph, op: RawOp, known: Mapping[int, _Array]) -> tuple[int, ...] | None:
    source = op.operands[0] if op.operands else None
    dims = None if source is None else raw.values[source].static_dims
    if dims is None:
        return None
    arrays = [_array(raw, key, known) for key in op.operands[1:]]
    if any(a is None for a, key in zip(arrays, op.operands[1:], strict=True) if key is not None):
        return None
    numbers = [None if a is None else a.reshape(-1).tolist() for a in arrays]
    if op.op_type == "Slice":
        return _sliced(dims, numbers)
    if op.op_type == "Reshape" and numbers and numbers[0] is not None:
        return _reshaped(dims, numbers[0], keeps_zero=bool(op.integer("allowzero", 0)))
    if op.op_type == "Expand" and numbers and numbers[0] is not None:
        return tuple(int(d) for d in np.broadcast_shapes(dims, tuple(numbers[0])))
    return None


def _sliced(dims: tuple[int, ...], numbers: Sequence[list[int] | None]) -> tuple[int, ...] | None:
    starts, ends = (numbers[0], numbers[1]) if len(numbers) > 1 else (None, None)
    if starts is None or ends is None:
        return None
    axes = numbers[2] if len(numbers) > 2 and numbers[2] is not None else list(range(len(starts)))
    steps = numbers[3] if len(numbers) > 3 and numbers[3] is not None else [1] * len(starts)
    found = list(dims)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        found[axis] = len(range(dims[axis])[start:end:step])
    return tuple(found)


def _reshaped(dims: tuple[int, ...], target: list[int], *, keeps_zero: bool) -> tuple[int, ...] | None:
    found = [dims[i] if d == 0 and not keeps_zero and i < len(dims) else d for i, d in enumerate(target)]
    if -1 in found:
        rest = int(np.prod([d for d in found if d != -1]))
        if rest == 0:
            return None
        found[found.index(-1)] = int(np.prod(dims)) // rest
    return tuple(found)
