"""Where rules apply: enumerated once per graph and set of rules, from any thread."""

from __future__ import annotations

import threading
from weakref import WeakKeyDictionary

from explorer.graph import Graph
from explorer.rewrite import Enumeration, RuleSet, all_rules, default_rules, find_candidates


def rules_on_offer(opt_in: bool) -> RuleSet:
    """All rules, or those that are offered without asking for rules of class D and A."""
    return all_rules() if opt_in else default_rules()


class Sites:
    """Enumerations of the graphs that a session has seen.

    Enumerating needs the graph's fingerprint, which reads every weight once: seconds on large models. So a
    screen asks for what is ``known`` and has the rest found in the background.
    """

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Graph, dict[bool, Enumeration]] = WeakKeyDictionary()
        self._busy = threading.RLock()

    def known(self, graph: Graph, opt_in: bool) -> Enumeration | None:
        """The enumeration if it has been made; never computes anything."""
        return self._known.get(graph, {}).get(opt_in)

    def find(self, graph: Graph, opt_in: bool) -> Enumeration:
        """The enumeration; a thread that asks while another one makes it waits for that one."""
        with self._busy:
            found = self.known(graph, opt_in)
            if found is None:
                found = find_candidates(graph, rules_on_offer(opt_in))
                self._known.setdefault(graph, {})[opt_in] = found
            return found
