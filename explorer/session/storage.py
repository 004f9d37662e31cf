"""Sessions as JSON files: a restarted kernel loses nothing that was accepted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from explorer.errors import InputError
from explorer.graph import Graph, save
from explorer.graph.samples import is_sample
from explorer.records import Record, read_json, write_json
from explorer.rewrite import NumericClass, all_rules, apply_many, find_candidates
from explorer.runtime import Delta, Measurement, Measurer, Protocol, Target
from explorer.runtime.cache import default_cache_folder
from explorer.search import SWITCH, Step, after_switch
from explorer.search.portability import Matrix
from explorer.session.history import Entry, History, Switched
from explorer.session.memory import Memory

if TYPE_CHECKING:
    from explorer.session.session import Session

FORMAT = 1
_written: WeakKeyDictionary[Graph, set[Path]] = WeakKeyDictionary()


def kept_folder() -> Path:
    """Where sessions are kept without being asked: beside the user's measurements; old ones are removed."""
    return default_cache_folder().resolve() / "sessions"


def write_session(session: Session, path: str | Path) -> Path:
    """Write a session; a model that came as bytes is written beside it as ``<name>.onnx``."""
    from explorer.session.fusion_storage import fusion_json

    path = Path(path).expanduser()
    memory, matrix = session.memory(), session.known.matrix
    data = {
        "format": FORMAT,
        "model": _model_reference(session, path),
        "name": session.original.name,
        "fill_weights": session.fill_weights,
        "dims": session.dims,
        "fingerprint": session.original.fingerprint(),
        "target": str(session.target),
        "opt_in": session.opt_in,
        "protocol": session.protocol.to_json(),
        "position": session.history.position,
        "entries": [_entry_json(entry) for entry in session.history.entries[1:]],
        "rejected": sorted(session.rejected),
        "measured": [
            {"base": base, "place": place, "measurement": m.to_json()}
            for (base, place, _), m in memory.candidates.items()
        ],
        "totals": [m.to_json() for m in memory.totals.values()],
        "fusion": fusion_json(session.fusion),
        "matrix": None if matrix is None else matrix.to_json(),
        "predicted": [
            {"base": base, "place": place, "delta": delta.to_json()}
            for (base, place, _), delta in memory.predicted.items()
        ],
        "absorbed": [
            {"base": base, "place": place, "target": target, "absorbed": answer}
            for (base, place, target), answer in memory.absorbed.items()
        ],
    }
    return write_json(path, data)


def read_session(path: str | Path, measurer: Measurer | None) -> Session:
    """Open a saved session.

    Raises:
        InputError: not a session file, or the model is missing or no longer the same.
    """
    from explorer.session.session import Session

    record = Record(read_json(path, "saved session"), "saved session")
    if record.integer("format") != FORMAT:
        raise InputError(f"'{path}' has another format; this version reads sessions of format {FORMAT}.")
    seed = record.optional("fill_weights")
    session = Session(
        _resolve(record.text("model"), Path(path)),
        target=record.text("target"),
        name=record.text("name"),
        fill_weights=None if seed is None else record.integer("fill_weights"),
        dims=_dims(record),
        opt_in=bool(record.optional("opt_in")),
        protocol=Protocol.from_json(record.optional("protocol")),
        measurer=measurer,
    )
    try:
        _recall(session, record, path)
    except BaseException:
        session.close()
        raise
    return session


def _recall(session: Session, record: Record, path: str | Path) -> None:
    expected = record.text("fingerprint")
    if session.original.fingerprint() != expected:
        raise InputError(
            f"'{path}' was saved for another version of '{session.origin}' (fingerprint {expected[:8]}, found "
            f"{session.original.fingerprint()[:8]}); put the original model back."
        )
    history = History.of(session.original)
    for data in record.items("entries"):
        history = history.push(_read_entry(data, history, path))
    position = min(record.integer("position"), len(history.entries) - 1)
    history = History(history.entries, position)
    session.recall(history, set(record.texts("rejected")), _read_memory(record))
    if record.optional("matrix") is not None:
        session.known.matrix = Matrix.from_json(record.optional("matrix"))
    if "fusion" in record:  # not in files of earlier versions
        from explorer.session.fusion_storage import recall_fusion

        recall_fusion(session.fusion, record.optional("fusion"))


