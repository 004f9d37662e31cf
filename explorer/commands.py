"""What each command does and prints: a JSON document with the keys others build on, or a few readable lines."""

from __future__ import annotations

import json
import re
from argparse import Namespace
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from explorer.errors import InputError, RewriteError, RuntimeFailure, WorkerError
from explorer.printing import (
    candidate_row,
    delta_text,
    deltas_text,
    print_result,
    say,
    show_progress,
    tensor_row,
)

if TYPE_CHECKING:
    from explorer.runtime import Measurer
    from explorer.session import Session
    from explorer.session.optimise import OptimiseEvent

BENCHMARKS = {
    "ahead": "explorer.bench.ahead",
    "calibrate": "explorer.bench.calibrate",
    "fusion": "explorer.bench.fusion",
    "greedy": "explorer.bench.greedy",
    "peers": "explorer.bench.peers",
    "portability": "explorer.bench.portability",
    "regions": "explorer.bench.regions",
    "rules": "explorer.bench.rules",
    "view": "explorer.bench.view",
}


def inspect(arguments: Namespace) -> int:
    """``explorer inspect``."""
    from explorer.graph import describe, load, with_dims

    graph = load(arguments.model, fill_weights=arguments.fill_weights)
    summary = describe(with_dims(graph, dict(arguments.dim)) if arguments.dim else graph)
    data = {
        "name": summary.name,
        "nodes": len(summary.nodes),
        "edges": len(summary.edges),
        "ops": summary.ops(),
        "parameters": summary.parameters,
        "flops": summary.flops,
        "known_flops": summary.known_flops,
        "inputs": [tensor_row(t) for t in summary.inputs],
        "outputs": [tensor_row(t) for t in summary.outputs],
        "opset": dict(summary.opset),
        "warnings": list(summary.notices),
    }
    operators = ", ".join(f"{op} {count}" for op, count in summary.ops().items())
    flops = f"{summary.known_flops / 1e9:.3f} GFLOPs" + (
        "" if summary.flops is not None else " known, rest unknown"
    )
    lines = [
        f"{summary.name}: {data['nodes']} nodes, {data['edges']} edges, {summary.parameters:,} parameters, {flops}",
        f"operators: {operators}",
        *(f"input {t.name}: {t.dtype} {t.shape_text}" for t in summary.inputs[:20]),
        *(f"output {t.name}: {t.dtype} {t.shape_text}" for t in summary.outputs[:20]),
        *(f"note: {notice}" for notice in summary.notices),
    ]
    return print_result(arguments, data, lines)


def candidates(arguments: Namespace) -> int:
    """``explorer candidates``."""
    with open_session(arguments) as session:
        if arguments.predict:
            session.predict(show_progress)
        if arguments.measure:
            _measure_all(session, arguments.rule)
        snapshot = session.snapshot()
        rows = [row for row in snapshot.rows if not arguments.rule or row.candidate.rule in arguments.rule]
        _known_rules(arguments.rule)
        found = [r for r in snapshot.rejections if not arguments.rule or r.rule in arguments.rule]
        rejections = [{"rule": r.rule, "nodes": list(r.nodes), "reason": r.reason} for r in found]
        data = {
            "fingerprint": snapshot.fingerprint,
            "target": snapshot.target,
            "candidates": [candidate_row(row) for row in rows],
            "rejections": rejections if arguments.rejections else [],
        }
    lines = [f"{len(rows)} candidates in {snapshot.name}"]
    lines += [f"{row.id}  [{row.numeric_class}]  {row.candidate.summary}  {deltas_text(row)}" for row in rows]
    if arguments.rejections:
        lines += [f"not {r.rule} at {'+'.join(r.nodes)}: {r.reason}" for r in found]
    return print_result(arguments, data, lines)


def measure(arguments: Namespace) -> int:
    """``explorer measure``."""
    from explorer.graph import load
    from explorer.runtime import Mode
    from explorer.session import Session

    mode = Mode.SCREENING if arguments.screening else Mode.VALIDATED
    with Session(
        arguments.a,
        target=arguments.target,
        fill_weights=arguments.fill_weights,
        dims=dict(arguments.dim),
        measurer=remote_measurer(arguments),
    ) as session:
        _refuse_unknown_dims(session)
        if arguments.b is None:
            latency = session.measurer.latency(
                session.graph, session.feeds(), session.target, mode, show_progress
            )
            interval = f"{latency.low_ns / 1e6:.3f} to {latency.high_ns / 1e6:.3f}"
            text = (
                f"{arguments.a}: {latency.ns / 1e6:.3f} ms ({interval}) per run on {latency.target}, {mode}"
            )
            return print_result(arguments, {"a": arguments.a, "b": None, **latency.to_json()}, [text])
        other = load(arguments.b, fill_weights=arguments.fill_weights)
        _same_interface(session, other)
        found = session.measurer.measure(
            session.graph, other, session.feeds(), session.target, mode, show_progress, fresh=True
        )
    data = {**found.to_json(), "a": arguments.a, "b": arguments.b}
    return print_result(
        arguments, data, [f"{arguments.b} against {arguments.a}: {delta_text(found.delta)}", *found.notices]
    )


