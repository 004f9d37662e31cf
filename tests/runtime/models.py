"""Small ONNX models as text, and files of them."""

from __future__ import annotations

from pathlib import Path

import onnx.parser

from explorer.graph import Graph, load

HEADER = '<ir_version: 9, opset_import: ["" : 17]>\n'

CHAIN = """
small (float[1,8,16,16] x) => (float[1,8,16,16] y) {
    a = Relu(x)
    b = Sigmoid(a)
    y = Add(b, x)
}
"""

CHAIN_RENAMED = """
other (float[1,8,16,16] x) => (float[1,8,16,16] y) {
    first = Relu(x)
    second = Sigmoid(first)
    y = Add(second, x)
}
"""

# ONNX Runtime removes an Identity from level basic on.
CHAIN_WITH_IDENTITY = """
small (float[1,8,16,16] x) => (float[1,8,16,16] y) {
    a = Relu(x)
    i = Identity(a)
    b = Sigmoid(i)
    y = Add(b, x)
}
"""

# Twelve Sigmoid more: much slower at every level.
CHAIN_WITH_DETOUR = (
    """
small (float[1,8,16,16] x) => (float[1,8,16,16] y) {
    a = Relu(x)
    b = Sigmoid(a)
    s0 = Sigmoid(b)
"""
    + "".join(f"    s{i + 1} = Sigmoid(s{i})\n" for i in range(11))
    + """
    y = Add(s11, x)
}
"""
)

BOMB = """
bomb (int64[1] size) => (float[n] y) {
    y = ConstantOfShape(size)
}
"""

TWO_INPUTS = """
sum (float[2,3] left, float[2,3] right) => (float[2,3] total, float[2,3] product) {
    total = Add(left, right)
    product = Mul(left, right)
}
"""


def proto(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(HEADER + text)


def graph(text: str) -> Graph:
    return load(proto(text))


def write(text: str, path: Path) -> Path:
    onnx.save(proto(text), path)
    return path