def _read_memory(record: Record) -> Memory:
    memory = Memory()
    for data in record.items("measured"):
        item = Record(data, "saved measurement")
        measurement = Measurement.from_json(item.optional("measurement"))
        memory.candidates[item.text("base"), item.text("place"), measurement.target] = measurement
    for data in record.items("totals"):
        measurement = Measurement.from_json(data)
        memory.totals[measurement.b, measurement.delta.target] = measurement
    for data in _newer(record, "predicted"):
        item = Record(data, "saved prediction")
        delta = Delta.from_json(item.optional("delta"))
        memory.predicted[item.text("base"), item.text("place"), delta.target] = delta
    for data in _newer(record, "absorbed"):
        item = Record(data, "saved answer of the runtime")
        key = item.text("base"), item.text("place"), item.text("target")
        memory.absorbed[key] = bool(item.optional("absorbed"))
    return memory


def _newer(record: Record, key: str) -> list[Any]:
    """A list that files written by earlier versions do not have."""
    return record.items(key) if key in record else []


def _model_reference(session: Session, path: Path) -> str:
    """A sample's name or the model's path; a model that came as bytes is written beside the session."""
    source = session.original.source if session.origin else None
    if session.origin and (source is None or is_sample(session.origin)):
        return session.origin
    beside = path.with_suffix(".onnx")
    if source is not None and (
        kept_folder() not in source.resolve().parents or source.resolve() == beside.resolve()
    ):
        return str(source.resolve())
    written = _written.setdefault(session.original, set())
    if beside not in written or not beside.exists():  # a large model is not written again and again
        written.add(save(session.original, beside))
    return str(beside.resolve())


def _resolve(model: str, path: Path) -> str:
    """A model that moved together with its session file is found beside it."""
    beside = path.expanduser().parent / Path(model).name
    return str(beside) if "/" in model and not Path(model).exists() and beside.exists() else model


def _dims(record: Record) -> dict[str, int]:
    found = record.optional("dims")
    if not isinstance(found, dict):
        return {}
    return {name: size for name, size in found.items() if isinstance(size, int) and size >= 0}


def _entry_json(entry: Entry) -> dict[str, Any]:
    switched = entry.switched
    return {
        "summary": entry.summary,
        "numeric_class": entry.numeric_class.value,
        "fingerprint": entry.graph.fingerprint(),
        "steps": [step.to_json() for step in entry.steps],
        "check": entry.checked_earlier if entry.report is None else entry.report.sentence(),
        **({"switched": [str(switched.before), str(switched.after)]} if switched else {}),
    }


def _read_entry(data: object, history: History, path: str | Path) -> Entry:
    record = Record(data, "saved history entry")
    steps = tuple(Step.from_json(step) for step in record.items("steps"))
    graph = _again(history.entries[-1].graph, steps)
    if graph is None or graph.fingerprint() != record.text("fingerprint"):
        raise InputError(
            f"'{path}' holds '{record.text('summary')}', which this version applies differently; "
            "open the original model and accept it again."
        )
    numeric_class = record.member("numeric_class", NumericClass)
    check = record.text("check") if "check" in record else ""  # not in files of earlier versions
    return Entry(graph, steps, record.text("summary"), None, numeric_class, _read_switched(record), check)


def _read_switched(record: Record) -> Switched | None:
    if "switched" not in record:
        return None
    targets = record.texts("switched")
    if len(targets) != 2:
        raise InputError(f"A saved switch needs the target before and the one after, not {len(targets)}.")
    return Switched(*map(Target.parse, targets))


def _again(graph: Graph, steps: Sequence[Step]) -> Graph | None:
    """Apply steps in order, as many at once as the graph offers; None if one is not offered."""
    left = list(steps)
    while left:
        if left[0].rule == SWITCH:
            graph = after_switch(graph, left.pop(0).place)
            continue
        rules = all_rules().only(dict.fromkeys(step.rule for step in left if step.rule != SWITCH))
        offered = {c.place: c for c in find_candidates(graph, rules).candidates}
        wanted = [offered[step.place] for step in takewhile(lambda s: s.place in offered, left)]  # noqa: B023 (used at once)
        graph, applied = apply_many(graph, wanted, all_rules())
        if not applied or len(applied) != len(wanted):
            return None
        del left[: len(applied)]
    return graph
