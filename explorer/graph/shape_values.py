"""Integers that a graph computes from shapes: what a Reshape or Slice is told, as far as it is known.

The inference of the onnx package follows some of this arithmetic; it stops at Div, with which exporters halve a
number of channels. Scalars and vectors are followed, element by element; an unknown element is None.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from explorer.graph.graph import constant_tensor

_MAX_ELEMENTS = 64
_Known = dict[ir.Value, np.ndarray]


def known_vectors(graph: ir.Graph) -> dict[ir.Value, np.ndarray]:
    """Node outputs of the graph whose elements are all known, as int64 scalars or vectors.

    Args:
        graph: nodes in topological order, shapes filled in as far as they are known.
    """
    known: _Known = {}
    for node in graph:
        rule = _RULES.get(node.op_type) if node.domain == "" else None
        result = rule(node, known) if rule is not None and len(node.outputs) == 1 else None
        if result is not None and result.ndim <= 1 and result.size <= _MAX_ELEMENTS:
            known[node.outputs[0]] = result
    return {
        value: elements.astype(np.int64)
        for value, elements in known.items()
        if all(isinstance(element, int) for element in elements.ravel())
    }


def _operand(node: ir.Node, position: int, known: _Known) -> np.ndarray | None:
    """Elements of an operand as Python integers or None; None if it is not followed."""
    value = node.inputs[position] if position < len(node.inputs) else None
    if value is None or value in known:
        return None if value is None else known[value]
    tensor = constant_tensor(value)
    if tensor is None or tensor.dtype not in {ir.DataType.INT64, ir.DataType.INT32}:
        return None
    if len(tensor.shape) > 1 or tensor.size > _MAX_ELEMENTS:
        return None
    return np.array(tensor.numpy().tolist(), dtype=object)


def _numbers(node: ir.Node, position: int, name: str, known: _Known) -> list[int] | None:
    """A list that newer opsets pass as an operand and older ones as an attribute; all elements known."""
    found = _operand(node, position, known)
    if found is None:
        attribute = node.attributes.get(name)
        given = attribute.value if attribute is not None and not attribute.is_ref() else None
        return [int(i) for i in given] if isinstance(given, tuple | list) else None
    elements = found.ravel().tolist()
    return elements if all(isinstance(element, int) for element in elements) else None


def _shape(node: ir.Node, _: _Known) -> np.ndarray | None:
    value = node.inputs[0]
    if value is None or value.shape is None:
        return None
    dims = [dim if isinstance(dim, int) else None for dim in value.shape]
    start, end = node.attributes.get_int("start", 0), node.attributes.get_int("end", len(dims))
    return np.array(dims[start:end], dtype=object)


def _gather(node: ir.Node, known: _Known) -> np.ndarray | None:
    data, indices = _operand(node, 0, known), _operand(node, 1, known)
    if data is None or data.ndim != 1 or indices is None:
        return None
    if not all(isinstance(i, int) and -data.size <= i < data.size for i in indices.ravel()):
        return None
    return np.array(data[indices.astype(np.int64)], dtype=object)


def _slice(node: ir.Node, known: _Known) -> np.ndarray | None:
    data = _operand(node, 0, known)
    starts, ends = _numbers(node, 1, "starts", known), _numbers(node, 2, "ends", known)
    steps = _numbers(node, 4, "steps", known) if len(node.inputs) > 4 else [1]
    if data is None or data.ndim != 1 or not starts or not ends or not steps or steps[0] == 0:
        return None
    return data[starts[0] : ends[0] : steps[0]]


def _concat(node: ir.Node, known: _Known) -> np.ndarray | None:
    parts = [_operand(node, i, known) for i in range(len(node.inputs))]
    vectors = [part for part in parts if part is not None and part.ndim == 1]
    return np.concatenate(vectors) if vectors and len(vectors) == len(parts) else None


def _squeeze(node: ir.Node, known: _Known) -> np.ndarray | None:
    data = _operand(node, 0, known)
    return data.reshape(()) if data is not None and data.shape == (1,) else None


def _unsqueeze(node: ir.Node, known: _Known) -> np.ndarray | None:
    data = _operand(node, 0, known)
    axes = _numbers(node, 1, "axes", known)
    return data.reshape(1) if data is not None and data.ndim == 0 and axes and len(axes) == 1 else None


def _same(node: ir.Node, known: _Known) -> np.ndarray | None:
    return _operand(node, 0, known)


def _cast(node: ir.Node, known: _Known) -> np.ndarray | None:
    to = node.attributes.get_int("to", 0)
    return _operand(node, 0, known) if to in {ir.DataType.INT64, ir.DataType.INT32} else None


def _elementwise(
    function: Callable[[int, int], int | None],
) -> Callable[[ir.Node, _Known], np.ndarray | None]:
    both = np.frompyfunc(lambda a, b: None if a is None or b is None else function(a, b), 2, 1)

    def rule(node: ir.Node, known: _Known) -> np.ndarray | None:
        a, b = _operand(node, 0, known), _operand(node, 1, known)
        if a is None or b is None or len(node.inputs) != 2 or not _fit(a, b):
            return None
        return np.array(both(a, b), dtype=object)

    return rule


def _fit(a: np.ndarray, b: np.ndarray) -> bool:
    return a.size == b.size or 1 in {a.size, b.size}


def _quotient(a: int, b: int) -> int | None:
    """Integers are divided towards zero."""
    if b == 0:
        return None
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_RULES: dict[str, Callable[[ir.Node, _Known], np.ndarray | None]] = {
    "Add": _elementwise(lambda a, b: a + b),
    "Cast": _cast,
    "Concat": _concat,
    "Div": _elementwise(_quotient),
    "Gather": _gather,
    "Identity": _same,
    "Max": _elementwise(max),
    "Min": _elementwise(min),
    "Mul": _elementwise(lambda a, b: a * b),
    "Shape": _shape,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Sub": _elementwise(lambda a, b: a - b),
    "Unsqueeze": _unsqueeze,
}
