"""Rules made up for tests of the engine: what they match and build is given as functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import onnx_ir as ir

from explorer.graph import Graph
from explorer.rewrite import Match, NumericClass, Refusal, Rule, RuleSet, apply, find_candidates
from explorer.rewrite.builder import Builder
from explorer.rewrite.context import Context

Matcher = Callable[[ir.Node, Context], Match | Refusal | None]
Rewriter = Callable[[Match, Builder], Sequence[ir.Value]]


def planted(
    matcher: Matcher,
    rewriter: Rewriter | None = None,
    *,
    anchors: tuple[str, ...] = ("*",),
    **attributes: object,
) -> Rule:
    """A rule called "planted"; further class attributes by keyword."""

    class Planted(Rule):
        name = "planted"
        family = "A0"
        title = "Planted"
        numeric_class = NumericClass.EXACT
        preconditions = evidence = "None."
        dtypes = None

        def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
            found = matcher(node, context)
            if found is not None:
                yield found

        def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
            return rewriter(match, build) if rewriter is not None else []

    Planted.anchors = anchors
    for key, value in attributes.items():
        setattr(Planted, key, value)
    return Planted()


def apply_planted(graph: Graph, rule: Rule) -> Graph:
    """Apply the only candidate of a rule."""
    rules = RuleSet([rule])
    (candidate,) = find_candidates(graph, rules).candidates
    return apply(graph, candidate, rules)


def reasons_of(graph: Graph, rule: Rule) -> list[str]:
    """The rejections of a rule, which has no candidates."""
    found = find_candidates(graph, RuleSet([rule]))
    assert found.candidates == ()
    return [rejection.reason for rejection in found.rejections]


def whole(node: ir.Node, context: Context) -> Match | None:
    """A match of all nodes of the node's graph together, at the first one, with the last one's outputs."""
    nodes = tuple(n for n in context.graph.nodes if n.graph is node.graph)
    return Match(nodes, tuple(nodes[-1].outputs)) if nodes[0] is node else None
