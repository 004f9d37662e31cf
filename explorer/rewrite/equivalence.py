"""Does a rewritten graph compute what the original computes? Checked on several inputs.

Both graphs run where the runtime's own optimiser is off (it is wrong on some graphs). Errors are relative to
the largest value of each output; NaN in the same place counts as equal, infinities must agree in sign; integers,
booleans and strings must be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from explorer.errors import RuntimeFailure
from explorer.graph import FeedSet, Graph, check_feeds
from explorer.rewrite.rule import NumericClass

Outputs = Mapping[str, Any]
Run = Callable[[Graph, Sequence[dict[str, np.ndarray]]], Sequence[Outputs]]

_QUANTISED = {"QuantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul"}
_QUANTISED_TOLERANCE = 1e-2
_LARGEST_TOLERANCE = 2e-2
_COARSE = {ir.DataType.FLOAT16, ir.DataType.BFLOAT16}
_BFLOAT16_EPSILON = 2.0**-7
_EPSILONS = {
    NumericClass.EXACT: 8,
    NumericClass.REASSOCIATED: 2000,
    NumericClass.DOMAIN: 2000,
    NumericClass.APPROXIMATE: 40000,
}


@dataclass(frozen=True)
class EquivalenceReport:
    """The result of a check.

    Attributes:
        passed: every output agreed on every input.
        worst_tensor: name of the output with the largest error.
        max_error: that error, relative to the output's largest value.
        max_abs_error: the largest absolute error.
        tolerance: what ``max_error`` was compared with.
        inputs: the input sets that ran, in words.
        nonfinite: elements that were NaN or infinite in both, which prove nothing.
        reacts: whether any output changed with the input; if not, agreement proves little.
        problem: one sentence if it did not pass, else empty.
        note: what to say instead of "equal" where it passed by a wider tolerance than its class has.
    """

    passed: bool
    worst_tensor: str
    max_error: float
    max_abs_error: float
    tolerance: float
    inputs: tuple[str, ...]
    nonfinite: int
    reacts: bool
    problem: str
    note: str = ""

    def sentence(self) -> str:
        """The result in words, for the app and the command line."""
        if not self.passed:
            return self.problem
        text = self.note or f"equal on {len(self.inputs)} inputs"
        where = f" in '{self.worst_tensor}'" if self.worst_tensor else ""
        error = f"largest relative error {self.max_error:.1e}{where}"
        text += f" ({error})" if self.max_error else " (no difference at all)"
        if self.nonfinite:
            text += f"; {self.nonfinite} elements were NaN or infinite in both and prove nothing"
        return (
            text if self.reacts else f"{text}; the outputs do not react to the inputs, so this proves little"
        )


@dataclass
class _Worst:
    """Accumulates the largest error over outputs and inputs."""

    tensor: str = ""
    error: float = 0.0
    absolute: float = 0.0
    nonfinite: int = 0
    problem: str = ""


def check_equivalence(
    original: Graph,
    candidate: Graph,
    run: Run,
    numeric_class: NumericClass = NumericClass.REASSOCIATED,
    dims: Mapping[str, int] | None = None,
    *,
    override: bool = True,
    run_candidate: Run | None = None,
    least_tolerance: float = 0.0,
) -> EquivalenceReport:
    """Compare two graphs with the same interface.

    Args:
        original: the reference.
        candidate: the graph in question.
        run: computes outputs by name for each set of inputs; ``Measurer.run`` does.
        numeric_class: the loosest class among the rewrites between the two; sets the tolerance.
        dims: sizes of named dynamic dims.
        override: whether weights that are graph inputs may be replaced; False once they were frozen.
        run_candidate: computes the candidate's outputs, if that is done elsewhere (with an optimiser on trial).
        least_tolerance: accepted even if the class allows less.

    Raises:
        RuntimeFailure: the original itself does not run on any of the inputs.
    """
    sets, expected = _reference(original, run, dims, override)
    tolerance = max(tolerance_for(original, numeric_class, expected), least_tolerance)
    worst = _Worst()
    try:
        got = (run_candidate or run)(candidate, [item.feeds for item in sets])
    except RuntimeFailure as failure:
        worst.problem = f"the rewritten graph does not run: {failure}"
    else:
        for item, before, after in zip(sets, expected, got, strict=True):
            compare_outputs(before, after, tolerance, worst, item.label)
    return EquivalenceReport(
        passed=not worst.problem,
        worst_tensor=worst.tensor,
        max_error=worst.error,
        max_abs_error=worst.absolute,
        tolerance=tolerance,
        inputs=tuple(item.label for item in sets),
        nonfinite=worst.nonfinite,
        reacts=_reacts(expected),
        problem=worst.problem,
    )


def tolerance_for(graph: Graph, numeric_class: NumericClass, outputs: Sequence[Outputs]) -> float:
    """Largest accepted error relative to an output's largest value.

    It follows from the class and the coarsest float type: of the outputs, and unless the class is exact also of
    what is computed on the way.
    """
    arrays = [a for output in outputs for a in map(np.asarray, output.values())]
    types = {a.dtype for a in arrays if a.dtype.kind == "f"}
    if numeric_class is not NumericClass.EXACT:
        types |= {d.numpy() for d in (v.dtype for n in graph.nodes for v in n.outputs) if d in _COARSE}
    epsilon = max((_epsilon(dtype) for dtype in types), default=float(np.finfo(np.float32).eps))
    tolerance = min(_EPSILONS[numeric_class] * epsilon, _LARGEST_TOLERANCE)
    if numeric_class is not NumericClass.EXACT and any(n.op_type in _QUANTISED for n in graph.nodes):
        return max(tolerance, _QUANTISED_TOLERANCE)
    return tolerance


def _epsilon(dtype: np.dtype[Any]) -> float:
    """The distance from 1 to the next number; numpy does not know bfloat16."""
    return float(np.finfo(dtype).eps) if dtype.kind == "f" else _BFLOAT16_EPSILON


def _reference(
    original: Graph, run: Run, dims: Mapping[str, int] | None, override: bool
) -> tuple[list[FeedSet], list[Outputs]]:
    """The input sets on which the original runs, and its outputs; one call if all of them do."""
    sets = list(check_feeds(original, dims=dims, override=override))
    try:
        return sets, list(run(original, [item.feeds for item in sets]))
    except RuntimeFailure as failure:
        first_failure = failure
    kept: list[FeedSet] = []
    outputs: list[Outputs] = []
    for item in sets:
        try:
            outputs += run(original, [item.feeds])
            kept.append(item)
        except RuntimeFailure:
            continue
    if not kept:
        raise first_failure
    return kept, outputs


def compare_outputs(before: Outputs, after: Outputs, tolerance: float, worst: _Worst, label: str) -> None:
    """Compare two sets of outputs by name and note the worst error in ``worst``."""
    for name, expected in before.items():
        _compare(name, _as_array(expected), _as_array(after.get(name)), tolerance, worst, label)


def _as_array(output: Any) -> np.ndarray:  # noqa: ANN401 (a tensor, or a sequence or map of them)
    if isinstance(output, list):
        return np.array([repr(np.asarray(item).tolist()) for item in output], dtype=object)
    return np.asarray(output)


def _compare(name: str, a: np.ndarray, b: np.ndarray, tolerance: float, worst: _Worst, label: str) -> None:
    if a.shape != b.shape or a.dtype != b.dtype:
        found, wanted = f"{b.dtype}{list(b.shape)}", f"{a.dtype}{list(a.shape)}"
        worst.problem = worst.problem or f"output '{name}' is {found} instead of {wanted} ({label})"
        return
    if a.dtype.kind not in "fc":
        _compare_exactly(name, a, b, worst, label)
        return
    finite = np.isfinite(a)
    agree = np.array_equal(np.where(finite, 0, a), np.where(np.isfinite(b), 0, b), equal_nan=True)
    if not agree:
        worst.problem = worst.problem or f"output '{name}' differs in NaN or infinite elements ({label})"
        return
    worst.nonfinite += int(a.size - finite.sum())
    exact_type = np.float64 if a.dtype.kind == "f" else np.complex128
    reference = a[finite].astype(exact_type)
    error = float(np.abs(reference - b[finite].astype(exact_type)).max(initial=0.0))
    relative = error / (float(np.abs(reference).max(initial=0.0)) or 1.0)
    worst.absolute = max(worst.absolute, error)
    if relative >= worst.error:
        worst.error, worst.tensor = relative, name
    if relative > tolerance and not worst.problem:
        worst.problem = f"output '{name}' differs by {relative:.1e} of its largest value, more than {tolerance:.0e} ({label})"


def _compare_exactly(name: str, a: np.ndarray, b: np.ndarray, worst: _Worst, label: str) -> None:
    different = int((a != b).sum())
    if different and not worst.problem:
        worst.problem = f"output '{name}' differs in {different} of {a.size} elements ({label})"
        worst.tensor, worst.error = name, 1.0


def _reacts(outputs: Sequence[Outputs]) -> bool:
    """Whether two different random inputs gave two different results (the first two sets are random)."""
    if len(outputs) < 2:
        return False
    first, second = outputs[0], outputs[1]
    return any(not _same(_as_array(first[name]), _as_array(second.get(name))) for name in first)


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays are equal; NaN equals NaN, so that a graph that gives nothing else does not react."""
    return np.array_equal(a, b, equal_nan=a.dtype.kind in "fc" and b.dtype.kind in "fc")
