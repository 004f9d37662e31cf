"""Weigh a chosen set of operations: is it a group, does it fit, what is to blame, which path is in the way."""

from __future__ import annotations

from collections.abc import Iterable

from explorer.fusion import FusionGroup, FusionNetwork, Scheme, blame, group_problem
from explorer.fusion.group import escape_path
from explorer.fusion.network import bits
from explorer.session.fusion_values import Choice

BLAME_OPERATIONS = 150  # more would take seconds


def known_mask(network: FusionNetwork, nodes: Iterable[str]) -> int:
    """The operations that cover these graph nodes, as bits; ids that are no operation are left out."""
    index = {identifier: node.index for node in network.nodes for identifier in node.covers}
    found = 0
    for identifier in nodes:
        if identifier in index:
            found |= 1 << index[identifier]
    return found


def weigh(scheme: Scheme, mask: int) -> Choice:
    """What a set of operations would be as one group."""
    network = scheme.network
    nodes, count = network.ids(mask), mask.bit_count()
    problem = group_problem(network, mask)
    if problem is not None:
        path = escape_path(network, mask) or joining_path(network, mask)
        return Choice(nodes, count, problem, path)
    group = FusionGroup(network, mask)
    single = (1 << i for i in bits(mask & ~scheme.removed_mask))
    return Choice(
        nodes=nodes,
        operations=count,
        report=scheme.demand(group),
        blame=blame(scheme, group) if count <= BLAME_OPERATIONS else None,
        dram_bytes=scheme.dram(group),
        alone_bytes=sum(scheme.cost(one).dram_bytes for one in single),
    )


def joining_path(network: FusionNetwork, mask: int) -> tuple[str, ...]:
    """Ids along the shortest way between the first part of a set and another; empty if there is none."""
    first = network.components(mask)[0]
    came_from: dict[int, int | None] = dict.fromkeys(bits(first))
    queue = list(came_from)
    for node in queue:
        if mask & ~first & 1 << node:
            path: list[int] = []
            step: int | None = node
            while step is not None:
                path.append(step)
                step = came_from[step]
            return tuple(network.nodes[i].id for i in reversed(path))
        for i in bits(network.adjacent[node]):
            if i not in came_from:
                came_from[i] = node
                queue.append(i)
    return ()
