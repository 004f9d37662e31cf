"""Find every place where rules apply: over a whole graph, or only near what a rewrite changed.

A ``Scan`` keeps the answers per rule and anchor node. After a rewrite, ``rescan`` asks again only where an answer
may have changed: within a rule's reach of a node that was added or changed, or that stood beside a removed
one. The result is the same as that of a full scan (a property test holds it to that).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import onnx_ir as ir

from explorer.graph import Graph, changed_nodes, is_constant_node, node_id
from explorer.graph.graph import bodies_of, holder_of
from explorer.rewrite.candidate import Candidate, Enumeration, Rejection
from explorer.rewrite.context import Context, operator
from explorer.rewrite.engine import answers, candidate_of
from explorer.rewrite.rule import WHOLE_GRAPH, Rule
from explorer.rewrite.ruleset import RuleSet

Answers = tuple[Candidate | Rejection, ...]
_FREED_AT_ONCE = 32  # no match removes more readers of one constant than this
_MARGIN = 1  # the engine itself looks one hop further: who else reads a value


@dataclass(frozen=True)
class Scan:
    """The answers of a set of rules on one graph: by anchor id, then by rule name in the rules' order."""

    fingerprint: str
    order: tuple[str, ...]
    answers: dict[str, dict[str, Answers]]

    def enumeration(self) -> Enumeration:
        """Candidates and rejections in graph order, each once."""
        candidates: dict[str, Candidate] = {}
        rejections: dict[Rejection, None] = {}
        for identifier in self.order:
            for found in self.answers.get(identifier, {}).values():
                for answer in found:
                    if isinstance(answer, Rejection):
                        rejections.setdefault(answer)
                    else:
                        candidates.setdefault(answer.place, self._current(answer))
        return Enumeration(self.fingerprint, tuple(candidates.values()), tuple(rejections))

    def _current(self, candidate: Candidate) -> Candidate:
        if candidate.fingerprint == self.fingerprint:
            return candidate
        return replace(candidate, fingerprint=self.fingerprint)


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
    found = {}
    for node in graph.nodes:
        asked = {rule.name: _ask(rule, node, context) for rule in rules.anchored_at(operator(node))}
        if asked:
            found[node_id(node)] = asked
    return Scan(graph.fingerprint(), _order(graph), found)


def rescan(previous: Scan, before: Graph, after: Graph, rules: RuleSet) -> Scan:
    """The scan of ``after``, from that of ``before`` (with the same rules) and what differs."""
    context, order = Context(after), _order(after)
    present = set(order)
    found = {i: known for i, known in previous.answers.items() if i in present}
    everywhere = [rule for rule in rules if rule.reach >= WHOLE_GRAPH]
    limit = max((rule.reach for rule in rules if rule.reach < WHOLE_GRAPH), default=0) + _MARGIN
    for node, hops in _distances(_seeds(before, after), limit).items():
        asked, known = {}, found.get(node_id(node), {})
        for rule in rules.anchored_at(operator(node)):
            is_known = hops > rule.reach + _MARGIN and rule.name in known
            asked[rule.name] = known[rule.name] if is_known else _ask(rule, node, context)
        found[node_id(node)] = asked
    if everywhere:
        _ask_everywhere(everywhere, context, found)
    return Scan(after.fingerprint(), order, found)


def _order(graph: Graph) -> tuple[str, ...]:
    return tuple(node_id(node) for node in graph.nodes)


def _ask_everywhere(rules: list[Rule], context: Context, found: dict[str, dict[str, Answers]]) -> None:
    for node in context.graph.nodes:
        name = operator(node)
        fitting = [rule for rule in rules if name in rule.anchors or "*" in rule.anchors]
        if fitting:
            known = found.get(node_id(node), {})
            found[node_id(node)] = {**known, **{rule.name: _ask(rule, node, context) for rule in fitting}}


def _ask(rule: Rule, node: ir.Node, context: Context) -> Answers:
    return tuple(
        answer if isinstance(answer, Rejection) else candidate_of(rule, node, answer, context)
        for answer in answers(rule, node, context)
    )


def _seeds(before: Graph, after: Graph) -> set[ir.Node]:
    """Nodes that are new, changed, of another shape, or beside (also by a shared constant) one that changed."""
    added, removed, changed = changed_nodes(before, after)
    seeds = {after.node(i) for i in (*added, *changed)}
    for node in tuple(seeds):
        seeds.update(_beside(node, also_by_constants=True))
    for identifier in (*removed, *changed):
        beside = _beside(before.node(identifier), also_by_constants=True)
        counterparts = (after.find_node(node_id(other)) for other in beside)
        seeds.update(node for node in counterparts if node is not None)
    for node in after.nodes:
        old = before.find_node(node_id(node))
        if old is not None and _outputs(old) != _outputs(node):
            seeds.add(node)
    return seeds


def _outputs(node: ir.Node) -> list[tuple[object, ...]]:
    """What matchers see of a node's outputs besides operator, operands and readers."""
    return [(value.name, value.shape, value.dtype, value.is_graph_output()) for value in node.outputs]


def _distances(seeds: Iterable[ir.Node], limit: int) -> dict[ir.Node, int]:
    """Hops from the nearest seed, up to a limit."""
    distance = dict.fromkeys(seeds, 0)
    frontier = list(distance)
    for hops in range(1, limit + 1):
        following = []
        for node in frontier:
            for other in _beside(node):
                if other not in distance:
                    distance[other] = hops
                    following.append(other)
        if not following:
            break
        frontier = following
    return distance


def _beside(node: ir.Node, *, also_by_constants: bool = False) -> Iterator[ir.Node]:
    """Nodes that touch one of its values, the node that holds it, and the nodes it holds.

    A shared constant connects nodes only where its readers change and are few: it decides how many bytes a
    match frees that removes all of them.
    """
    for value in (*node.inputs, *node.outputs):
        if value is None:
            continue
        producer = value.producer()
        if producer is not None:
            yield producer
        uses = value.uses()
        is_constant = value.is_initializer() or is_constant_node(producer)
        if not is_constant or (also_by_constants and len(uses) <= _FREED_AT_ONCE):
            yield from (reader for reader, _ in uses)
    holder = holder_of(node)
    if holder is not None:
        yield holder
    for attribute in node.attributes.values():
        for body in bodies_of(attribute):
            yield from body