def apply(arguments: Namespace) -> int:
    """``explorer apply``."""
    with open_session(arguments, opt_in=True) as session:
        nodes_before, reports = len(session.original.nodes), []
        for identifier in arguments.candidate:
            reports.append(session.accept(identifier))
            say(f"accepted {identifier}: {reports[-1].sentence()}")
        measurement = session.measure_total(progress=show_progress) if arguments.measure else None
        exported = session.export(arguments.out)
        data = {
            "steps": [step.to_json() for step in session.steps],
            "initial_ns": measurement.a_ns if measurement else None,
            "final_ns": measurement.b_ns if measurement else None,
            "delta": measurement.delta.to_json() if measurement else None,
            "control": measurement.control.to_json() if measurement and measurement.control else None,
            "verified": exported.report.passed,
            "max_error": exported.report.max_error,
            "check": exported.report.sentence(),
            "out": str(exported.path),
            "target": str(exported.target),
            "session_settings": exported.settings,
            "nodes_before": nodes_before,
            "nodes_after": len(session.graph.nodes),
        }
    text = f"wrote {exported.path}: {data['nodes_after']} nodes (was {nodes_before}); {exported.sentence()}"
    return print_result(arguments, data, [text, *([delta_text(measurement.delta)] if measurement else [])])


def optimize(arguments: Namespace) -> int:
    """``explorer optimize``."""
    from explorer.session import Confirmed

    with open_session(arguments) as session:
        nodes_before, confirmed = len(session.original.nodes), None
        evaluated: list[dict[str, Any]] = []
        for event in session.optimise(
            budget=arguments.budget, cost=arguments.cost, scout=arguments.scout, progress=show_progress
        ):
            _say_event(event, evaluated)
            confirmed = event if isinstance(event, Confirmed) else confirmed
        if confirmed is None:
            raise InputError("the search ended without a final measurement")
        report, measurement = session.check(), confirmed.measurement
        names = ("strategy", "cost", "scout", "budget", "seed")
        settings = {
            name: str(getattr(arguments, name)) for name in names if getattr(arguments, name) is not None
        }
        if arguments.trajectory:
            session.trajectory(**settings).write(arguments.trajectory)
        out = str(session.export(arguments.out).path) if arguments.out else None
        data = {
            "steps": [step.to_json() for step in session.steps],
            "evaluated": evaluated,
            "initial_ns": measurement.a_ns,
            "final_ns": measurement.b_ns,
            "delta": confirmed.delta.to_json(),
            "control": measurement.control.to_json() if measurement.control else None,
            "environment": measurement.environment.to_json(),
            "protocol": measurement.protocol.to_json(),
            "conclusion": confirmed.sentence,
            "verified": report.passed,
            "max_error": report.max_error,
            "check": report.sentence(),
            "settings": {**settings, "target": str(session.target)},
            "out": out,
            "nodes_before": nodes_before,
            "nodes_after": len(session.graph.nodes),
        }
    lines = [
        f"{len(session.steps)} rewrites kept. {confirmed.sentence}",
        f"{delta_text(confirmed.delta)}; {report.sentence()}",
    ]
    return print_result(arguments, data, lines)


def replay(arguments: Namespace) -> int:
    """``explorer replay``."""
    from explorer.graph import load, save
    from explorer.rewrite import all_rules
    from explorer.search import Trajectory
    from explorer.search import replay as walk

    trajectory = Trajectory.read(arguments.trajectory)
    graph = load(arguments.model or trajectory.model, fill_weights=trajectory.fill_weights)
    graphs = walk(trajectory, graph, all_rules())
    last = graphs[-1] if graphs else graph
    out = str(save(last, arguments.out)) if arguments.out else None
    data = {
        "steps": [step.to_json() for step in trajectory.steps],
        "end": last.fingerprint(),
        "out": out,
        "nodes_after": len(last.nodes),
    }
    return print_result(
        arguments, data, [f"{len(graphs)} steps replayed; ends on the same graph ({last.fingerprint()[:8]})"]
    )


def rules_markdown(table: list[dict[str, Any]]) -> list[str]:
    """The rule library as a Markdown table, one row per rule."""
    head = "| entry | rule | class | inverse | offered | pre-conditions | evidence |"
    rows = [
        f"| {r['family']} | `{r['name']}`: {r['title']} | {r['numeric_class']} | {r['inverse'] or '-'} | "
        f"{'yes' if r['default'] else 'opt-in'}{'' if r['portable'] else ', ORT only'} | "
        f"{r['preconditions']} | {r['evidence']} |".replace("\n", " ")
        for r in sorted(
            table, key=lambda r: (r["family"][0], int(re.sub(r"\D", "", r["family"][:3])), r["name"])
        )
    ]
    return [head, "|---|---|---|---|---|---|---|", *rows]


