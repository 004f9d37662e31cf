"""Measurements that a session has made: of candidates and of totals."""

from __future__ import annotations

from dataclasses import dataclass, field

from explorer.runtime import Measurement

CandidateKey = tuple[str, str, str]
TotalKey = tuple[str, str]


@dataclass
class Memory:
    """Measurements by what they are about.

    Attributes:
        candidates: by fingerprint of the base graph, place and target.
        totals: of a graph against the original, by the graph's fingerprint and target.
    """

    candidates: dict[CandidateKey, Measurement] = field(default_factory=dict)
    totals: dict[TotalKey, Measurement] = field(default_factory=dict)

    def copy(self) -> Memory:
        """The same, unaffected by what is measured from now on."""
        return Memory(dict(self.candidates), dict(self.totals))
