"""Apache TVM: relax models compiled for this CPU without tuning, which is slow for large ones."""

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
    import onnx

_OWN_MODE = 1  # kBig of TVM's thread pool: use the number of threads that is given


class TvmBackend:
    """The relax virtual machine on LLVM code for the host, compiled with the default pipeline."""

    title = "Apache TVM"
    requires = "tvm"
    extra = "tvm"
    saves_optimized = False
    profiles = False
    names_optimizers = False

    @cached_property
    def options(self) -> tuple[Option, ...]:
        """The number of threads."""
        return (thread_count(),)

    def versions(self) -> dict[str, str]:
        """The version of tvm."""
        return {"tvm": str(_library().__version__)}

    def settings(self, target: Target) -> dict[str, str]:
        """The compilation target and pipeline."""
        return {"target": "llvm", "pipeline": "default", "tuning": "none", "threads": str(target.threads)}

    def timer_name(self, target: Target) -> str:
        """CPU time of the calling thread, which does all the work if it is the only one."""
        fine = time.get_clock_info("thread_time").resolution < 1e-6
        return "thread_time_ns" if target.threads == 1 and fine else "perf_counter_ns"

    def open(self, path: Path, target: Target) -> TvmSession:
        """Import and compile an ONNX file; raises RuntimeFailure naming the file and the reason."""
        import onnx

        tvm = _library()
        try:
            model = onnx.load(str(path))
        except Exception as error:
            raise _failure("load", path, error) from error
        try:
            machine = _compile(tvm, model, target)
        except Exception as error:  # each of its passes has error types of its own
            raise _failure("compile", path, error) from error
        return TvmSession(machine, model.graph, path, target)

    def save_optimized(self, path: Path, target: Target, out_path: Path) -> None:  # noqa: ARG002 (interface)
        """TVM executes a program that is no ONNX model; raises RuntimeFailure."""
        raise RuntimeFailure(f"Apache TVM cannot write '{model_label(path)}' as it executes it ({target}).")

    def acting_optimizers(self, path: Path, target: Target) -> tuple[str, ...]:
        """Apache TVM does not say; raises RuntimeFailure."""
        raise RuntimeFailure(f"Apache TVM does not say how it optimises '{model_label(path)}' ({target}).")

    def profile(
        self,
        path: Path,
        target: Target,
        feeds: Feeds,  # noqa: ARG002 (interface)
        runs: int,  # noqa: ARG002 (interface)
    ) -> tuple[Executed, ...]:
        """Not offered; raises RuntimeFailure."""
        raise RuntimeFailure(f"Apache TVM gives no time per node of '{model_label(path)}' ({target}).")


class TvmSession:
    """A compiled relax function and what it needs; dropped by ``close``."""

    def __init__(self, machine: Any, graph: onnx.GraphProto, path: Path, target: Target) -> None:  # noqa: ANN401 (tvm is untyped)
        self._machine = machine
        self._path, self._target = path, target
        defaults = {tensor.name for tensor in graph.initializer}
        self._inputs = tuple(v.name for v in graph.input if v.name not in defaults)
        self._shapes = {v.name: _dims(v) for v in graph.input}
        self.output_names = tuple(value.name for value in graph.output)

    def bind(self, feeds: Feeds) -> Callable[[], Sequence[Any]]:
        """A call that runs the model once on these inputs and returns its outputs."""
        if self._machine is None:
            raise RuntimeFailure(f"The session of '{model_label(self._path)}' is closed.")
        missing = [name for name in self._inputs if name not in feeds]
        if missing:
            raise RuntimeFailure(
                f"'{model_label(self._path)}' needs a value for its input '{missing[0]}'; "
                f"given: {', '.join(sorted(feeds)) or 'nothing'}."
            )
        tvm, arrays = _library(), as_feeds({name: feeds[name] for name in self._inputs})
        self._check_shapes(arrays)
        try:
            arguments = [tvm.runtime.tensor(array) for array in arrays.values()]
        except (TypeError, ValueError, RuntimeError) as error:
            raise _failure("run", self._path, error) from error
        tvm.get_global_func("runtime.config_threadpool")(_OWN_MODE, self._target.threads)
        main = self._machine["main"]

        def call() -> Sequence[Any]:
            try:
                result = main(*arguments)
            except Exception as error:
                raise _failure("run", self._path, error) from error
            return _arrays(result)

        return call

    def _check_shapes(self, arrays: Feeds) -> None:
        """The compiled code trusts its inputs, so that a wrong shape is refused before it runs."""
        for name, array in arrays.items():
            wanted = self._shapes[name]
            fits = len(wanted) == array.ndim and all(
                w in {0, d} for w, d in zip(wanted, array.shape, strict=True)
            )
            if not fits:
                raise RuntimeFailure(
                    f"'{model_label(self._path)}' expects shape {list(wanted)} for its input '{name}', "
                    f"not {list(array.shape)}."
                )

    def close(self) -> None:
        """Free the program. Calls bound to it must be dropped too."""
        self._machine = None


def _library() -> Any:  # noqa: ANN401 (a module)
    try:
        import tvm
    except ImportError as error:
        raise missing_runtime(BACKEND) from error
    return tvm


def _compile(tvm: Any, model: onnx.ModelProto, target: Target) -> Any:  # noqa: ANN401 (tvm is untyped)
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    module = from_onnx(model, keep_params_in_input=False)
    cpu = tvm.target.Target({"kind": "llvm", "num-cores": target.threads})
    return relax.VirtualMachine(tvm.compile(module, target=cpu), tvm.cpu())


def _dims(value: onnx.ValueInfoProto) -> tuple[int, ...]:
    """Sizes of an input, 0 where a dimension is dynamic."""
    return tuple(int(dim.dim_value) for dim in value.type.tensor_type.shape.dim)


def _arrays(result: Any) -> list[np.ndarray]:  # noqa: ANN401 (tvm is untyped)
    """Outputs as numpy arrays: one tensor, or a container of them."""
    if hasattr(result, "numpy"):
        return [result.numpy()]
    return [np.asarray(one.numpy()) for one in result]


def _failure(verb: str, path: Path, error: Exception) -> RuntimeFailure | MemoryError:
    if isinstance(error, MemoryError):
        return error
    text = in_one_line(str(error) or type(error).__name__)
    return RuntimeFailure(f"Apache TVM could not {verb} '{model_label(path)}': {text.rstrip('. ')}.")


BACKEND = TvmBackend()
