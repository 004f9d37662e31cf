"""Families A and G: Concat and Split that undo each other, nest, or do nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import (
    Context,
    dim,
    exclusive,
    operand,
    operator,
    producer,
    rank,
    text,
)
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, Rule, refuse_unless
from explorer.rewrite.rules.axes import axis_of
from explorer.rewrite.rules.elimination import Bypass, bypass
from explorer.rewrite.rules.siblings import split_sizes

_SAVES_COPY = "Pays where it removes a copy; needed after C4 and D5."


class EliminateTrivialConcat(Bypass):
    """Concat of one tensor, or Split into one, becomes x."""

    name = "eliminate-trivial-concat"
    family = "A7"
    title = "Remove Concat of one tensor or Split into one"
    preconditions = "One input (Concat) or one output (Split)."
    anchors = ("Concat", "Split")

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Concat with one input or a Split with one output."""
        count = len(node.inputs) if node.op_type == "Concat" else len(node.outputs)
        return bypass(node, f"{text(node.outputs[0])} is {text(node.inputs[0])}") if count == 1 else None


class EliminateConcatOfSplit(PatternRule):
    """Concat(Split(x)) of all parts in order becomes x."""

    name = "eliminate-concat-of-split"
    family = "A7"
    title = "Cancel Split and Concat"
    numeric_class = NumericClass.EXACT
    preconditions = "Same axis; all outputs of the Split, each once, in order."
    evidence = _SAVES_COPY
    anchors = ("Concat",)
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Concat whose first input is the first output of a Split."""
        split = producer(operand(node, 0), "Split")
        if split is None or len(node.inputs) < 2 or any(producer(v) is not split for v in node.inputs):
            return None
        refuse_unless(
            list(node.inputs) == list(split.outputs),
            f"the parts of {text(split.inputs[0])} are not joined all, once and in order",
            split,
        )
        refuse_unless(_same_axis(split, node), "the Split and the Concat have different axes", split)
        nodes = (*exclusive([split], node), node)
        drops = tuple(split.inputs[1:]) if split in nodes else ()
        summary = f"{text(node.outputs[0])} is {text(split.inputs[0])}"
        bindings = {"source": split.inputs[0]}
        return Match(nodes, (node.outputs[0],), bindings, summary=summary, drops=drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The tensor that was split."""
        return [match["source"]]


class EliminateSplitOfConcat(PatternRule):
    """Split(Concat(a, b, ...)) into the same parts becomes a, b, ..."""

    name = "eliminate-split-of-concat"
    family = "A7"
    title = "Cancel Concat and Split"
    numeric_class = NumericClass.EXACT
    preconditions = "Same axis; the sizes of the Split are those of the joined tensors, all static."
    evidence = _SAVES_COPY
    anchors = ("Split",)
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Split whose input is a Concat."""
        concat = producer(operand(node, 0), "Concat")
        if concat is None:
            return None
        size = rank(node.inputs[0])
        axis = axis_of(node, 0, size)
        refuse_unless(_same_axis(node, concat), "the Concat and the Split have different axes", concat)
        joined = [dim(value, axis) if axis is not None else None for value in concat.inputs]
        total = dim(node.inputs[0], axis) if axis is not None else None
        parts = split_sizes(node, total if isinstance(total, int) else None)
        refuse_unless(
            parts is not None and joined == list(parts),
            f"the parts {list(parts or ())} are not the joined sizes {joined}",
            concat,
        )
        nodes = (*exclusive([concat], node), node)
        bindings = {"parts": tuple(concat.inputs)}
        summary = f"{text(node.inputs[0])} is not joined to be split again"
        return Match(nodes, tuple(node.outputs), bindings, summary=summary, drops=tuple(node.inputs[1:]))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The tensors that were joined."""
        return list(match["parts"])


class MergeConcats(Rule):
    """Concat(a, Concat(b, c)) becomes Concat(a, b, c)."""

    name = "merge-concats"
    family = "G8"
    title = "Merge nested Concats"
    numeric_class = NumericClass.EXACT
    preconditions = "Same axis; the inner Concat is read once."
    evidence = "Saves one copy of the inner tensors."
    anchors = ("Concat",)
    dtypes = None

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """Every input of the Concat that is a Concat itself."""
        for index, value in enumerate(node.inputs):
            inner = producer(value, "Concat")
            if inner is None:
                continue
            if not _same_axis(inner, node):
                yield Refusal(f"the Concats around {text(value)} have different axes", (inner,))
            elif list(node.inputs).count(value) > 1:
                yield Refusal(f"{text(value)} is joined twice", (inner,))
            else:
                summary = f"the parts of {text(value)} are joined directly"
                bindings = {"outer": node, "inner": inner, "index": index}
                yield Match((inner, node), (node.outputs[0],), bindings, str(index), summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Concat."""
        outer, inner, index = match["outer"], match["inner"], match["index"]
        inputs = [*outer.inputs[:index], *inner.inputs, *outer.inputs[index + 1 :]]
        return [build.op("Concat", inputs, attributes_of(outer), like=match.outputs[0])]


class DropEmptyConcatInputs(PatternRule):
    """Concat(a, empty, b) becomes Concat(a, b)."""

    name = "drop-empty-concat-inputs"
    family = "A7"
    title = "Drop empty inputs of Concat"
    numeric_class = NumericClass.EXACT
    preconditions = "The dim of the dropped input along the axis is statically zero; another input remains."
    evidence = "onnxruntime#28348, OnnxSlim#327: empty inputs break other tools."
    anchors = ("Concat",)
    min_opset = 4
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Concat with an input that adds nothing."""
        axis = axis_of(node, 1, rank(node.outputs[0]) or rank(operand(node, 0)))
        if axis is None:
            return None
        kept = tuple(value for value in node.inputs if dim(value, axis) != 0)
        if not kept or len(kept) == len(node.inputs):
            return None
        dropped = tuple(value for value in node.inputs if value not in kept)
        summary = f"{', '.join(map(text, dropped))} adds nothing to {text(node.outputs[0])}"
        return Match((node,), (node.outputs[0],), {"kept": kept}, "", summary, 0, dropped)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The Concat of what remains."""
        (node,) = match.nodes
        return [build.op("Concat", match["kept"], attributes_of(node), like=match.outputs[0])]


def _same_axis(a: ir.Node, b: ir.Node) -> bool:
    """Whether a Concat and its Split (or two Concats) work along one axis."""
    axes = [node.attributes.get_int("axis", 0 if operator(node) == "Split" else 1) for node in (a, b)]
    if axes[0] == axes[1]:
        return True
    size = rank(a.outputs[0])
    found = [axis_of(node, 0, size) for node in (a, b)]
    return found[0] is not None and found[0] == found[1]


RULES = (
    EliminateTrivialConcat(),
    EliminateConcatOfSplit(),
    EliminateSplitOfConcat(),
    MergeConcats(),
    DropEmptyConcatInputs(),
)
