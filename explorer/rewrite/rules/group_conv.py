"""Family C: fewer, wider groups of a grouped convolution, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import Context, array, nbytes, tensor, text
from explorer.rewrite.rule import Match, NumericClass, Refusal, Rule
from explorer.rewrite.rules.conv_parts import group_of, weight_of

_FACTORS = (2, 4)
_LARGEST_SCAN = 1 << 22  # weight elements looked at for zero blocks


class MergeConvGroups(Rule):
    """A convolution with g groups becomes one with g / f groups and a weight padded with zeros."""

    name = "merge-conv-groups"
    family = "C7"
    title = "Merge adjacent groups of a grouped convolution"
    numeric_class = NumericClass.DOMAIN
    inverse = "unmerge-conv-groups"
    default = False
    preconditions = "Constant weight; the number of groups divisible by the factor. The weight grows f times."
    evidence = (
        "ORT 1.32 CPU: 32x4 to 16x8 groups +20 % at DISABLE, -21 to -28 % at ALL (a full NCHWc block of 8); whole "
        "ResNeXt-50: 1.00 and 1.03."
    )
    anchors = ("Conv",)

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """One match per factor that divides the number of groups."""
        groups = group_of(node)
        if groups == 1:
            return
        size = nbytes(weight_of(node))
        fitting = [factor for factor in _FACTORS if groups % factor == 0]
        if not fitting:
            yield Refusal(f"{groups} groups are divisible neither by 2 nor by 4")
        for factor in fitting:
            summary = f"{text(node.outputs[0])}: {groups} groups become {groups // factor}"
            yield Match(
                (node,),
                (node.outputs[0],),
                {"factor": factor},
                f"x{factor}",
                summary,
                size * factor,
                (node.inputs[1],),
            )

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The same Conv with fewer groups."""
        (conv,), factor = match.nodes, match["factor"]
        weight = array(conv.inputs[1])
        wide = build.constant(merge_groups(weight, group_of(conv), factor), f"{conv.inputs[1].name}_wide")  # type: ignore[union-attr] # weight_of checked it
        attributes = attributes_of(conv, group=group_of(conv) // factor)
        return [build.op("Conv", [conv.inputs[0], wide, *conv.inputs[2:]], attributes, like=match.outputs[0])]


class UnmergeConvGroups(Rule):
    """A convolution whose weight is block-diagonal gets f times as many groups."""

    name = "unmerge-conv-groups"
    family = "C7"
    title = "Split groups whose weight is block-diagonal"
    numeric_class = NumericClass.DOMAIN
    inverse = "merge-conv-groups"
    default = False
    preconditions = "Constant weight whose off-diagonal blocks are all zero."
    evidence = "The reverse of C7."
    anchors = ("Conv",)

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """One match per factor for which the weight is block-diagonal."""
        found = tensor(node.inputs[1]) if len(node.inputs) > 1 else None
        if found is None or found.size > _LARGEST_SCAN or len(found.shape.numpy()) < 3:
            return
        groups = group_of(node)
        for factor in _FACTORS:
            narrow = unmerge_groups(found.numpy(), groups, factor)
            if narrow is not None:
                summary = f"{text(node.outputs[0])}: {groups} groups become {groups * factor}"
                yield Match(
                    (node,),
                    (node.outputs[0],),
                    {"factor": factor},
                    f"x{factor}",
                    summary,
                    narrow.nbytes,
                    (node.inputs[1],),
                )

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The same Conv with more groups."""
        (conv,), factor = match.nodes, match["factor"]
        weight = unmerge_groups(array(conv.inputs[1]), group_of(conv), factor)
        if weight is None:
            raise Refusal("the weight is not block-diagonal")
        narrow = build.constant(weight, f"{conv.inputs[1].name}_narrow")  # type: ignore[union-attr] # match saw it
        attributes = attributes_of(conv, group=group_of(conv) * factor)
        return [
            build.op("Conv", [conv.inputs[0], narrow, *conv.inputs[2:]], attributes, like=match.outputs[0])
        ]


def merge_groups(weight: np.ndarray, groups: int, factor: int) -> np.ndarray:
    """Weight [M, C/g, k...] of g groups as the weight [M, f*C/g, k...] of g/f groups, zeros elsewhere."""
    outputs, inputs = weight.shape[0] // groups, weight.shape[1]
    wide = np.zeros((weight.shape[0], inputs * factor, *weight.shape[2:]), dtype=weight.dtype)
    for group in range(groups):
        rows = slice(group * outputs, (group + 1) * outputs)
        start = (group % factor) * inputs
        wide[rows, start : start + inputs] = weight[rows]
    return wide


def unmerge_groups(weight: np.ndarray, groups: int, factor: int) -> np.ndarray | None:
    """The inverse of ``merge_groups``; None if sizes do not divide or a block off the diagonal is not zero."""
    outputs, inputs = weight.shape[0] // groups, weight.shape[1]
    if outputs % factor or inputs % factor:
        return None
    if np.any(weight[0, inputs // factor :]):
        return None  # the first filter tells, for almost every weight
    blocks = weight.reshape(groups, factor, outputs // factor, factor, inputs // factor, *weight.shape[2:])
    off_diagonal = ~np.eye(factor, dtype=bool)
    if np.any(np.moveaxis(blocks, 3, 2)[:, off_diagonal]):
        return None
    diagonal = np.stack([blocks[:, i, :, i] for i in range(factor)], axis=1)
    return np.ascontiguousarray(diagonal.reshape(weight.shape[0], inputs // factor, *weight.shape[2:]))


RULES = (MergeConvGroups(), UnmergeConvGroups())
