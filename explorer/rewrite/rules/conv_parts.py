"""What the convolution rules share: weights, biases and attributes of Conv nodes."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from explorer.rewrite.context import array, dims, ints, is_const, operand, rank, text
from explorer.rewrite.rule import Refusal, refuse_unless


def weight_of(conv: ir.Node) -> ir.Value:
    """The constant weight of a Conv; refuses a weight that can change at run time."""
    weight = operand(conv, 1)
    if weight is None:
        raise Refusal("the convolution has no weight")
    refuse_unless(is_const(weight), f"weight {text(weight)} {why_not_const(weight)}", conv)
    return weight


def bias_array(conv: ir.Node, like: np.ndarray) -> np.ndarray:
    """The constant bias of a Conv, zeros if it has none; refuses one that can change."""
    bias = operand(conv, 2)
    if bias is None:
        return np.zeros(like.shape[0], dtype=like.dtype)
    return array(bias)


def refuse_variable_bias(conv: ir.Node) -> None:
    """A bias is absent or constant."""
    bias = operand(conv, 2)
    if bias is not None:
        refuse_unless(is_const(bias), f"bias {text(bias)} {why_not_const(bias)}", conv)


def why_not_const(value: ir.Value) -> str:
    """Why a value is no constant, in words."""
    if value.is_graph_input():
        default = " with a default that callers may override" if value.is_initializer() else ""
        return f"is a graph input{default}, not a constant"
    return "is computed at run time, not a constant"


def group_of(conv: ir.Node) -> int:
    """The number of groups."""
    return conv.attributes.get_int("group", 1) or 1


def spatial_rank(conv: ir.Node) -> int | None:
    """Number of spatial axes, from the weight's rank."""
    found = rank(operand(conv, 1))
    return None if found is None else found - 2


def explicit_pads(node: ir.Node, spatial: int) -> tuple[int, ...] | None:
    """Explicit pads (all begins, all ends) of a Conv or pool; None for SAME, where they depend on the input."""
    auto = node.attributes.get_string("auto_pad", "NOTSET")
    if auto in {"NOTSET", ""}:
        return ints(node, "pads", (0,) * (2 * spatial))
    return (0,) * (2 * spatial) if auto == "VALID" else None


def has_zero_pads(conv: ir.Node) -> bool:
    """Whether a convolution is known to pad nothing."""
    spatial = spatial_rank(conv)
    pads = None if spatial is None else explicit_pads(conv, spatial)
    return pads is not None and not any(pads)


def is_pointwise(conv: ir.Node) -> bool:
    """Whether a convolution is 1x1 (x1) with stride 1 and no padding: one product per position."""
    shape = dims(operand(conv, 1))
    if (
        shape is None
        or any(size != 1 for size in shape[2:])
        or any(s != 1 for s in ints(conv, "strides", ()))
    ):
        return False
    return has_zero_pads(conv) or conv.attributes.get_string("auto_pad", "NOTSET") in {
        "SAME_UPPER",
        "SAME_LOWER",
    }


def geometry(conv: ir.Node) -> tuple[object, ...]:
    """Everything that must agree for two convolutions to be one: kernel, strides, pads, dilations, groups."""
    n = spatial_rank(conv) or 0
    weight = operand(conv, 1)
    kernel = tuple(weight.shape[2:]) if weight is not None and weight.shape is not None else None
    return (
        kernel,
        ints(conv, "strides", (1,) * n),
        ints(conv, "pads", (0,) * (2 * n)),
        ints(conv, "dilations", (1,) * n),
        conv.attributes.get_string("auto_pad", "NOTSET"),
        group_of(conv),
    )
