"""What to look at first: candidates in the order in which a user would expect them.

What is known decides. Where nothing is known, a rough count of work, traffic and nodes does (see
``explorer.search.prior``): one site per rule is rewritten and counted, and what that saves is scaled to the
rule's other sites. The count only orders; nobody is shown the number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from explorer.errors import RewriteError
from explorer.graph import Graph
from explorer.rewrite import Candidate, RuleSet, apply
from explorer.runtime import Verdict
from explorer.runtime.executor import CancelToken
from explorer.search.prior import rough_node_ns, rough_ns

if TYPE_CHECKING:
    from explorer.session.snapshot import CandidateRow

_GAIN, _OPEN, _EQUAL, _LOSS, _REJECTED = range(5)


class Ranking:
    """What a rule saves at one site, as a share of the rough time of the nodes it removes there."""

    def __init__(self) -> None:
        self._share: dict[str, float] = {}
        self._costs: WeakKeyDictionary[Graph, dict[str, float]] = WeakKeyDictionary()

    def learn(
        self,
        graph: Graph,
        candidates: Iterable[Candidate],
        rules: RuleSet,
        cancel: CancelToken | None = None,
    ) -> None:
        """Rewrite one site of each rule that is not known yet: its largest, where most is at stake."""
        costs = self._costs_of(graph)
        now_ns, largest = sum(costs.values()), dict[str, Candidate]()
        for candidate in candidates:
            best = largest.setdefault(candidate.rule, candidate)
            if _site_ns(candidate, costs) > _site_ns(best, costs):
                largest[candidate.rule] = candidate
        for rule, candidate in largest.items():
            site_ns = _site_ns(candidate, costs)
            if rule in self._share or not site_ns:
                continue
            if cancel is not None and cancel.is_set():
                return
            try:
                saved_ns = now_ns - rough_ns(apply(graph, candidate, rules))
            except RewriteError:
                saved_ns = 0.0
            self._share[rule] = saved_ns / site_ns

    def ratios(self, graph: Graph, candidates: Iterable[Candidate]) -> dict[str, float]:
        """Place -> rough time after / before; 1 for rules nothing is known of."""
        costs = self._costs_of(graph)
        total = sum(costs.values()) or 1.0
        return {c.place: 1 - self._share.get(c.rule, 0.0) * _site_ns(c, costs) / total for c in candidates}

    def _costs_of(self, graph: Graph) -> dict[str, float]:
        if graph not in self._costs:
            self._costs[graph] = rough_node_ns(graph)
        return self._costs[graph]


def _site_ns(candidate: Candidate, costs: Mapping[str, float]) -> float:
    return sum(costs.get(node, 0.0) for node in candidate.nodes)


def ordered(rows: Sequence[CandidateRow], ratios: Mapping[str, float]) -> tuple[CandidateRow, ...]:
    """Rows as a table should list them.

    First what is known to gain, most first, measured or predicted; then what is open, by its prediction or
    else by the rough count; then what makes no measurable difference; then what is slower; rejected
    places last. Rows that are equal in this keep the order of the graph.

    Args:
        rows: in the order of the graph.
        ratios: place -> rough time after / before.
    """
    return tuple(sorted(rows, key=lambda row: _key(row, ratios)))


def _key(row: CandidateRow, ratios: Mapping[str, float]) -> tuple[int, float]:
    known = row.measured or row.predicted
    ratio = known.ratio if known is not None else ratios.get(row.candidate.place, 1.0)
    return (_REJECTED if row.is_rejected else _class(row)), ratio


def _class(row: CandidateRow) -> int:
    known = row.measured or row.predicted
    if known is not None and known.verdict is Verdict.FASTER:
        return _GAIN
    if known is not None and known.verdict is Verdict.SLOWER:
        return _LOSS
    if row.measured is not None or row.is_absorbed:
        return _EQUAL
    return _OPEN
