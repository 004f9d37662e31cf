"""ONNX Runtime on the CPU."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from explorer.errors import RuntimeFailure
from explorer.runtime.backend import Feeds, as_feeds, model_label
from explorer.runtime.backends.ort_errors import failure, ort_exceptions
from explorer.runtime.backends.ort_log import INFO_SEVERITY, acting, captured_stderr
from explorer.runtime.backends.ort_optimizers import OPTIMIZERS
from explorer.runtime.backends.ort_profile import executed_from
from explorer.runtime.executed import Executed
from explorer.runtime.target import Option, Target, choice, name_set, thread_count

if TYPE_CHECKING:
    import onnxruntime as ort

LEVELS = {
    "disable": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
_FATAL_ONLY = 4
_CONFIG = {
    "session.intra_op.allow_spinning": "0",
    "session.inter_op.allow_spinning": "0",
}
_REGISTERED = 2  # numpy's mark of types that others add, such as bfloat16
_KINDS = {  # numpy's kinds of types that a session accepts for an input
    **{f"tensor({t})": "f" for t in ("float", "double", "float16")},
    **{f"tensor(int{bits})": "i" for bits in (8, 16, 32, 64)},
    **{f"tensor(uint{bits})": "u" for bits in (8, 16, 32, 64)},
    "tensor(bool)": "b",
    "tensor(string)": "OSU",
}
_EXTERNAL_BYTES = "1024"
WARM_RUNS = 2  # as ort_profile leaves out


class OrtBackend:
    """Sessions on the CPU provider, without custom operator libraries and without spinning threads."""

    title = "ONNX Runtime"
    requires = "onnxruntime"
    extra = ""
    saves_optimized = True
    profiles = True
    names_optimizers = True

    @cached_property
    def options(self) -> tuple[Option, ...]:
        """Optimisation level, number of threads, optimisers switched off."""
        return (choice("level", tuple(LEVELS), "all"), thread_count(), name_set("disabled", OPTIMIZERS))

    def versions(self) -> dict[str, str]:
        """The version of onnxruntime."""
        import onnxruntime as ort

        return {"onnxruntime": str(ort.__version__)}

    def settings(self, target: Target) -> dict[str, str]:
        """Everything set on a session, and the defaults that matter for a timing."""
        return {
            "provider": "CPUExecutionProvider",
            "graph_optimization_level": LEVELS[target.level],
            "disabled_optimizers": "+".join(target.disabled),
            "intra_op_num_threads": str(target.threads),
            "inter_op_num_threads": "1",
            "execution_mode": "ORT_SEQUENTIAL",
            "enable_cpu_mem_arena": "1",
            "session.set_denormal_as_zero": "0",
            **_CONFIG,
        }

    def timer_name(self, target: Target) -> str:
        """CPU time of the calling thread if that thread does all the work and the clock is fine."""
        fine = time.get_clock_info("thread_time").resolution < 1e-6
        return "thread_time_ns" if target.threads == 1 and fine else "perf_counter_ns"

    def open(self, path: Path, target: Target) -> OrtSession:
        """Load an ONNX file; raises RuntimeFailure naming the file, the level and the reason."""
        return OrtSession(self._create(path, target, self._session_options(target)), path, target)

    def save_optimized(self, path: Path, target: Target, out_path: Path) -> None:
        """Write the graph ONNX Runtime executes; weights from 1 KB on go to ``<out_path>.data``.

        At level ``all`` it contains operators of com.microsoft.nchwc whose layout is that of this
        machine's CPU: to be looked at and compared, never to be shipped.
        """
        options = self._session_options(target)
        options.optimized_model_filepath = str(out_path)
        prefix = "session.optimized_model_external_initializers"
        options.add_session_config_entry(f"{prefix}_file_name", f"{out_path.name}.data")
        options.add_session_config_entry(f"{prefix}_min_size_in_bytes", _EXTERNAL_BYTES)
        self._create(path, target, options)
        if not out_path.exists():
            raise RuntimeFailure(f"ONNX Runtime did not write the optimised graph of '{model_label(path)}'.")

    def profile(self, path: Path, target: Target, feeds: Feeds, runs: int) -> tuple[Executed, ...]:
        """Time of each executed operator over ``runs`` runs after two warm ones."""
        with tempfile.TemporaryDirectory(dir=path.parent, prefix="profile-") as name:
            folder = Path(name)
            options = self._session_options(target)
            options.enable_profiling = True
            options.profile_file_prefix = str(folder / "runs")
            options.optimized_model_filepath = str(folder / "optimized.onnx")
            prefix = "session.optimized_model_external_initializers"
            options.add_session_config_entry(f"{prefix}_file_name", "optimized.onnx.data")
            options.add_session_config_entry(f"{prefix}_min_size_in_bytes", _EXTERNAL_BYTES)
            session = self._create(path, target, options)
            call = OrtSession(session, path, target).bind(feeds)
            for _ in range(runs + WARM_RUNS):
                call()
            return executed_from(Path(session.end_profiling()), folder / "optimized.onnx")

    def acting_optimizers(self, path: Path, target: Target) -> tuple[str, ...]:
        """Those whose log line says that they modified the graph, in the order in which they ran."""
        options = self._session_options(target)
        options.log_severity_level = INFO_SEVERITY
        with captured_stderr() as log:
            self._create(path, target, options)
        return acting(log.text)

    def _session_options(self, target: Target) -> ort.SessionOptions:
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, LEVELS[target.level])
        options.intra_op_num_threads = target.threads
        options.inter_op_num_threads = 1
        options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
        options.log_severity_level = _FATAL_ONLY
        for key, value in _CONFIG.items():
            options.add_session_config_entry(key, value)
        return options

    def _create(self, path: Path, target: Target, options: ort.SessionOptions) -> ort.InferenceSession:
        import onnxruntime as ort

        try:
            return ort.InferenceSession(
                str(path),
                options,
                providers=["CPUExecutionProvider"],
                disabled_optimizers=list(target.disabled) or None,
            )
        except ort_exceptions() as error:
            raise failure(error, path, target) from error


class OrtSession:
    """One ``InferenceSession``; the last reference to it is dropped by ``close``."""

    def __init__(self, session: ort.InferenceSession, path: Path, target: Target) -> None:
        self._session: ort.InferenceSession | None = session
        self._path = path
        self._target = target
        self._inputs = {i.name: i.type for i in session.get_inputs()}
        self._optional = tuple(i.name for i in session.get_overridable_initializers())
        self.output_names = tuple(str(o.name) for o in session.get_outputs())

    def bind(self, feeds: Feeds) -> Callable[[], Sequence[Any]]:
        """A call that runs the model once on these inputs and returns its outputs."""
        if self._session is None:
            raise RuntimeFailure(f"The session of '{model_label(self._path)}' is closed.")
        missing = [name for name in self._inputs if name not in feeds]
        if missing:
            raise RuntimeFailure(
                f"'{model_label(self._path)}' needs a value for its input '{missing[0]}'; "
                f"given: {', '.join(sorted(feeds)) or 'nothing'}."
            )
        names = (*self._inputs, *self._optional)
        used = as_feeds({name: feeds[name] for name in names if name in feeds})
        self._check_types(used)
        run, expected, outputs = self._session.run, ort_exceptions(), list(self.output_names)

        def call() -> Sequence[Any]:
            try:
                return run(outputs, used)  # type: ignore[no-any-return]  # onnxruntime is untyped
            except expected as error:
                raise failure(error, self._path, self._target, running=True) from error

        return call

    def _check_types(self, feeds: Feeds) -> None:
        """Name the input of a wrong type, which ONNX Runtime's message does not."""
        for name, array in feeds.items():
            expected = self._inputs.get(name, "")
            if array.dtype.isbuiltin == _REGISTERED:
                raise RuntimeFailure(
                    f"'{model_label(self._path)}' takes {array.dtype} for its input '{name}', which the Python "
                    "interface of ONNX Runtime cannot be given; make the input a float, with a Cast after it."
                )
            if array.dtype.kind not in _KINDS.get(expected, array.dtype.kind):
                raise RuntimeFailure(
                    f"'{model_label(self._path)}' expects {expected} for its input '{name}', "
                    f"not {array.dtype}."
                )

    def close(self) -> None:
        """Free the session. Calls bound to it must be dropped too."""
        self._session = None


BACKEND = OrtBackend()
