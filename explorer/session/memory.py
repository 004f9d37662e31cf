"""What a session has found out: measurements of candidates and of totals, predictions."""

from __future__ import annotations

from dataclasses import dataclass, field

from explorer.runtime import Delta, Measurement

CandidateKey = tuple[str, str, str]
TotalKey = tuple[str, str]


@dataclass
class Memory:
    """Findings by what they are about.

    Attributes:
        candidates: by fingerprint of the base graph, place and target.
        totals: of a graph against the original, by the graph's fingerprint and where the ratio holds.
        predicted: deltas of candidates, by the same key as their measurements.
        absorbed: whether the target's optimiser does a candidate already, by the same key.
    """

    candidates: dict[CandidateKey, Measurement] = field(default_factory=dict)
    totals: dict[TotalKey, Measurement] = field(default_factory=dict)
    predicted: dict[CandidateKey, Delta] = field(default_factory=dict)
    absorbed: dict[CandidateKey, bool] = field(default_factory=dict)

    def copy(self) -> Memory:
        """The same, unaffected by what is found out from now on."""
        return Memory(dict(self.candidates), dict(self.totals), dict(self.predicted), dict(self.absorbed))