def rules(arguments: Namespace) -> int:
    """``explorer rules``."""
    from explorer.rewrite import all_rules

    keys = (
        "name",
        "family",
        "title",
        "numeric_class",
        "inverse",
        "default",
        "portable",
        "preconditions",
        "evidence",
    )
    table = [{key: getattr(rule, key) for key in keys} for rule in all_rules()]
    lines = [f"{r['family']:4} {r['name']:28} {r['numeric_class']}  {r['title']}" for r in table]
    if arguments.markdown:
        lines = rules_markdown(table)
    return print_result(arguments, {"rules": table}, lines)


def bench(arguments: Namespace) -> int:
    """``explorer bench``."""
    data = import_module(BENCHMARKS[arguments.name]).run()
    return print_result(arguments, data, [json.dumps(data, indent=1)])


def open_session(arguments: Namespace, opt_in: bool = False) -> Session:
    """The session that a command's options describe."""
    from explorer.session import Session

    session = Session(
        arguments.model,
        target=arguments.target,
        fill_weights=arguments.fill_weights,
        dims=dict(arguments.dim),
        opt_in=opt_in or getattr(arguments, "opt_in", False),
        measurer=remote_measurer(arguments),
    )
    try:
        _refuse_unknown_dims(session)
    except InputError:
        session.close()
        raise
    return session


def _refuse_unknown_dims(session: Session) -> None:
    """A misspelt name would leave the dim at a size of our own choice."""
    shapes = [value.shape for value in session.original.inputs if value.shape is not None]
    known = sorted({dim.value for shape in shapes for dim in shape if not isinstance(dim, int) and dim.value})
    for name in session.dims:
        if name not in known:
            there = f"it has {', '.join(known)}" if known else "all their dims are fixed or have no name"
            raise InputError(f"The inputs of '{session.original.name}' have no dim '{name}'; {there}.")


def remote_measurer(arguments: Namespace) -> Measurer | None:
    """A measurer on the device that the options name; None to measure here."""
    if not arguments.device and not arguments.scheduler:
        return None
    if not arguments.device or not arguments.scheduler:
        raise InputError("Measuring on another machine needs both --scheduler ADDRESS and --device NAME.")
    from explorer.runtime import Measurer
    from explorer.runtime.remote import DeviceExecutor, connect

    return Measurer(executor=DeviceExecutor(connect(arguments.scheduler), arguments.device))


def _known_rules(names: Iterable[str] | None) -> None:
    from explorer.rewrite import all_rules

    all_rules().only(names or ())


def _measure_all(session: Session, rules_wanted: list[str] | None) -> None:
    wanted = [c for c in session.candidates() if not rules_wanted or c.rule in rules_wanted]
    for number, candidate in enumerate(wanted, start=1):
        say(f"measuring {number} of {len(wanted)}: {candidate.place}")
        try:
            session.measure(candidate.id, "screening", show_progress)
        except (RewriteError, RuntimeFailure, WorkerError) as failure:
            say(f"not measured: {failure}")


def _same_interface(session: Session, other: Any) -> None:  # noqa: ANN401 (a Graph; imported lazily)
    names = [value.name for value in session.graph.inputs]
    others = [value.name for value in other.inputs]
    if names != others:
        raise InputError(
            f"'{session.graph.name}' and '{other.name}' have different inputs ({', '.join(map(str, names))} and "
            f"{', '.join(map(str, others))}); only models with the same inputs can be compared."
        )


def _say_event(event: OptimiseEvent, evaluated: list[dict[str, Any]]) -> None:
    from explorer.search import Evaluated, Failed, Finished, LeftOut, Scouted, Taken

    if isinstance(event, Evaluated):
        evaluated.append(
            {"rule": event.move.rule, "places": list(event.move.places), "delta": event.delta.to_json()}
        )
        say(f"[{event.spent}/{event.budget}] {event.move.label}: {delta_text(event.delta)}")
    elif isinstance(event, Scouted):
        claim = "" if event.delta is None else f": {delta_text(event.delta)}"
        say(f"looked ahead: {event.sentence}{claim}")
    elif isinstance(event, LeftOut):
        say(f"[{event.spent}/{event.budget}] {event.label}: {delta_text(event.delta)}; {event.fate}")
    elif isinstance(event, Taken):
        say(f"took {event.move.label}; {event.report.sentence()}")
    elif isinstance(event, Failed):
        say(f"left out {event.move.label}: {event.reason}")
    elif isinstance(event, Finished):
        say(f"search ended: {event.reason}")
