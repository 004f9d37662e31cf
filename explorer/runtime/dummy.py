"""A machine whose timings are planted: the real protocol on a clock that tests control."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import exp
from typing import TYPE_CHECKING

from explorer.runtime.cache import NoCache
from explorer.runtime.environment import Environment
from explorer.runtime.estimate import latency_from, measurement_from
from explorer.runtime.executor import CancelToken, InlineExecutor
from explorer.runtime.measurement import Latency, Measurement
from explorer.runtime.measurer import Measurer
from explorer.runtime.request import Request
from explorer.runtime.samples import BASE, CONTROL, OTHER, Round
from explorer.runtime.sampling import Clocks, sample_rounds
from explorer.runtime.target import Target

if TYPE_CHECKING:
    from explorer.graph import Graph

PLANTED = Environment("planted", "planted", {"explorer": "planted"}, 1, "planted", {})


@dataclass
class FakeMachine:
    """A clock that moves only when a planted session opens or runs.

    Args:
        noise: standard deviation of the log of each run's time.
        session_noise: standard deviation of an offset that sticks to a session (log).
        opening_ns: time it takes to open a session.
        slowdown: factor on a run that starts at a given time, for drifts and epochs of the clock.
        seed: seed of all noise.
    """

    noise: float = 0.0
    session_noise: float = 0.0
    opening_ns: float = 0.0
    slowdown: Callable[[float], float] = lambda _now_ns: 1.0
    seed: int = 0
    now_ns: float = 0.0
    opened: int = 0
    closed: int = 0
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311 (planted noise, no secret)

    @property
    def clocks(self) -> Clocks:
        """This machine's time, for runs and for the budget."""
        return Clocks(timer=self.time_ns, wall=self.time_ns)

    def time_ns(self) -> int:
        """Nanoseconds since the machine was made."""
        return int(self.now_ns)

    def open(self, run_ns: float) -> FakeSession:
        """A session whose runs take ``run_ns`` apart from noise."""
        self.opened += 1
        self.now_ns += self.opening_ns
        return FakeSession(self, run_ns * self._factor(self.session_noise))

    def spend(self, run_ns: float) -> None:
        """Let the time of one run pass."""
        self.now_ns += run_ns * self.slowdown(self.now_ns) * self._factor(self.noise)

    def _factor(self, deviation: float) -> float:
        return exp(self._random.gauss(0.0, deviation)) if deviation else 1.0


@dataclass
class FakeSession:
    """A session on a ``FakeMachine``."""

    machine: FakeMachine
    run_ns: float

    def run(self) -> None:
        """Let the time of one run pass."""
        self.machine.spend(self.run_ns)

    def close(self) -> None:
        """Count the session as closed."""
        self.machine.closed += 1


class PlantedMeasurer(Measurer):
    """Measures in no time: every graph takes the time that a function says.

    Args:
        run_ns: graph and target -> time of one run in nanoseconds.
        noise: standard deviation of the log of each run's time.

    Outputs (``run``) are computed for real, in this process. Graphs that compute the same are IDENTICAL
    only if their fingerprints are equal.
    """

    def __init__(self, run_ns: Callable[[Graph, Target], float], *, noise: float = 0.0) -> None:
        super().__init__(executor=InlineExecutor(), cache=NoCache())
        self._run_ns = run_ns
        self._noise = noise

    def is_absorbed(
        self,
        a: Graph,
        b: Graph,
        target: str | Target,
        cancel: CancelToken | None = None,  # noqa: ARG002 (takes no time)
        *,
        b_target: Target | None = None,
    ) -> bool:
        """Whether the graphs and the targets are equal."""
        return a.fingerprint() == b.fingerprint() and b_target in {None, Target.parse(target)}

    def environment(
        self,
        target: str | Target,  # noqa: ARG002 (the same everywhere)
        cancel: CancelToken | None = None,  # noqa: ARG002 (takes no time)
    ) -> Environment:
        """The planted machine."""
        return PLANTED

    def _time_pair(
        self,
        a: Graph,
        b: Graph,
        request: Request,
    ) -> Measurement:
        target, other = request.target, request.b_target
        times = {BASE: self._run_ns(a, target), OTHER: self._run_ns(b, other or target)}
        rounds = self._rounds({**times, CONTROL: times[BASE]}, request)
        names = (a.fingerprint(), b.fingerprint())
        return measurement_from(
            rounds, names, target, request.protocol, PLANTED, elapsed_ns=0, b_target=other
        )

    def _time_one(
        self,
        graph: Graph,
        request: Request,
    ) -> Latency:
        target = request.target
        rounds = self._rounds({BASE: self._run_ns(graph, target)}, request)
        name = graph.fingerprint()
        return latency_from(rounds, name, target, request.protocol, PLANTED, elapsed_ns=0)

    def _rounds(self, run_ns: dict[str, float], request: Request) -> tuple[Round, ...]:
        machine = FakeMachine(noise=self._noise)
        openers = {name: partial(machine.open, ns) for name, ns in run_ns.items()}
        return sample_rounds(openers, request.protocol, machine.clocks, request.progress)
