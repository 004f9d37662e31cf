"""How exporters write Gelu: 0.5 * x * (1 + erf(x / sqrt 2)) and the tanh approximation, factors in any order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import pi, sqrt

import onnx_ir as ir

from explorer.rewrite.context import operand, operator, producer, readers, scalar
from explorer.rewrite.rules.patterns import both_orders, close, factor_of, number_beside, reader_of
from explorer.rewrite.walk import source_of

ERF_SCALE = 1.0 / sqrt(2.0)
TANH_SCALE = sqrt(2.0 / pi)
CUBE = 0.044715
_MOST_PRODUCTS = 3


@dataclass(frozen=True)
class Gelu:
    """One written-out Gelu: its argument, its last node, and all its nodes."""

    source: ir.Value
    last: ir.Node
    nodes: tuple[ir.Node, ...]


def erf_gelus(erf: ir.Node) -> Iterator[Gelu]:
    """Every Gelu whose error function this node is."""
    found = _scaled_source(operand(erf, 0), ERF_SCALE)
    if found is not None:
        yield from _gated(erf, *found)


def tanh_gelus(tanh: ir.Node) -> Iterator[Gelu]:
    """Every Gelu in the tanh approximation whose tanh this node is."""
    found = _polynomial(operand(tanh, 0))
    if found is not None:
        yield from _gated(tanh, *found)


def _scaled_source(value: ir.Value | None, wanted: float) -> tuple[ir.Value, tuple[ir.Node, ...]] | None:
    node = producer(value, "Mul", "Div")
    found = factor_of(node)
    if node is None or found is None or not close(found[1], wanted, node.outputs[0].dtype):
        return None
    return found[0], (node,)


def _gated(function: ir.Node, source: ir.Value, before: tuple[ir.Node, ...]) -> Iterator[Gelu]:
    """Gelus with this erf or tanh: the gate 1 + f, or 0.5 * f + 0.5, times x."""
    for gate, weight, nodes in _gates(function):
        last = reader_of(gate, "Mul", "Div")
        chain: list[ir.Node] = []
        while last is not None and len(chain) < _MOST_PRODUCTS:
            product = _product(last, source, gate)
            if product is not None and close(product[0] * weight, 0.5, gate.dtype):
                yield Gelu(source, last, (*before, function, *nodes, *product[1]))
                break
            chain.append(last)
            last = reader_of(last.outputs[0], "Mul", "Div")


def _gates(function: ir.Node) -> Iterator[tuple[ir.Value, float, tuple[ir.Node, ...]]]:
    """(gate, weight, nodes): the gate is weight * (1 + f) with its nodes after f."""
    result = function.outputs[0]
    for reader in readers(result):
        if operator(reader) == "Add":
            added = number_beside(reader)
            if added is not None and added[0] is result and close(added[1], 1.0, result.dtype):
                yield reader.outputs[0], 1.0, (reader,)
        found = factor_of(reader)
        add = reader_of(reader.outputs[0], "Add") if found is not None and found[0] is result else None
        added = None if add is None else number_beside(add)
        if (
            found is not None
            and add is not None
            and added is not None
            and close(added[1], found[1], result.dtype)
        ):
            yield add.outputs[0], found[1], (reader, add)


def _product(node: ir.Node, source: ir.Value, gate: ir.Value) -> tuple[float, tuple[ir.Node, ...]] | None:
    """(constant factor, nodes) if ``node`` is that factor times source times gate."""
    scale, nodes, open_values = 1.0, [node], [node]
    missing = [source, gate]
    while open_values:
        current = open_values.pop()
        if len(nodes) > _MOST_PRODUCTS:
            return None
        found = factor_of(current)
        if found is not None:
            scale *= found[1]
        elif operator(current) != "Mul":
            return None
        for value in [found[0]] if found is not None else [v for v in current.inputs if v is not None]:
            if value in missing:
                missing.remove(value)
                continue
            inner = producer(value, "Mul", "Div")
            if inner is None or inner in nodes:
                return None
            nodes.append(inner)
            open_values.append(inner)
    return None if missing else (scale, tuple(nodes))


def _polynomial(value: ir.Value | None) -> tuple[ir.Value, tuple[ir.Node, ...]] | None:
    """(x, nodes) if ``value`` is sqrt(2 / pi) * (x + 0.044715 x^3), in the forms exporters write."""
    node = producer(value, "Mul", "Div")
    if node is None:
        return None
    found = factor_of(node)
    if found is not None:
        return _sum_form(node, *found) or _product_form(node, found[0], found[1])
    return _product_form(node, node.outputs[0], 1.0)


def _sum_form(node: ir.Node, inner: ir.Value, scale: float) -> tuple[ir.Value, tuple[ir.Node, ...]] | None:
    """X + 0.044715 * x * x * x."""
    add = producer(inner, "Add")
    if add is None or not close(scale, TANH_SCALE, node.outputs[0].dtype):
        return None
    for source, other in both_orders(add):
        cube = _power(other, source, 3)
        if cube is not None and close(cube[0], CUBE, node.outputs[0].dtype):
            return source, (*cube[1], add, node)
    return None


def _product_form(
    node: ir.Node, value: ir.Value, scale: float
) -> tuple[ir.Value, tuple[ir.Node, ...]] | None:
    """X * (1 + 0.044715 * x * x), the scale on x or on the product."""
    product = producer(value, "Mul")
    if product is None:
        return None
    for left, right in both_orders(product):
        add = producer(right, "Add")
        added = None if add is None else number_beside(add)
        if add is None or added is None or not close(added[1], 1.0, value.dtype):
            continue
        scaled = factor_of(producer(left, "Mul", "Div"))
        for source, factor in ((left, 1.0), *([scaled] if scaled is not None else [])):
            square = _power(added[0], source, 2)
            if square is None or not close(square[0], CUBE, value.dtype):
                continue
            if close(factor * scale, TANH_SCALE, value.dtype):
                own = [] if product is node else [node]
                inner = [n for n in [source_of(left)] if n is not None and source is not left]
                return source, (*square[1], add, *inner, product, *own)
    return None


def _power(value: ir.Value, source: ir.Value, degree: int) -> tuple[float, tuple[ir.Node, ...]] | None:
    """(c, nodes) if ``value`` is c * source ** degree, written with Pow, Mul, or both."""
    scale, left = 1.0, degree
    nodes: list[ir.Node] = []
    pending = [value]
    while pending:
        current = pending.pop()
        if current is source:
            left -= 1
            continue
        node = producer(current, "Mul", "Div", "Pow")
        if node is None or len(nodes) > degree + 1:
            return None
        nodes.append(node)
        found = factor_of(node)
        if found is not None:
            scale *= found[1]
            pending.append(found[0])
        elif node.op_type == "Pow" and node.inputs[0] is source and scalar(node.inputs[1]) in {2.0, 3.0}:
            left -= int(scalar(node.inputs[1]) or 0)
        elif node.op_type == "Mul":
            pending += [v for v in node.inputs if v is not None]
        else:
            return None
    return (scale, tuple(dict.fromkeys(nodes))) if left == 0 else None
