"""Where a rule applies, and where it almost does: frozen values that can be listed, stored and sent."""

from __future__ import annotations

from dataclasses import dataclass

from explorer.errors import CandidateError
from explorer.rewrite.rule import NumericClass


@dataclass(frozen=True)
class Candidate:
    """One legal rewrite of one graph.

    Attributes:
        rule: the rule's name.
        anchor: id of the node at which matching started.
        nodes: ids of the nodes that the rewrite removes, in graph order; none if it only drops weights.
        variant: tells several rewrites of the same nodes apart (a factor, a form).
        fingerprint: of the graph it belongs to; applying it to another graph raises.
        numeric_class: what it does to the numbers.
        portable: False if the result needs com.microsoft operators.
        summary: in words.
        bytes_delta: weights added minus weights freed.
    """

    rule: str
    anchor: str
    nodes: tuple[str, ...]
    variant: str
    fingerprint: str
    numeric_class: NumericClass
    portable: bool
    summary: str
    bytes_delta: int

    @property
    def place(self) -> str:
        """Rule and nodes: the same on every later version of the graph that still has them."""
        variant = f"~{self.variant}" if self.variant else ""
        return f"{self.rule}:{'+'.join(self.nodes)}{variant}"

    @property
    def id(self) -> str:
        """Deterministic identifier: ``rule:nodes[~variant]:fingerprint``."""
        return f"{self.place}:{self.fingerprint[:8]}"


@dataclass(frozen=True)
class Rejection:
    """Why a rule does not apply where it seems to: the failed condition in words."""

    rule: str
    nodes: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Enumeration:
    """All candidates and near misses of a set of rules on one graph, in graph order."""

    fingerprint: str
    candidates: tuple[Candidate, ...]
    rejections: tuple[Rejection, ...]

    def find(self, identifier: str) -> Candidate:
        """The candidate with this id, or with this place (an id made on an earlier version).

        Raises:
            CandidateError: there is none, or the place is ambiguous.
        """
        for candidate in self.candidates:
            if candidate.id == identifier:
                return candidate
        place = place_of(identifier)
        for candidate in self.candidates:
            if candidate.place == place:
                return candidate
        raise CandidateError(
            f"No candidate '{identifier}' in this graph; list them with `explorer candidates MODEL` "
            "(an earlier rewrite may have used its nodes)."
        )


def place_of(identifier: str) -> str:
    """The place part of a candidate id (all of it, if it carries no fingerprint)."""
    head, _, tail = identifier.rpartition(":")
    is_hash = len(tail) == 8 and all(c in "0123456789abcdef" for c in tail)
    return head if is_hash and ":" in head else identifier
