"""How long it takes to find every rewrite, in full and after one rewrite, beside onnxscript's rewriter.

Both enumerate on the same graphs in the same process, alternating, so that the ratio survives a noisy machine. Ours
asks every rule of the library at every node and explains near misses; onnxscript's matches its default rules at
every node and is not asked to rewrite. Run it as ``explorer bench rules``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from statistics import median
from typing import Any

from explorer.errors import InputError, RewriteError
from explorer.graph import Graph, load
from explorer.graph.synthetic import chain
from explorer.rewrite import RuleSet, all_rules, apply, rescan, scan

MODELS = ("squeezenet1_1", "resnet152", "bert_base", "gpt2", "chain_1000", "chain_5000")
REPEATS = 3
_STEPS = 6


def run() -> dict[str, Any]:
    """Measure; returns per model: times in ns, candidates, and our time per rule over theirs."""
    rules, peer = all_rules(), _onnxscript_rules()
    table = {}
    for name in MODELS:
        sys.stderr.write(f"{name} ...\n")
        table[name] = _one(_graph(name), rules, peer)
    growth = table["chain_5000"]["full_ns"] / table["chain_1000"]["full_ns"]
    return {
        "rules": len(rules),
        "onnxscript_rules": len(peer) if peer is not None else None,
        "models": table,
        "growth_ratio_5000_to_1000_nodes": growth,
        "note": "medians of alternating repetitions in one process; ratios, not times, carry over to other machines",
    }


def _one(graph: Graph, rules: RuleSet, peer: list[Any] | None) -> dict[str, Any]:
    graph.fingerprint()
    ours, theirs = [], []
    for _ in range(REPEATS):
        ours.append(_time(lambda: scan(graph, rules)))
        if peer is not None:
            theirs.append(_time(lambda: _match_all(graph, peer)))
    per_rule = median(ours) / len(rules)
    peer_per_rule = median(theirs) / len(peer) if peer else None
    return {
        "nodes": len(graph.nodes),
        "candidates": len(scan(graph, rules).enumeration().candidates),
        "full_ns": median(ours),
        "incremental_ns": _incremental(graph, rules),
        "onnxscript_ns": median(theirs) if theirs else None,
        "onnxscript_to_ours_per_rule_ratio": peer_per_rule / per_rule if peer_per_rule else None,
    }


def _incremental(graph: Graph, rules: RuleSet) -> float | None:
    """Median time to enumerate again after one rewrite, over sites spread through the graph."""
    known = scan(graph, rules)
    found = known.enumeration().candidates
    times = []
    for candidate in found[:: max(1, len(found) // _STEPS)][:_STEPS]:
        try:
            result = apply(graph, candidate, rules)
        except RewriteError:
            continue
        result.fingerprint()
        times.append(_time(partial(rescan, known, result, rules)))
    return median(times) if times else None


def _time(function: Callable[[], object]) -> float:
    begin = time.perf_counter_ns()
    function()
    return float(time.perf_counter_ns() - begin)


def _graph(name: str) -> Graph:
    if name.startswith("chain_"):
        return load(chain(int(name.removeprefix("chain_"))), name=name)
    return load(name)


def _onnxscript_rules() -> list[Any] | None:
    try:
        return list(import_module("onnxscript.rewriter")._DEFAULT_REWRITE_RULES)  # noqa: SLF001 (no public name)
    except ImportError:
        sys.stderr.write("onnxscript is not installed: pip install onnxscript to compare with it\n")
        return None
    except AttributeError as error:
        raise InputError(f"this version of onnxscript has no default rules: {error}") from error


def _match_all(graph: Graph, peer: list[Any]) -> int:
    """How many of onnxscript's rules match, at every node."""
    model, matches = graph.model, 0
    for rule in peer:
        for node in graph.nodes:
            matches += bool(rule.match(model, node.graph, node, check_nodes_are_removable=True))
    return matches
