"""Other projects' optimisers beside ours, side by side in one run: sizes, correctness and time.

Every tool gets the same file in a process of its own with a time limit. Its result is loaded by us, compared
numerically with the original (runtime optimiser off), and timed against the original at two levels. "simplify" is
ours without measuring: everything exact or re-associated that makes the graph smaller, to the end. Run it as
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
OURS = ("explorer exact", "explorer exact, re-associated")


def run(models: tuple[str, ...] = MODELS, mode: Mode = Mode.SCREENING) -> dict[str, Any]:
    """Compare; returns per model and tool: nodes, equality, and delta per target."""
    with Measurer() as measurer:
        table = {name: _model(load(name), measurer, mode) for name in models}
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
            for tool, result in _results(graph).items():
                problem = _problem(graph, result, measurer)
                if problem:
                    wrong[tool][path.stem] = problem
    return wrong


def _model(graph: Graph, measurer: Measurer, mode: Mode) -> dict[str, Any]:
    sys.stderr.write(f"{graph.name} ...\n")
    rows: dict[str, Any] = {"original": {"nodes": _size(graph)}}
    for tool, result in _results(graph).items():
        if isinstance(result, str):
            rows[tool] = {"failed": result}
            continue
        problem = _problem(graph, result, measurer)
        rows[tool] = {"nodes": _size(result), "equal": not problem, "problem": problem}
        if not problem:
            rows[tool]["deltas"] = _deltas(graph, result, measurer, mode)
    return rows


def _deltas(graph: Graph, result: Graph, measurer: Measurer, mode: Mode) -> dict[str, Any]:
    feeds = make_feeds(graph)
    return {t: measurer.measure(graph, result, feeds, t, mode).delta.to_json() for t in TARGETS}


def _results(graph: Graph) -> dict[str, Graph | str]:
    """The graph after each tool, or why there is none."""
    results: dict[str, Graph | str] = {}
    with tempfile.TemporaryDirectory(prefix="explorer-peers-") as folder:
        source = save(graph, Path(folder) / "original.onnx")
        for tool in TOOLS:
            results[tool] = _peer(tool, source, Path(folder) / f"{tool}.onnx")
        results |= _ours(graph)
        for result in results.values():
            if isinstance(result, Graph):
                result.fingerprint()  # reads the weights while their files exist
    return results


def _ours(graph: Graph) -> dict[str, Graph]:
    """Everything accepted unmeasured that makes the graph smaller, by what it does to the numbers."""
    exact = RuleSet(r for r in default_rules() if r.numeric_class is NumericClass.EXACT)
    done = {name: simplify(graph, rules) for name, rules in zip(OURS, (exact, default_rules()), strict=True)}
    return {name: graph if applied is None else applied.graph for name, applied in done.items()}


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
