"""Family C: auto_pad written out as explicit pads."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import Context, dim, dims, ints, operand, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, refuse_unless


class ExplicitPads(PatternRule):
    """auto_pad SAME_UPPER, SAME_LOWER or VALID becomes a list of pads."""

    name = "explicit-pads"
    family = "C2"
    title = "Write automatic padding as explicit pads"
    numeric_class = NumericClass.EXACT
    preconditions = "Static kernel; for SAME also static spatial dims and no dilation, and a pool must not round its size up."
    evidence = "Changes nothing by itself; lets C1, C3 and C4 apply."
    anchors = ("Conv", "ConvInteger", "AveragePool", "MaxPool")
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Conv or pool with auto_pad."""
        auto = node.attributes.get_string("auto_pad", "NOTSET")
        if auto in {"NOTSET", ""}:
            return None
        kernel = _kernel(node)
        refuse_unless(
            auto == "VALID" or not node.attributes.get_int("ceil_mode", 0),
            "the pool rounds its size up (ceil_mode = 1)",
        )
        pads = (
            (0,) * (2 * len(kernel))
            if auto == "VALID"
            else _same_pads(node, kernel, upper=auto == "SAME_UPPER")
        )
        summary = f"auto_pad={auto} of {text(node.outputs[0])} is pads={list(pads)}"
        return Match((node,), tuple(node.outputs), {"pads": pads}, summary=summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The same node with pads."""
        (node,) = match.nodes
        attributes = attributes_of(node, "auto_pad", pads=list(match["pads"]))
        return build.ops(node.op_type, node.inputs, attributes, outputs=len(node.outputs))


def _kernel(node: ir.Node) -> tuple[int, ...]:
    given = ints(node, "kernel_shape", ())
    weight = dims(operand(node, 1)) if node.op_type.startswith("Conv") else None
    kernel = given or (weight[2:] if weight else ())
    if not kernel:
        raise Refusal("the size of the kernel is unknown")
    return kernel


def _same_pads(node: ir.Node, kernel: tuple[int, ...], *, upper: bool) -> tuple[int, ...]:
    """Pads with which the output has ceil(input / stride) positions; the odd one at the end if ``upper``."""
    ones = (1,) * len(kernel)
    strides, dilations = ints(node, "strides", ones), ints(node, "dilations", ones)
    refuse_unless(dilations == ones, "the kernel is dilated; runtimes disagree about SAME padding then")
    begins, ends = [], []
    for axis, (size, stride) in enumerate(zip(kernel, strides, strict=True), start=2):
        length = dim(node.inputs[0], axis)
        if not isinstance(length, int):
            raise Refusal(f"axis {axis} of {text(node.inputs[0])} is dynamic, and SAME padding depends on it")
        total = max((-(-length // stride) - 1) * stride + size - length, 0)
        small, large = total // 2, total - total // 2
        begins.append(small if upper else large)
        ends.append(large if upper else small)
    return (*begins, *ends)


RULES = (ExplicitPads(),)
