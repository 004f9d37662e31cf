"""What a plan or a group says about the edges of the graph as it is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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


@dataclass(frozen=True)
class PlanDifference:
    """Which edges of the graph go through DRAM in one of two plans only.

    Attributes:
        only_a: bytes of the edge's tensor, for edges that plan B keeps on chip.
        only_b: the same for edges that plan A keeps on chip.
        both: edges that go through DRAM in both, by their bytes in plan A.
    """

    only_a: Mapping[EdgeInfo, int]
    only_b: Mapping[EdgeInfo, int]
    both: Mapping[EdgeInfo, int]


def plan_difference(a: Plan, b: Plan, summary: GraphSummary) -> PlanDifference:
    """Compare two plans of the same graph edge by edge; their settings may differ."""
    in_a, in_b = dram_edges(a, summary), dram_edges(b, summary)
    return PlanDifference(
        only_a={edge: size for edge, size in in_a.items() if edge not in in_b},
        only_b={edge: size for edge, size in in_b.items() if edge not in in_a},
        both={edge: size for edge, size in in_a.items() if edge in in_b},
    )


def tensor_bytes(edges: Mapping[EdgeInfo, int]) -> int:
    """Bytes of the tensors on these edges, a tensor with several readers counted once."""
    return sum({(edge.source, edge.tensor): size for edge, size in edges.items()}.values())


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
