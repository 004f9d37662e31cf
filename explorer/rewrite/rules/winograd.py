"""Family K: a convolution by fewer multiplications (Winograd's minimal filtering along one axis)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import gcd

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import (
    Context,
    array,
    dim,
    dims,
    element_bytes,
    ints,
    operand,
    producer,
    sole_reader,
    text,
)
from explorer.rewrite.rule import FLOAT32, Match, NumericClass, PatternRule, Refusal, refuse_unless
from explorer.rewrite.rules.conv_parts import group_of, refuse_variable_bias, weight_of
from explorer.rewrite.rules.kernel_size import Window, window_of
from explorer.rewrite.rules.slice_parts import Bounds, build_slice, slice_bytes

TILES = {3: 4, 5: 2, 7: 2}
"""Kernel size -> outputs computed together: by 0.5, 0.6 and 0.57 of the multiplications."""

LEAST_CHANNELS = 64
"""Below this, the transforms cost more than the multiplications they save."""

_POINTS = tuple(Fraction(*p) for p in ((0, 1), (1, 1), (-1, 1), (2, 1), (-2, 1), (1, 2), (-1, 2)))
_ONE = 1  # the place of the point 1, whose product goes into every row with factor 1


@dataclass(frozen=True, eq=False)
class Transforms:
    """Matrices of the algorithm F(m, r) with n = m + r - 1 products: y = output @ ((weight @ g) * (data @ d)).

    Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, section 4.

    Attributes:
        data: (n, n), of n inputs d.
        weight: (n, r), of the r kernel elements g.
        output: (m, n), of the n products.
    """

    data: np.ndarray
    weight: np.ndarray
    output: np.ndarray


@cache
def transforms(tile: int, kernel: int) -> Transforms:
    """The Toom-Cook construction over the points 0, 1, -1, 2, -2, 1/2, -1/2 and infinity.

    Args:
        tile: m, outputs computed together.
        kernel: r, elements of the kernel; m + r - 1 is at most 8.
    """
    points = _POINTS[: tile + kernel - 2]
    weight = [[p**k / _distance(points, p) for k in range(kernel)] for p in points]
    weight.append([Fraction(k == kernel - 1) for k in range(kernel)])
    data = [[*_polynomial([q for q in points if q != p]), Fraction(0)] for p in points]
    data.append(_polynomial(points))
    output = [[*(p**i for p in points), Fraction(i == tile - 1)] for i in range(tile)]
    return Transforms(*(np.array(m, dtype=np.float64) for m in (data, weight, output)))


@dataclass(frozen=True)
class Reads:
    """The inputs that one product reads, as a depthwise window along the axis.

    Attributes:
        first: place of the first of them among the n inputs of a tile.
        step: distance between them.
        count: how many.
        pads: zeros before and after the input.
    """

    first: int
    step: int
    count: int
    pads: tuple[int, int]


@dataclass(frozen=True)
class Layout:
    """How the output of a convolution is cut into tiles along one spatial axis.

    Attributes:
        window: of the convolution.
        axis: 0 for the height, 1 for the width.
        size: of the output along it.
        tile: outputs per tile.
        tiles: tiles, the last one perhaps in part beyond the output.
        reads: what each product reads.
    """

    window: Window
    axis: int
    size: int
    tile: int
    tiles: int
    reads: tuple[Reads, ...]

    @classmethod
    def of(cls, window: Window, axis: int, size_in: int) -> Layout:
        """The tiles for an input of this size along the axis."""
        kernel, begin = window.kernel[axis], window.begins[axis]
        size, tile = size_in + begin + window.ends[axis] - kernel + 1, TILES[kernel]
        tiles = -(-size // tile)
        last = (tiles - 1) * tile - begin  # where in the input the last tile begins
        reads = tuple(_reads(row, begin, last, size_in) for row in transforms(tile, kernel).data)
        return cls(window, axis, size, tile, tiles, reads)

    @property
    def cut(self) -> dict[int, Bounds]:
        """What of the tiles is output, if they end beyond it."""
        return {self.axis + 2: Bounds(0, self.size)} if self.tiles * self.tile != self.size else {}

    def placed(self, along: int, across: int) -> list[int]:
        """A (height, width) pair: one number along the axis, the other one across it."""
        return [along, across] if self.axis == 0 else [across, along]


class WinogradConv(PatternRule):
    """A dense convolution with stride 1 computes several outputs at once with fewer products."""

    name = "winograd-conv"
    family = "K1"
    title = "Convolution by Winograd's minimal filtering"
    numeric_class = NumericClass.REASSOCIATED
    preconditions = (
        "2-D, float32, one group, constant weight; along the height (or else the width) a kernel of 3, 5 or 7 with "
        f"stride 1, dilation 1 and a known size; explicit pads; at least {LEAST_CHANNELS} input and output "
        "channels; no BatchNormalization behind it (fold that first)."
    )
    evidence = (
        "No kernel of ONNX Runtime 1.32 on the CPU does it. Validated at ALL, one thread: VGG-16 -28 %, ResNet-18 -16 %, "
        "GoogLeNet -14 %, ResNet-101 and -152 -10 %, ResNet-50 -7 %, Inception-v3 -4 %; SqueezeNet, with fewer than 64 "
        "channels, +8 to +16 % (screening). Errors below 1.4e-6 of the output's scale."
    )
    anchors = ("Conv",)
    dtypes = FLOAT32

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Conv with a kernel that has an algorithm."""
        window = window_of(node)
        axis = None if window is None or group_of(node) != 1 else _axis(window)
        if window is None or axis is None or _is_product(node, axis):
            return None
        weight, size_in = weight_of(node), dim(operand(node, 0), axis + 2)
        refuse_variable_bias(node)
        if not isinstance(size_in, int):
            raise Refusal(f"the {('height', 'width')[axis]} of {text(operand(node, 0))} is not known")
        channels = min((dims(weight) or (0, 0))[:2])
        refuse_unless(
            channels >= LEAST_CHANNELS,
            f"with {channels} channels the transforms would cost more than the products they save",
        )
        norm = sole_reader(node.outputs[0], "BatchNormalization")
        refuse_unless(
            norm is None, "a BatchNormalization follows, which could no longer be folded; fold it first"
        )
        layout = Layout.of(window, axis, size_in)
        fewer, plain = len(layout.reads), layout.tile * window.kernel[axis]
        what = ("rows", "columns")[axis]
        summary = f"{text(node.outputs[0])}: {layout.tile} {what} by {fewer} products instead of {plain}"
        size = _new_bytes(layout, weight, context)
        return Match((node,), (node.outputs[0],), {"layout": layout}, "", summary, size, (weight,))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Per product a depthwise Conv and a Conv of one row; then one MatMul, and the rows in order."""
        (conv,), layout = match.nodes, match["layout"]
        weight, bias = array(conv.inputs[1]), operand(conv, 2)
        matrices = transforms(layout.tile, layout.window.kernel[layout.axis])
        kernels = np.tensordot(matrices.weight, weight.astype(np.float64), axes=(1, 2 + layout.axis))
        products = []
        for place, (reads, row) in enumerate(zip(layout.reads, matrices.data, strict=True)):
            taps = row[reads.first :: reads.step][: reads.count].astype(weight.dtype)
            seen = _read(conv, taps, reads, layout, build)
            kernel = np.expand_dims(kernels[place], 2 + layout.axis).astype(weight.dtype)
            products.append(_multiply(seen, kernel, bias if place == _ONE else None, layout, build))
        return [_assemble(products, matrices.output, match.outputs[0], layout, build)]


def _axis(window: Window) -> int | None:
    """The height if there is an algorithm for it, else the width, whose outputs are harder to put in order."""
    if len(window.kernel) != 2:
        return None
    for axis, size in enumerate(window.kernel):
        if size in TILES and (window.strides[axis], window.dilations[axis]) == (1, 1):
            return axis
    return None


def _is_product(conv: ir.Node, axis: int) -> bool:
    """Whether the convolution is a product of this algorithm along the other axis: doing it twice does not pay."""
    source = producer(operand(conv, 0), "Conv")
    if source is None or group_of(source) == 1:
        return False
    strides = ints(source, "strides", (1, 1))
    return dim(operand(conv, 1), 3 - axis) == 1 and strides[1 - axis] in TILES.values() and strides[axis] == 1


def _reads(row: np.ndarray, begin: int, last_tile: int, size_in: int) -> Reads:
    """The window of inputs with a factor; of one more where the input has no padding to leave out."""
    places = [int(place) for place in np.flatnonzero(row)]
    first, last = min(places[0], begin), places[-1]
    step = gcd(*(place - first for place in places)) or 1
    after = last_tile + last + 1 - size_in
    return Reads(first, step, (last - first) // step + 1, (begin - first, max(after, 0)))


def _read(conv: ir.Node, taps: np.ndarray, reads: Reads, layout: Layout, build: Builder) -> ir.Value:
    channels = (dims(conv.inputs[1]) or (0, 0))[1]
    weight = np.broadcast_to(
        taps.reshape(1, 1, *layout.placed(-1, 1)), (channels, 1, *layout.placed(reads.count, 1))
    )
    before, after = reads.pads
    attributes = {
        "kernel_shape": layout.placed(reads.count, 1),
        "strides": layout.placed(layout.tile, 1),
        "dilations": layout.placed(reads.step, 1),
        "pads": [*layout.placed(before, 0), *layout.placed(after, 0)],
        "group": channels,
    }
    return build.op("Conv", [conv.inputs[0], build.constant(weight, "winograd_reads")], attributes)


def _multiply(
    seen: ir.Value, kernel: np.ndarray, bias: ir.Value | None, layout: Layout, build: Builder
) -> ir.Value:
    window, across = layout.window, 1 - layout.axis
    attributes = {
        "kernel_shape": list(kernel.shape[2:]),
        "strides": layout.placed(1, window.strides[across]),
        "dilations": layout.placed(1, window.dilations[across]),
        "pads": [*layout.placed(0, window.begins[across]), *layout.placed(0, window.ends[across])],
    }
    constant = build.constant(kernel, "winograd_weight")
    return build.op("Conv", [seen, constant, *([] if bias is None else [bias])], attributes)


def _assemble(
    products: Sequence[ir.Value], output: np.ndarray, like: ir.Value, layout: Layout, build: Builder
) -> ir.Value:
    channels = int(dim(products[0], 1) or dim(like, 1) or 0)
    matrix = build.constant(output.astype(np.float32), "winograd_output")
    stacked = build.op("Concat", products, {"axis": 1})
    stacked = build.op("Reshape", [stacked, build.ints([0, len(products), -1])])
    outputs = build.op("MatMul", [matrix, stacked])
    tiles = layout.placed(layout.tiles, -1)
    outputs = build.op("Reshape", [outputs, build.ints([0, layout.tile, channels, *tiles])])
    order = [0, 2, 3, 1, 4] if layout.axis == 0 else [0, 2, 3, 4, 1]
    outputs = build.op("Transpose", [outputs], {"perm": order})
    shape = build.ints([0, channels, *layout.placed(layout.tiles * layout.tile, -1)])
    if not layout.cut:
        return build.op("Reshape", [outputs, shape], like=like)
    return build_slice(build.op("Reshape", [outputs, shape]), layout.cut, build, like=like)


def _new_bytes(layout: Layout, weight: ir.Value, context: Context) -> int:
    out_channels, in_channels = (dims(weight) or (0, 0))[:2]
    products, across = len(layout.reads), layout.window.kernel[1 - layout.axis]
    taps = sum(reads.count for reads in layout.reads)
    elements = taps * in_channels + products * (out_channels * in_channels * across + layout.tile)
    shapes = 8 * (3 + 5 + 4)
    return (
        elements * element_bytes(weight) + shapes + (slice_bytes([layout.cut], context) if layout.cut else 0)
    )


def _distance(points: Sequence[Fraction], point: Fraction) -> Fraction:
    """The product of a point's differences from the others."""
    product = Fraction(1)
    for other in points:
        product *= point - other if other != point else 1
    return product


def _polynomial(roots: Sequence[Fraction]) -> list[Fraction]:
    """Coefficients of the monic polynomial with these roots, the constant one first."""
    found = [Fraction(1)]
    for root in roots:
        shifted, scaled = [Fraction(0), *found], [*(root * c for c in found), Fraction(0)]
        found = [a - b for a, b in zip(shifted, scaled, strict=True)]
    return found


RULES = (WinogradConv(),)
