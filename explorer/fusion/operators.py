"""The access of every known operator; what is not in the table is a group of its own.

Each function answers for one family: how the operands are read, which axis of the result holds the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

from explorer.fusion.products import gemm, matmul
from explorer.fusion.streaming import Case, Mode, Streaming, View, default_axis, solo, whole
from explorer.fusion.window import CONVOLUTIONS, POOLS

_Rule = Callable[[Case], Streaming]
_DOMAINS = {"", "com.microsoft"}
_ROW_BY_ROW = """Abs Acos Acosh Add And Asin Asinh Atan Atanh BatchNormalization BiasGelu BitShift BitwiseAnd
BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Celu Clip Cos Cosh CumSum DequantizeLinear Div
DynamicQuantizeLinear Elu Equal Erf Exp FastGelu Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish
IsInf IsNaN LRN LeakyRelu Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or PRelu Pow QuantizeLinear
QuickGelu Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum Swish Tan
Tanh ThresholdedRelu Where Xor SkipLayerNormalization Expand Tile""".split()
_GLOBAL = """GlobalAveragePool GlobalMaxPool GlobalLpPool InstanceNormalization GroupNormalization
MeanVarianceNormalization""".split()
_REDUCTIONS = """ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare
ReduceLogSum ReduceLogSumExp ArgMax ArgMin""".split()
_INTERPOLATION_ROWS = {"nearest": 1, "linear": 2, "cubic": 4}


def streaming_of(case: Case) -> Streaming:
    """How the node reads its operands."""
    op = case.op
    rule = _RULES.get(op.op_type) if op.domain in _DOMAINS and not op.has_body else None
    return rule(case) if rule and case.results else solo(case)


def row_by_row(case: Case) -> Streaming:
    """Activations and joins: operands and result share the row axis, after broadcasting."""
    rank = len(case.result)
    axes = [v.axis_in(rank) for v in case.views if v.axis is not None and not v.is_scattered]
    long = [v.axis_in(rank) for v in case.views if v.rows > 1 and not v.is_scattered]
    axis = next(iter(long or axes), default_axis(case.result))
    rows = 1 if axis is None else case.result[axis]
    modes = tuple(_aligned(view, axis, rank, rows) for view in case.views)
    return Streaming(modes, (axis,) * len(case.results))


def _aligned(view: View, axis: int | None, rank: int, rows: int) -> Mode:
    if view.is_scattered:
        return Mode.WHOLE
    place = None if axis is None else axis - rank + len(view.dims)
    size = 1 if place is None or place < 0 else view.dims[place]
    if size == rows and (view.axis == place or view.rows == 1):
        return Mode.STREAM
    if size > 1:
        return Mode.WHOLE
    return Mode.BROADCAST if view.rows == 1 else Mode.HELD


def window(case: Case) -> Streaming:
    """Convolutions and pools; computed weights are held."""
    view, found = case.views[0], case.window
    if found is None or case.positions[0] != 0:
        return whole(case)
    modes = [Mode.HELD] * len(case.views)
    axes = (2,) * len(case.results)
    if view.rows == 1 and not view.is_scattered:
        modes[0] = Mode.STREAM
        return Streaming(tuple(modes), axes, 1, 1 / max(1, case.result[2]))
    modes[0] = Mode.STREAM if view.axis == 2 and not view.is_scattered else Mode.WHOLE
    rows, stride = found.rows, float(found.strides[0])
    if case.op.op_type == "ConvTranspose":
        return Streaming(tuple(modes), axes, ceil(rows / stride), 1 / stride)
    return Streaming(tuple(modes), axes, rows, stride)


def normalised(default: int, *, is_suffix: bool) -> _Rule:
    """Softmax (over one axis) and LayerNormalization (over an axis and all after it)."""

    def rule(case: Case) -> Streaming:
        view, rank = case.views[0], len(case.views[0].dims)
        axis = case.op.integer("axis", default) % max(rank, 1)
        inside = view.axis is not None and (view.axis >= axis if is_suffix else view.axis == axis)
        if view.is_scattered or (inside and view.rows > 1):
            return whole(case, (view.axis,) * len(case.results))
        return row_by_row(case)

    return rule


def reduction(case: Case) -> Streaming:
    """Reductions: row by row unless the rows themselves are reduced."""
    op, view = case.op, case.views[0]
    rank = len(view.dims)
    axes = op.ints("axes") or case.values(1) or ()
    if op.op_type in {"ArgMax", "ArgMin"}:
        axes = (op.integer("axis", 0),)
    reduced = {axis % rank for axis in axes} or set(range(rank))
    if not axes and op.integer("noop_with_empty_axes", 0):
        reduced = set()
    if view.is_scattered or view.axis is None or (view.axis in reduced and view.rows > 1):
        return whole(case)
    dropped = 0 if op.integer("keepdims", 1) else sum(axis < view.axis for axis in reduced)
    kept = view.axis not in reduced or op.integer("keepdims", 1)
    return Streaming((Mode.STREAM,), (view.axis - dropped if kept else None,))


def transpose(case: Case) -> Streaming:
    """The rows move to another axis; nothing has to wait."""
    view = case.views[0]
    if view.is_scattered:
        return whole(case)
    perm = case.op.ints("perm") or tuple(reversed(range(len(view.dims))))
    return Streaming((Mode.STREAM,), (None if view.axis is None else perm.index(view.axis),))


def concat(case: Case) -> Streaming:
    """A join, unless the rows themselves are put end to end."""
    joined = row_by_row(case)
    axis, rank = joined.axes[0], len(case.result)
    is_along_rows = axis is not None and case.op.integer("axis", 0) % max(rank, 1) == axis
    return whole(case, joined.axes) if is_along_rows and len(case.op.operands) > 1 else joined


def cut(case: Case) -> Streaming:
    """Slice and Split: row by row if the rows stay as they are."""
    view = case.views[0]
    same = view.axis is None or all(r[view.axis] == view.dims[view.axis] for r in case.results)
    if view.is_scattered or not same or len(case.views) > 1 or -1 in (case.values(4) or ()):
        return whole(case, (view.axis,) * len(case.results))
    return Streaming((Mode.STREAM,), (view.axis,) * len(case.results))


def gather(case: Case) -> Streaming:
    """Rows stay in order if another axis is picked from; a look-up by computed indices is read whole."""
    view = case.views[0]
    axis = case.op.integer("axis", 0) % max(len(view.dims), 1)
    if case.positions != (0,) or view.is_scattered or (view.axis == axis and view.rows > 1):
        return whole(case)
    added = len(case.result) - len(view.dims)
    place = view.axis
    return Streaming((Mode.STREAM,), (place if place is None or place < axis else place + added,))


def pad(case: Case) -> Streaming:
    """Rows put in front delay the rest."""
    view, axis = case.views[0], case.views[0].axis
    if view.is_scattered or axis is None or len(case.views) > 1:
        return whole(case)
    pads = case.op.ints("pads") or case.op.ints("paddings") or case.values(1) or ()
    axes = tuple(a % len(view.dims) for a in case.values(3) or range(len(view.dims)))
    front = pads[axes.index(axis)] if len(pads) == 2 * len(axes) and axis in axes else 0
    if not pads:
        front = (case.result[axis] - view.rows + 1) // 2
    return Streaming((Mode.STREAM,), (axis,), pad_rows=max(0, front))


def resize(case: Case) -> Streaming:
    """Interpolation sees one, two or four rows; one row makes all rows of a broadcast."""
    view, axis = case.views[0], case.views[0].axis
    if view.is_scattered or axis is None or len(case.views) > 1:
        return whole(case)
    rows = case.result[axis]
    if view.rows == rows:
        return Streaming((Mode.STREAM,), (axis,))
    if view.rows <= 1 or rows < 1:
        return Streaming((Mode.BROADCAST,), (axis,))
    seen = _INTERPOLATION_ROWS.get(case.op.text("mode", "nearest"), 4)
    return Streaming((Mode.STREAM,), (axis,), min(seen, view.rows), view.rows / rows)


def blocks(case: Case) -> Streaming:
    """DepthToSpace and SpaceToDepth: a block of rows for one, or one for a block."""
    view, size = case.views[0], float(case.op.integer("blocksize", 1))
    if view.axis != 2 or view.is_scattered:
        return whole(case)
    if case.op.op_type == "DepthToSpace":
        return Streaming((Mode.STREAM,), (2,), 1, 1 / size)
    return Streaming((Mode.STREAM,), (2,), int(size), size)


_RULES: dict[str, _Rule] = {
    **dict.fromkeys(_ROW_BY_ROW, row_by_row),
    **dict.fromkeys(_GLOBAL, whole),
    **dict.fromkeys(_REDUCTIONS, reduction),
    **dict.fromkeys(CONVOLUTIONS | POOLS, window),
    **dict.fromkeys(["MatMul", "FusedMatMul", "MatMulInteger", "QLinearMatMul"], matmul),
    **dict.fromkeys(["Softmax", "LogSoftmax", "Hardmax"], normalised(-1, is_suffix=False)),
    "LpNormalization": normalised(-1, is_suffix=False),
    **dict.fromkeys(
        ["LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"],
        normalised(-1, is_suffix=True),
    ),
    **dict.fromkeys(["Slice", "Split"], cut),
    **dict.fromkeys(["Resize", "Upsample"], resize),
    **dict.fromkeys(["DepthToSpace", "SpaceToDepth"], blocks),
    "Gemm": gemm,
    "Transpose": transpose,
    "Concat": concat,
    "Gather": gather,
    "Pad": pad,
}
