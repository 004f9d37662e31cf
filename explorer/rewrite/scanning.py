"""Find every place where rules apply: over a whole graph, or only near what a rewrite changed.

A ``Scan`` keeps the answers per rule and anchor node. After a rewrite, ``rescan`` asks again only where an answer
may have changed: within a rule's reach of a node that was added or changed, or that stood beside a removed
one. The result is the same as that of a full scan (a property test holds it to that).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import onnx_ir as ir

from explorer.graph import Graph, diff, node_id
from explorer.graph.graph import bodies_of, holder_of
from explorer.rewrite.candidate import Candidate, Enumeration, Rejection
from explorer.rewrite.context import Context, operator
from explorer.rewrite.engine import answers, candidate_of
from explorer.rewrite.rule import WHOLE_GRAPH, Rule
from explorer.rewrite.ruleset import RuleSet

Answers = tuple[Candidate | Rejection, ...]
_MARGIN = 1  # the engine itself looks one hop further: who else reads a value


@dataclass(frozen=True)
class Scan:
    """The answers of a set of rules on one graph, by rule name and anchor id."""

    fingerprint: str
    answers: dict[tuple[str, str], Answers]

    def enumeration(self) -> Enumeration:
        """Candidates and rejections in graph order, each once."""
        candidates: dict[str, Candidate] = {}
        rejections: dict[Rejection, None] = {}
        for found in self.answers.values():
            for answer in found:
                if isinstance(answer, Rejection):
                    rejections.setdefault(answer)
                else:
                    candidates.setdefault(answer.place, replace(answer, fingerprint=self.fingerprint))
        return Enumeration(self.fingerprint, tuple(candidates.values()), tuple(rejections))


def find_candidates(graph: Graph, rules: RuleSet) -> Enumeration:
    """Enumerate every match of every rule, and every near miss with its reason.

    Args:
        graph: the graph to look at; nodes in If, Loop and Scan bodies are looked at too.
        rules: the rules to try.
    """
    return scan(graph, rules).enumeration()


def scan(graph: Graph, rules: RuleSet) -> Scan:
    """Ask every rule at every node."""
    context = Context(graph)
    found = {key: _ask(rule, node, context) for key, rule, node in _places(graph, rules)}
    return Scan(graph.fingerprint(), found)


def rescan(previous: Scan, before: Graph, after: Graph, rules: RuleSet) -> Scan:
    """The scan of ``after``, from that of ``before`` (with the same rules) and what differs."""
    context = Context(after)
    distance = _distances(_seeds(before, after), max((r.reach for r in rules), default=0) + _MARGIN)
    found = {}
    for key, rule, node in _places(after, rules):
        near = rule.reach >= WHOLE_GRAPH or distance.get(node, WHOLE_GRAPH) <= rule.reach + _MARGIN
        known = None if near else previous.answers.get(key)
        found[key] = _ask(rule, node, context) if known is None else known
    return Scan(after.fingerprint(), found)


def _places(graph: Graph, rules: RuleSet) -> Iterator[tuple[tuple[str, str], Rule, ir.Node]]:
    for node in graph.nodes:
        for rule in rules.anchored_at(operator(node)):
            yield (rule.name, node_id(node)), rule, node


def _ask(rule: Rule, node: ir.Node, context: Context) -> Answers:
    return tuple(
        answer if isinstance(answer, Rejection) else candidate_of(rule, node, answer, context)
        for answer in answers(rule, node, context)
    )


def _seeds(before: Graph, after: Graph) -> set[ir.Node]:
    """Nodes of ``after`` that are new, changed, of another shape, or beside a removed node."""
    change = diff(before, after)
    seeds = {after.node(i) for i in (*change.added, *change.changed)}
    for identifier in change.removed:
        seeds.update(_counterparts(_neighbours(before.node(identifier)), after))
    for node in after.nodes:
        old = before.find_node(node_id(node))
        if old is not None and _description(old) != _description(node):
            seeds.add(node)
    return seeds


def _counterparts(nodes: Iterable[ir.Node], after: Graph) -> Iterator[ir.Node]:
    for node in nodes:
        found = after.find_node(node_id(node))
        if found is not None:
            yield found


def _description(node: ir.Node) -> list[tuple[object, ...]]:
    """What matchers see of a node's outputs besides its operator and operands."""
    return [(v.name, v.shape, v.dtype, v.is_graph_output(), len(v.uses())) for v in node.outputs]


def _distances(seeds: Iterable[ir.Node], limit: int) -> dict[ir.Node, int]:
    """Hops from the nearest seed, up to a limit (WHOLE_GRAPH does not count)."""
    limit = min(limit, WHOLE_GRAPH - 1)
    distance = dict.fromkeys(seeds, 0)
    frontier = list(distance)
    for hops in range(1, limit + 1):
        following = []
        for node in frontier:
            for other in _neighbours(node):
                if other not in distance:
                    distance[other] = hops
                    following.append(other)
        if not following:
            break
        frontier = following
    return distance


def _neighbours(node: ir.Node) -> Iterator[ir.Node]:
    """Nodes that touch one of its values, the node that holds it, and the nodes it holds."""
    for value in (*node.inputs, *node.outputs):
        if value is None:
            continue
        producer = value.producer()
        if producer is not None:
            yield producer
        yield from (reader for reader, _ in value.uses())
    holder = holder_of(node)
    if holder is not None:
        yield holder
    for attribute in node.attributes.values():
        for body in bodies_of(attribute):
            yield from body
