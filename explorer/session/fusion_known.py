"""What was found out about fusion on one graph: its networks, cost models, plans and optima."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from explorer.errors import InputError
from explorer.fusion import KB, FusionNetwork, Optimum, Scheme, fusion_network, make_scheme
from explorer.fusion.dims import Size
from explorer.graph import Graph
from explorer.session.fusion_values import FoundPlan, FusionSettings, PlanFacts, SearchCurve


@dataclass
class FusionKnown:
    """Findings on one graph, which every method is given: to hold it here would keep it alive.

    Attributes:
        optima: what is known of the best plan, by settings.
        asked: settings under which quick plans were looked for.
        slow: the least buffer whose optimum took long, by scheme.
        plans: every plan, by label.
        curves: searches, by label.
    """

    optima: dict[FusionSettings, Optimum] = field(default_factory=dict)
    asked: set[FusionSettings] = field(default_factory=set)
    slow: dict[str, int] = field(default_factory=dict)
    plans: dict[str, FoundPlan] = field(default_factory=dict)
    curves: dict[str, SearchCurve] = field(default_factory=dict)
    _networks: dict[tuple[int, tuple[tuple[str, Size], ...]], FusionNetwork] = field(default_factory=dict)
    _schemes: dict[FusionSettings, Scheme] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def network(self, graph: Graph, settings: FusionSettings) -> FusionNetwork:
        """The graph's fusion network; raises InputError where a dim is unknown."""
        key = (settings.element_bytes, settings.dims)
        with self._lock:
            if key not in self._networks:
                self._networks[key] = fusion_network(graph, element_bytes=key[0], dims=dict(key[1]))
            return self._networks[key]

    def scheme(self, graph: Graph, settings: FusionSettings) -> Scheme:
        """The cost model under these settings; raises InputError if it is not for this graph."""
        with self._lock:
            if settings not in self._schemes:
                network = self.network(graph, settings)
                made = make_scheme(settings.scheme, network, settings.buffer_bytes / KB)
                self._schemes[settings] = made
            return self._schemes[settings]

    def find(self, label: str) -> FoundPlan:
        """The plan of this label; raises InputError if there is none."""
        found = self.plans.get(label)
        if found is None:
            raise InputError(f"There is no plan '{label}' of this graph; choose one of the list.")
        return found

    def facts(self, found: FoundPlan) -> PlanFacts:
        """A plan's numbers beside what is known of the optimum under its settings."""
        return PlanFacts.of(found, self.optima.get(found.settings))
