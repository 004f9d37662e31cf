"""Measuring on another machine: an executor over ``dask.distributed`` whose workers carry device names.

Start a scheduler anywhere and, on the machine to measure on, a worker that is tagged with its name::

    dask worker tcp://scheduler:8786 --nthreads 1 --resources "small-board=1"

Then ``Measurer(executor=DeviceExecutor(client, "small-board"))`` measures there. The worker runs each job in a
process of its own, as at home: a model that crashes costs its job, not the worker. Models travel with the job,
so that the machines need no common files.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from explorer.errors import Cancelled, ExplorerError, TargetError, WorkerError
from explorer.runtime.environment import DEVICE_VARIABLE
from explorer.runtime.executor import WorkerExecutor
from explorer.runtime.lane import JobOptions

if TYPE_CHECKING:
    from distributed import Client

P = ParamSpec("P")
T = TypeVar("T")

RETRIES = 1
"""How often a job is given to another worker after its worker was lost."""


@dataclass(frozen=True)
class Cargo:
    """A file argument on its way: what it is called and what belongs to it.

    Attributes:
        name: file name.
        files: file name -> content, side files included; empty if the job is to write it.
    """

    name: str
    files: dict[str, bytes] = field(repr=False)


@dataclass(frozen=True)
class Outcome:
    """What a job gave, and the files it wrote."""

    value: Any
    files: dict[str, bytes] = field(repr=False)


class DeviceExecutor(Executor):
    """Runs jobs on workers that are tagged with a device name, one at a time per worker.

    Args:
        client: connected to a scheduler.
        device: name of a resource that workers of that device have.

    Raises:
        WorkerError: no worker has that tag; names those there are.

    Progress is not carried home. A job whose worker is lost is given to another worker once, then reported.
    The scheduler blames everything that waits at a lost worker, so no more jobs are sent than there are workers:
    the rest waits here.
    """

    def __init__(self, client: Client, device: str) -> None:
        self._client: Any = client  # most of its methods are untyped
        self._device = device
        self._lock = RLock()
        self._waiting: deque[_Parcel] = deque()
        self._sent = 0
        self._workers = self._count_workers()
        self._client.run_on_scheduler(_retry_once)  # type: ignore[no-untyped-call]  # dask has no type here

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Queue a job with the default options."""
        return self.submit_job(JobOptions(), fn, *args, **kwargs)

    def submit_job(
        self, options: JobOptions, fn: Callable[..., T], /, *args: object, **kwargs: object
    ) -> Future[T]:
        """Queue ``fn(*args, **kwargs)``; see ``WorkerExecutor.submit_job`` for how it ends."""
        workers = self._count_workers()
        sent = replace(options, label=options.label or fn.__name__, on_progress=None)
        future: _RemoteFuture[T] = _RemoteFuture()
        packed = tuple(_pack(argument) for argument in args)
        places = {a.name: a for a in args if isinstance(a, Path)}
        with self._lock:
            self._workers = workers
            self._waiting.append(_Parcel(future, (sent, fn, packed, kwargs), places))
        self._send()
        return future

    def _send(self) -> None:
        """Send what waits, as long as a worker is free."""
        with self._lock:
            while self._waiting and self._sent < self._workers:
                parcel = self._waiting.popleft()
                if parcel.future.done():  # cancelled while it waited
                    continue
                try:
                    remote = self._client.submit(
                        perform, self._device, *parcel.arguments, resources={self._device: 1}, pure=False
                    )
                except Exception as error:  # noqa: BLE001 (a client that is closed would leave the job waiting forever)
                    parcel.future.set_exception(_lost(error, parcel.label, self._device))
                    continue
                self._sent += 1
                parcel.future.remote = remote
                remote.add_done_callback(partial(self._came_back, parcel))

    def _came_back(self, parcel: _Parcel, done: Any) -> None:  # noqa: ANN401 (dask's future is untyped)
        _settle(parcel.future, done, parcel.label, self._device, parcel.places)
        with self._lock:
            self._sent -= 1
        self._send()

    def _count_workers(self) -> int:
        """How many workers have the tag."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        tags = Counter(tag for worker in workers for tag in worker.get("resources", {}))
        if not tags[self._device]:
            there = f"workers are tagged {', '.join(sorted(tags))}" if tags else "no worker has a tag"
            raise WorkerError(
                f"No worker is tagged '{self._device}' ({there}); start one with "
                f"`dask worker ADDRESS --nthreads 1 --resources {self._device}=1`."
            )
        return tags[self._device]


class _RemoteFuture(Future[T]):
    """A future that also cancels the remote one, once there is one."""

    def __init__(self) -> None:
        super().__init__()
        self.remote: Any = None

    def cancel(self) -> bool:
        """Forget the job; one that runs is left to its time limit."""
        if self.done():
            return False
        if self.remote is not None:
            self.remote.cancel()
        if not self.done():
            self.set_exception(Cancelled("The job on another machine was cancelled."))
        return True


@dataclass(frozen=True)
class _Parcel:
    """A job on its way: where its result goes, what ``perform`` is called with, and its files at home."""

    future: _RemoteFuture[Any]
    arguments: tuple[JobOptions, Callable[..., Any], tuple[object, ...], dict[str, object]]
    places: dict[str, Path]

    @property
    def label(self) -> str:
        """What the job is called."""
        return self.arguments[0].label


def connect(address: str, timeout_s: float = 10.0) -> Client:
    """A client of a running scheduler.

    Args:
        address: the scheduler's.
        timeout_s: how long to wait for it, in seconds.

    Raises:
        TargetError: dask.distributed is not installed.
        WorkerError: there is no scheduler at that address.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise TargetError(
            "Measuring on other machines needs dask.distributed; install it with "
            "`pip install 'explorer[distributed]'`."
        ) from error
    try:
        client: Client = Client(address, timeout=timeout_s)  # type: ignore[no-untyped-call]  # dask has no type here
    except (OSError, ValueError) as error:
        raise WorkerError(f"There is no scheduler at '{address}': {error}.") from error
    return client


