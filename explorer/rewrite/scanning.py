"""Find every place where rules apply: over a whole graph, or only near what a rewrite changed.

A ``Scan`` keeps the answers per rule and anchor node. After a rewrite, ``rescan`` asks again only where an answer
may have changed: within a rule's reach of a node that was added or changed, or that stood beside a removed
one. The result is the same as that of a full scan (a property test holds it to that).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import onnx_ir as ir

from explorer.graph import Contents, Graph, changed_contents, contents, is_constant_node, node_id
from explorer.graph.graph import bodies_of, holder_of
from explorer.rewrite.candidate import Candidate, Enumeration, Rejection
from explorer.rewrite.context import Context, operator
from explorer.rewrite.engine import answers, candidate_of
from explorer.rewrite.rule import WHOLE_GRAPH, Rule
from explorer.rewrite.ruleset import RuleSet

Answers = tuple[Candidate | Rejection, ...]
_known_contents: WeakKeyDictionary[Graph, Contents] = WeakKeyDictionary()
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
    limit = max((rule.reach for rule in rules if rule.reach < WHOLE_GRAPH), default=0) + _MARGIN
    change = _change(before, after)
    due = _sharing(change.sharing, found, after, rules)
    for node, hops in _distances(change.seeds, limit).items():
        near = (rule for rule in rules.anchored_at(operator(node)) if hops <= rule.reach + _MARGIN)
        due.setdefault(node, set()).update(near)
    for rule in rules:
        if rule.reach >= WHOLE_GRAPH:
            for node in _everywhere(rule, previous, after):
                due.setdefault(node, set()).add(rule)
    for node, wanted in due.items():
        found[node_id(node)] = _ask_again(node, wanted, context, rules, found.get(node_id(node)))
    return Scan(after.fingerprint(), order, found)


def _everywhere(rule: Rule, previous: Scan, after: Graph) -> Iterator[ir.Node]:
    """Where to ask again a rule whose answer may depend on the whole graph."""
    if rule.at_first_node:
        first = {after.find_node(i) for i in (*previous.order[:1], *_order(after)[:1])}
        yield from (node for node in first if node is not None)
        return
    yield from (node for node in after.nodes if "*" in rule.anchors or operator(node) in rule.anchors)


def _order(graph: Graph) -> tuple[str, ...]:
    return tuple(node_id(node) for node in graph.nodes)


def _ask_again(
    node: ir.Node, due: set[Rule], context: Context, rules: RuleSet, known: dict[str, Answers] | None
) -> dict[str, Answers]:
    """The answers at a node with those of the rules that are due replaced; all of them at a new node."""
    if known is None:
        return {rule.name: _ask(rule, node, context) for rule in rules.anchored_at(operator(node))}
    return {**known, **{rule.name: _ask(rule, node, context) for rule in due}}


def _sharing(
    readers: set[str], found: dict[str, dict[str, Answers]], after: Graph, rules: RuleSet
) -> dict[ir.Node, set[Rule]]:
    """Rules to ask again because a constant gained or lost readers: it decides how many bytes are freed.

    That concerns the readers themselves, and candidates that remove one of them.
    """
    due: dict[ir.Node, set[Rule]] = {}
    for identifier, by_rule in found.items():
        for name, answers_there in by_rule.items():
            touched = identifier in readers or any(
                isinstance(answer, Candidate) and not readers.isdisjoint(answer.nodes)
                for answer in answers_there
            )
            if touched:
                due.setdefault(after.node(identifier), set()).add(rules[name])
    return due


def _ask(rule: Rule, node: ir.Node, context: Context) -> Answers:
    return tuple(
        answer if isinstance(answer, Rejection) else candidate_of(rule, node, answer, context)
        for answer in answers(rule, node, context)
    )


@dataclass(frozen=True)
class _Change:
    """Nodes of the new graph that are new, changed or beside a changed one; ids of co-readers of constants."""

    seeds: set[ir.Node]
    sharing: set[str]


def _change(before: Graph, after: Graph) -> _Change:
    added, removed, changed = changed_contents(_contents(before), _contents(after))
    seeds = {after.node(i) for i in (*added, *changed)}
    touched = [*seeds, *(before.node(i) for i in (*removed, *changed))]
    beside = {node_id(other) for node in touched for other in _beside(node)}
    seeds.update(node for i in beside if (node := after.find_node(i)) is not None)
    for node in after.nodes:
        old = before.find_node(node_id(node))
        if old is not None and _outputs(old) != _outputs(node):
            seeds.add(node)
    return _Change(seeds, {node_id(reader) for node in touched for reader in _co_readers(node)})


def _contents(graph: Graph) -> Contents:
    """Kept: a version is compared with the one before and with the one after."""
    if graph not in _known_contents:
        _known_contents[graph] = contents(graph)
    return _known_contents[graph]


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


def _beside(node: ir.Node) -> Iterator[ir.Node]:
    """Nodes that touch one of its values (constants apart), the node that holds it, the nodes it holds."""
    for value in (*node.inputs, *node.outputs):
        if value is None:
            continue
        producer = value.producer()
        if producer is not None:
            yield producer
        if not (value.is_initializer() or is_constant_node(producer)):
            yield from (reader for reader, _ in value.uses())
    holder = holder_of(node)
    if holder is not None:
        yield holder
    for attribute in node.attributes.values():
        for body in bodies_of(attribute):
            yield from body


def _co_readers(node: ir.Node) -> Iterator[ir.Node]:
    """Nodes that read a constant this node reads."""
    for value in node.inputs:
        if value is not None and (value.is_initializer() or is_constant_node(value.producer())):
            yield from (reader for reader, _ in value.uses())
