"""What happens to a group that does not fit: a protocol, and the random split of the plain searches."""

from __future__ import annotations

from random import Random
from typing import NamedTuple, Protocol

from explorer.fusion.cuts import random_cut
from explorer.fusion.scheme import Scheme


class Repaired(NamedTuple):
    """Groups that fit, in an order in which they can run.

    ``is_rectified``: they come from an explanation, not from the random fall-back.
    """

    masks: tuple[int, ...]
    is_rectified: bool


class Repair(Protocol):
    """Splits an invalid group. Explainers implement this."""

    def split(self, scheme: Scheme, mask: int, rng: Random) -> Repaired:
        """Split a group, given as bits, into groups that fit.

        Args:
            scheme: says which groups fit.
            mask: a connected, convex group that does not fit.
            rng: the search's generator; use no other, so that a seed repeats the search.
        """


class RandomSplit:
    """Cuts at a random edge, and again until every part fits."""

    def split(self, scheme: Scheme, mask: int, rng: Random) -> Repaired:
        """Split a group at random; single operations always fit, so it ends."""
        network = scheme.network
        fitting: list[int] = []
        pending = [mask]
        while pending:
            part = pending.pop()
            if scheme.cost(part).fits or part & (part - 1) == 0:
                fitting.append(part)
                continue
            pending += reversed(random_cut(network, part, rng))
        return Repaired(tuple(fitting), is_rectified=False)
