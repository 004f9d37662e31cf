"""A rough order of what to try first: work, traffic and node count, without any measurement.

Only decides which comparison a budget is spent on first; nobody is shown the number.
"""

from __future__ import annotations

from explorer.graph import Graph, node_id
from explorer.graph.statistics import flops, traffic_bytes

_FLOPS_PER_NS = 20.0
_BYTES_PER_NS = 8.0
_NODE_NS = 2000.0
_BLOCK = 8
_OFF_BLOCK_FLOPS_PER_NS = 2.0  # depthwise: a blocked layout needs whole blocks of channels


def rough_ns(graph: Graph) -> float:
    """Roofline time of every node plus a fixed cost per node; unknown sizes count as nothing."""
    return sum(rough_node_ns(graph).values())


def rough_node_ns(graph: Graph) -> dict[str, float]:
    """Node id -> its part of ``rough_ns``; constants are left out."""
    times = {}
    for node in graph.nodes:
        if node.op_type != "Constant":
            work, traffic = flops(node) or 0, traffic_bytes(node) or 0
            groups = (node.attributes.get_int("group", 1) or 1) if node.op_type == "Conv" else 1
            is_blocked = groups == 1 or groups % _BLOCK == 0
            rate = _FLOPS_PER_NS if is_blocked else _OFF_BLOCK_FLOPS_PER_NS
            times[node_id(node)] = _NODE_NS + max(work / rate, traffic / _BYTES_PER_NS)
    return times
