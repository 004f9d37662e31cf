"""``State``: what a session is about, and how that may change.

One model with its history, a target, the rules on offer, rejected places, and what has been found out. It
changes under a lock, with a number for each version, and computes nothing but where rules apply.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from explorer.errors import CandidateError
from explorer.graph import Feeds, Graph, make_feeds
from explorer.rewrite import Candidate, Enumeration, RuleSet
from explorer.runtime import Measurer, Mode, Protocol, Target
from explorer.runtime.executor import CancelToken
from explorer.search import Step
from explorer.session.history import Entry, History
from explorer.session.known import Known
from explorer.session.memory import CandidateKey, Memory
from explorer.session.observed import Observed
from explorer.session.sites import Sites, rules_on_offer
from explorer.session.switches import Switches, is_switch


class State(Observed):
    """The state of a session.

    Args:
        graph: the model as it was opened.
        target: where its time counts.
        protocol: how candidates and totals are timed unless a command says otherwise.
        opt_in: also offer rules of class D (domain-restricted) and A (approximate).
        dims: sizes of named dynamic dims, for measuring and checking.
        measurer: measures and runs graphs.
    """

    def __init__(
        self,
        graph: Graph,
        target: str | Target,
        protocol: str | Mode | Protocol,
        opt_in: bool,
        dims: Mapping[str, int] | None,
        measurer: Measurer,
    ) -> None:
        super().__init__()
        self._target = Target.parse(target)
        self._protocol = Protocol.of(protocol)
        self._history = History.of(graph)
        self._opt_in = opt_in
        self._rejected: set[str] = set()
        self._memory = Memory()
        self._sites = Sites()
        self.dims = dict(dims or {})
        self.measurer = measurer
        self.known = Known()

    @property
    def original(self) -> Graph:
        """The graph as it was opened."""
        return self._history.original

    @property
    def graph(self) -> Graph:
        """The graph as it is now."""
        return self._history.current

    @property
    def history(self) -> History:
        """Accepted and undone rewrites."""
        return self._history

    @property
    def steps(self) -> tuple[Step, ...]:
        """Accepted rewrites, in order."""
        return self._history.steps()

    @property
    def target(self) -> Target:
        """Where time counts."""
        return self._target

    @target.setter
    def target(self, spec: str | Target) -> None:
        with self._changing():
            self._target = Target.parse(spec)

    @property
    def protocol(self) -> Protocol:
        """How candidates and totals are timed unless a command says otherwise."""
        return self._protocol

    @protocol.setter
    def protocol(self, value: str | Mode | Protocol) -> None:
        with self._changing():
            self._protocol = Protocol.of(value)

    @property
    def rules(self) -> RuleSet:
        """The rules on offer."""
        return rules_on_offer(self._opt_in)

    @property
    def opt_in(self) -> bool:
        """Whether rules of class D and A are offered."""
        return self._opt_in

    @opt_in.setter
    def opt_in(self, value: bool) -> None:
        with self._changing():
            self._opt_in = value

    @property
    def rejected(self) -> frozenset[str]:
        """Places the user does not want rewritten."""
        return frozenset(self._rejected)

    def enumeration(self) -> Enumeration:
        """Candidates and near misses of the current graph; seconds for a large graph not seen before."""
        return self._sites.find(self.graph, self._opt_in)

    def known_enumeration(self) -> Enumeration | None:
        """The same if it has been made, else None; takes no time."""
        return self._sites.known(self.graph, self._opt_in)

    def prepare(self, *, opt_in: bool | None = None, cancel: CancelToken | None = None) -> None:
        """Make the enumeration now, then its order, so that nobody waits for it later; for a background job.

        Args:
            opt_in: offer rules of class D and A from now on, or no longer; None leaves that as it is.
            cancel: stops ordering when set.
        """
        graph, wanted = self.graph, self._opt_in if opt_in is None else opt_in
        candidates = self._sites.find(graph, wanted).candidates
        with self._changing():
            self._opt_in = wanted
        self.known.ranking.learn(graph, candidates, self.rules, cancel)
        with self._changing():
            pass  # the rows have another order

    def candidates(self) -> tuple[Candidate, ...]:
        """Every place where a rule on offer applies."""
        return self.enumeration().candidates

    def find(self, identifier: str) -> Candidate:
        """A candidate of the current graph, or a switch, by id or place; raises CandidateError."""
        return self.switches.get(identifier) if is_switch(identifier) else self.enumeration().find(identifier)

    @cached_property
    def switches(self) -> Switches:
        """Settings of the runtime, and freezing weights, that can be tried like rewrites."""
        return Switches(self, self._changing)

    def feeds(self) -> Feeds:
        """Seeded inputs of a realistic size, for measuring."""
        return make_feeds(self.original, dims=self.dims)

    def extend(self, entry: Entry, base: Graph) -> None:
        """Add an entry that was found and checked on a graph.

        Raises:
            CandidateError: that graph is no longer the current one, or the target has changed.
        """
        self._sites.find(entry.graph, self._opt_in)
        with self._changing():
            if self.graph is not base or (entry.switched and entry.switched.before != self._target):
                raise CandidateError("Graph or target changed while the candidate was checked; choose again.")
            self._history = self._history.push(entry)
            self._target = entry.switched.after if entry.switched else self._target

    def reject(self, identifier: str) -> None:
        """Leave a place alone: searches and "measure all" skip it."""
        with self._changing():
            self._rejected.add(self.find(identifier).place)

    def restore(self, identifier: str) -> None:
        """Take a rejection back."""
        with self._changing():
            self._rejected.discard(self.find(identifier).place)

    def undo(self, count: int = 1) -> None:
        """Take back the last acceptances, with the targets they led to; harmless at the beginning."""
        self._walk(-count)

    def redo(self, count: int = 1) -> None:
        """Accept again what was undone; harmless at the end."""
        self._walk(count)

    def _walk(self, by: int) -> None:
        with self._changing():
            self._target = self._history.target_after(by, self._target)
            self._history = self._history.moved(by)

    def memory(self) -> Memory:
        """Measurements and predictions made so far."""
        return self._memory.copy()

    def recall(self, history: History, rejected: set[str], memory: Memory) -> None:
        """Restore what a saved session remembers."""
        with self._changing():
            self._history, self._rejected, self._memory = history, set(rejected), memory.copy()

    def _key(self, base: Graph, place: str) -> CandidateKey:
        return base.fingerprint(), place, str(self.target)
