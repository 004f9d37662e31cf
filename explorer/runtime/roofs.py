"""The two roofs of a target: how fast it computes and how fast it moves data, measured on itself.

A product of square matrices and a copy through ``Abs`` of arrays far larger than the caches, as ONNX models
like any other, so that the roofs hold for this runtime with these options and not for a data sheet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from explorer.runtime.executor import CancelToken
from explorer.runtime.measurement import Latency
from explorer.runtime.protocol import Mode, Protocol
from explorer.runtime.target import Target

if TYPE_CHECKING:
    from explorer.runtime.measurer import Measurer

_SIDE = 512
_ELEMENTS = 1 << 23
_HEADER = '<ir_version: 8, opset_import: ["" : 17]>'
_PRODUCT = f"{_HEADER} product (float[{_SIDE},{_SIDE}] a, float[{_SIDE},{_SIDE}] b) => (float[{_SIDE},{_SIDE}] c) {{ c = MatMul(a, b) }}"
_STREAM = f"{_HEADER} stream (float[{_ELEMENTS}] x) => (float[{_ELEMENTS}] y) {{ y = Abs(x) }}"
_PROTOCOL = Protocol(mode=Mode.SCREENING, rounds=3, samples=5, sample_ns=20_000_000, trim=0)


@dataclass(frozen=True)
class Roofs:
    """What a target reaches at best: in the fastest of three rounds.

    Attributes:
        target: canonical target spec.
        gflops_per_s: of a product of 512 x 512 matrices.
        gbytes_per_s: read and written by an element-wise operator on 32 MB.
    """

    target: str
    gflops_per_s: float
    gbytes_per_s: float

    @property
    def ridge_flops_per_byte(self) -> float:
        """Kernels with more FLOPs per byte are bound by computing, others by moving data."""
        return self.gflops_per_s / self.gbytes_per_s

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**vars(self), "ridge_flops_per_byte": self.ridge_flops_per_byte}


def measure_roofs(measurer: Measurer, target: str | Target, cancel: CancelToken | None = None) -> Roofs:
    """Measure both roofs, in a few seconds; kept in the measurer's cache.

    Raises:
        RuntimeFailure: the target cannot run one of the two models.
        WorkerError: the worker crashed, hung or ran out of memory.
    """
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, _SIDE, _SIDE), dtype=np.float32)
    product = _time(measurer, _PRODUCT, {"a": a, "b": b}, target, cancel)
    stream = _time(measurer, _STREAM, {"x": rng.standard_normal(_ELEMENTS, dtype=np.float32)}, target, cancel)
    return Roofs(str(Target.parse(target)), 2 * _SIDE**3 / product.low_ns, 8 * _ELEMENTS / stream.low_ns)


def _time(
    measurer: Measurer,
    text: str,
    feeds: dict[str, np.ndarray],
    target: str | Target,
    cancel: CancelToken | None,
) -> Latency:
    import onnx.parser

    from explorer.graph import load

    graph = load(onnx.parser.parse_model(text), name="roof")
    return measurer.latency(graph, feeds, target, _PROTOCOL, cancel=cancel)
