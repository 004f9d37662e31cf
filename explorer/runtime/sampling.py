"""Rounds of interleaved timing. Clocks and sessions are injected, so that tests need neither.

A round opens one fresh session per name, warms each up, and takes samples in orders in which every
session follows every other equally often (what ran before changes what is in the cache).
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import Protocol as Interface

from explorer.runtime.backend import Timer
from explorer.runtime.estimate import half_width
from explorer.runtime.progress import OnProgress, Progress, ignore_progress
from explorer.runtime.protocol import Protocol
from explorer.runtime.samples import Round, Series

# Six orders of three sessions: each session stands at each place twice, follows each of the other two
# three times and itself never, also from the last order to the first. The first three alone put each
# session at each place once, and so do the last three.
_ORDERS = ((0, 1, 2), (1, 2, 0), (2, 0, 1), (0, 2, 1), (2, 1, 0), (1, 0, 2))
_SHARED_RUNS_UP_TO = 4.0


class Runner(Interface):
    """An opened model with its inputs bound."""

    def run(self) -> object:
        """Run once."""

    def close(self) -> None:
        """Free the session."""


Opener = Callable[[], Runner]


@dataclass(frozen=True)
class Clocks:
    """The clock that times runs and the one that watches the budget, both in nanoseconds."""

    timer: Timer
    wall: Timer = time.perf_counter_ns


def sample_rounds(
    openers: Mapping[str, Opener],
    protocol: Protocol,
    clocks: Clocks,
    progress: OnProgress = ignore_progress,
) -> tuple[Round, ...]:
    """Time one to three models against each other.

    Args:
        openers: session name -> function that opens a fresh session.
        protocol: rounds, samples, warm-up and time budget.
        clocks: where the time comes from.
        progress: called before each round and at the end; may raise to stop.

    Returns:
        One mapping per round from session name to its samples. Every opened session has been closed.
    """
    start: int = clocks.wall()
    rounds: list[Round] = []
    while _wants_more(rounds, protocol, clocks.wall() - start):
        index = len(rounds)
        planned = max(protocol.rounds, index + 1)
        progress(Progress(index, planned, f"round {index + 1} of {planned}"))
        budget = _Budget(protocol, clocks.wall, start, index)
        rounds.append(_one_round(openers, index, protocol, clocks, budget))
    progress(Progress(len(rounds), len(rounds), "measured"))
    return tuple(rounds)


def _wants_more(rounds: list[Round], protocol: Protocol, spent_ns: int) -> bool:
    """Whether another round is due; only the budget and the interval's width decide, never its place."""
    made = len(rounds)
    if made < protocol.fewest_rounds:
        return True
    if made >= protocol.most_rounds:
        return False
    affordable = spent_ns + spent_ns / made <= protocol.budget_ns
    if made < protocol.rounds:
        return affordable
    return affordable and half_width(rounds, protocol) > protocol.enough_ratio


class _Budget:
    """How many samples the present round may take so that the remaining rounds stay affordable."""

    def __init__(self, protocol: Protocol, wall: Timer, start_ns: int, index: int) -> None:
        self._protocol, self._wall = protocol, wall
        self._round_start_ns = wall()
        self._spent_ns = self._round_start_ns - start_ns
        self._rounds_left = max(1, protocol.rounds - index)

    def samples(self, cost_ns: float) -> int:
        """Samples of each session, given the time one sample of all sessions takes together."""
        preparation_ns = self._wall() - self._round_start_ns
        left_ns = self._protocol.budget_ns - self._spent_ns - preparation_ns * self._rounds_left
        affordable = int(left_ns / self._rounds_left / cost_ns) if left_ns > 0 else 0
        return min(self._protocol.samples, max(self._protocol.min_samples, affordable))


def _one_round(
    openers: Mapping[str, Opener], index: int, protocol: Protocol, clocks: Clocks, budget: _Budget
) -> Round:
    names = list(openers)
    with ExitStack() as stack:
        opened: dict[str, Runner] = {}
        for name in _order(names, index):
            opened[name] = openers[name]()
            stack.callback(opened[name].close)
        pace = {name: _warm_up(opened[name], protocol.warmup_ns, clocks) for name in names}
        runs = _runs_per_sample({n: p.timed_ns for n, p in pace.items()}, protocol.sample_ns)
        count = budget.samples(sum(pace[name].wall_ns * runs[name] for name in names))
        taken: dict[str, list[int]] = {name: [] for name in names}
        with _collector_off():
            for sample in range(count):
                for name in _order(names, 3 * (index % 2) + sample):
                    taken[name].append(_sample(opened[name], runs[name], clocks.timer))
    return {name: Series(tuple(taken[name]), runs[name]) for name in names}


def _order(names: list[str], index: int) -> list[str]:
    return [names[i] for i in _ORDERS[index % len(_ORDERS)] if i < len(names)]


@dataclass(frozen=True)
class _Pace:
    """Time of one warm run on both clocks."""

    timed_ns: float
    wall_ns: float


def _warm_up(runner: Runner, at_least_ns: int, clocks: Clocks) -> _Pace:
    timed: list[int] = []
    begin = before = clocks.wall()
    warm_begin = before
    while len(timed) < 2 or clocks.wall() - begin < at_least_ns:
        if len(timed) == 1:
            warm_begin = clocks.wall()
        timed.append(_sample(runner, 1, clocks.timer))
    wall_ns = (clocks.wall() - warm_begin) / (len(timed) - 1)
    return _Pace(median(timed[1:]), wall_ns)


def _runs_per_sample(run_ns: Mapping[str, float], sample_ns: int) -> dict[str, int]:
    """Enough runs to fill a sample.

    Sessions of similar speed get the same number: the first run after another session finds a cold
    cache, and a session with more runs per sample would hide more of that.
    """
    fastest, slowest = min(run_ns.values()), max(run_ns.values())
    if slowest <= _SHARED_RUNS_UP_TO * fastest:
        run_ns = dict.fromkeys(run_ns, fastest)
    return {name: max(1, ceil(sample_ns / max(ns, 1.0))) for name, ns in run_ns.items()}


def _sample(runner: Runner, runs: int, timer: Timer) -> int:
    run = runner.run
    begin = timer()
    for _ in range(runs):
        run()
    return max(1, timer() - begin)


@contextmanager
def _collector_off() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
