"""Partition plans: disjoint fusion groups that cover every operation which fits, in an order that runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from explorer.errors import InputError
from explorer.fusion.group import FusionGroup, group_problem
from explorer.fusion.network import KB, FusionNetwork, bits
from explorer.fusion.scheme import Scheme


@dataclass(frozen=True, eq=False)
class Plan:
    """A partition plan under one scheme. Make one with ``Plan.of``, which checks it.

    Attributes:
        scheme: what the costs come from; also says which operations are left out.
        masks: the groups as bits, in an order in which they can run.
    """

    scheme: Scheme
    masks: tuple[int, ...]

    @classmethod
    def of(cls, scheme: Scheme, groups: Iterable[Iterable[str] | int]) -> Plan:
        """A plan of the given groups (ids of graph nodes, or bits); operations not named run alone.

        Raises:
            InputError: a group is not connected or not convex, two groups share an operation or wait for
                each other, a group holds an operation that is left out, or one does not fit.
        """
        network = scheme.network
        masks = [g if isinstance(g, int) else network.mask(g) for g in groups]
        covered = 0
        for mask in masks:
            problem = group_problem(network, mask) or _problem_with(scheme, mask, covered)
            if problem:
                raise InputError(problem)
            covered |= mask
        kept = network.all_nodes & ~scheme.removed_mask
        masks += [1 << i for i in bits(kept & ~covered)]
        ordered = run_order(network, masks)
        if ordered is None:
            raise InputError(_cycle_text(network, masks))
        return cls(scheme, tuple(m for m in ordered if m & kept))

    @classmethod
    def layer_by_layer(cls, scheme: Scheme) -> Plan:
        """Every operation alone."""
        return cls(scheme, tuple(1 << i for i in bits(scheme.network.all_nodes & ~scheme.removed_mask)))

    @property
    def groups(self) -> tuple[FusionGroup, ...]:
        """The groups, in an order in which they can run."""
        return tuple(FusionGroup(self.scheme.network, mask) for mask in self.masks)

    @property
    def dram_bytes(self) -> int:
        """Bytes that move between DRAM and chip, operations left out not counted."""
        return sum(self.scheme.cost(mask).dram_bytes for mask in self.masks)

    @property
    def largest_demand_bytes(self) -> int:
        """On-chip bytes of the group that needs most; 0 for an empty plan."""
        return max((self.scheme.cost(mask).demand_bytes for mask in self.masks), default=0)

    @property
    def is_valid(self) -> bool:
        """Whether every group fits and is allowed."""
        return all(self.scheme.cost(mask).fits for mask in self.masks)

    def group_of(self, identifier: str) -> FusionGroup | None:
        """The group that holds a graph node; None if its operation is left out."""
        index = self.scheme.network.index_of(identifier)
        found = next((mask for mask in self.masks if mask >> index & 1), None)
        return None if found is None else FusionGroup(self.scheme.network, found)


def run_order(network: FusionNetwork, masks: Sequence[int]) -> tuple[int, ...] | None:
    """The groups (and every node in none of them, alone) in an order that runs; None if there is none."""
    covered = 0
    for mask in masks:
        covered |= mask
    pending = sorted([*masks, *(1 << i for i in bits(network.all_nodes & ~covered))], key=lambda m: m & -m)
    needs = {mask: _needs(network, mask) for mask in pending}
    done, ordered = 0, []
    while pending:
        waiting = []
        for mask in pending:
            if needs[mask] & ~done:
                waiting.append(mask)
            else:
                ordered.append(mask)
                done |= mask
        if len(waiting) == len(pending):
            return None
        pending = waiting
    return tuple(ordered)


def _needs(network: FusionNetwork, mask: int) -> int:
    found = 0
    for i in bits(mask):
        found |= network.preds[i]
    return found & ~mask


def _problem_with(scheme: Scheme, mask: int, covered: int) -> str | None:
    network = scheme.network
    for i in bits(mask & covered):
        return f"Node '{network.nodes[i].id}' is in two groups; a plan's groups must be disjoint."
    for i in bits(mask & scheme.removed_mask):
        return f"Node '{network.nodes[i].id}' does not fit the buffer even alone; leave it out of the plan."
    cost = scheme.cost(mask)
    if cost.fits:
        return None
    name = network.nodes[next(bits(mask))].id
    return scheme.refusal(mask) or (
        f"The group that begins with '{name}' needs {cost.demand_bytes / KB:,.2f} KB of a buffer of "
        f"{scheme.capacity_bytes / KB:g} KB; split it."
    )


def _cycle_text(network: FusionNetwork, masks: Sequence[int]) -> str:
    """Which groups wait for each other: follow a need until a group comes up twice."""
    covered = 0
    for mask in masks:
        covered |= mask
    every = [*masks, *(1 << i for i in bits(network.all_nodes & ~covered))]
    done = 0
    while ready := [m for m in every if not m & done and not _needs(network, m) & ~done]:
        for mask in ready:
            done |= mask
    walk = [next(m for m in every if not m & done)]
    while walk[-1] not in walk[:-1]:
        need = _needs(network, walk[-1]) & ~done
        walk.append(next(m for m in every if m & need))
    loop = walk[walk.index(walk[-1]) :]
    names = [network.nodes[next(bits(mask))].id for mask in reversed(loop)]
    return f"The groups wait for each other: {' -> '.join(names)} (first nodes); split one of them."
