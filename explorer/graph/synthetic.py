"""Graphs of any size for benchmarks: a network-like chain with weights."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

_STATISTICS = ("scale", "shift", "mean", "var")


def chain(length: int, channels: int = 8) -> ir.Model:
    """A model of ``length`` nodes: blocks of Conv, BatchNormalization, Relu and an Add over a shortcut.

    Every block has small weights of its own.
    """
    rng = np.random.default_rng(0)
    start = ir.Value(name="x", shape=ir.Shape([1, channels, 8, 8]), type=ir.TensorType(ir.DataType.FLOAT))
    value = start
    nodes: list[ir.Node] = []
    weights: list[ir.Value] = []
    while len(nodes) < length:
        block = _block(value, rng, channels, len(nodes) // 4)[: length - len(nodes)]
        nodes += block
        weights += [v for node in block for v in node.inputs if v is not None and v.const_value is not None]
        value = block[-1].outputs[0]
    value.shape, value.type = start.shape, start.type
    graph = ir.Graph([start], [value], nodes=nodes, initializers=weights, opset_imports={"": 17})
    return ir.Model(graph, ir_version=8)


def _block(value: ir.Value, rng: np.random.Generator, channels: int, number: int) -> list[ir.Node]:
    kernel = rng.standard_normal((channels, channels, 1, 1), dtype=np.float32) / channels**0.5
    statistics = [
        _constant(f"{name}{number}", rng.uniform(0.5, 1.5, channels).astype(np.float32))
        for name in _STATISTICS
    ]
    conv = _node("Conv", [value, _constant(f"weight{number}", kernel.astype(np.float32))], number)
    norm = _node("BatchNormalization", [conv.outputs[0], *statistics], number)
    relu = _node("Relu", [norm.outputs[0]], number)
    return [conv, norm, relu, _node("Add", [relu.outputs[0], value], number)]


def _node(operator: str, inputs: list[ir.Value], number: int) -> ir.Node:
    node = ir.node(operator, inputs=inputs, name=f"{operator}{number}")
    node.outputs[0].name = f"{operator.lower()}{number}"
    return node


def _constant(name: str, array: np.ndarray) -> ir.Value:
    tensor = ir.tensor(array, name=name)
    shape = ir.Shape(array.shape)
    return ir.Value(name=name, shape=shape, type=ir.TensorType(tensor.dtype), const_value=tensor)
