"""Family K: the channel shuffle of ShuffleNet as a Gather of channels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import Context, operand, operator, producer, readers, shape_of, text
from explorer.rewrite.rule import Match, NumericClass, Refusal, Rule
from explorer.rewrite.rules.axes import Dims, perm_of
from explorer.rewrite.rules.slice_parts import bounds_of

_PERM = (0, 2, 1, 3, 4)


class GatherShuffledChannels(Rule):
    """Reshape, Transpose, Reshape that interleave channels become one Gather; or one per part that is cut out."""

    name = "gather-shuffled-channels"
    family = "K4"
    title = "Channel shuffle as a Gather of channels"
    numeric_class = NumericClass.EXACT
    preconditions = (
        "4-D with static channels, height and width, split into (groups, channels per group) and swapped "
        "([0,2,1,3,4]); for the form per part, only Slices of channels with constant bounds read the result."
    )
    evidence = (
        "ShuffleNetV2, the form per part: -4 % at ALL by screening; with K3 -16 %, validated (ORT 1.32 CPU)."
    )
    anchors = ("Reshape",)
    dtypes = None

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """The last Reshape of a shuffle, by itself and together with the Slices behind it."""
        transpose = producer(operand(node, 0), "Transpose")
        first = None if transpose is None else producer(operand(transpose, 0), "Reshape")
        if transpose is None or first is None or perm_of(transpose) != _PERM:
            return
        source, middle = shape_of(operand(first, 0)), shape_of(first.outputs[0])
        order = _order(source, middle, shape_of(node.outputs[0]))
        if order is None:
            yield Refusal(
                "channels, height or width are not static, or not what is shuffled", (transpose, first)
            )
            return
        nodes = (first, transpose, node)
        drops = (*first.inputs[1:], *node.inputs[1:])
        summary = f"{text(node.outputs[0])} gathers {len(order)} channels"
        yield Match(nodes, tuple(node.outputs), {"orders": (order,)}, "", summary, 8 * len(order), drops)
        parts = _parts(node, order)
        if parts:
            cuts = tuple(parts)
            drops = (*drops, *(value for cut in cuts for value in cut.inputs[1:]))
            size = 8 * sum(len(part) for part in parts.values())
            outputs = tuple(cut.outputs[0] for cut in cuts)
            summary = f"{len(cuts)} parts of {text(node.outputs[0])} gather their channels"
            yield Match(
                (*nodes, *cuts), outputs, {"orders": tuple(parts.values())}, "parts", summary, size, drops
            )

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Gather per output."""
        source = match.nodes[0].inputs[0]
        return [
            build.op("Gather", [source, build.ints(order, "channels")], {"axis": 1}, like=output)
            for order, output in zip(match["orders"], match.outputs, strict=True)
        ]


def _order(source: Dims | None, middle: Dims | None, result: Dims | None) -> tuple[int, ...] | None:
    """Which channel of the source is at each place of the result; None if this is no shuffle."""
    if source is None or middle is None or result is None or (len(source), len(middle)) != (4, 5):
        return None
    static = [size for size in (*source[1:], *middle[1:]) if isinstance(size, int)]
    if len(static) != 7 or tuple(result) != tuple(source) or source[0] != middle[0]:
        return None
    channels, groups, each = static[0], *static[3:5]
    if static[1:3] != static[5:] or groups * each != channels:
        return None
    return tuple(np.arange(channels).reshape(groups, each).T.ravel().tolist())


def _parts(reshape: ir.Node, order: tuple[int, ...]) -> dict[ir.Node, tuple[int, ...]]:
    """What each Slice behind the shuffle takes; empty if something else reads it too."""
    found: dict[ir.Node, tuple[int, ...]] = {}
    value = reshape.outputs[0]
    if value.is_graph_output():
        return {}
    for reader in readers(value):
        if operator(reader) != "Slice" or reader.inputs[0] is not value:
            return {}
        try:
            bounds = bounds_of(reader)
        except Refusal:
            return {}
        if set(bounds) != {1}:
            return {}
        taken = order[slice(bounds[1].start, bounds[1].end, bounds[1].step)]
        if not taken or bounds[1].step < 1:
            return {}
        found[reader] = taken
    return found


RULES = (GatherShuffledChannels(),)
