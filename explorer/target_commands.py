"""Commands about targets: profiles, the runtime's view, portability, calibration, exchange."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from explorer.commands import open_session, remote_measurer
from explorer.errors import InputError
from explorer.printing import delta_text, print_result, say, show_progress

if TYPE_CHECKING:
    from explorer.runtime import Progress
    from explorer.runtime.profile import Kernel
    from explorer.search.portability import Cell, Matrix


def profile(arguments: Namespace) -> int:
    """``explorer profile``."""
    with open_session(arguments) as session:
        found = session.profile()
        roofs = session.roofs() if arguments.roofs else None
    data = {**found.to_json(), "roofs": None if roofs is None else roofs.to_json()}
    lines = [
        f"{arguments.model}: {found.total_ns / 1e6:.3f} ms in {len(found.kernels)} kernels on {found.target}"
    ]
    lines += [_kernel_line(kernel) for kernel in found.top(arguments.top)]
    if roofs is not None:
        lines.append(f"the target reaches {roofs.gflops_per_s:.1f} GFLOP/s and {roofs.gbytes_per_s:.1f} GB/s")
    return print_result(arguments, data, [*lines, found.protocol])


def runtime_view(arguments: Namespace) -> int:
    """``explorer runtime-view``."""
    with open_session(arguments) as session:
        view = session.runtime_view()
        absorbed = session.absorb(show_progress) if arguments.absorbed else None
    data = {**view.to_json(), "absorbed": absorbed}
    operators = ", ".join(f"{op} {count}" for op, count in view.summary.ops().items())
    lines = [f"{arguments.model} on {view.target}: {len(view.nodes)} nodes; {operators}"]
    lines += [f"{node.op_type} does the work of {', '.join(node.nodes)}" for node in view.fused]
    lines += [f"nothing executes {identifier}" for identifier in view.vanished]
    lines += [f"not fused ({u.optimiser}): {' and '.join(u.nodes)}: {u.reason}" for u in view.unfused]
    for place, found in (absorbed or {}).items():
        lines.append(f"{place}: {'the runtime does this already' if found else 'changes what it executes'}")
    return print_result(arguments, data, lines)


def portability(arguments: Namespace) -> int:
    """``explorer portability``; an interrupted run goes on where it was, because results are cached."""
    from explorer.runtime import Measurer, Mode, Target
    from explorer.session.portability import Plan, write_matrix
    from explorer.session.portability import portability as matrix_of

    report = _report_path(arguments.report)
    targets = tuple(Target.parse(spec) for spec in arguments.targets)
    sums = targets[:1] if arguments.sums is None else tuple(Target.parse(spec) for spec in arguments.sums)
    plan = Plan(
        models=tuple(arguments.models),
        targets=targets,
        budget=arguments.budget,
        sums=sums,
        on=tuple(Target.parse(spec) for spec in arguments.columns),
        protocol=Mode.SCREENING if arguments.screening else Mode.VALIDATED,
        fill_weights=arguments.fill_weights,
        opt_in=arguments.opt_in,
        sum_budget=arguments.sum_budget,
    )
    with remote_measurer(arguments) or Measurer() as measurer:
        matrix = matrix_of(plan, measurer, _say_progress)
    lines = [f"{c.model}: {c.row} -> {c.column}: {delta_text(c.delta) or c.failure}" for c in matrix.cells]
    lines.append(matrix.sentence())
    lines += [_slower(matrix, cell) for cell in matrix.slower()]
    if report is not None:
        say(f"wrote {write_matrix(matrix, report)}")
    return print_result(arguments, matrix.to_json(), lines)


def _slower(matrix: Matrix, cell: Cell) -> str:
    claimed = matrix.claim(cell.model, cell.row)
    claim = "" if claimed is None else f" (the row's own cost claims {100 * (claimed - 1):+.1f} %)"
    return f"slower than unoptimised: {cell.model}, {cell.row} -> {cell.column}{claim}"


def _report_path(text: str | None) -> Path | None:
    """Where to write a report; refused before hours of measuring, not after."""
    if text is not None and Path(text).suffix.lower() not in {".html", ".htm"}:
        raise InputError(f"--report writes a page: give a name that ends in .html, not '{text}'.")
    return None if text is None else Path(text)


def calibrate(arguments: Namespace) -> int:
    """``explorer calibrate``."""
    from explorer.bench.calibrate import QUICK_MODELS, Plan, summarise
    from explorer.bench.calibrate import calibrate as measure_pairs
    from explorer.runtime import Measurer, Protocol, Target

    target = Target.parse(arguments.target)
    plan = Plan(
        target,
        models=tuple(arguments.models or QUICK_MODELS),
        pairs=arguments.pairs,
        planted=arguments.planted,
        protocol=Protocol.of(arguments.mode).for_threads(target.threads),
    )
    record = Path(arguments.record) if arguments.record else None
    with remote_measurer(arguments) or Measurer() as measurer:
        data = summarise(measure_pairs(plan, measurer, record, _say_progress), plan)
    lines = [
        f"{data['claims']} of {data['pairs']} A/A pairs were called different: {_share(data['false_claims'])}"
    ]
    lines += [
        f"planted {100 * p['effect']:.0f} %: found {_share(p['found'])} of {p['pairs']} pairs, "
        f"{p['wrong_sign']} with the wrong sign"
        for p in data["power"]
    ]
    return print_result(arguments, data, [*lines, f"{data['protocol']} on {data['target']}"])


def exchange(arguments: Namespace) -> int:
    """``explorer exchange``: the results of this machine's cache as a file, or those of another one."""
    from explorer.runtime.cache import ResultCache
    from explorer.runtime.exchange import export_cache, import_cache

    if arguments.direction == "export":
        count, verb = export_cache(ResultCache(), arguments.file), "written to"
    else:
        count, verb = import_cache(arguments.file, ResultCache()), "read from"
    data = {"direction": arguments.direction, "file": arguments.file, "results": count}
    return print_result(arguments, data, [f"{count} results {verb} {arguments.file}"])


def _share(found: dict[str, float] | None) -> str:
    if found is None:
        return "no pairs"
    return f"{100 * found['share']:.1f} % ({100 * found['low']:.1f} to {100 * found['high']:.1f})"


def _say_progress(progress: Progress) -> None:
    """Events go to stderr as lines, progress of a single measurement only to a terminal."""
    if ": " in progress.text:
        say(f"[{progress.done}/{progress.total}] {progress.text}")
    else:
        show_progress(progress)


def _kernel_line(kernel: Kernel) -> str:
    rates = []
    if kernel.gflops_per_s is not None:
        rates.append(f"{kernel.gflops_per_s:.1f} GFLOP/s")
    if kernel.gbytes_per_s is not None:
        rates.append(f"{kernel.gbytes_per_s:.1f} GB/s")
    interval = f"{kernel.low_ns / 1e3:.0f} to {kernel.high_ns / 1e3:.0f}"
    nodes = "+".join(kernel.nodes) or kernel.note
    return f"{100 * kernel.share:5.1f} %  {kernel.ns / 1e3:8.0f} us ({interval})  {kernel.op_type}  {nodes}  {', '.join(rates)}"
