"""Family A: nodes that do nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import Context, integers, operand, text
from explorer.rewrite.replace import takeover_obstacle
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, refuse_unless

ABSORBED = "Absorbed by ONNX Runtime at every level from BASIC on."


class Bypass(PatternRule):
    """Base of rules that let the readers of a node read its first input instead."""

    numeric_class = NumericClass.EXACT
    evidence = ABSORBED
    dtypes: ClassVar[frozenset[ir.DataType] | None] = None

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The input replaces the output."""
        return [match["source"]]


class EliminateIdentity(Bypass):
    """Identity(x) becomes x."""

    name = "eliminate-identity"
    family = "A1"
    title = "Remove Identity"
    preconditions = "Not where an input, a weight or another output would become a graph output (G3)."
    anchors = ("Identity",)

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """Any Identity whose input can stand in for its output."""
        return bypass(node, f"{text(node.outputs[0])} is {text(node.inputs[0])}")


class EliminateDropout(Bypass):
    """Dropout(x) in inference mode becomes x."""

    name = "eliminate-dropout"
    family = "A2"
    title = "Remove Dropout"
    preconditions = (
        "Inference mode: training_mode absent or constant false (opset 12 on), is_test=1 (before opset 7); the "
        "mask unused (both checked by the engine)."
    )
    anchors = ("Dropout",)

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Dropout that passes its input through."""
        return bypass(node, f"{text(node.outputs[0])} is {text(node.inputs[0])}")


class EliminatePad(Bypass):
    """Pad(x) with no padding becomes x."""

    name = "eliminate-pad"
    family = "A9"
    title = "Remove Pad without padding"
    preconditions = "All pads constant and zero."
    anchors = ("Pad",)

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Pad whose pads are all zero."""
        pads = pads_of(node)
        if pads is None or any(pads):
            return None
        return bypass(node, f"{text(node.outputs[0])} is {text(node.inputs[0])}, nothing is padded")


def bypass(node: ir.Node, summary: str, position: int = 0) -> Match:
    """A match that replaces a node's first output by one of its inputs; refuses if names forbid it."""
    source, result = operand(node, position), node.outputs[0]
    if source is None:
        raise Refusal(f"the input of {text(result)} is missing")
    obstacle = takeover_obstacle(result, source)
    refuse_unless(obstacle is None, obstacle or "")
    drops = tuple(value for value in node.inputs if value is not source)
    return Match((node,), (result,), {"source": source}, summary=summary, drops=drops)


def pads_of(pad: ir.Node) -> tuple[int, ...] | None:
    """The pads of a Pad, attribute (before opset 11) or input; None if they are not constant."""
    given = pad.attributes.get_ints("pads", None)
    return tuple(given) if given is not None else integers(operand(pad, 1))


RULES = (EliminateIdentity(), EliminateDropout(), EliminatePad())
