"""Family C: convolutions of one tensor whose results are joined over channels, as one convolution, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import (
    Context,
    array,
    dim,
    element_bytes,
    nbytes,
    operand,
    operator,
    producer,
    scalar,
    text,
)
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, Rule, refuse_unless
from explorer.rewrite.rules.axes import axis_of
from explorer.rewrite.rules.broadcasting import UNARY
from explorer.rewrite.rules.conv_parts import bias_array, geometry, group_of, refuse_variable_bias, weight_of
from explorer.rewrite.rules.kernel_size import (
    Window,
    border_to,
    enlarged,
    kernel_bytes,
    window_of,
    with_window,
)
from explorer.rewrite.walk import source_of


@dataclass(frozen=True)
class _Branch:
    """One operand of the Concat: a convolution, and the activation after it if there is one."""

    conv: ir.Node
    activation: ir.Node | None

    @property
    def nodes(self) -> tuple[ir.Node, ...]:
        return (self.conv,) if self.activation is None else (self.conv, self.activation)

    @property
    def output(self) -> ir.Value:
        return self.nodes[-1].outputs[0]


class _MergeConcatenatedConvs(Rule):
    """Base: runs of neighbouring operands of a Concat that are convolutions of the same tensor."""

    anchors = ("Concat",)
    min_opset = 4
    equal_windows: ClassVar[bool]

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """One match per run of at least two such operands."""
        axis = axis_of(node, 1, len(node.outputs[0].shape or ()) or None)
        if axis != 1:
            return
        for run in _runs(node):
            windows = {geometry(branch.conv) for branch in run}
            if (len(windows) == 1) is not self.equal_windows:
                continue
            try:
                yield self._match(node, run)
            except Refusal as refusal:
                yield refusal

    def _match(self, concat: ir.Node, run: Sequence[_Branch]) -> Match:
        for branch in run:
            weight_of(branch.conv)
            refuse_variable_bias(branch.conv)
            groups = group_of(branch.conv)
            refuse_unless(groups == 1, f"the convolution has {groups} groups", branch.conv)
        window, borders = (None, ()) if self.equal_windows else _common_window(run)
        nodes = (*(n for branch in run for n in branch.nodes), concat)
        bindings = {"run": run, "window": window, "borders": borders}
        summary = f"{len(run)} convolutions of {text(run[0].conv.inputs[0])} become one"
        drops = (*(v for branch in run for v in branch.conv.inputs[1:]), *_further_operands(run))
        variant = "" if len(run) == len(concat.inputs) else text(run[0].output)
        return Match(nodes, (concat.outputs[0],), bindings, variant, summary, _bytes(run, window), drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One convolution (and activation), and the Concat if other operands remain."""
        concat, run, like = match.nodes[-1], match["run"], match.outputs[0]
        covers_all = len(run) == len(concat.inputs)
        merged = _merged(run, match["window"], match["borders"], build, like if covers_all else None)
        if covers_all:
            return [merged]
        first = list(concat.inputs).index(run[0].output)
        operands = [*concat.inputs[:first], merged, *concat.inputs[first + len(run) :]]
        return [build.op("Concat", operands, attributes_of(concat), like=like)]


class MergeConcatenatedConvs(_MergeConcatenatedConvs):
    """Concat(Conv(x, W1), Conv(x, W2)) becomes Conv(x, concat W), past equal activations too."""

    name = "merge-convs-of-concat"
    family = "C4"
    title = "Merge convolutions whose results are joined"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "split-conv-channels"
    preconditions = (
        "Neighbouring operands of a Concat over channels; same input, kernel, strides, pads, dilations and activation; "
        "group 1; weights and biases constant (a missing bias is zeros); results read by nothing else."
    )
    evidence = "ORT 1.32 CPU: 3x3 pairs -5 to -8 % at DISABLE, +3 % at ALL; no Split is needed here."
    equal_windows = True


class MergeFireModule(_MergeConcatenatedConvs):
    """A fire module: the smaller kernel is enlarged with zeros, then both convolutions are one."""

    name = "merge-fire-module"
    family = "C3+C4"
    title = "Merge joined convolutions of different kernel size"
    numeric_class = NumericClass.DOMAIN
    default = False
    preconditions = (
        "As merge-convs-of-concat, but the largest window covers the others; zeros times infinity differ."
    )
    evidence = "ORT 1.32 CPU: +32 to +75 % (slower), with the Concat removed still +30 %."
    equal_windows = False


class SplitConvChannels(PatternRule):
    """Conv(x, W) becomes the Concat of two convolutions with half of the filters each."""

    name = "split-conv-channels"
    family = "C5"
    title = "Split a convolution over its output channels"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "merge-convs-of-concat"
    preconditions = (
        "Group 1 (split-conv-groups does the others); an even number of filters; W and b constant."
    )
    evidence = "The reverse of C4: pays where C4 hurts."
    anchors = ("Conv",)
    min_opset = 4

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Conv without groups and with an even number of filters."""
        filters = dim(operand(node, 1), 0)
        if group_of(node) != 1 or not isinstance(filters, int) or filters < 2 or filters % 2:
            return None
        weight_of(node)
        refuse_variable_bias(node)
        summary = f"{text(node.outputs[0])} is computed in two halves of {filters // 2} channels"
        size = sum(nbytes(value) for value in node.inputs[1:])
        return Match((node,), (node.outputs[0],), {}, "", summary, size, tuple(node.inputs[1:]))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Two convolutions and a Concat."""
        (conv,), like = match.nodes, match.outputs[0]
        halves = [np.split(array(value), 2) for value in conv.inputs[1:] if value is not None]
        parts = []
        for half in zip(*halves, strict=True):
            constants = [build.constant(values, "half") for values in half]
            parts.append(
                build.op("Conv", [conv.inputs[0], *constants], attributes_of(conv), dtype=like.dtype)
            )
        return [build.op("Concat", parts, {"axis": 1}, like=like)]


