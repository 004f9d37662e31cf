"""What a runtime's own profiler says: one entry per operator that it really executed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Executed:
    """An operator as the runtime executed it.

    Attributes:
        name: the runtime's name for it, unique in the model.
        op_type: the runtime's operator, such as "Conv" or "Convolution (jit_avx2_FP32)".
        mentions: texts that name nodes or values of the model (own name, outputs, original layers).
        durations_ns: one entry per run, in the order of the runs.
    """

    name: str
    op_type: str
    mentions: tuple[str, ...]
    durations_ns: list[int]
