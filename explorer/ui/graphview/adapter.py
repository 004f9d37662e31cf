"""From a graph summary to a scene: what the boxes and lines of a model say."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from explorer.graph import EdgeInfo, GraphSummary, NodeInfo, TensorInfo
from explorer.ui.graphview.palette import family_of
from explorer.ui.graphview.scene import EdgeStyle, Kind, Scene, SceneEdge, SceneNode
from explorer.ui.graphview.units import bytes_text, count_text

#: Longer attribute texts are cut in tooltips; the details panel shows them whole.
MAX_ATTRIBUTE = 60


def scene_of(summary: GraphSummary) -> Scene:
    """The scene of a model: inputs, operators, outputs; constants stay attributes of operators."""
    shown = [node for node in summary.nodes if not node.is_constant]
    used = {edge.tensor for edge in summary.edges if edge.source is None}
    inputs = [_end("in", i, tensor) for i, tensor in enumerate(summary.inputs)
              if tensor.name in used or not tensor.is_constant]  # fmt: skip
    outputs = [_end("out", i, tensor) for i, tensor in enumerate(summary.outputs)]
    nodes = (*inputs, *(_operator(node) for node in shown), *outputs)
    index = {node.id: i for i, node in enumerate(nodes)}
    ends = _Ends(
        {t.name: f"in{i}" for i, t in enumerate(summary.inputs)},
        {t.name: f"out{i}" for i, t in enumerate(summary.outputs)},
    )
    edges = tuple(edge for info in summary.edges if (edge := _edge(info, ends, index, nodes)) is not None)
    return Scene(_adopted(nodes, edges), edges, summary.name)


class _Ends:
    """Scene ids of the graph's inputs and outputs by tensor name."""

    def __init__(self, inputs: dict[str, str], outputs: dict[str, str]) -> None:
        self.inputs, self.outputs = inputs, outputs


def _end(prefix: str, position: int, tensor: TensorInfo) -> SceneNode:
    kind = Kind.INPUT if prefix == "in" else Kind.OUTPUT
    return SceneNode(
        id=f"{prefix}{position}",
        label=tensor.name or f"{kind} {position}",
        kind=kind,
        name=tensor.name,
        detail=shape_of(tensor),
        family="io",
        tooltip=(f"graph {kind}, {tensor.dtype}",),
    )


def _operator(node: NodeInfo) -> SceneNode:
    first = node.outputs[0] if node.outputs else None
    return SceneNode(
        id=node.id,
        label=node.op_type,
        hint=node.domain if node.operator != node.op_type else _window(dict(node.attributes)),
        name=node.name,
        detail=shape_of(first) if first is not None else "",
        family=family_of(node.op_type),
        tooltip=_tooltip(node),
        scope=node.scope,
        parent=node.parent,
    )


def shape_of(tensor: TensorInfo) -> str:
    """Shape for people, such as "1×64×56×56"; "?" where it is not known."""
    if tensor.shape is None:
        return "?"
    return "×".join("?" if d is None else str(d) for d in tensor.shape) or "scalar"


def _window(attributes: dict[str, str]) -> str:
    """Kernel, stride, dilation and groups where they are not 1, such as "3×3 /2 g32"."""
    kernel = _integers(attributes.get("kernel_shape", ""))
    if not kernel:
        return ""
    parts = ["×".join(map(str, kernel))]
    for name, sign in (("strides", "/"), ("dilations", "d")):
        values = _integers(attributes.get(name, ""))
        if any(v != 1 for v in values):
            same = len(set(values)) == 1
            parts.append(sign + (str(values[0]) if same else "×".join(map(str, values))))
    if (group := attributes.get("group", "1")) != "1":
        parts.append(f"g{group}")
    return " ".join(parts)


def _integers(text: str) -> list[int]:
    return [int(part) for part in re.findall(r"-?\d+", text)]


def _tooltip(node: NodeInfo) -> tuple[str, ...]:
    cost = [
        "FLOPs unknown" if node.flops is None else f"{count_text(node.flops)} FLOPs",
        "bytes unknown" if node.bytes is None else f"{bytes_text(node.bytes)} read and written",
    ]
    if node.parameters:
        cost.append(f"{count_text(node.parameters)} parameters")
    attributes = [f"{name}={_cut(text)}" for name, text in node.attributes[:6]]
    return (" · ".join(cost), *([", ".join(attributes)] if attributes else []))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_ATTRIBUTE else text[: MAX_ATTRIBUTE - 1] + "…"


def _edge(info: EdgeInfo, ends: _Ends, index: dict[str, int], nodes: Sequence[SceneNode]) -> SceneEdge | None:
    source = info.source if info.source is not None else ends.inputs.get(info.tensor)
    target = info.target if info.target is not None else ends.outputs.get(info.tensor)
    if source not in index or target not in index:
        return None
    a, b = nodes[index[source]], nodes[index[target]]
    captured = a.parent != b.parent and b.parent != a.id and b.kind is Kind.OP
    return SceneEdge(
        index[source],
        index[target],
        tensor=info.tensor,
        shape=info.shape_text.replace("x", "×"),
        bytes=info.bytes,
        style=EdgeStyle.CAPTURE if captured else EdgeStyle.DATA,
    )


def _adopted(nodes: Sequence[SceneNode], edges: Sequence[SceneEdge]) -> tuple[SceneNode, ...]:
    """Give operators without a scope (rewrites make them) a place among their neighbours.

    That is the scope all neighbours share; at the border between two modules, the consumers'.
    """
    below: defaultdict[int, list[int]] = defaultdict(list)
    above: defaultdict[int, list[int]] = defaultdict(list)
    for edge in edges:
        below[edge.source].append(edge.target)
        above[edge.target].append(edge.source)
    scopes = [node.scope for node in nodes]

    def known(near: Sequence[int], parent: str | None) -> list[tuple[str, ...]]:
        return [scopes[j] for j in near if scopes[j] and nodes[j].parent == parent]

    for i, node in enumerate(nodes):
        if node.kind is not Kind.OP or node.scope or "/" in node.name:
            continue
        consumers, producers = known(below[i], node.parent), known(above[i], node.parent)
        shared = _common(consumers + producers)
        if len(consumers) + len(producers) == 1:
            shared = shared[:-1]  # the last part is that neighbour's own module
        module = _common(consumers)[:-1]
        scopes[i] = module if producers and len(module) > len(shared) else shared
    return tuple(
        node if node.scope == scope else replace(node, scope=scope)
        for node, scope in zip(nodes, scopes, strict=True)
    )


def _common(scopes: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    shared = scopes[0] if scopes else ()
    for scope in scopes[1:]:
        length = 0
        while length < min(len(shared), len(scope)) and shared[length] == scope[length]:
            length += 1
        shared = shared[:length]
    return shared