def _runs(concat: ir.Node) -> Iterator[list[_Branch]]:
    """Maximal runs of neighbouring operands that are the same function after a Conv of the same tensor."""
    run: list[_Branch] = []
    for value in [*concat.inputs, None]:
        branch = _branch(value, concat) if value is not None else None
        if branch is not None and run and _belong_together(run[-1], branch):
            run.append(branch)
            continue
        if len(run) > 1:
            yield run
        run = [] if branch is None else [branch]


def _branch(value: ir.Value, concat: ir.Node) -> _Branch | None:
    if list(concat.inputs).count(value) > 1:
        return None
    node = source_of(value)
    if node is None or node.graph is not concat.graph:
        return None
    if operator(node) == "Conv":
        return _Branch(node, None)
    conv = producer(operand(node, 0), "Conv") if operator(node) in UNARY or operator(node) == "Clip" else None
    return None if conv is None or conv.graph is not concat.graph else _Branch(conv, node)


def _belong_together(a: _Branch, b: _Branch) -> bool:
    if a.conv is b.conv or a.conv.inputs[0] is not b.conv.inputs[0]:
        return False
    if a.activation is None or b.activation is None:
        return a.activation is b.activation
    return _signature(a.activation) == _signature(b.activation)


def _further_operands(run: Sequence[_Branch]) -> list[ir.Value | None]:
    """What the activations of all branches but the first read besides; the first one's operands are read on."""
    operands = [[] if b.activation is None else list(b.activation.inputs[1:]) for b in run]
    return [value for values in operands[1:] for value in values if value not in operands[0]]


def _signature(node: ir.Node) -> tuple[object, ...]:
    """Operator, attributes and further operands (constants by value)."""
    operands = [v if scalar(v) is None else scalar(v) for v in node.inputs[1:]]
    attributes = sorted((name, repr(a.value)) for name, a in node.attributes.items())
    return (operator(node), tuple(attributes), tuple(operands))


def _common_window(run: Sequence[_Branch]) -> tuple[Window, tuple[tuple[tuple[int, int], ...], ...]]:
    """The largest window and the border of zeros each kernel needs for it."""
    windows = []
    for branch in run:
        window = window_of(branch.conv)
        if window is None:
            raise Refusal("the pads are not explicit or the kernel is unknown", (branch.conv,))
        windows.append(window)
    largest = max(windows, key=lambda window: int(np.prod(window.kernel)))
    borders = []
    for branch, window in zip(run, windows, strict=True):
        border = border_to(window, largest)
        if border is None:
            reason = (
                f"the window {largest.name} with its strides and pads does not cover the window {window.name}"
            )
            raise Refusal(reason, (branch.conv,))
        borders.append(border)
    return largest, tuple(borders)


def _merged(
    run: Sequence[_Branch],
    window: Window | None,
    borders: Sequence[tuple[tuple[int, int], ...]],
    build: Builder,
    like: ir.Value | None,
) -> ir.Value:
    first, activation = run[0].conv, run[0].activation
    weights = [array(branch.conv.inputs[1]) for branch in run]
    biases = [bias_array(branch.conv, weight) for branch, weight in zip(run, weights, strict=True)]
    if window is not None:
        weights = [enlarged(weight, border) for weight, border in zip(weights, borders, strict=True)]
    hint = first.inputs[1].name if first.inputs[1] is not None else "weight"
    operands = [first.inputs[0], build.constant(np.concatenate(weights), f"{hint}_merged")]
    if _has_bias(run):
        operands.append(build.constant(np.concatenate(biases), f"{hint}_merged_bias"))
    attributes = attributes_of(first) if window is None else with_window(first, window)
    dtype = first.outputs[0].dtype
    value = build.op("Conv", operands, attributes, like=like, dtype=dtype)
    if activation is None:
        return value
    operands, dtype = [value, *activation.inputs[1:]], activation.outputs[0].dtype
    return build.op(
        activation.op_type,
        operands,
        attributes_of(activation),
        like=like,
        dtype=dtype,
        domain=activation.domain,
    )


def _has_bias(run: Sequence[_Branch]) -> bool:
    return any(operand(branch.conv, 2) is not None for branch in run)


def _bytes(run: Sequence[_Branch], window: Window | None) -> int:
    weights = [weight_of(branch.conv) for branch in run]
    size = sum(nbytes(w) if window is None else kernel_bytes(w, window) for w in weights)
    if not _has_bias(run):
        return size
    filters = (dim(weight, 0) for weight in weights)
    return size + sum(count * element_bytes(weights[0]) for count in filters if isinstance(count, int))


RULES = (MergeConcatenatedConvs(), MergeFireModule(), SplitConvChannels())
