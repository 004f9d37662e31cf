"""Differences of known size: a copy of a model that does some more work which nothing can optimise away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from explorer.runtime.measurer import Measurer
from explorer.runtime.protocol import Mode, Protocol
from explorer.runtime.target import Target

if TYPE_CHECKING:
    from explorer.graph import Feeds, Graph

PLANTED = "explorer_planted"
_OPERATOR = "Sin"
_TRIAL_ELEMENTS = 1 << 16
_FEWEST_ELEMENTS = 16
_PROTOCOL = Protocol(mode=Mode.SCREENING, rounds=5, samples=9, trim=1, min_rounds=3)


def plant(graph: Graph, elements: int) -> Graph:
    """The graph with an operator beside it that reads an input of its own and gives an output of its own.

    Args:
        graph: the model; untouched.
        elements: length of the vector that the operator works on; its time is proportional to it.
    """
    import onnx_ir as ir

    draft = graph.clone()
    shape, kind = ir.Shape([elements]), ir.TensorType(ir.DataType.FLOAT)
    extra = ir.Value(name=PLANTED, shape=shape, type=kind)
    node = ir.Node("", _OPERATOR, [extra], name=PLANTED)
    node.outputs[0].name, node.outputs[0].shape, node.outputs[0].type = f"{PLANTED}_output", shape, kind
    draft.model.graph.inputs.append(extra)
    draft.model.graph.append(node)
    draft.model.graph.outputs.append(node.outputs[0])
    return draft.renumbered()


def planted_feeds(elements: int) -> Feeds:
    """The input of the planted operator."""
    return {PLANTED: np.linspace(-3, 3, elements, dtype=np.float32)}


def plant_share(
    graph: Graph, share: float, feeds: Feeds, measurer: Measurer, target: str | Target
) -> tuple[Graph, Feeds, float]:
    """Plant an operator that takes about a share of the model's time.

    Args:
        graph: the model.
        share: wanted cost relative to the model, such as 0.05.
        feeds: inputs of the model.
        measurer: where to time the model and the operator alone.
        target: where.

    Returns:
        The graph, inputs for it and for the original, and the expected ratio: 1 + the operator's own time,
        measured alone less an empty run, divided by the model's. It is known no better than either.

    Raises:
        RuntimeFailure: the target cannot run the model or the operator.
    """
    model_ns = measurer.latency(graph, feeds, target, _PROTOCOL).ns
    empty_ns = _alone_ns(1, measurer, target)
    per_element_ns = max(_alone_ns(_TRIAL_ELEMENTS, measurer, target) - empty_ns, 1.0) / _TRIAL_ELEMENTS
    elements = max(_FEWEST_ELEMENTS, round(share * model_ns / per_element_ns))
    extra_ns = max(_alone_ns(elements, measurer, target) - empty_ns, 0.0)
    return plant(graph, elements), {**feeds, **planted_feeds(elements)}, 1 + extra_ns / model_ns


def _alone_ns(elements: int, measurer: Measurer, target: str | Target) -> float:
    import onnx.parser

    from explorer.graph import load

    text = (
        f'<ir_version: 8, opset_import: ["" : 17]> alone (float[{elements}] {PLANTED}) => '
        f"(float[{elements}] y) {{ y = {_OPERATOR}({PLANTED}) }}"
    )
    graph = load(onnx.parser.parse_model(text), name="the planted operator")
    return measurer.latency(graph, planted_feeds(elements), target, _PROTOCOL).ns
