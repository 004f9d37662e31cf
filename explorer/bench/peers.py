"""Other projects' optimisers beside ours, side by side in one run: sizes, correctness and time.

Every tool gets the same file in a process of its own with a time limit. Its result is loaded by us, compared
numerically with the original (runtime optimiser off), and timed against the original at two levels. Ours comes in
three forms: everything exact accepted without measuring, everything exact or re-associated, and greedy search on
measured cost at the first target. ONNX Runtime's own levels are timed against its best one. Run it as
``explorer bench peers``; it takes minutes per model.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from explorer.bench.peer_child import TOOLS
from explorer.errors import ExplorerError
from explorer.graph import Graph, load, make_feeds, save
from explorer.rewrite import NumericClass, RuleSet, check_equivalence, default_rules
from explorer.runtime import Measurer, Mode
from explorer.search.simplify import simplify
from explorer.session import Session

MODELS = (
    "squeezenet1_1",
    "resnet18",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "shufflenet_v2_x1_0",
    "llama_small",
)
TARGETS = ("ort:level=all,threads=1", "ort:level=disable,threads=1")
TIME_LIMIT_S = 120.0
BUDGET = 8  # timed comparisons of the measured search
OURS = ("explorer exact", "explorer exact, re-associated")


def run(models: tuple[str, ...] = MODELS, mode: Mode = Mode.SCREENING) -> dict[str, Any]:
    """Compare; returns per model and tool: nodes, equality, and delta per target."""
    with Measurer() as measurer:
        table = {name: compare(load(name), measurer, mode) for name in models}
    note = "deltas against the original on the same target; screening unless a validated run is asked for"
    return {"models": table, "targets": list(TARGETS), "note": note}


def check_cases(folder: Path) -> dict[str, dict[str, str]]:
    """Which tools keep the outputs of the trap models in a folder: tool -> case -> what went wrong."""
    wrong: dict[str, dict[str, str]] = {tool: {} for tool in (*TOOLS, *OURS)}
    with Measurer() as measurer:
        for path in sorted(folder.glob("*.onnx")):
            try:
                graph = load(path)
                measurer.run(graph, [make_feeds(graph)])
            except ExplorerError:
                continue  # not runnable before, so nothing can be compared
            for tool, result in {**_peers(graph, tuple(TOOLS)), **_unmeasured(graph)}.items():
                problem = _problem(graph, result, measurer)
                if problem:
                    wrong[tool][path.stem] = problem
    return wrong


def compare(
    graph: Graph, measurer: Measurer, mode: Mode = Mode.SCREENING, tools: tuple[str, ...] = tuple(TOOLS)
) -> dict[str, Any]:
    """One model: per tool the nodes, whether the outputs are equal, and the delta per target.

    Args:
        graph: the model.
        measurer: what checks and times.
        mode: how it times.
        tools: which of the peers.
    """
    sys.stderr.write(f"{graph.name} ...\n")
    rows: dict[str, Any] = {"original": {"nodes": _size(graph)}, **_levels(graph, measurer, mode)}
    for tool, result in {**_peers(graph, tools), **_unmeasured(graph), **_measured(graph, measurer)}.items():
        if isinstance(result, str):
            rows[tool] = {"failed": result}
            continue
        problem = _problem(graph, result, measurer)
        rows[tool] = {"nodes": _size(result), "equal": not problem, "problem": problem}
        if not problem:
            rows[tool]["deltas"] = _deltas(graph, result, measurer, mode)
    return rows


def _levels(graph: Graph, measurer: Measurer, mode: Mode) -> dict[str, Any]:
    """The runtime's lower levels against its best one."""
    feeds, best = make_feeds(graph), TARGETS[0]
    targets = {
        level: best.replace("level=all", f"level={level}") for level in ("extended", "basic", "disable")
    }
    return {
        f"onnxruntime at {level}": {
            "nodes": _size(graph),
            "equal": True,
            "deltas": {
                best: measurer.measure(graph, graph, feeds, best, mode, b_target=other).delta.to_json()
            },
        }
        for level, other in targets.items()
    }


def _deltas(graph: Graph, result: Graph, measurer: Measurer, mode: Mode) -> dict[str, Any]:
    feeds = make_feeds(graph)
    return {t: measurer.measure(graph, result, feeds, t, mode).delta.to_json() for t in TARGETS}


def _peers(graph: Graph, tools: tuple[str, ...]) -> dict[str, Graph | str]:
    """The graph after each tool, or why there is none."""
    with tempfile.TemporaryDirectory(prefix="explorer-peers-") as folder:
        source = save(graph, Path(folder) / "original.onnx")
        results = {tool: _peer(tool, source, Path(folder) / f"{tool}.onnx") for tool in tools}
        for result in results.values():
            if isinstance(result, Graph):
                result.fingerprint()  # reads the weights while their files exist
    return results


def _unmeasured(graph: Graph) -> dict[str, Graph]:
    """Everything accepted unmeasured that makes the graph smaller, by what it does to the numbers."""
    exact = RuleSet(r for r in default_rules() if r.numeric_class is NumericClass.EXACT)
    done = {name: simplify(graph, rules) for name, rules in zip(OURS, (exact, default_rules()), strict=True)}
    return {name: graph if applied is None else applied.graph for name, applied in done.items()}


def _measured(graph: Graph, measurer: Measurer) -> dict[str, Graph]:
    """Greedy search on measured cost at the first target."""
    with Session(graph, target=TARGETS[0], measurer=measurer) as session:
        for _event in session.optimise(budget=BUDGET):
            pass
        return {"explorer measured": session.graph}


def _peer(tool: str, source: Path, target: Path) -> Graph | str:
    command = [sys.executable, "-m", "explorer.bench.peer_child", tool, str(source), str(target)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"took longer than {TIME_LIMIT_S:.0f} s"
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        return lines[-1][:300] if lines else f"ended with code {done.returncode}"
    try:
        return load(target.read_bytes(), name=tool)
    except ExplorerError as error:
        return str(error)


def _problem(graph: Graph, result: Graph | str, measurer: Measurer) -> str:
    if isinstance(result, str):
        return result
    names = [[v.name for v in side] for g in (graph, result) for side in (g.inputs, g.outputs)]
    if names[0] != names[2] or names[1] != names[3]:
        return "inputs or outputs have changed"
    try:
        report = check_equivalence(graph, result, measurer.run, NumericClass.REASSOCIATED)
    except ExplorerError as error:
        return str(error)
    return "" if report.passed else report.sentence()


def _size(graph: Graph) -> int:
    return sum(node.op_type != "Constant" for node in graph.nodes)
