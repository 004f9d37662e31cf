"""Ask a rule at a node, and apply candidates to a copy of the graph."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from explorer.errors import CandidateError, RewriteError
from explorer.graph import Graph, node_id
from explorer.graph.shapes import check, infer_shapes
from explorer.rewrite.builder import Builder
from explorer.rewrite.candidate import Candidate, Rejection
from explorer.rewrite.context import Context, freed_bytes, has_bodies, is_const
from explorer.rewrite.legality import obstacle
from explorer.rewrite.replace import remove_nodes, replace_outputs
from explorer.rewrite.rule import Match, Refusal, Rule
from explorer.rewrite.ruleset import RuleSet


def answers(rule: Rule, node: ir.Node, context: Context) -> list[Match | Rejection]:
    """Legal matches of one rule at one node, and rejections for near misses."""
    answered: list[Match | Rejection] = []
    try:
        for found in rule.matches(node, context):
            if isinstance(found, Refusal):
                answered.append(_rejection(rule, (node, *found.nodes), found.reason))
                continue
            reason = obstacle(rule, found, context)
            answered.append(found if reason is None else _rejection(rule, found.nodes, reason))
    except Refusal as refusal:
        answered.append(_rejection(rule, (node, *refusal.nodes), refusal.reason))
    return answered


def apply(graph: Graph, candidate: Candidate, rules: RuleSet) -> Graph:
    """Apply a candidate to a copy of the graph it belongs to.

    Returns:
        A new graph that shares the weights; inputs and outputs keep name, order and type, the ONNX checker
        accepts it (unless it refused the original already), and shapes are inferred again.

    Raises:
        CandidateError: the candidate belongs to another graph.
        RewriteError: the rewrite broke a promise; the given graph is untouched.
    """
    result, applied = apply_many(graph, [candidate], rules)
    if not applied:
        raise CandidateError(f"Candidate '{candidate.id}' no longer matches '{graph.name}'; list them again.")
    return result


def apply_many(
    graph: Graph, candidates: Sequence[Candidate], rules: RuleSet
) -> tuple[Graph, tuple[Candidate, ...]]:
    """Apply candidates of one graph one after the other, on one copy, checked once at the end.

    Returns:
        The new graph and the candidates that were applied; those whose nodes an earlier one used up, or that
        no longer match, are left out.

    Raises:
        CandidateError, RewriteError: as ``apply``.
    """
    draft, applied, is_stale = graph.clone(), [], False
    for candidate in candidates:
        if candidate.fingerprint != graph.fingerprint():
            raise CandidateError(
                f"Candidate '{candidate.id}' belongs to another version of '{graph.name}'; "
                "list the candidates again."
            )
        rule = rules[candidate.rule]
        match = _match_again(rule, candidate, draft)
        if match is None and is_stale:
            infer_shapes(draft.model)
            is_stale, match = False, _match_again(rule, candidate, draft)
        if match is not None:
            is_stale = _rewrite(rule, match, draft) or is_stale
            draft.renumbered()
            applied.append(candidate)
    if is_stale:
        infer_shapes(draft.model)
    if applied:
        _check_promises(graph, draft, " + ".join(dict.fromkeys(c.rule for c in applied)))
    return draft, tuple(applied)


def candidate_of(rule: Rule, anchor: ir.Node, match: Match, context: Context) -> Candidate:
    """The frozen value that names a match."""
    return Candidate(
        rule=rule.name,
        anchor=node_id(anchor),
        nodes=_place(match, context),
        variant=match.variant,
        fingerprint=context.graph.fingerprint(),
        numeric_class=rule.numeric_class,
        portable=rule.portable,
        summary=match.summary or rule.title,
        bytes_delta=match.new_bytes - freed_bytes(match.drops, match.nodes),
    )


def _place(match: Match, context: Context) -> tuple[str, ...]:
    return tuple(node_id(node) for node in sorted(match.nodes, key=context.position.__getitem__))


def _rejection(rule: Rule, nodes: Sequence[ir.Node], reason: str) -> Rejection:
    return Rejection(rule.name, tuple(dict.fromkeys(node_id(n) for n in nodes)), reason)


def _match_again(rule: Rule, candidate: Candidate, draft: Graph) -> Match | None:
    anchor = draft.find_node(candidate.anchor)
    if anchor is None:
        return None
    context = Context(draft)
    for answer in answers(rule, anchor, context):
        if (
            isinstance(answer, Match)
            and answer.variant == candidate.variant
            and _place(answer, context) == candidate.nodes
        ):
            return answer
    return None


def _rewrite(rule: Rule, match: Match, draft: Graph) -> bool:
    """Rewrite the draft; returns whether shapes have to be inferred again."""
    home = match.nodes[0].graph if match.nodes else draft.model.graph
    if not isinstance(home, ir.Graph) or any(node.graph is not home for node in match.nodes):
        raise RewriteError(f"Rule '{rule.name}' matched nodes of different graphs; please report this.")
    build = Builder(draft, home)
    try:
        new_values = rule.rewrite(match, build)
    except Refusal as refusal:
        raise RewriteError(f"Rule '{rule.name}' cannot be applied here: {refusal.reason}.") from None
    if match.nodes:
        home.insert_after(_last(home, match.nodes), build.nodes)
    folds = any(is_const(new) for new in new_values)
    replace_outputs(match.outputs, new_values, build)
    try:
        remove_nodes(match.nodes, match.drops)
        if not _is_sorted(draft.model.graph):
            draft.model.graph.sort()
    except ValueError as problem:
        raise RewriteError(
            f"Rule '{rule.name}' would leave the graph broken here and was not applied ({problem})."
        ) from None
    return folds or any(v.shape is None or v.type is None for n in build.nodes for v in n.outputs)


def _is_sorted(graph: ir.Graph) -> bool:
    """Whether nodes come after what they read; False if bodies make that hard to tell."""
    done: set[ir.Node] = set()
    for node in graph:
        if has_bodies(node):
            return False
        for value in node.inputs:
            source = None if value is None else value.producer()
            if source is not None and source not in done:
                return False
        done.add(node)
    return True


def _last(home: ir.Graph, nodes: Sequence[ir.Node]) -> ir.Node:
    wanted = set(nodes)
    return next(node for node in reversed(home) if node in wanted)


def _check_promises(before: Graph, after: Graph, rule: str) -> None:
    if not _keeps_interface(before, after):
        raise RewriteError(f"Rule '{rule}' would change the model's inputs or outputs; please report this.")
    problem = check(after.model)
    if problem and not check(before.model):
        raise RewriteError(f"Rule '{rule}' was not applied: the ONNX checker says: {problem}.")


def _keeps_interface(before: Graph, after: Graph) -> bool:
    """Inputs and outputs have the same names in the same order; what was known of type and rank holds."""
    old, new = _interface(before), _interface(after)
    return len(old) == len(new) and all(
        name == other and dtype in {None, new_dtype} and rank in {None, new_rank}
        for (name, dtype, rank), (other, new_dtype, new_rank) in zip(old, new, strict=True)
    )


def _interface(graph: Graph) -> list[tuple[str | None, ir.DataType | None, int | None]]:
    values = [*graph.model.graph.inputs, *graph.model.graph.outputs]
    return [(v.name, v.dtype, None if v.shape is None else len(v.shape)) for v in values]
