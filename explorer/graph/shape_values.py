"""Integers that a graph computes from shapes: what a Reshape or Slice is told, as far as it is known.

Exporters compute the targets of Reshape, the ends of Slice and the like from Shape; the inference of the onnx
package follows some of this arithmetic and stops at Div, with which they halve a number of channels. Scalars and
vectors are followed: each element is an integer, the name of a dynamic dim, or None where it is not known.
"""

from __future__ import annotations

import operator as python
from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from math import prod

import numpy as np
import onnx_ir as ir

from explorer.graph.graph import constant_tensor

Element = int | str | None
_MAX_ELEMENTS = 64
_MAX_DEPTH = 12

_INTEGERS = {ir.DataType.INT64, ir.DataType.INT32, ir.DataType.BOOL}
SHAPE_OPERATORS = ("Shape", "Size")


@dataclass(frozen=True)
class ShapeValue:
    """The elements of an integer tensor of rank 0 or 1."""

    elements: tuple[Element, ...]
    rank: int

    @property
    def is_known(self) -> bool:
        """Whether every element is a number."""
        return all(isinstance(element, int) for element in self.elements)

    @property
    def is_plausible(self) -> bool:
        """Whether it is short and its numbers fit into 64 bits, as those of any shape do."""
        numbers = (element for element in self.elements if isinstance(element, int))
        return len(self.elements) <= _MAX_ELEMENTS and all(-(2**63) <= n < 2**63 for n in numbers)


class ShapeEvaluator:
    """Evaluates values on demand, each once; ``nodes`` are those it went through."""

    def __init__(self) -> None:
        self.nodes: list[ir.Node] = []
        self._known: dict[ir.Value, ShapeValue | None] = {}

    def value_of(self, value: ir.Value | None, depth: int = _MAX_DEPTH) -> ShapeValue | None:
        """What a tensor holds; None if that is not a small integer tensor or cannot be followed.

        Args:
            value: the tensor.
            depth: how many nodes upstream are looked at.
        """
        if value is None:
            return None
        if value not in self._known:
            self._known[value] = self._constant(value) or self._computed(value, depth)
        return self._known[value]

    def _constant(self, value: ir.Value) -> ShapeValue | None:
        elements, size = _integers(value), _rank(value)
        return None if elements is None or size is None or size > 1 else ShapeValue(elements, size)

    def _computed(self, value: ir.Value, depth: int) -> ShapeValue | None:
        node, size = value.producer(), _rank(value)
        rule = _RULES.get(node.op_type) if node is not None and node.domain in {"", "ai.onnx"} else None
        if node is None or rule is None or not depth or len(node.outputs) != 1 or (size or 0) > 1:
            return None
        self.nodes.append(node)
        found = rule(node, lambda operand: self.value_of(operand, depth - 1))
        return found if found is not None and found.is_plausible else None


def known_vectors(graph: ir.Graph) -> dict[ir.Value, np.ndarray]:
    """Node outputs of the graph whose elements are all known, as int64 scalars or vectors.

    Args:
        graph: nodes in topological order, shapes filled in as far as they are known.
    """
    evaluator, known = ShapeEvaluator(), {}
    for node in graph:
        if node.op_type not in _RULES or len(node.outputs) != 1:
            continue
        found = evaluator.value_of(node.outputs[0])
        if found is not None and found.is_known:
            elements = np.array(found.elements, dtype=np.int64)
            known[node.outputs[0]] = elements if found.rank else elements.reshape(())
    return known


def _integers(value: ir.Value | None) -> tuple[int, ...] | None:
    """The elements of a small constant of integers or booleans."""
    tensor = constant_tensor(value)
    if tensor is None or tensor.dtype not in _INTEGERS or tensor.size > _MAX_ELEMENTS:
        return None
    return tuple(int(element) for element in tensor.numpy().ravel())


def _rank(value: ir.Value | None) -> int | None:
    tensor = constant_tensor(value)
    if tensor is not None:
        return len(tensor.shape.numpy())
    return None if value is None or value.shape is None else len(value.shape)


