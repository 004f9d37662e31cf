"""Sessions with planted times and real numerical checks: two blocks of Conv, BatchNormalization, Relu."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx

from explorer.errors import Cancelled
from explorer.graph import Graph
from explorer.rewrite import Candidate
from explorer.runtime import Measurement, Target
from explorer.runtime.dummy import PlantedMeasurer
from explorer.runtime.measurer import Request
from explorer.runtime.progress import Progress
from explorer.session import Session
from tests.models import model

TARGET = "ort:level=disable,threads=1"
COSTS_MS = {"Conv": 10.0, "FusedConv": 10.0, "BatchNormalization": 1.0, "Relu": 1.0}
FOLD = "fold-batchnorm-into-conv"


def two_blocks() -> onnx.ModelProto:
    """Conv, BatchNormalization, Relu, twice."""
    rng = np.random.default_rng(7)
    weights = {f"w{i}": rng.standard_normal((4, 4, 3, 3)).astype("f4") for i in (1, 2)}
    statistics = {name: rng.uniform(0.5, 1.5, 4).astype("f4") for name in ("s", "b", "m", "v")}
    return model(
        """(float[1,4,8,8] x) => (float[1,4,4,4] y) {
            c1 = Conv(x, w1)
            n1 = BatchNormalization(c1, s, b, m, v)
            r1 = Relu(n1)
            c2 = Conv(r1, w2)
            n2 = BatchNormalization(c2, s, b, m, v)
            y = Relu(n2)
        }""",
        **weights,
        **statistics,
    )


def saved_model(folder: Path, name: str = "blocks.onnx") -> Path:
    """The two blocks as a file."""
    path = folder / name
    onnx.save(two_blocks(), path)
    return path


def planted_ns(graph: Graph, _target: Target) -> float:
    """Time of one run: a fixed time per operator."""
    counts = Counter(node.op_type for node in graph.nodes)
    return 1e6 * sum(COSTS_MS.get(op, 5.0) * count for op, count in counts.items())


def planted_session(model: Path | bytes | str | None = None, **settings: object) -> Session:
    """A session on the two blocks whose times are planted."""
    source = two_blocks().SerializeToString() if model is None else model
    settings.setdefault("measurer", PlantedMeasurer(planted_ns))
    settings.setdefault("name", "blocks" if isinstance(source, bytes) else None)
    return Session(source, target=TARGET, **settings)  # type: ignore[arg-type]  # passed through


def folds(session: Session) -> list[Candidate]:
    """The candidates that fold a BatchNormalization, in graph order."""
    return [candidate for candidate in session.candidates() if candidate.rule == FOLD]


class EndlessMeasurer(PlantedMeasurer):
    """Never finishes a measurement; reports progress until it is cancelled."""

    def __init__(self) -> None:
        super().__init__(planted_ns)

    def _time_pair(self, a: Graph, b: Graph, request: Request) -> Measurement:
        assert request.cancel is not None, "this measurement could not be cancelled"
        rounds = 0
        while not request.cancel.is_set():
            request.progress(Progress(rounds % 10, 10, f"round {rounds % 10 + 1} of 10"))
            rounds += 1
        raise Cancelled("cancelled while measuring")


def only_alone_ns(graph: Graph, _target: Target) -> float:
    """Operators (but Relu) take time alone, so that one less is predicted to gain; whole models all take the same."""
    known = {"Conv": 1e6, "BatchNormalization": 1e6, "FusedConv": 1e6}
    costs = [known.get(node.op_type, 0.0) for node in graph.nodes]
    return 1e5 + costs[0] if len(costs) == 1 else 5e6


def alone_and_whole_ns(graph: Graph, target: Target) -> float:
    """As alone, but whole models take a time per node: what is predicted to gain does."""
    return 1e6 * len(graph.nodes) if len(graph.nodes) > 1 else only_alone_ns(graph, target)
