"""Operators that work along axes, rebuilt for an input whose axes have been renumbered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import Context, integers, operand, rank, text
from explorer.rewrite.rule import Refusal
from explorer.rewrite.rules.axes import Dims, axes_are_input, axis_of, given_axes, normalise
from explorer.rewrite.rules.slice_parts import bounds_of

REDUCTIONS = tuple(
    f"Reduce{kind}"
    for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
)


@dataclass(frozen=True)
class Parameters:
    """What an operator needs beside its data: attributes, and operands that are kept or made.

    Attributes:
        attributes: by name.
        operands: after the data; a tuple of integers is a constant to create.
    """

    attributes: dict[str, object]
    operands: tuple[ir.Value | tuple[int, ...] | None, ...] = ()

    @property
    def new_bytes(self) -> int:
        """Bytes of the constants to create."""
        return sum(8 * len(item) for item in self.operands if isinstance(item, tuple))

    def build(
        self,
        node: ir.Node,
        data: Sequence[ir.Value | None],
        shapes: Sequence[Dims | None],
        build: Builder,
    ) -> tuple[ir.Value, ...]:
        """The operator of ``node`` on other data, with results of these shapes."""
        tail = [build.ints(item, "axes") if isinstance(item, tuple) else item for item in self.operands]
        results = build.ops(node.op_type, [*data, *tail], self.attributes, outputs=len(shapes))
        for result, old, shape in zip(results, node.outputs, shapes, strict=True):
            result.type = old.type
            result.shape = None if shape is None else ir.Shape(shape)
        return results


def data_of(node: ir.Node) -> tuple[ir.Value | None, ...]:
    """The operands that hold data: all of a Concat's, the first of any other."""
    return tuple(node.inputs) if node.op_type == "Concat" else tuple(node.inputs[:1])


def renumbered(node: ir.Node, axis_map: Sequence[int], context: Context) -> Parameters:
    """Parameters of an operator that keeps the rank, where axis ``a`` of its data has become ``axis_map[a]``.

    Raises:
        Refusal: an axis is not known, or the operator of this opset flattens its input.
    """
    if node.op_type == "Slice":
        return _renumbered_slice(node, axis_map, context)
    if node.op_type == "Pad":
        return _renumbered_pad(node, axis_map)
    flattens = node.op_type in {"Softmax", "LogSoftmax"} and context.opset < 13
    default = {"Softmax": -1, "LogSoftmax": -1, "Split": 0}.get(node.op_type, 1)
    axis = axis_of(node, default, len(axis_map))
    if axis is None or flattens:
        reason = "flattens its input before opset 13" if flattens else "has an axis that is not known"
        raise Refusal(f"{node.op_type} {reason}", (node,))
    kept = () if node.op_type == "Concat" else tuple(node.inputs[1:])
    return Parameters({**attributes_of(node), **_written(node, axis_map[axis], default, len(axis_map))}, kept)


def _written(node: ir.Node, axis: int, default: int, size: int) -> dict[str, object]:
    """The axis as the original writes its own: left out, from the end, or from the front."""
    given = node.attributes.get_int("axis", None)
    if given is None and axis == (default + size if default < 0 else default):
        return {}
    from_the_end = (default if given is None else given) < 0
    return {"axis": axis - size if from_the_end else axis}


def axes_of(node: ir.Node) -> tuple[int, ...]:
    """The axes a reduction, Squeeze or Unsqueeze (there: in its result) works on, non-negative and sorted.

    Raises:
        Refusal: they or the rank are not known, or there are none.
    """
    given, size = given_axes(node), rank(operand(node, 0))
    if not given or size is None:
        what = "no constant axes" if not given else "an input of unknown rank"
        raise Refusal(f"{node.op_type} {text(node.outputs[0])} has {what}", (node,))
    found = normalise(given, size + len(given) if node.op_type == "Unsqueeze" else size)
    if found is None:
        raise Refusal(f"the axes {list(given)} of {text(node.outputs[0])} are out of range", (node,))
    return found


def with_axes(node: ir.Node, axes: Sequence[int], context: Context) -> Parameters:
    """Parameters of a reduction, Squeeze or Unsqueeze with other axes."""
    if axes_are_input(node.op_type, context.opset):
        return Parameters(attributes_of(node), (tuple(axes),))
    return Parameters(attributes_of(node, axes=list(axes)))


def drops_axes(node: ir.Node) -> bool:
    """Whether the result lacks the axes the operator works on."""
    return node.op_type == "Squeeze" or (
        node.op_type in REDUCTIONS and node.attributes.get_int("keepdims", 1) != 1
    )


def _renumbered_slice(node: ir.Node, axis_map: Sequence[int], context: Context) -> Parameters:
    axes = tuple(axis_map[axis] for axis in bounds_of(node))
    if context.opset < 10:
        return Parameters(attributes_of(node, axes=list(axes)))
    steps = operand(node, 4)
    kept = (node.inputs[1], node.inputs[2], axes)
    return Parameters(attributes_of(node), kept if steps is None else (*kept, steps))


def _renumbered_pad(node: ir.Node, axis_map: Sequence[int]) -> Parameters:
    attribute, value = node.attributes.get_ints("pads", None), operand(node, 2)
    given = operand(node, 3)
    if given is not None:
        listed = integers(given)
        axes = None if listed is None else [a + len(axis_map) if a < 0 else a for a in listed]
        if axes is None:
            raise Refusal(f"the axes of {text(node.outputs[0])} are not constant", (node,))
        return Parameters(attributes_of(node), (node.inputs[1], value, tuple(axis_map[a] for a in axes)))
    pads = tuple(attribute) if attribute is not None else integers(operand(node, 1))
    if pads is None or len(pads) != 2 * len(axis_map):
        raise Refusal(f"the pads of {text(node.outputs[0])} are not constant", (node,))
    half = len(axis_map)
    moved = [0] * (2 * half)
    for axis, new in enumerate(axis_map):
        moved[new], moved[half + new] = pads[axis], pads[half + axis]
    if attribute is not None:
        return Parameters(attributes_of(node, pads=moved))
    return Parameters(attributes_of(node), (tuple(moved),) if value is None else (tuple(moved), value))