def _operand(node: ir.Node, position: int) -> ir.Value | None:
    return node.inputs[position] if position < len(node.inputs) else None


def dims_of(value: ir.Value | None) -> tuple[Element, ...] | None:
    """The dims of a value, each an integer, the name of a dynamic dim or None; None if even the rank is unknown."""
    if value is not None and value.shape is not None:
        return tuple(d if isinstance(d, int) else d.value for d in value.shape)
    tensor = constant_tensor(value)
    return None if tensor is None else tuple(tensor.shape.numpy())


def _numbers(node: ir.Node, position: int, name: str) -> tuple[int, ...] | None:
    """A list that newer opsets pass as an operand and older ones as an attribute; None if it is not constant."""
    attribute = node.attributes.get(name)
    if attribute is not None and not attribute.is_ref():
        return tuple(attribute.as_ints())
    return _integers(_operand(node, position))


_Follow = Callable[[ir.Value | None], ShapeValue | None]


def _shape(node: ir.Node, _: _Follow) -> ShapeValue | None:
    dims = dims_of(_operand(node, 0))
    if dims is None:
        return None
    start, end = node.attributes.get_int("start", 0), node.attributes.get_int("end", None)
    return ShapeValue(tuple(dims[start:end]), 1)


def _size(node: ir.Node, _: _Follow) -> ShapeValue | None:
    dims = dims_of(_operand(node, 0))
    if dims is None:
        return None
    static = [size for size in dims if isinstance(size, int)]
    return ShapeValue((prod(static) if len(static) == len(dims) else None,), 0)


def _pass(node: ir.Node, follow: _Follow) -> ShapeValue | None:
    dtype = node.outputs[0].dtype
    is_integer = dtype in {ir.DataType.INT64, ir.DataType.INT32}
    return follow(_operand(node, 0)) if is_integer else None


def _gather(node: ir.Node, follow: _Follow) -> ShapeValue | None:
    data, places = follow(_operand(node, 0)), _integers(_operand(node, 1))
    size = _rank(_operand(node, 1))
    if data is None or data.rank != 1 or places is None or size is None or size > 1:
        return None
    count = len(data.elements)
    if node.attributes.get_int("axis", 0) not in {0, -1} or not all(-count <= p < count for p in places):
        return None
    return ShapeValue(tuple(data.elements[p] for p in places), size)


def _slice(node: ir.Node, follow: _Follow) -> ShapeValue | None:
    data = follow(_operand(node, 0))
    starts, ends = _numbers(node, 1, "starts"), _numbers(node, 2, "ends")
    steps = _numbers(node, 4, "steps") if _operand(node, 4) is not None else (1,)
    if data is None or data.rank != 1 or not starts or not ends or not steps or steps[0] == 0:
        return None
    return ShapeValue(data.elements[starts[0] : ends[0] : steps[0]], 1)


def _concat(node: ir.Node, follow: _Follow) -> ShapeValue | None:
    parts = [follow(value) for value in node.inputs]
    joined: list[Element] = []
    for part in parts:
        if part is None or part.rank != 1:
            return None
        joined.extend(part.elements)
    return ShapeValue(tuple(joined), 1)


def _reshape(node: ir.Node, follow: _Follow) -> ShapeValue | None:
    data, size = follow(_operand(node, 0)), _rank(node.outputs[0])
    if size is None:
        size = {"Squeeze": 0, "Unsqueeze": 1}.get(node.op_type)
    if data is None or size is None or size > 1 or (size == 0 and len(data.elements) != 1):
        return None
    return ShapeValue(data.elements, size)


def _product(node: ir.Node, follow: _Follow) -> ShapeValue | None:
    data, size = follow(_operand(node, 0)), _rank(node.outputs[0])
    if data is None or size is None or size > 1:
        return None
    static = [element for element in data.elements if isinstance(element, int)]
    return ShapeValue((prod(static) if len(static) == len(data.elements) else None,), size)


