"""Fusions that ONNX Runtime could make of two neighbours, and why one of them did not happen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from explorer.runtime.target import Target

if TYPE_CHECKING:
    import onnx_ir as ir

    from explorer.graph import Graph

_LEVELS = ("disable", "basic", "extended", "all")
_ACTIVATIONS = ("Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip", "HardSigmoid")


@dataclass(frozen=True)
class Fusion:
    """A fusion of a node with a reader of its result.

    Attributes:
        first: operator of the node.
        second: operators of the reader.
        optimiser: ONNX Runtime's name, as in ``disabled=``.
        level: the lowest level at which it is tried.
        constants: which operands of the reader must be constants: "" for none, "other" for all but the
            fused one.
    """

    first: str
    second: tuple[str, ...]
    optimiser: str
    level: str
    constants: str = ""


FUSIONS = (
    Fusion("Conv", ("BatchNormalization",), "ConvBNFusion", "basic", "other"),
    Fusion("Conv", ("Mul",), "ConvMulFusion", "basic", "other"),
    Fusion("Conv", ("Add",), "ConvAddFusion", "basic", "other"),
    Fusion("Conv", _ACTIVATIONS, "ConvActivationFusion", "extended"),
    Fusion("Gemm", ("Relu", "Sigmoid", "Tanh", "LeakyRelu"), "GemmActivationFusion", "extended"),
    Fusion("MatMul", ("Add",), "MatMulAddFusion", "basic", "other"),
    Fusion("MatMul", ("BatchNormalization",), "MatMul_BatchNormalization_Fusion", "basic", "other"),
    Fusion("MatMul", ("Mul", "Div"), "MatMulScaleFusion", "extended", "other"),
    Fusion("Transpose", ("MatMul",), "MatmulTransposeFusion", "extended"),
    Fusion("Transpose", ("Gemm",), "GemmTransposeFusion", "basic"),
    Fusion("Pad", ("Conv", "MaxPool", "AveragePool"), "Pad_Fusion", "basic"),
    Fusion("Add", ("LayerNormalization",), "SkipLayerNormFusion", "extended"),
    Fusion("Add", ("Gelu",), "BiasGeluFusion", "extended", "first"),
    Fusion("BatchNormalization", _ACTIVATIONS[:1], "ConvActivationFusion", "extended"),
)


@dataclass(frozen=True)
class Unfused:
    """Two neighbours that the runtime executes one after the other although it knows a fusion for them.

    Attributes:
        nodes: ids of the two.
        optimiser: the runtime's name for the fusion.
        reason: why it did not happen, in words.
        is_certain: whether a condition that the runtime documents or checks is broken; False if all that
            is checked here holds and the runtime does not say more.
    """

    nodes: tuple[str, str]
    optimiser: str
    reason: str
    is_certain: bool

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        return {**vars(self), "nodes": list(self.nodes)}


def unfused(graph: Graph, owner: dict[str, str], target: Target) -> tuple[Unfused, ...]:
    """Neighbours with a known fusion that different operators execute, each with the reason.

    Args:
        graph: the model.
        owner: node id -> executed operator that does its work.
        target: a target of ONNX Runtime; for another runtime nothing is known.
    """
    if target.runtime != "ort":
        return ()
    return tuple(_unfused(graph, owner, target))


def _unfused(graph: Graph, owner: dict[str, str], target: Target) -> Iterator[Unfused]:
    from explorer.graph import node_id

    for node in graph.nodes:
        for output in node.outputs:
            for use in output.uses():
                fusion = _fusion(node, use.node)
                pair = (node_id(node), node_id(use.node))
                apart = pair[0] in owner and pair[1] in owner and owner[pair[0]] != owner[pair[1]]
                if fusion is not None and apart:
                    reason = _reason(fusion, output, use.node, target)
                    text = (
                        reason or "all that is known of its conditions holds; ONNX Runtime does not say why"
                    )
                    yield Unfused(pair, fusion.optimiser, text, reason is not None)


def _fusion(node: ir.Node, reader: ir.Node) -> Fusion | None:
    return next((f for f in FUSIONS if f.first == node.op_type and reader.op_type in f.second), None)


def _reason(fusion: Fusion, value: ir.Value, reader: ir.Node, target: Target) -> str | None:
    if fusion.optimiser in target.disabled:
        return f"{fusion.optimiser} is switched off by the target"
    if _LEVELS.index(target.level) < _LEVELS.index(fusion.level):
        return f"it is tried from level={fusion.level} on; the target has level={target.level}"
    if value.is_graph_output():
        return f"'{value.name}' between them is an output of the model"
    others = {use.node for use in value.uses()} - {reader}
    if others:
        listed = ", ".join(sorted(_label(node) for node in others)[:3])
        return f"the result between them is also read by {listed}"
    return _operand_reason(fusion, value, reader) or _type_reason(value)


def _operand_reason(fusion: Fusion, value: ir.Value, reader: ir.Node) -> str | None:
    from explorer.graph import constant_tensor

    operands = [v for v in reader.inputs if v is not None and v is not value]
    if fusion.constants == "first":
        operands = [v for v in (value.producer() or reader).inputs if v is not None][1:]
    for operand in operands if fusion.constants else ():
        if constant_tensor(operand) is None:
            given = "an input of the model" if operand.is_graph_input() else "computed at run time"
            return f"'{operand.name}' would have to be a constant and is {given}"
    return None


def _type_reason(value: ir.Value) -> str | None:
    dtype = value.dtype
    if dtype is None or dtype.name == "FLOAT":
        return None
    return f"its values are {dtype.name.lower()}, and the fused kernels on the CPU take float"


def _label(node: ir.Node) -> str:
    from explorer.graph import node_id

    return f"{node.op_type} {node_id(node)}"
