"""What a worker is asked to do: plain functions on ONNX files and numpy inputs.

They can be pickled by reference, so that any ``concurrent.futures.Executor`` can run them, in another
process or on another machine that sees the same files.
"""

from __future__ import annotations

import gc
import platform
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from explorer.runtime.backend import Feeds, RuntimeSession, as_feeds, backend_for
from explorer.runtime.environment import Environment, cpu_model, device_name, system_name
from explorer.runtime.estimate import latency_from, measurement_from
from explorer.runtime.executed import Executed
from explorer.runtime.measurement import Latency, Measurement
from explorer.runtime.progress import OnProgress, ignore_progress
from explorer.runtime.protocol import Protocol
from explorer.runtime.samples import BASE, CONTROL, OTHER, Round
from explorer.runtime.sampling import Clocks, sample_rounds
from explorer.runtime.target import Target

_FEWEST_RUNS, _MOST_RUNS = 5, 50


class _BoundSession:
    """A session together with its inputs; ``run`` goes straight to the runtime."""

    def __init__(self, session: RuntimeSession, feeds: Feeds) -> None:
        self._session = session
        try:
            self.run = session.bind(feeds)
        except BaseException:
            session.close()
            raise

    def close(self) -> None:
        """Drop the bound call, which holds the session too, and free the session."""
        del self.run
        self._session.close()


def environment(target: Target) -> Environment:
    """Where this process measures on a target."""
    backend = backend_for(target.runtime)
    versions = {
        **backend.versions(),
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
    return Environment(
        cpu_model=cpu_model(),
        system=system_name(),
        versions=versions,
        threads=target.threads,
        timer=backend.timer_name(target),
        settings=backend.settings(target),
        device=device_name(),
    )


def measure_pair(
    a_path: Path,
    b_path: Path,
    feeds: Feeds,
    target: Target,
    protocol: Protocol,
    b_target: Target | None = None,
    progress: OnProgress = ignore_progress,
) -> Measurement:
    """Time two models against each other, with a second copy of the first as control.

    Args:
        a_path: model that is the base of the ratio.
        b_path: the other model; may be the same one if the targets differ.
        feeds: inputs for both.
        target: runtime and options.
        protocol: rounds, samples, time budget.
        b_target: other options of the same runtime for the other model; None for the same ones.
        progress: called before each round; may raise to stop.

    Raises:
        RuntimeFailure: the runtime cannot load or run one of them.
    """
    sessions = {BASE: (a_path, target), OTHER: (b_path, b_target or target), CONTROL: (a_path, target)}
    begin = time.perf_counter_ns()
    rounds = _rounds(sessions, feeds, target, protocol, progress)
    return measurement_from(
        rounds,
        (a_path.stem, b_path.stem),
        target,
        protocol,
        environment(target),
        elapsed_ns=time.perf_counter_ns() - begin,
        b_target=b_target,
    )


def measure_one(
    path: Path,
    feeds: Feeds,
    target: Target,
    protocol: Protocol,
    progress: OnProgress = ignore_progress,
) -> Latency:
    """Time one model over rounds of fresh sessions; arguments and errors as in ``measure_pair``."""
    begin = time.perf_counter_ns()
    rounds = _rounds({BASE: (path, target)}, feeds, target, protocol, progress)
    elapsed_ns = time.perf_counter_ns() - begin
    return latency_from(rounds, path.stem, target, protocol, environment(target), elapsed_ns=elapsed_ns)


def run_model(path: Path, feeds_list: Sequence[Feeds], target: Target) -> list[dict[str, Any]]:
    """Run a model once per set of inputs.

    Returns:
        For each set: output name -> array (strings as object arrays; sequences as lists).

    Raises:
        RuntimeFailure: the runtime cannot load or run it.
    """
    session = backend_for(target.runtime).open(path, target)
    try:
        return [dict(zip(session.output_names, session.bind(feeds)(), strict=True)) for feeds in feeds_list]
    finally:
        session.close()


def profile_model(
    path: Path, feeds: Feeds, target: Target, rounds: int, budget_ns: int
) -> list[tuple[Executed, ...]]:
    """Time per executed operator, in several fresh sessions.

    Args:
        path: the model.
        feeds: its inputs.
        target: runtime and options.
        rounds: number of sessions.
        budget_ns: time that all runs together should take; each session makes 5 to 50.

    Raises:
        RuntimeFailure: the runtime cannot load or run it, or has no profiler.
    """
    profile = backend_for(target.runtime).profile
    trial = profile(path, target, feeds, 1)
    run_ns = sum(one.durations_ns[0] for one in trial) or 1
    runs = min(_MOST_RUNS, max(_FEWEST_RUNS, budget_ns // (rounds * run_ns)))
    return [profile(path, target, feeds, runs) for _ in range(rounds)]


def optimized_model(path: Path, target: Target, out_path: Path) -> Path:
    """Write the graph as the runtime would execute it (at ORT's level ``all``: NCHWc operators).

    Raises:
        RuntimeFailure: the runtime cannot load the model or cannot write its graph.
    """
    backend_for(target.runtime).save_optimized(path, target, out_path)
    return out_path


def optimized_fingerprint(path: Path, target: Target) -> str:
    """Canonical hash of the graph that the runtime executes; float weights by type and shape only.

    Two models with the same hash take the same time. Folding computes weights in another order and
    so changes their last bits, which is why the content of float weights does not count; single floats do.
    """
    import onnx_ir as ir

    from explorer.graph.fingerprint import graph_digest

    with tempfile.TemporaryDirectory(dir=path.parent, prefix="optimized-") as folder:
        model = ir.load(optimized_model(path, target, Path(folder) / "optimized.onnx"))
        model.graph.sort()
        return graph_digest(model, weights_by_content=False)


def acting_optimizers(path: Path, target: Target) -> tuple[str, ...]:
    """Which of the runtime's own optimisers change the model on a target.

    Raises:
        RuntimeFailure: the runtime cannot load the model, or does not say.
    """
    return backend_for(target.runtime).acting_optimizers(path, target)


def _rounds(
    sessions: Mapping[str, tuple[Path, Target]],
    feeds: Feeds,
    target: Target,
    protocol: Protocol,
    progress: OnProgress,
) -> tuple[Round, ...]:
    """Sample sessions of one runtime, each on its own model and options, by the clock of ``target``."""
    backend, arrays = backend_for(target.runtime), as_feeds(feeds)

    def open_fresh(path: Path, on: Target) -> _BoundSession:
        return _BoundSession(backend.open(path, on), arrays)

    openers = {name: partial(open_fresh, *session) for name, session in sessions.items()}
    clocks = Clocks(timer=getattr(time, backend.timer_name(target)))
    gc.collect()  # what earlier jobs left is not to be collected between samples
    return sample_rounds(openers, protocol, clocks, progress)
