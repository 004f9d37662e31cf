"""Family A: nodes whose inputs are all constants are computed once, by ONNX's reference evaluator."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import Context, dims, exclusive, freed_bytes, is_const, operator, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, refuse_unless
from explorer.rewrite.rules.dead import constants_read_by
from explorer.rewrite.rules.evaluation import EVALUATED, evaluate, static_bytes
from explorer.rewrite.walk import source_of

GROWTH_LIMIT_BYTES = 1 << 20
INTERMEDIATE_LIMIT_BYTES = 64 << 20
_DEPTH = 8  # how many nodes in a row are folded at once
_MIB = 1 << 20


class FoldConstants(PatternRule):
    """f(constants) becomes a constant, with what only it needed."""

    name = "fold-constants"
    family = "A16"
    title = "Compute from constants once"
    numeric_class = NumericClass.REASSOCIATED
    preconditions = (
        "All inputs constant (not overridable), directly or through up to 8 nodes; operators from a fixed list of "
        "deterministic ones; results of static size, no strings; the model grows by at most 1 MiB."
    )
    evidence = "Absorbed by ONNX Runtime; onnxscript#2810, #2673, #2859 and onnxsim#178 are folding bugs."
    anchors = ("*",)
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A node that depends on constants only."""
        cone = _cone(node, _DEPTH) if node in context.constant_nodes else None
        if cone is None or (node.op_type == "Identity" and node.outputs[0].is_graph_output()):
            return None
        for member in cone:
            _refuse_operator(member)
        outputs = tuple(value for value in node.outputs if value.name)
        new_bytes = sum(_bytes_of(value) for value in outputs)
        for value in (v for member in cone for v in member.outputs if v.name):
            size = _bytes_of(value)
            refuse_unless(
                size <= INTERMEDIATE_LIMIT_BYTES, f"{text(value)} on the way has {size / _MIB:.1f} MiB"
            )
        nodes = (*exclusive([n for n in reversed(cone) if n is not node], node), node)
        drops = constants_read_by(nodes)
        growth = new_bytes - freed_bytes(drops, nodes)
        refuse_unless(
            growth <= GROWTH_LIMIT_BYTES,
            f"folding would add {growth / _MIB:.1f} MiB to the model, more than {GROWTH_LIMIT_BYTES / _MIB:.1f} MiB",
        )
        summary = f"{text(node.outputs[0])} becomes a constant of {new_bytes} bytes"
        return Match(nodes, outputs, {"cone": cone}, "", summary, new_bytes, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Constants with the computed values."""
        arrays = evaluate(match["cone"], match.outputs, build.draft.model.opset_imports)
        names = [value.name or "folded" for value in match.outputs]
        return [build.constant(a, f"{name}_folded") for a, name in zip(arrays, names, strict=True)]


def _cone(node: ir.Node, depth: int) -> tuple[ir.Node, ...] | None:
    """The nodes that compute ``node`` from constants, in order; None if it depends on anything else."""
    operands = [value for value in node.inputs if value is not None]
    if not operands or depth == 0:
        return None
    found: dict[ir.Node, None] = {}
    for value in operands:
        if is_const(value):
            continue
        source = source_of(value)
        inner = None if source is None or source.graph is not node.graph else _cone(source, depth - 1)
        if inner is None:
            return None
        found.update(dict.fromkeys(inner))
    return (*found, node)


def _refuse_operator(node: ir.Node) -> None:
    name = operator(node)
    refuse_unless(name in EVALUATED, f"{name} is not among the operators that are folded", node)
    for value in (*node.inputs, *node.outputs):
        if value is not None and value.dtype == ir.DataType.STRING:
            raise Refusal(f"{text(value)} holds strings", (node,))


def _bytes_of(value: ir.Value) -> int:
    size = static_bytes(value)
    if size is None:
        what = "type" if dims(value) is not None else "size"
        raise Refusal(f"the {what} of {text(value)} is not known before it is computed")
    return size


RULES = (FoldConstants(),)
