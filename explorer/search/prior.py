"""A rough order of what to try first: work, traffic and node count, without any measurement.

Only decides which comparison a budget is spent on first; nobody is shown the number.
"""

from __future__ import annotations

from explorer.graph import Graph
from explorer.graph.statistics import flops, traffic_bytes

_FLOPS_PER_NS = 20.0
_BYTES_PER_NS = 8.0
_NODE_NS = 2000.0


def rough_ns(graph: Graph) -> float:
    """Roofline time of every node plus a fixed cost per node; unknown sizes count as nothing."""
    total = 0.0
    for node in graph.nodes:
        if node.op_type != "Constant":
            work, traffic = flops(node) or 0, traffic_bytes(node) or 0
            total += _NODE_NS + max(work / _FLOPS_PER_NS, traffic / _BYTES_PER_NS)
    return total
