"""Find every place where rules apply: over a whole graph, or only where a rewrite may have changed an answer.

A ``Scan`` keeps the answers per rule and anchor node, each with what the matcher walked over to find it. After a
rewrite, ``rescan`` asks again at new nodes and where something that was walked over has changed. The result is the
same as that of a full scan (property tests hold it to that).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import onnx_ir as ir

from explorer.graph import Graph
from explorer.rewrite.candidate import Candidate, Enumeration, Rejection
from explorer.rewrite.context import Context, operator
from explorer.rewrite.engine import answers, candidate_of
from explorer.rewrite.rule import Match, Rule
from explorer.rewrite.ruleset import RuleSet
from explorer.rewrite.view import Change, View, changes
from explorer.rewrite.walk import Keys, fresh_notes, noting


class Answer(NamedTuple):
    """What a rule found at a node, and the nodes and readers (keys of ``view.Change``) it depends on.

    The anchor itself is not among them.
    """

    found: tuple[Candidate | Rejection, ...]
    seen: tuple[str, ...]


_NOTHING = Answer((), ())


class Answers(NamedTuple):
    """The answers at one node by rule name, in the rules' order, and what they depend on together."""

    by_rule: dict[str, Answer]
    seen: frozenset[str]

    @classmethod
    def of(cls, by_rule: dict[str, Answer]) -> Answers:
        """Collect what the answers depend on."""
        return cls(by_rule, frozenset().union(*[answer.seen for answer in by_rule.values()]))


@dataclass(frozen=True)
class Scan:
    """The answers of a set of rules on one graph, by anchor id in graph order."""

    fingerprint: str
    view: View
    answers: dict[str, Answers]

    def enumeration(self) -> Enumeration:
        """Candidates and rejections in graph order, each once."""
        candidates: dict[str, Candidate] = {}
        rejections: dict[Rejection, None] = {}
        for answers_there in self.answers.values():
            for answer in answers_there.by_rule.values():
                for found in answer.found:
                    if isinstance(found, Rejection):
                        rejections.setdefault(found)
                    else:
                        candidates.setdefault(found.place, found)
        current = (self._current(candidate) for candidate in candidates.values())
        return Enumeration(self.fingerprint, tuple(current), tuple(rejections))

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
    inquiry = _Inquiry(graph, rules)
    found = {i: inquiry.ask_all(node) for i, node in zip(inquiry.view.states, graph.nodes, strict=True)}
    return Scan(graph.fingerprint(), inquiry.view, found)


def rescan(previous: Scan, after: Graph, rules: RuleSet) -> Scan:
    """The scan of ``after``, from that of an earlier version of it (with the same rules) and what differs."""
    inquiry = _Inquiry(after, rules)
    view = inquiry.view
    if view.opset != previous.view.opset:
        return scan(after, rules)
    change = changes(previous.view, view)
    firsts = {i for states in (previous.view.states, view.states) for i in list(states)[:1]}
    afresh = change.keys | firsts  # rules about the graph as a whole answer at its first node
    found = {}
    for identifier, node in zip(view.states, after.nodes, strict=True):
        if identifier in afresh:
            found[identifier] = inquiry.ask_all(node)
        else:
            known = previous.answers[identifier]
            due = _stale(identifier, known, change)
            found[identifier] = inquiry.ask_again(node, known, due) if due else known
    return Scan(after.fingerprint(), view, found)


def _stale(anchor: str, known: Answers, change: Change) -> list[str]:
    """The rules whose answers a change bears on, at a node that is itself unchanged."""
    due = []
    if not change.keys.isdisjoint(known.seen):
        due += [rule for rule, answer in known.by_rule.items() if not change.keys.isdisjoint(answer.seen)]
    if change.moved and not change.moved.isdisjoint(known.seen):
        due += [rule for rule, answer in known.by_rule.items() if _has_moved(anchor, answer, change)]
    return due


def _has_moved(anchor: str, answer: Answer, change: Change) -> bool:
    """Whether two of the nodes that an answer depends on may stand in another order."""
    return len(change.moved & {anchor, *answer.seen}) > 1


class _Inquiry:
    """Asks rules at the nodes of one graph."""

    def __init__(self, graph: Graph, rules: RuleSet) -> None:
        self.context, self.rules = Context(graph), rules
        self.view = View.of(self.context)
        self.keys = Keys(zip(graph.nodes, self.view.states, strict=True))

    def ask_all(self, node: ir.Node) -> Answers:
        """The answers of all rules at a node."""
        is_first = self.context.graph.nodes[0] is node
        rules = self.rules.anchored_at(operator(node))
        return Answers.of(self._ask(node, (r for r in rules if is_first or not r.at_first_node)))

    def ask_again(self, node: ir.Node, known: Answers, due: Iterable[str]) -> Answers:
        """The known answers at a node, those of some rules replaced."""
        return Answers.of({**known.by_rule, **self._ask(node, (self.rules[name] for name in due))})

    def _ask(self, node: ir.Node, rules: Iterable[Rule]) -> dict[str, Answer]:
        given, key_of = {}, self.keys.__getitem__
        with noting():
            for rule in rules:
                seen = fresh_notes()
                found = answers(rule, node, self.context)
                named = tuple([self._named(rule, node, answer) for answer in found]) if found else ()
                seen.discard(node)
                keys = tuple(map(key_of, seen)) if seen else ()
                given[rule.name] = Answer(named, keys) if named or keys else _NOTHING
        return given

    def _named(self, rule: Rule, node: ir.Node, answer: Match | Rejection) -> Candidate | Rejection:
        return answer if isinstance(answer, Rejection) else candidate_of(rule, node, answer, self.context)
