"""Family A: the same computation done twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from explorer.graph import is_constant_node
from explorer.graph.fingerprint import tensor_digest
from explorer.rewrite.builder import Builder
from explorer.rewrite.context import Context, constants_of, has_bodies, readers, tensor, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule

_DOMAINS = {"", "ai.onnx", "ai.onnx.ml", "com.microsoft"}  # operators elsewhere may keep state
_T = ir.AttributeType
_PLAIN = {_T.INT, _T.FLOAT, _T.STRING, _T.INTS, _T.FLOATS, _T.STRINGS}
_MOST_READERS = 64  # of one tensor that are compared
_SMALL_ELEMENTS = 65536


class EliminateCommonSubexpression(PatternRule):
    """A node that repeats an earlier one (same operator, attributes and inputs) is replaced by it."""

    name = "eliminate-common-subexpression"
    family = "A14"
    title = "Compute equal nodes once"
    numeric_class = NumericClass.EXACT
    preconditions = (
        "Same operator, attributes and inputs (constants up to 65,536 elements are compared by content); "
        "deterministic; no bodies; both in the same graph. Where both results are outputs an Identity stays."
    )
    evidence = "ONNX Runtime does it at ALL; ir-py's pass skips control flow and tensors over 10 elements."
    anchors = ("*",)
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A node with an equal one before it."""
        if not _is_comparable(node):
            return None
        twin = next((other for other in _earlier(node, context) if _equal(other, node)), None)
        if twin is None:
            return None
        summary = f"{text(node.outputs[0])} is {text(twin.outputs[0])}"
        outputs = tuple(node.outputs)
        return Match((node,), outputs, {"twin": twin}, "", summary, 0, constants_of([node]))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The results of the earlier node."""
        return list(match["twin"].outputs)


def _is_comparable(node: ir.Node) -> bool:
    known = node.domain in _DOMAINS and not is_constant_node(node) and node.op_type != "Identity"
    return known and bool(node.outputs) and not has_bodies(node)


def _earlier(node: ir.Node, context: Context) -> Iterator[ir.Node]:
    """Nodes before this one that read its first computed input, in order."""
    shared = next((v for v in node.inputs if v is not None and tensor(v) is None), None)
    others = () if shared is None else readers(shared)
    if len(others) < 2:
        return
    found = [
        other
        for other in others[:_MOST_READERS]
        if other is not node and other.op_type == node.op_type and other.graph is node.graph
    ]
    place = context.position[node]
    yield from sorted((n for n in found if context.position[n] < place), key=context.position.__getitem__)


def _equal(a: ir.Node, b: ir.Node) -> bool:
    same_operator = (a.domain, a.op_type, a.overload) == (b.domain, b.op_type, b.overload)
    if not same_operator or len(a.inputs) != len(b.inputs) or len(a.outputs) != len(b.outputs):
        return False
    covers = all(bool(x.name) or not y.name for x, y in zip(a.outputs, b.outputs, strict=True))
    return (
        covers
        and all(_same_value(x, y) for x, y in zip(a.inputs, b.inputs, strict=True))
        and set(a.attributes) == set(b.attributes)
        and all(_same_attribute(x, b.attributes[name]) for name, x in a.attributes.items())
    )


def _same_value(a: ir.Value | None, b: ir.Value | None) -> bool:
    if a is b:
        return True
    x, y = tensor(a), tensor(b)
    if x is None or y is None or x.size != y.size or x.size > _SMALL_ELEMENTS:
        return False
    return x.dtype == y.dtype and tensor_digest(x) == tensor_digest(y)


def _same_attribute(a: ir.Attr, b: ir.Attr) -> bool:
    if a.type != b.type or a.is_ref() or b.is_ref():
        return False
    if a.type == ir.AttributeType.TENSOR:
        return tensor_digest(a.as_tensor()) == tensor_digest(b.as_tensor())
    return a.type in _PLAIN and bool(a.value == b.value)


RULES = (EliminateCommonSubexpression(),)
