"""Family A: nodes, weights and optional outputs that nothing uses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from explorer.graph import bodies_of, is_constant_node
from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import Context, constants_of, exclusive, has_bodies, is_used, operator, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule
from explorer.rewrite.walk import source_of

_DEPTH = 8  # how far upstream of a dead node others are removed with it
_OPTIONAL_OUTPUTS = {
    "Dropout": 1,
    "GRU": 1,
    "LSTM": 1,
    "LayerNormalization": 1,
    "MaxPool": 1,
    "RNN": 1,
    "Unique": 1,
}


class RemoveDeadNodes(PatternRule):
    """A node whose results nothing reads is removed, with what only it needed."""

    name = "remove-dead-nodes"
    family = "A13"
    title = "Remove nodes whose results nothing reads"
    numeric_class = NumericClass.EXACT
    preconditions = "No output is read (also not inside a body) or is a graph output; not random."
    evidence = "Free: the runtime does it too, but the graph gets smaller."
    anchors = ("*",)
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A dead node that is no Constant."""
        if is_constant_node(node) or any(is_used(v) for v in node.outputs):
            return None
        nodes = (*exclusive(upstream(node, _DEPTH), node), node)
        what = text(node.outputs[0]) if node.outputs else operator(node)
        return Match(nodes, (), {}, "", f"nothing reads {what}", 0, constants_read_by(nodes))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Nothing takes their place."""
        return []


class RemoveUnusedWeights(PatternRule):
    """Initializers that nothing reads are removed."""

    name = "remove-unused-weights"
    family = "A13"
    title = "Remove weights that nothing reads"
    numeric_class = NumericClass.EXACT
    preconditions = "No node reads it (also not inside a body); neither a graph input nor a graph output."
    evidence = "Free: the file gets smaller."
    anchors = ("*",)
    dtypes = None
    at_first_node = True

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """All unused initializers of the model, at its first node."""
        if context.graph.nodes[0] is not node:
            return None
        unused = tuple(value for value in context.graph.initializers() if _is_unused(value))
        if not unused:
            return None
        summary = f"nothing reads {', '.join(map(text, unused[:5]))}{' ...' if len(unused) > 5 else ''}"
        return Match((), (), {}, "", summary, 0, unused)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Nothing: the engine drops what the match drops."""
        return []


class RemoveUnusedOutputs(PatternRule):
    """Optional outputs that nothing reads (a mask, indices, a mean) are no longer computed."""

    name = "remove-unused-outputs"
    family = "A13"
    title = "Remove optional outputs that nothing reads"
    numeric_class = NumericClass.EXACT
    preconditions = "Trailing optional outputs that no node reads and that are no graph outputs."
    evidence = "Free; lets patterns with one output match."
    anchors = tuple(_OPTIONAL_OUTPUTS)
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A node with unused trailing outputs."""
        needed = _OPTIONAL_OUTPUTS[node.op_type]
        used = [i for i, v in enumerate(node.outputs) if is_used(v)]
        kept = max(needed, 1 + max(used, default=0))
        if not used or not any(v.name for v in node.outputs[kept:]):
            return None
        names = ", ".join(text(v) for v in node.outputs[kept:] if v.name)
        return Match((node,), tuple(node.outputs[:kept]), summary=f"nothing reads {names}")

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The same node with fewer outputs."""
        (node,) = match.nodes
        made = build.ops(node.op_type, node.inputs, attributes_of(node), outputs=len(match.outputs))
        for new, old in zip(made, match.outputs, strict=True):
            if not old.name:
                new.name = ""
        return made


def upstream(node: ir.Node, depth: int) -> list[ir.Node]:
    """The nodes that lead to ``node`` within its graph, nearest first, each after all its readers among them."""
    levels: dict[ir.Node, int] = {}
    frontier = [node]
    for level in range(1, depth + 1):
        found = (source_of(v) for n in frontier for v in inputs_of(n))
        frontier = list(dict.fromkeys(p for p in found if p is not None and p.graph is node.graph))
        frontier = [p for p in frontier if not is_constant_node(p)]
        levels.update(dict.fromkeys(frontier, level))
    return sorted(levels, key=levels.__getitem__)


def inputs_of(node: ir.Node) -> Iterator[ir.Value]:
    """The values a node reads, those its bodies capture included."""
    yield from (value for value in node.inputs if value is not None)
    if has_bodies(node):
        yield from captured_by(node)


def captured_by(node: ir.Node) -> tuple[ir.Value, ...]:
    """The values from outside that the bodies of a node read."""
    bodies = [body for attribute in node.attributes.values() for body in bodies_of(attribute)]
    inner = [n for body in bodies for n in body.all_nodes()]
    graphs = {*bodies, *(n.graph for n in inner)}
    return tuple(dict.fromkeys(v for n in inner for v in n.inputs if v is not None and v.graph not in graphs))


def constants_read_by(nodes: Sequence[ir.Node]) -> tuple[ir.Value, ...]:
    """The constants that nodes, or their bodies, read."""
    own = constants_of(nodes)
    captured = (value for node in nodes if has_bodies(node) for value in captured_by(node))
    return tuple(dict.fromkeys((*own, *captured)))


def _is_unused(value: ir.Value) -> bool:
    return not (is_used(value) or value.is_graph_input())


RULES = (RemoveDeadNodes(), RemoveUnusedWeights(), RemoveUnusedOutputs())
