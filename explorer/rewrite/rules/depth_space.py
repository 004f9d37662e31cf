"""Family G: Reshape, Transpose, Reshape as DepthToSpace or SpaceToDepth, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import Context, dim, operand, producer, shape_of, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, refuse_unless
from explorer.rewrite.rules.axes import Dims, perm_of

_EVIDENCE = "One copy instead of one copy and two reshapes; not measured."
_DEPTH_PERMS: dict[tuple[int, ...], str] = {(0, 3, 4, 1, 5, 2): "DCR", (0, 1, 4, 2, 5, 3): "CRD"}
_SPACE_PERM = (0, 3, 5, 1, 2, 4)


@dataclass(frozen=True)
class _Blocks:
    """One of the two operators, with the six dims between its reshapes (batch left out) and its last shape."""

    operator: str
    size: int
    mode: str
    middle: tuple[int, ...]
    result: tuple[int, ...]

    @property
    def perm(self) -> tuple[int, ...]:
        if self.operator == "SpaceToDepth":
            return _SPACE_PERM
        return next(perm for perm, mode in _DEPTH_PERMS.items() if mode == self.mode)

    @property
    def attributes(self) -> dict[str, object]:
        """Of the ONNX operator; the default mode is left out (it did not exist before opset 11)."""
        return {"blocksize": self.size, "mode": self.mode if self.mode == "CRD" else None}


class FuseDepthSpace(PatternRule):
    """Reshape, Transpose, Reshape that move blocks become DepthToSpace or SpaceToDepth."""

    name = "fuse-depth-space"
    family = "G10"
    title = "Fuse Reshape-Transpose-Reshape to DepthToSpace or SpaceToDepth"
    numeric_class = NumericClass.EXACT
    inverse = "split-depth-space"
    preconditions = (
        "4-D input with static channels, height and width; six dims between, permuted as DCR [0,3,4,1,5,2], CRD "
        "[0,1,4,2,5,3] (opset 11 on) or SpaceToDepth [0,3,5,1,2,4]."
    )
    evidence = _EVIDENCE
    anchors = ("Reshape",)
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """The last Reshape of the three."""
        transpose = producer(operand(node, 0), "Transpose")
        first = None if transpose is None else producer(operand(transpose, 0), "Reshape")
        if transpose is None or first is None or perm_of(transpose) not in {*_DEPTH_PERMS, _SPACE_PERM}:
            return None
        source, middle = shape_of(operand(first, 0)), shape_of(first.outputs[0])
        result = shape_of(node.outputs[0])
        if source is None or middle is None or result is None or (len(source), len(result)) != (4, 4):
            return None
        blocks = _blocks(source, middle, perm_of(transpose) or ())
        same_batch = source[0] == middle[0] == result[0]
        if blocks is None or tuple(result[1:]) != blocks.result or not same_batch:
            raise Refusal(f"dims {list(middle)} between are not blocks of {list(source)}", (transpose, first))
        refuse_unless(blocks.mode != "CRD" or context.opset >= 11, "mode CRD needs opset 11", transpose)
        drops = (*first.inputs[1:], *node.inputs[1:])
        summary = f"{text(node.outputs[0])} becomes {blocks.operator} with blocks of {blocks.size}"
        nodes = (first, transpose, node)
        return Match(nodes, (node.outputs[0],), {"blocks": blocks}, "", summary, 0, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One operator."""
        blocks: _Blocks = match["blocks"]
        source = match.nodes[0].inputs[0]
        return [build.op(blocks.operator, [source], blocks.attributes, like=match.outputs[0])]


class SplitDepthSpace(PatternRule):
    """DepthToSpace or SpaceToDepth becomes Reshape, Transpose, Reshape."""

    name = "split-depth-space"
    family = "G10"
    title = "Split DepthToSpace or SpaceToDepth into Reshape-Transpose-Reshape"
    numeric_class = NumericClass.EXACT
    inverse = "fuse-depth-space"
    preconditions = "Static channels, height and width."
    evidence = "The reverse of G10: lets the transposes and reshapes merge with others."
    anchors = ("DepthToSpace", "SpaceToDepth")
    min_opset = 5
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A DepthToSpace or SpaceToDepth of known size."""
        source = shape_of(operand(node, 0))
        size = node.attributes.get_int("blocksize", 0) or 0
        blocks = None if source is None else _whole(node, source, size)
        if blocks is None:
            raise Refusal(f"channels, height and width of {text(node.inputs[0])} are not all static")
        summary = f"{text(node.outputs[0])} becomes two reshapes around a Transpose"
        return Match((node,), (node.outputs[0],), {"blocks": blocks}, "", summary, 8 * (6 + 4))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The three nodes; a 0 keeps the batch."""
        (node,), blocks = match.nodes, match["blocks"]
        batch, dtype = dim(node.inputs[0], 0), node.outputs[0].dtype
        middle = (batch, *blocks.middle)
        target = build.ints((0, *blocks.middle), "blocks")
        value = build.op("Reshape", [node.inputs[0], target], dtype=dtype, shape=middle)
        moved = [middle[axis] for axis in blocks.perm]
        value = build.op("Transpose", [value], {"perm": blocks.perm}, dtype=dtype, shape=moved)
        last = build.ints((0, *blocks.result), "shape")
        return [build.op("Reshape", [value, last], like=match.outputs[0])]


def _whole(node: ir.Node, source: Dims, size: int) -> _Blocks | None:
    sizes = [d for d in source[1:] if isinstance(d, int)]
    if len(sizes) != 3 or size < 1:
        return None
    channels, height, width = sizes
    if node.op_type == "SpaceToDepth":
        return _space_to_depth(channels, height, width, size)
    mode = node.attributes.get_string("mode", "DCR") or "DCR"
    return _depth_to_space(channels, height, width, size, mode)


def _blocks(source: Dims, middle: Dims, perm: tuple[int, ...]) -> _Blocks | None:
    """The operator that these six dims and this permutation are; None if they are none."""
    static = [d for d in (*source[1:], *middle[1:]) if isinstance(d, int)]
    if len(static) != 8:
        return None
    channels, height, width, *between = static
    if perm == _SPACE_PERM:
        found = _space_to_depth(channels, height, width, between[2])
    else:
        mode = _DEPTH_PERMS[perm]
        found = _depth_to_space(channels, height, width, between[0 if mode == "DCR" else 1], mode)
    return found if found is not None and tuple(between) == found.middle else None


def _depth_to_space(channels: int, height: int, width: int, size: int, mode: str) -> _Blocks | None:
    if size < 1 or channels % (size * size):
        return None
    left = channels // (size * size)
    middle = (size, size, left, height, width) if mode == "DCR" else (left, size, size, height, width)
    return _Blocks("DepthToSpace", size, mode, middle, (left, height * size, width * size))


def _space_to_depth(channels: int, height: int, width: int, size: int) -> _Blocks | None:
    if size < 1 or height % size or width % size:
        return None
    middle = (channels, height // size, size, width // size, size)
    return _Blocks("SpaceToDepth", size, "", middle, (channels * size * size, height // size, width // size))


RULES = (FuseDepthSpace(), SplitDepthSpace())
