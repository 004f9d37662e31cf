"""What a plan or a group says about the edges of the graph as it is drawn."""

from __future__ import annotations

from collections.abc import Mapping

from explorer.fusion import Blame, FusionNetwork, Plan
from explorer.fusion.network import bits
from explorer.graph import EdgeInfo, GraphSummary


def dram_edges(plan: Plan, summary: GraphSummary) -> dict[EdgeInfo, int]:
    """Bytes of the tensors that a plan moves through DRAM, by edge of the graph.

    A tensor that several operations of one group read is moved once, but stands at each of its edges.
    What only operations that were left out exchange is in no total, and not here.
    """
    network = plan.scheme.network
    owner = {i: mask for mask in plan.masks for i in bits(mask)}
    index, sizes = _index(network), _sizes(network)
    found: dict[EdgeInfo, int] = {}
    for edge in summary.edges:
        source, target = index.get(edge.source or ""), index.get(edge.target or "")
        if source == target or (source not in owner and target not in owner):
            continue
        group = owner.get(source) if source is not None else None
        if group is None or group != (owner.get(target) if target is not None else None):
            size = sizes.get((source, edge.tensor)) or sizes.get((source, ""))
            if size:
                found[edge] = size
    return found


def blame_edges(blame: Blame, network: FusionNetwork, summary: GraphSummary) -> dict[EdgeInfo, int]:
    """What a cut at an edge of the graph would save on chip, in bytes, inside one group."""
    index = _index(network)
    saved = {(index[e.source], index[e.target]): max(0, e.relief_bytes) for e in blame.edges}
    ends = {e: (index.get(e.source or "", -1), index.get(e.target or "", -1)) for e in summary.edges}
    return {edge: saved[pair] for edge, pair in ends.items() if pair in saved}


def _index(network: FusionNetwork) -> dict[str, int]:
    return {identifier: node.index for node in network.nodes for identifier in node.covers}


def _sizes(network: FusionNetwork) -> Mapping[tuple[int | None, str], int]:
    """Bytes of each feature map by producer and name; under "" the largest of a producer."""
    found: dict[tuple[int | None, str], int] = {}
    for tensor in network.tensors:
        size = tensor.elements * network.element_bytes
        found[tensor.producer, tensor.name] = size
        if tensor.producer is not None:
            found[tensor.producer, ""] = max(size, found.get((tensor.producer, ""), 0))
    return found