def perform(
    device: str,
    options: JobOptions,
    fn: Callable[..., Any],
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> Outcome:
    """On the worker: unpack the files, run the job in a process of its own, pack what it wrote."""
    os.environ[DEVICE_VARIABLE] = device
    with tempfile.TemporaryDirectory(prefix="explorer-remote-") as name:
        folder = Path(name)
        unpacked = [_unpack(argument, folder) for argument in args]
        present = {path.name for path in folder.iterdir()}
        value = _local_executor().submit_job(options, fn, *unpacked, **kwargs).result()
        written = [path for path in folder.iterdir() if path.is_file() and path.name not in present]
        return Outcome(_packed_path(value, folder), {path.name: path.read_bytes() for path in written})


@cache
def _local_executor() -> WorkerExecutor:
    """One per worker process, so that a device runs one job at a time."""
    return WorkerExecutor()


def _pack(argument: object) -> object:
    if not isinstance(argument, Path):
        return argument
    files = {}
    if argument.exists():
        for path in (argument, *_side_files(argument)):
            files[path.name] = path.read_bytes()
    return Cargo(argument.name, files)


def _side_files(path: Path) -> list[Path]:
    """Files beside a model that hold its weights."""
    import onnx

    model = onnx.load(str(path), load_external_data=False)
    names = {
        entry.value
        for tensor in onnx.external_data_helper._get_all_tensors(model)  # noqa: SLF001 (the only way to bodies)
        for entry in tensor.external_data
        if entry.key == "location"
    }
    return [path.parent / name for name in sorted(names)]


def _unpack(argument: object, folder: Path) -> object:
    if not isinstance(argument, Cargo):
        return argument
    for name, content in argument.files.items():
        (folder / Path(name).name).write_bytes(content)
    return folder / Path(argument.name).name


def _packed_path(value: object, folder: Path) -> object:
    inside = isinstance(value, Path) and value.parent == folder
    return Cargo(value.name, {}) if inside and isinstance(value, Path) else value


def _settle(future: Future[Any], remote: Any, label: str, device: str, places: dict[str, Path]) -> None:  # noqa: ANN401 (dask's future is untyped)
    if future.done():
        return
    try:
        outcome = remote.result()
        _bring_home(outcome.files, places)
        value = outcome.value
        future.set_result(places[value.name] if isinstance(value, Cargo) else value)
    except ExplorerError as error:
        future.set_exception(error)
    except Exception as error:  # noqa: BLE001 (whatever the cluster raises ends the job)
        future.set_exception(_lost(error, label, device))


def _bring_home(files: dict[str, bytes], places: dict[str, Path]) -> None:
    """Write what a job wrote beside the path it was given."""
    for place in list(places.values())[-1:]:
        for name, content in files.items():
            (place.parent / Path(name).name).write_bytes(content)


def _lost(error: Exception, label: str, device: str) -> ExplorerError:
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError

    if isinstance(error, KilledWorker):
        return WorkerError(
            f"{label}: the workers of '{device}' were lost {RETRIES + 1} times during this job, so it was given up; "
            "only this job is lost."
        )
    if isinstance(error, FutureCancelledError):
        return Cancelled(f"Cancelled: {label} on '{device}'.")
    return WorkerError(f"{label}: failed on '{device}' with {type(error).__name__}: {error}")


def _retry_once(dask_scheduler: Any) -> None:  # noqa: ANN401 (runs inside the scheduler)
    dask_scheduler.allowed_failures = RETRIES
