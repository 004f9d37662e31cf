"""Family E: chains of Add as one Sum, and back."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import Context, is_const, producer, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule
from explorer.rewrite.rules.patterns import FLOAT_HALF_DOUBLE, reader_of, single_use

_MOST_TERMS = 16


class FuseAddChain(PatternRule):
    """(a + b) + c becomes Sum(a, b, c)."""

    name = "fuse-add-chain"
    family = "E3"
    title = "Chain of Add to one Sum"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "split-sum"
    preconditions = (
        "Float; three terms or more, not all of them constant; inner sums read by nothing else. The largest chain is "
        f"taken, up to {_MOST_TERMS} terms."
    )
    evidence = "ORT 1.32 CPU: -6 to -10 % at DISABLE, -3 to -5 % at ALL."
    anchors = ("Add", "Sum")
    min_opset = 8
    dtypes = FLOAT_HALF_DOUBLE

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """The last Add or Sum of a chain."""
        if _continues(node):
            return None
        terms, inner = _terms(node)
        if not inner or len(terms) < 3 or all(is_const(term) for term in terms):
            return None
        summary = f"{text(node.outputs[0])} is one sum of {len(terms)} terms"
        return Match((*inner, node), (node.outputs[0],), {"terms": terms}, summary=summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Sum, terms in their order."""
        return [build.op("Sum", match["terms"], like=match.outputs[0])]


def _continues(node: ir.Node) -> bool:
    """Whether a larger chain contains this node."""
    result = node.outputs[0]
    reader = reader_of(result, "Add", "Sum") if single_use(result) else None
    return reader is not None and reader.graph is node.graph


def _terms(node: ir.Node) -> tuple[list[ir.Value], list[ir.Node]]:
    """The terms from left to right, and the inner sums, the last one first."""
    terms: list[ir.Value] = [value for value in node.inputs if value is not None]
    inner: list[ir.Node] = []
    position = 0
    while position < len(terms) and len(terms) < _MOST_TERMS:
        found = producer(terms[position], "Add", "Sum")
        if found is None or found.graph is not node.graph or not single_use(terms[position]):
            position += 1
            continue
        terms[position : position + 1] = [value for value in found.inputs if value is not None]
        inner.append(found)
    return terms, inner


class SplitSum(PatternRule):
    """Sum(a, b, c) becomes (a + b) + c."""

    name = "split-sum"
    family = "E3"
    title = "Sum to a chain of Add"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "fuse-add-chain"
    preconditions = "Two terms or more."
    evidence = "The reverse of E3; exposes single Adds to other rules (B4, D1, F3)."
    anchors = ("Sum",)
    min_opset = 7
    dtypes = FLOAT_HALF_DOUBLE

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Sum of two terms or more."""
        if len(node.inputs) < 2:
            return None
        summary = f"{text(node.outputs[0])} becomes {len(node.inputs) - 1} Adds"
        return Match((node,), (node.outputs[0],), summary=summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Adds from left to right."""
        (node,), like = match.nodes, match.outputs[0]
        total, *others = node.inputs
        for term in others[:-1]:
            total = build.op("Add", [total, term], dtype=like.dtype)
        return [build.op("Add", [total, others[-1]], like=like)]


RULES = (FuseAddChain(), SplitSum())
