"""What the rules share that move something through element-wise operators of one operand."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import operand, operator, producer, rank
from explorer.rewrite.rules.broadcasting import UNARY

CONTRIB_UNARY = frozenset({"com.microsoft::Gelu", "com.microsoft::QuickGelu"})
UNARY_OPERATORS = UNARY | CONTRIB_UNARY


def is_unary(node: ir.Node | None) -> bool:
    """Whether a node maps each element by itself (bounds and the like have one element)."""
    if node is None or operator(node) not in UNARY_OPERATORS or len(node.outputs) != 1:
        return False
    return operand(node, 0) is not None and all(v is None or rank(v) == 0 for v in node.inputs[1:])


def unary_before(value: ir.Value | None) -> ir.Node | None:
    """The element-wise node that computes a value, if it is one."""
    node = producer(value)
    return node if is_unary(node) else None


def same_function(a: ir.Node, b: ir.Node) -> bool:
    """Whether two element-wise nodes apply the same function: operator, attributes, other operands."""
    return (
        operator(a) == operator(b)
        and list(a.inputs[1:]) == list(b.inputs[1:])
        and {k: x.value for k, x in a.attributes.items()} == {k: x.value for k, x in b.attributes.items()}
    )


def apply_function(
    node: ir.Node, value: ir.Value, build: Builder, shape: Sequence[int | str | None] | None
) -> ir.Value:
    """The function of an element-wise node applied to another tensor of this shape."""
    inputs = [value, *node.inputs[1:]]
    dtype = node.outputs[0].dtype
    return build.op(node.op_type, inputs, attributes_of(node), dtype=dtype, shape=shape, domain=node.domain)
