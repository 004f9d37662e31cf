"""OpenVINO on the CPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from explorer.errors import RuntimeFailure
from explorer.runtime.backend import Feeds, as_feeds, in_one_line, missing_runtime, model_label
from explorer.runtime.executed import Executed
from explorer.runtime.target import Option, Target, thread_count

if TYPE_CHECKING:
    import openvino as ov

_CONFIG = {
    "NUM_STREAMS": "1",
    "PERFORMANCE_HINT": "LATENCY",
    "INFERENCE_PRECISION_HINT": "f32",
    "EXECUTION_MODE_HINT": "PERFORMANCE",
    "CPU_DENORMALS_OPTIMIZATION": "NO",
    "ENABLE_CPU_PINNING": "NO",
}
_ORIGINAL_NAMES = "originalLayersNames"
_KINDS = {"f": "f", "i": "i", "u": "u", "boolean": "b", "string": "OSU"}


class OpenVinoBackend:
    """Compiled models on the CPU plugin in 32-bit floats, one stream, without pinned threads."""

    title = "OpenVINO"
    requires = "openvino"
    extra = "openvino"
    saves_optimized = False
    profiles = True
    names_optimizers = False

    @cached_property
    def options(self) -> tuple[Option, ...]:
        """The number of threads."""
        return (thread_count(),)

    def versions(self) -> dict[str, str]:
        """The version of openvino."""
        return {"openvino": str(_library().__version__)}

    def settings(self, target: Target) -> dict[str, str]:
        """Everything set on a compiled model."""
        return {"device": "CPU", "INFERENCE_NUM_THREADS": str(target.threads), **_CONFIG}

    def timer_name(self, target: Target) -> str:
        """CPU time of the calling thread, which does all the work if it is the only one."""
        fine = time.get_clock_info("thread_time").resolution < 1e-6
        return "thread_time_ns" if target.threads == 1 and fine else "perf_counter_ns"

    def open(self, path: Path, target: Target) -> OpenVinoSession:
        """Compile an ONNX file; raises RuntimeFailure naming the file and the reason."""
        return OpenVinoSession(self._compile(path, target), path)

    def save_optimized(self, path: Path, target: Target, out_path: Path) -> None:  # noqa: ARG002 (interface)
        """OpenVINO executes a graph that is no ONNX model; raises RuntimeFailure."""
        raise RuntimeFailure(f"OpenVINO cannot write '{model_label(path)}' as it executes it ({target}).")

    def acting_optimizers(self, path: Path, target: Target) -> tuple[str, ...]:
        """OpenVINO does not say; raises RuntimeFailure."""
        raise RuntimeFailure(f"OpenVINO does not say how it optimises '{model_label(path)}' ({target}).")

    def profile(self, path: Path, target: Target, feeds: Feeds, runs: int) -> tuple[Executed, ...]:
        """Time of each executed operator over ``runs`` runs after two warm ones."""
        session = OpenVinoSession(self._compile(path, target, PERF_COUNT="YES"), path)
        try:
            return session.profile(feeds, runs)
        finally:
            session.close()

    def _compile(self, path: Path, target: Target, **extra: str) -> ov.CompiledModel:
        library = _library()
        config = {**_CONFIG, "INFERENCE_NUM_THREADS": str(target.threads), **extra}
        try:
            core = library.Core()
            return core.compile_model(core.read_model(str(path)), "CPU", config)
        except RuntimeError as error:
            raise _failure("load", path, error) from error


class OpenVinoSession:
    """One compiled model and its infer request; both are dropped by ``close``."""

    def __init__(self, compiled: ov.CompiledModel, path: Path) -> None:
        self._compiled: ov.CompiledModel | None = compiled
        self._path = path
        self._inputs = {_tensor_name(port): port for port in compiled.inputs}
        self.output_names = tuple(_tensor_name(port) for port in compiled.outputs)

    def bind(self, feeds: Feeds) -> Callable[[], Sequence[Any]]:
        """A call that runs the model once on these inputs and returns its outputs."""
        request = self._request(feeds)

        def call() -> Sequence[Any]:
            try:
                request.infer()
            except RuntimeError as error:
                raise _failure("run", self._path, error) from error
            return [np.array(tensor.data) for tensor in request.output_tensors]  # its memory is used again

        return call

    def profile(self, feeds: Feeds, runs: int) -> tuple[Executed, ...]:
        """Run with performance counters on; one entry per executed operator."""
        if self._compiled is None:
            raise RuntimeFailure(f"The session of '{model_label(self._path)}' is closed.")
        request = self._request(feeds)
        names = _original_names(self._compiled)
        found: dict[str, Executed] = {}
        for run in range(runs + 2):
            request.infer()
            for info in request.get_profiling_info() if run >= 2 else ():
                duration_ns = round(info.real_time.total_seconds() * 1e9)
                if duration_ns or info.node_name in found:
                    one = found.setdefault(info.node_name, _executed(info, names))
                    one.durations_ns.append(duration_ns)
        return tuple(found.values())

    def _request(self, feeds: Feeds) -> ov.InferRequest:
        if self._compiled is None:
            raise RuntimeFailure(f"The session of '{model_label(self._path)}' is closed.")
        missing = [name for name in self._inputs if name not in feeds]
        if missing:
            raise RuntimeFailure(
                f"'{model_label(self._path)}' needs a value for its input '{missing[0]}'; "
                f"given: {', '.join(sorted(feeds)) or 'nothing'}."
            )
        request, library = self._compiled.create_infer_request(), _library()
        for name, array in as_feeds({name: feeds[name] for name in self._inputs}).items():
            port = self._inputs[name]
            self._check_type(name, port.get_element_type().get_type_name(), array.dtype.kind)
            try:
                is_text = array.dtype.kind in "OSU"
                tensor = library.Tensor(array.astype(str) if is_text else array, shared_memory=False)
                request.set_tensor(port, tensor)
            except (RuntimeError, TypeError, ValueError) as error:
                raise _failure("run", self._path, error) from error
        return request

    def _check_type(self, name: str, expected: str, kind: str) -> None:
        allowed = _KINDS.get(expected, _KINDS.get(expected[:1], kind))
        if kind not in allowed and not expected.startswith("bf"):
            raise RuntimeFailure(
                f"'{model_label(self._path)}' expects {expected} for its input '{name}', "
                f"not numpy's kind '{kind}'."
            )

    def close(self) -> None:
        """Free the model. Calls bound to it must be dropped too."""
        self._compiled = None
        self._inputs = {}


def _library() -> Any:  # noqa: ANN401 (a module)
    try:
        import openvino
    except ImportError as error:
        raise missing_runtime(BACKEND) from error
    return openvino


def _tensor_name(port: ov.Output) -> str:
    """The tensor's name in the ONNX file; OpenVINO may know it by several."""
    return str(port.get_any_name())


def _original_names(compiled: ov.CompiledModel) -> dict[str, tuple[str, ...]]:
    """Executed operator -> names of the ONNX nodes it stands for."""
    names = {}
    for node in compiled.get_runtime_model().get_ops():
        info = node.get_rt_info()
        listed = str(info[_ORIGINAL_NAMES].value) if _ORIGINAL_NAMES in info else ""
        names[node.get_friendly_name()] = tuple(part for part in listed.split(",") if part)
    return names


def _executed(info: ov.ProfilingInfo, names: dict[str, tuple[str, ...]]) -> Executed:
    mentions = (info.node_name, *names.get(info.node_name, ()))
    return Executed(info.node_name, f"{info.node_type} ({info.exec_type})", mentions, [])


def _failure(verb: str, path: Path, error: Exception) -> RuntimeFailure | MemoryError:
    text = in_one_line(str(error))
    if "bad_alloc" in text or "bad alloc" in text:
        return MemoryError(f"running '{model_label(path)}': {text}")
    return RuntimeFailure(f"OpenVINO could not {verb} '{model_label(path)}': {text.rstrip('. ')}.")


BACKEND = OpenVinoBackend()