def _constant_of_shape(node: ir.Node, follow: _Follow) -> ShapeValue | None:
    size, dims = follow(_operand(node, 0)), dims_of(node.outputs[0])
    fill = node.attributes.get("value")
    tensor = None if fill is None else fill.as_tensor()
    if size is None or dims is None or len(dims) != 1 or not isinstance(dims[0], int):
        return None
    if tensor is None or tensor.size != 1 or tensor.dtype not in _INTEGERS or dims[0] > _MAX_ELEMENTS:
        return None
    return ShapeValue((int(tensor.numpy().ravel()[0]),) * dims[0], 1)


def _where(node: ir.Node, follow: _Follow) -> ShapeValue | None:
    parts = _aligned([follow(value) for value in node.inputs])
    if parts is None:
        return None
    columns, size = parts
    picked = [a if c == 1 else b if c == 0 else a if a == b else None for c, a, b in columns]
    return ShapeValue(tuple(picked), size)


def _elementwise(function: Callable[[Element, Element], Element]) -> Callable[..., ShapeValue | None]:
    def rule(node: ir.Node, follow: _Follow) -> ShapeValue | None:
        parts = _aligned([follow(value) for value in node.inputs])
        if parts is None or len(node.inputs) != 2:
            return None
        columns, size = parts
        return ShapeValue(tuple(function(a, b) for a, b in columns), size)

    return rule


def _aligned(parts: list[ShapeValue | None]) -> tuple[list[tuple[Element, ...]], int] | None:
    """The elements of several operands side by side, those with one element repeated."""
    known = [part for part in parts if part is not None]
    if len(known) != len(parts):
        return None
    length = max(len(part.elements) for part in known)
    if any(len(part.elements) not in {1, length} for part in known):
        return None
    columns = [part.elements if len(part.elements) == length else repeat(part.elements[0]) for part in known]
    rows = [tuple(row) for row in zip(*columns, strict=False)]
    return rows, max(part.rank for part in known)


def _arithmetic(
    function: Callable[[int, int], int | None], neutral: int | None, *, commutes: bool = False
) -> Callable[[Element, Element], Element]:
    def apply(a: Element, b: Element) -> Element:
        if isinstance(a, int) and isinstance(b, int):
            return function(a, b)
        if neutral is not None and b == neutral:
            return a
        return b if commutes and neutral is not None and a == neutral else None

    return apply


def _divide(a: int, b: int) -> int | None:
    """Integer division as ONNX defines it: towards zero."""
    if b == 0:
        return None
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _modulo(a: int, b: int) -> int | None:
    return None if b == 0 else a % b


def _equal(a: Element, b: Element) -> Element:
    if isinstance(a, int) and isinstance(b, int):
        return int(a == b)
    numbers = [x for x in (a, b) if isinstance(x, int)]
    return 0 if numbers and numbers[0] < 0 else None  # no dim is negative


_RULES: dict[str, Callable[[ir.Node, _Follow], ShapeValue | None]] = {
    "Shape": _shape,
    "Size": _size,
    "Cast": _pass,
    "Identity": _pass,
    "Gather": _gather,
    "Slice": _slice,
    "Concat": _concat,
    "Squeeze": _reshape,
    "Unsqueeze": _reshape,
    "Reshape": _reshape,
    "Flatten": _reshape,
    "ReduceProd": _product,
    "ConstantOfShape": _constant_of_shape,
    "Where": _where,
    "Add": _elementwise(_arithmetic(python.add, 0, commutes=True)),
    "Sub": _elementwise(_arithmetic(python.sub, 0)),
    "Mul": _elementwise(_arithmetic(python.mul, 1, commutes=True)),
    "Div": _elementwise(_arithmetic(_divide, 1)),
    "Mod": _elementwise(_arithmetic(_modulo, None)),
    "Max": _elementwise(_arithmetic(max, None)),
    "Min": _elementwise(_arithmetic(min, None)),
    "Equal": _elementwise(_equal),
}
FOLLOWED = frozenset(_RULES)
