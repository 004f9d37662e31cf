"""Fusion groups: weakly connected, convex sets of operations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from explorer.errors import InputError
from explorer.fusion.network import FusionNetwork, bits


@dataclass(frozen=True)
class FusionGroup:
    """A set of operations that may run as one. Make one with ``FusionGroup.of``, which checks it.

    Attributes:
        network: where the operations are.
        mask: the operations, as bits.
    """

    network: FusionNetwork
    mask: int

    @classmethod
    def of(cls, network: FusionNetwork, nodes: Iterable[str] | int) -> FusionGroup:
        """The group of the operations that cover the given graph nodes (or bits).

        Raises:
            InputError: the set is empty, falls apart, or is not convex; the message shows the path that
                leaves the set and comes back, and which node would close the gap.
        """
        mask = nodes if isinstance(nodes, int) else network.mask(nodes)
        problem = group_problem(network, mask)
        if problem:
            raise InputError(problem)
        return cls(network, mask)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Ids of all graph nodes it covers, in topological order."""
        return self.network.ids(self.mask)

    @property
    def operations(self) -> tuple[str, ...]:
        """Ids of its operations (without the nodes merged into them)."""
        return tuple(self.network.nodes[i].id for i in bits(self.mask))

    def __len__(self) -> int:
        """Number of operations."""
        return self.mask.bit_count()

    def __contains__(self, identifier: object) -> bool:
        """Whether a graph node belongs to the group."""
        return isinstance(identifier, str) and bool(self.mask >> self.network.index_of(identifier) & 1)


def group_problem(network: FusionNetwork, mask: int) -> str | None:
    """Why a set of operations is not a fusion group, in one sentence; None if it is one."""
    if not mask:
        return "A fusion group needs at least one operation; choose some nodes."
    parts = network.components(mask)
    if len(parts) > 1:
        first, second = (_listed(network, part) for part in parts[:2])
        return f"The nodes do not hang together: no edge connects {first} with {second}; choose neighbours."
    outside = network.between(mask)
    if not outside:
        return None
    path = escape_path(network, mask)
    missing = _listed(network, outside)
    return (
        f"The group is not convex: the path {' -> '.join(path)} leaves it and comes back; "
        f"add {missing}, or leave out one end."
    )


def escape_path(network: FusionNetwork, mask: int) -> tuple[str, ...]:
    """The shortest path (ids) that leaves a set and comes back into it; empty if the set is convex."""
    outside = network.between(mask)
    came_from: dict[int, int] = {}
    queue: list[int] = []
    for start in bits(mask):
        for i in bits(network.succs[start] & outside):
            if i not in came_from:
                came_from[i] = start
                queue.append(i)
    for node in queue:
        back = network.succs[node] & mask
        if back:
            path = [next(bits(back)), node]
            while path[-1] in came_from and not mask >> path[-1] & 1:
                path.append(came_from[path[-1]])
            return tuple(network.nodes[i].id for i in reversed(path))
        for i in bits(network.succs[node] & outside):
            if i not in came_from:
                came_from[i] = node
                queue.append(i)
    return ()


def _listed(network: FusionNetwork, mask: int, most: int = 4) -> str:
    names = [f"{network.nodes[i].id} ({network.nodes[i].op_type})" for i in bits(mask)]
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
