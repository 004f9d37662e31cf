"""Family C: Pad folded into the convolution or pool after it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import Context, integers, ints, operand, operator, scalar, text
from explorer.rewrite.rule import FLOATS, Match, NumericClass, PatternRule, Refusal, refuse_unless
from explorer.rewrite.rules.conv_parts import explicit_pads
from explorer.rewrite.rules.elimination import pads_of
from explorer.rewrite.walk import uses_of


class _FoldPad(PatternRule):
    """Base: every reader of the padded tensor pads by itself instead."""

    numeric_class = NumericClass.EXACT
    anchors = ("Pad",)
    operators: ClassVar[tuple[str, ...]]

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Pad that such operators read as their data input."""
        padded = node.outputs[0]
        found = [reader for reader, position in uses_of(padded) if position == 0]
        found = [r for r in dict.fromkeys(found) if operator(r) in self.operators and r.graph is node.graph]
        if not found:
            return None
        mode = node.attributes.get_string("mode", "constant")
        refuse_unless(mode == "constant", f"the Pad mode is '{mode}', not 'constant'")
        pads = {reader: _sum_of_pads(node, reader) for reader in found}
        for reader in found:
            self.refuse_unlike(reader, _fill(node), pads[reader])
        outputs = tuple(reader.outputs[0] for reader in found)
        summary = f"the padding of {text(padded)} moves into {', '.join(text(v) for v in outputs)}"
        kept = {value for reader in found for value in reader.inputs}
        drops = tuple(value for value in node.inputs[1:] if value not in kept)
        return Match((node, *found), outputs, {"pads": pads}, "", summary, 0, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The same operators with larger pads."""
        pad, *found = match.nodes
        values = []
        for reader, like in zip(found, match.outputs, strict=True):
            attributes = attributes_of(reader, "auto_pad", pads=list(match["pads"][reader]))
            operands = [pad.inputs[0], *reader.inputs[1:]]
            values.append(build.op(reader.op_type, operands, attributes, like=like))
        return values

    @abstractmethod
    def refuse_unlike(self, reader: ir.Node, fill: float, pads: Sequence[int]) -> None:
        """Raise a Refusal unless the reader pads with this value too."""


class FoldPadIntoConv(_FoldPad):
    """Conv(Pad(x)) becomes Conv(x) with larger pads."""

    name = "fold-pad-into-conv"
    family = "C1"
    title = "Fold Pad into the Conv after it"
    preconditions = (
        "Constant mode; value 0 (ConvInteger: its zero point); only spatial axes, no negative pads; the Conv's auto_pad "
        "is NOTSET or VALID; the padded tensor read by such operators only."
    )
    evidence = "ORT 1.32 CPU: -5 % at DISABLE, absorbed at ALL."
    operators = ("Conv", "ConvInteger")
    dtypes = FLOATS | {ir.DataType.INT32}

    def refuse_unlike(self, reader: ir.Node, fill: float, pads: Sequence[int]) -> None:
        """A convolution pads with zeros, an integer one with its zero point."""
        wanted: float | None = 0.0
        if reader.op_type == "ConvInteger" and operand(reader, 2) is not None:
            wanted = scalar(reader.inputs[2])
        refuse_unless(
            wanted is not None, f"the zero point of {text(reader.inputs[0])} is not a constant", reader
        )
        refuse_unless(
            fill == wanted, f"the Pad value is {fill:g}, the convolution pads with {wanted:g}", reader
        )


class FoldPadIntoAveragePool(_FoldPad):
    """AveragePool(Pad(x)) becomes AveragePool(x) with larger pads."""

    name = "fold-pad-into-average-pool"
    family = "C1p"
    title = "Fold Pad into the AveragePool after it"
    preconditions = (
        "Constant mode, value 0, only spatial axes, no negative pads; count_include_pad = 1, ceil_mode = 0; the pads "
        "smaller than the kernel; the padded tensor read by such operators only."
    )
    evidence = "Not measured."
    operators = ("AveragePool",)

    def refuse_unlike(self, reader: ir.Node, fill: float, pads: Sequence[int]) -> None:
        """The padding must count in the average."""
        refuse_unless(fill == 0, f"the Pad value is {fill:g}, the pool pads with 0", reader)
        counted = reader.attributes.get_int("count_include_pad", 0) == 1
        refuse_unless(
            counted, "the pool leaves its padding out of the average (count_include_pad = 0)", reader
        )
        _refuse_pool(reader, pads)


class FoldPadIntoMaxPool(_FoldPad):
    """MaxPool(Pad(x, -inf)) becomes MaxPool(x) with larger pads."""

    name = "fold-pad-into-max-pool"
    family = "C1p"
    title = "Fold Pad into the MaxPool after it"
    preconditions = (
        "Constant mode, value -infinity, only spatial axes, no negative pads; ceil_mode = 0; the pads smaller than the "
        "kernel; the indices unused; the padded tensor read by such operators only."
    )
    evidence = "Not measured."
    operators = ("MaxPool",)

    def refuse_unlike(self, reader: ir.Node, fill: float, pads: Sequence[int]) -> None:
        """The padding must never win."""
        refuse_unless(fill == -float("inf"), f"the Pad value is {fill:g}, the pool pads with -inf", reader)
        _refuse_pool(reader, pads)


def _refuse_pool(pool: ir.Node, pads: Sequence[int]) -> None:
    refuse_unless(
        not pool.attributes.get_int("ceil_mode", 0), "the pool rounds its size up (ceil_mode = 1)", pool
    )
    kernel = ints(pool, "kernel_shape", ())
    fits = all(pad < size for pad, size in zip(pads, kernel * 2, strict=True))
    refuse_unless(fits, f"pads {list(pads)} are not smaller than the kernel {list(kernel)}", pool)


def _fill(pad: ir.Node) -> float:
    if operand(pad, 2) is None:
        found: float | None = pad.attributes.get_float("value", 0.0)
    else:
        found = scalar(pad.inputs[2])
    if found is None:
        raise Refusal(f"the value of the Pad, {text(pad.inputs[2])}, is not a constant")
    return found


def _sum_of_pads(pad: ir.Node, reader: ir.Node) -> tuple[int, ...]:
    """The pads of a Conv or pool and of the Pad before it together."""
    added = _spatial_pads(pad)
    own = explicit_pads(reader, len(added) // 2)
    auto = reader.attributes.get_string("auto_pad", "NOTSET")
    if own is None:
        raise Refusal(
            f"auto_pad is {auto}: its pads depend on the padded size; make them explicit first", (reader,)
        )
    return tuple(a + b for a, b in zip(own, added, strict=True))


def _spatial_pads(pad: ir.Node) -> tuple[int, ...]:
    """(all begins, all ends) over the spatial axes; refuses other axes, cropping and variable pads."""
    given = pads_of(pad)
    if given is None:
        raise Refusal(f"the pads of {text(pad.outputs[0])} are not constant")
    half = len(given) // 2
    begins, ends = dict(enumerate(given[:half])), dict(enumerate(given[half:]))
    if operand(pad, 3) is not None:
        axes, size = integers(pad.inputs[3]), len(pad.outputs[0].shape or ())
        if axes is None or not size:
            raise Refusal("the axes of the Pad are not constant or its rank is unknown")
        begins = {axis % size: given[i] for i, axis in enumerate(axes)}
        ends = {axis % size: given[half + i] for i, axis in enumerate(axes)}
        half = size
    refuse_unless(min(given, default=0) >= 0, f"the Pad crops (pads {list(given)})")
    other = [axis for axis in (0, 1) if begins.get(axis, 0) or ends.get(axis, 0)]
    refuse_unless(not other, f"the Pad enlarges axis {other[0] if other else 0}, which is not spatial")
    spatial = range(2, half)
    return (*(begins.get(axis, 0) for axis in spatial), *(ends.get(axis, 0) for axis in spatial))


RULES = (FoldPadIntoConv(), FoldPadIntoAveragePool(), FoldPadIntoMaxPool())
