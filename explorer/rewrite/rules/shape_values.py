"""What small integer tensors made from shapes hold: numbers and symbols, followed through the operators.

Exporters compute the targets of Reshape, the ends of Slice and the like from Shape. Each element is an integer,
the name of a dynamic dim, or None where it is not known.
"""

from __future__ import annotations

import operator as python
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import repeat
from math import prod

import onnx_ir as ir

from explorer.rewrite.context import integers, operand, operator, rank, shape_of
from explorer.rewrite.rule import Refusal
from explorer.rewrite.rules.slice_parts import bounds_of

Element = int | str | None
_MOST_ELEMENTS = 64
_DEPTH = 12

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


@dataclass
class ShapeEvaluator:
    """Evaluates values; remembers the nodes it went through, nearest to the result first."""

    nodes: dict[ir.Node, None] = field(default_factory=dict)

    def value_of(self, value: ir.Value | None, depth: int = _DEPTH) -> ShapeValue | None:
        """What a tensor holds; None if that is not a small integer tensor or cannot be followed."""
        size = rank(value)
        if value is None or size is None or size > 1:
            return None
        constant = integers(value)
        if constant is not None:
            return ShapeValue(constant, size) if len(constant) <= _MOST_ELEMENTS else None
        node = value.producer()
        rule = _RULES.get(operator(node)) if node is not None else None
        if node is None or rule is None or not depth or len(node.outputs) != 1:
            return None
        self.nodes.pop(node, None)  # a node comes after all its readers among the visited ones
        self.nodes[node] = None
        found = rule(node, lambda v: self.value_of(v, depth - 1))
        return found if found is not None and len(found.elements) <= _MOST_ELEMENTS else None


_Follow = Callable[[ir.Value | None], ShapeValue | None]


def _shape(node: ir.Node, _: _Follow) -> ShapeValue | None:
    dims = shape_of(operand(node, 0))
    if dims is None:
        return None
    start, end = node.attributes.get_int("start", 0), node.attributes.get_int("end", None)
    return ShapeValue(tuple(dims[start:end]), 1)


def _size(node: ir.Node, _: _Follow) -> ShapeValue | None:
    dims = shape_of(operand(node, 0))
    if dims is None:
        return None
    static = [size for size in dims if isinstance(size, int)]
    return ShapeValue((prod(static) if len(static) == len(dims) else None,), 0)


def _pass(node: ir.Node, follow: _Follow) -> ShapeValue | None:
    dtype = node.outputs[0].dtype
    is_integer = dtype in {ir.DataType.INT64, ir.DataType.INT32}
    return follow(operand(node, 0)) if is_integer else None


def _gather(node: ir.Node, follow: _Follow) -> ShapeValue | None:
    data, places = follow(operand(node, 0)), integers(operand(node, 1))
    size = rank(operand(node, 1))
    if data is None or data.rank != 1 or places is None or size is None or size > 1:
        return None
    count = len(data.elements)
    if node.attributes.get_int("axis", 0) not in {0, -1} or not all(-count <= p < count for p in places):
        return None
    return ShapeValue(tuple(data.elements[p] for p in places), size)


def _slice(node: ir.Node, follow: _Follow) -> ShapeValue | None:
    data = follow(operand(node, 0))
    try:
        bounds = bounds_of(node)
    except Refusal:
        return None
    if data is None or data.rank != 1 or set(bounds) - {0}:
        return None
    for cut in bounds.values():
        if cut.step < 1:
            return None
        data = ShapeValue(data.elements[cut.start : cut.end : cut.step], 1)
    return data


def _concat(node: ir.Node, follow: _Follow) -> ShapeValue | None:
    parts = [follow(value) for value in node.inputs]
    joined: list[Element] = []
    for part in parts:
        if part is None or part.rank != 1:
            return None
        joined.extend(part.elements)
    return ShapeValue(tuple(joined), 1)


def _reshape(node: ir.Node, follow: _Follow) -> ShapeValue | None:
    data, size = follow(operand(node, 0)), rank(node.outputs[0])
    if data is None or size is None or size > 1 or (size == 0 and len(data.elements) != 1):
        return None
    return ShapeValue(data.elements, size)


def _product(node: ir.Node, follow: _Follow) -> ShapeValue | None:
    data, size = follow(operand(node, 0)), rank(node.outputs[0])
    if data is None or size is None or size > 1:
        return None
    static = [element for element in data.elements if isinstance(element, int)]
    return ShapeValue((prod(static) if len(static) == len(data.elements) else None,), size)


def _constant_of_shape(node: ir.Node, follow: _Follow) -> ShapeValue | None:
    size, dims = follow(operand(node, 0)), shape_of(node.outputs[0])
    fill = node.attributes.get("value")
    tensor = None if fill is None else fill.as_tensor()
    if size is None or dims is None or len(dims) != 1 or not isinstance(dims[0], int):
        return None
    if tensor is None or tensor.dtype.is_floating_point() or dims[0] > _MOST_ELEMENTS:
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
