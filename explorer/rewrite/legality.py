"""The pre-conditions that hold for every rule (G1 to G9 of the catalogue), checked once, here."""

from __future__ import annotations

import onnx_ir as ir

from explorer.graph import node_id
from explorer.rewrite.context import (
    Context,
    goes_with,
    is_const,
    is_used,
    operand,
    operator,
    scalar,
    shape_of,
    text,
)
from explorer.rewrite.rule import Match, Rule
from explorer.rewrite.walk import whereabouts

_RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial"}
_RANDOM |= {"Bernoulli"}
_TRAINABLE = {"BatchNormalization", "Dropout"}
_QUANTISED = {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"}


def obstacle(rule: Rule, match: Match, context: Context) -> str | None:
    """The global pre-condition a match violates, in words; None if it is legal."""
    return (
        _crosses_bodies(match)
        or _interior_value_escapes(match)
        or _makes_cycle(rule, match, context)
        or _opset_too_old(rule, context)
        or _has_effects(rule, match, context)
        or _wrong_dtype(rule, match)
        or _is_empty(match)
    )


def _crosses_bodies(match: Match) -> str | None:
    """A body may run never or many times, so no rewrite moves work into or out of one unasked."""
    for node in match.nodes:
        if node.graph is not match.nodes[0].graph:
            return f"{describe_node(node)} is inside the body of a control-flow node, or the others are"
    return None


def _interior_value_escapes(match: Match) -> str | None:
    """G1: a value inside the match that something outside reads, or that is a graph output."""
    removed, replaced = set(match.nodes), set(match.outputs)
    for node in match.nodes:
        for value in node.outputs:
            if value in replaced:
                continue
            if value.is_graph_output():
                return f"{text(value)}, inside the pattern, is a graph output"
            outside = [reader for reader in whereabouts(value) if not goes_with(reader, removed)]
            if outside:
                first = min(outside, key=lambda reader: int(node_id(reader).removeprefix("n")))
                return f"{text(value)}, inside the pattern, is also read by {describe_node(first)}"
    return None


def _opset_too_old(rule: Rule, context: Context) -> str | None:
    """G4: refuse rather than upgrade the model."""
    if context.opset >= rule.min_opset:
        return None
    return f"the result needs opset {rule.min_opset}, the model imports {context.opset}"


def _makes_cycle(rule: Rule, match: Match, context: Context) -> str | None:
    """G7: something outside the match depends on one part of it, and another part on that."""
    if len(match.nodes) < 2 or not rule.adds_dependencies:
        return None
    detour = context.detour(dict.fromkeys(match.nodes))
    if detour is None:
        return None
    return f"{describe_node(detour)} depends on one of the nodes and another one on it: a cycle"


def _has_effects(rule: Rule, match: Match, context: Context) -> str | None:
    """G8: random operators, training mode, quantisation pairs."""
    for node in match.nodes:
        if node.op_type in _RANDOM:
            return f"{describe_node(node)} is random"
        if node.op_type in _QUANTISED and not rule.splits_quantisation:
            return f"{describe_node(node)} belongs to a quantise/dequantise pair"
        problem = training(node, context.opset)
        if problem is not None:
            return problem
    return None


def training(node: ir.Node, opset: int) -> str | None:
    """Why a node is not known to be in inference mode, in the words of its opset; None if it is."""
    is_training = bool(node.attributes.get_int("training_mode", 0))
    if node.op_type in _TRAINABLE and opset < 7:
        is_training = not node.attributes.get_int("is_test", 0)
    if node.op_type == "BatchNormalization" and 7 <= opset < 14:
        is_training = any(is_used(value) for value in node.outputs[1:])
    mode = operand(node, 2) if node.op_type == "Dropout" else None
    if mode is not None and not is_const(mode):
        return f"whether {describe_node(node)} is in training mode is decided at run time by {text(mode)}"
    if is_training or (mode is not None and scalar(mode)):
        return f"{describe_node(node)} is in training mode"
    return None


def _wrong_dtype(rule: Rule, match: Match) -> str | None:
    """G5: the replaced values have an element type the rule has a kernel for."""
    if rule.dtypes is None:
        return None
    for value in match.outputs:
        if value.dtype not in rule.dtypes:
            got = value.dtype.name.lower() if value.dtype is not None else "unknown"
            allowed = ", ".join(sorted(d.name.lower() for d in rule.dtypes))
            return f"{text(value)} has element type {got}; the rule handles {allowed}"
    return None


def _is_empty(match: Match) -> str | None:
    for value in match.outputs:
        size = shape_of(value)
        if size is not None and 0 in size:
            return f"{text(value)} is empty (shape {list(size)})"
    return None


def describe_node(node: ir.Node) -> str:
    """Operator and name of a node, for a sentence."""
    return f"{operator(node)} '{node.name}'" if node.name else f"an unnamed {operator(node)}"
