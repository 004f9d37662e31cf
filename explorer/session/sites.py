"""Where rules apply: enumerated once per graph and set of rules, from any thread."""

from __future__ import annotations

import threading
from weakref import WeakKeyDictionary

from explorer.graph import Graph
from explorer.rewrite import Enumeration, RuleSet, Scan, all_rules, default_rules, rescan, scan


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
        self._last: dict[bool, tuple[Graph, Scan]] = {}
        self._busy = threading.RLock()

    def known(self, graph: Graph, opt_in: bool) -> Enumeration | None:
        """The enumeration if it has been made; never computes anything."""
        return self._known.get(graph, {}).get(opt_in)

    def find(self, graph: Graph, opt_in: bool) -> Enumeration:
        """The enumeration; a thread that asks while another one makes it waits for that one.

        Only what differs from the version enumerated last is looked at again.
        """
        with self._busy:
            found = self.known(graph, opt_in)
            if found is None:
                found = self._scan(graph, opt_in).enumeration()
                self._known.setdefault(graph, {})[opt_in] = found
            return found

    def _scan(self, graph: Graph, opt_in: bool) -> Scan:
        rules, last = rules_on_offer(opt_in), self._last.get(opt_in)
        found = scan(graph, rules) if last is None else rescan(last[1], graph, rules)
        self._last[opt_in] = (graph, found)
        return found
