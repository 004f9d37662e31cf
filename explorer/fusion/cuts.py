"""Two-way cuts of a group along an edge; both sides can run, the first before the second."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from explorer.fusion.network import FusionNetwork, bits


def inner_edges(network: FusionNetwork, mask: int) -> Iterator[tuple[int, int]]:
    """Edges between nodes of a set, by target."""
    for target in bits(mask):
        for source in bits(network.preds[target] & mask):
            yield source, target


def random_cut(network: FusionNetwork, mask: int, rng: Random) -> tuple[int, ...]:
    """The pieces after a cut before or after a random inner edge, in an order in which they can run."""
    nodes = list(bits(mask))
    target = rng.choice(nodes)
    while not network.preds[target] & mask:
        target = rng.choice(nodes)
    if rng.random() < 0.5:
        return pieces(network, cut_before(network, mask, target))
    source = rng.choice(list(bits(network.preds[target] & mask)))
    return pieces(network, cut_after(network, mask, source))


def cut_before(network: FusionNetwork, mask: int, target: int) -> tuple[int, int]:
    """A set in two: everything that does not need the target, and the target with what needs it."""
    late = (network.descendants[target] | 1 << target) & mask
    return mask & ~late, late


def cut_after(network: FusionNetwork, mask: int, source: int) -> tuple[int, int]:
    """A set in two: the source with what it needs, and everything else."""
    early = (network.ancestors[source] | 1 << source) & mask
    return early, mask & ~early


def pieces(network: FusionNetwork, halves: tuple[int, int]) -> tuple[int, ...]:
    """The connected parts of both halves, those of the first half first."""
    first, second = halves
    return network.components(first) + network.components(second)
