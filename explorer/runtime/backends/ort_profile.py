"""ONNX Runtime's profile and optimised graph as ``Executed`` operators."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from explorer.errors import RuntimeFailure
from explorer.runtime.executed import Executed

_SUFFIX = "_kernel_time"
_WARM_RUNS = 2


def executed_from(profile_path: Path, optimized_path: Path) -> tuple[Executed, ...]:
    """Read both files; the first runs of each operator are left out, because they warm up.

    Raises:
        RuntimeFailure: the profile is not what this version can read.
    """
    outputs = _outputs_by_node(optimized_path)
    found: dict[str, Executed] = {}
    for event in _events(profile_path):
        name = event["name"].removesuffix(_SUFFIX)
        operator = event["args"].get("op_name", "?")
        if name not in found:
            found[name] = Executed(name, operator, (name, *outputs.get(name, ())), [])
        found[name].durations_ns.append(1000 * int(event["dur"]))
    for one in found.values():
        del one.durations_ns[:_WARM_RUNS]
    return tuple(one for one in found.values() if one.durations_ns)


def _events(path: Path) -> list[dict[str, Any]]:
    try:
        events = json.loads(path.read_text(encoding="utf-8", errors="replace"))
        return [e for e in events if e.get("cat") == "Node" and e["name"].endswith(_SUFFIX)]
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise RuntimeFailure(f"ONNX Runtime's profile cannot be read: {error}.") from error


def _outputs_by_node(path: Path) -> dict[str, tuple[str, ...]]:
    """Node name -> names of its outputs, in the graph that was executed; bodies included."""
    import onnx

    from explorer.runtime.backends.ort_errors import all_nodes

    model = onnx.load(str(path), load_external_data=False)
    return {node.name: tuple(node.output) for node in all_nodes(model.graph)}
