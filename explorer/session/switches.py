"""Switches of the runtime as candidates beside rewrites.

There are three kinds: another optimisation level, one optimiser off or on again, and weights that are graph
inputs made constants. A target switch leaves the graph as it is and changes where its time counts; freezing changes the graph and its
interface. Places are stable: ``switch:level=extended``, ``switch:disabled+=QuickGeluFusion``,
``switch:disabled-=QuickGeluFusion``, ``switch:freeze-weights``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from explorer.errors import CandidateError
from explorer.graph import Graph, freeze_weights, names_text
from explorer.rewrite import Candidate, EquivalenceReport, NumericClass, RuleSet, apply
from explorer.rewrite.candidate import place_of
from explorer.runtime import Measurer, Target
from explorer.runtime.backend import backend_for
from explorer.runtime.executor import CancelToken
from explorer.search import FREEZE, SWITCH

FAMILY = "H"
_NO_WORSE = 2.0
_FREEZE = FREEZE.removeprefix(f"{SWITCH}:")


@dataclass(frozen=True)
class Switch(Candidate):
    """One switch, offered for one graph on one target.

    Attributes:
        title: what it does, in a few words.
        target: where time counts after it; None if it changes the graph.
    """

    title: str = ""
    target: Target | None = None

    @property
    def place(self) -> str:
        """``switch:`` and the setting, the same on every graph."""
        return f"{SWITCH}:{self.variant}"


class Host(Protocol):
    """What is needed of a session."""

    measurer: Measurer

    @property
    def graph(self) -> Graph:
        """The graph as it is now."""

    @property
    def target(self) -> Target:
        """Where time counts."""


class Switches:
    """The switches that a session's graph and target have.

    Which optimisers act on a graph is asked of the runtime once, by ``find``; everything else is known.

    Args:
        host: the session.
        changing: what surrounds a change of the session's state.
    """

    def __init__(self, host: Host, changing: Callable[[], AbstractContextManager[None]]) -> None:
        self._host, self._changing = host, changing
        self._acting: dict[tuple[str, str], tuple[str, ...]] = {}
        self._busy = threading.Lock()

    @property
    def is_complete(self) -> bool:
        """Whether the runtime was asked which of its optimisers act on the graph."""
        return self._key() in self._acting

    def known(self) -> tuple[Switch, ...]:
        """All switches that can be listed without asking the runtime, or were asked for."""
        graph, target = self._host.graph, self._host.target
        return _switches(graph, target, self._acting.get(self._key(), ()))

    def find(self, cancel: CancelToken | None = None) -> tuple[Switch, ...]:
        """All switches; asks the runtime, which takes as long as loading the model there.

        Raises:
            RuntimeFailure: the target cannot load the graph.
            WorkerError: the worker crashed, hung or ran out of memory.
        """
        graph, target, key = self._host.graph, self._host.target, self._key()
        with self._busy:
            if key not in self._acting:
                found = self._host.measurer.acting_optimizers(graph, target, cancel)
                with self._changing():
                    self._acting[key] = found
        return _switches(graph, target, self._acting[key])

    def get(self, identifier: str) -> Switch:
        """A switch by id or place; asks the runtime if it is not among those known.

        Raises:
            CandidateError: the current graph and target have no such switch.
        """
        place = place_of(identifier)
        for switches in (self.known, self.find):
            for switch in switches():
                if switch.place == place:
                    return switch
        raise CandidateError(
            f"There is no '{place}' for '{self._host.graph.name}' on {self._host.target}; list what there is with "
            "`explorer candidates MODEL --switches`."
        )

    def _key(self) -> tuple[str, str]:
        return self._host.graph.fingerprint(), str(self._host.target)


def is_switch(identifier: str) -> bool:
    """Whether an id or place is that of a switch."""
    return identifier.startswith(f"{SWITCH}:")


def outcome(candidate: Candidate, graph: Graph, rules: RuleSet) -> tuple[Graph, Target | None]:
    """What accepting a candidate leads to: the graph, and the target if that changes."""
    if not isinstance(candidate, Switch):
        return apply(graph, candidate, rules), None
    return (freeze_weights(graph), None) if candidate.target is None else (graph, candidate.target)


def check_switch(
    check: Callable[..., EquivalenceReport],
    switch: Candidate,
    before: Target,
    after: Target,
    cancel: CancelToken | None = None,
) -> EquivalenceReport:
    """Check the graph on the target that a switch leads to.

    A runtime's optimiser may differ from the original by more than the class allows (large inputs to a
    network that amplifies rounding). Where the present target does so too, a switch passes that is at most
    twice as far off, and the report says that; NaN, shapes and types must agree all the same.

    Args:
        check: ``Session.check``.
        switch: what is checked.
        before: the present target.
        after: the target the switch leads to.
        cancel: stops it when set.
    """
    look = partial(check, None, switch.numeric_class, cancel)
    report = look(on=after)
    if report.passed:
        return report
    present = look(on=before)
    if present.passed:
        return report
    wider = look(on=after, least_tolerance=_NO_WORSE * present.max_error)
    note = f"not equal to the original, but no worse than {before}, which itself differs by {present.max_error:.1e}"
    return replace(wider, note=note if wider.passed else "")


def _switches(graph: Graph, target: Target, acting: tuple[str, ...]) -> tuple[Switch, ...]:
    frozen = [_freezing(graph)] if graph.overridable else []
    levels = [_level(graph, target, level) for level in _levels(target) if level != target.level]
    off = [_without(graph, target, name) for name in acting if name not in target.disabled]
    on = [_again(graph, target, name) for name in target.disabled]
    return (*frozen, *levels, *off, *on)


def _levels(target: Target) -> tuple[str, ...]:
    options = backend_for(target.runtime).options
    return next((option.choices for option in options if option.name == "level"), ())


def _freezing(graph: Graph) -> Switch:
    names = [str(value.name) for value in graph.overridable]
    summary = (
        f"Weights that are graph inputs become constants: callers can no longer override {names_text(names)}"
    )
    return _switch(graph, _FREEZE, "Freeze weights", summary, None)


def _level(graph: Graph, target: Target, level: str) -> Switch:
    summary = (
        f"{_runtime(target)} optimises at level {level} instead of {target.level}; the graph stays as it is"
    )
    return _switch(
        graph, f"level={level}", f"Optimisation level {level}", summary, target.replace(level=level)
    )


def _without(graph: Graph, target: Target, name: str) -> Switch:
    changed = target.replace(disabled="+".join([*target.disabled, name]))
    summary = f"{_runtime(target)}'s {name} changes this model; it is switched off"
    return _switch(graph, f"disabled+={name}", f"Without {name}", summary, changed)


def _again(graph: Graph, target: Target, name: str) -> Switch:
    changed = target.replace(disabled="+".join(one for one in target.disabled if one != name))
    summary = f"{_runtime(target)}'s {name}, which this target has switched off, may act again"
    return _switch(graph, f"disabled-={name}", f"With {name} again", summary, changed)


def _runtime(target: Target) -> str:
    return backend_for(target.runtime).title


def _switch(graph: Graph, setting: str, title: str, summary: str, target: Target | None) -> Switch:
    return Switch(
        rule=SWITCH,
        anchor="",
        nodes=(),
        variant=setting,
        fingerprint=graph.fingerprint(),
        numeric_class=NumericClass.EXACT if target is None else NumericClass.REASSOCIATED,
        portable=target is None,
        summary=summary,
        bytes_delta=0,
        title=title,
        target=target,
    )
