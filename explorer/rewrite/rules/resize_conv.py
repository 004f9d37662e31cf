"""Family C: a 1x1 convolution on either side of a Resize."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import (
    Context,
    array,
    dim,
    integers,
    ints,
    is_const,
    operand,
    producer,
    text,
)
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, refuse_unless
from explorer.rewrite.rules.conv_parts import is_pointwise

_RESIZES = ("Resize", "Upsample")
_SPATIAL = (
    "The Conv 1x1, stride 1, no pads (any groups); constant scales that leave batch and channels alone, or constant "
    "sizes; nearest, or linear or cubic without tf_crop_and_resize; the value in between read by nothing else."
)


class ResizeAfterPointwiseConv(PatternRule):
    """Conv1x1(Resize(x)) becomes Resize(Conv1x1(x))."""

    name = "resize-after-pointwise-conv"
    family = "C15"
    title = "Resize after the 1x1 convolution instead of before it"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "resize-before-pointwise-conv"
    preconditions = _SPATIAL
    evidence = "Enlarging by s: the convolution's FLOPs become s * s times fewer."
    anchors = ("Conv",)

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A 1x1 Conv of a Resize."""
        resize = producer(operand(node, 0), *_RESIZES)
        if resize is None or not is_pointwise(node):
            return None
        return _match(resize, node, (resize, node), node.outputs[0])

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The Conv, then the Resize."""
        resize, conv = match.nodes
        operands = [resize.inputs[0], *conv.inputs[1:]]
        value = build.op("Conv", operands, attributes_of(conv), dtype=conv.outputs[0].dtype)
        return [_resized(resize, value, match, build, match.outputs[0])]


class ResizeBeforePointwiseConv(PatternRule):
    """Resize(Conv1x1(x)) becomes Conv1x1(Resize(x))."""

    name = "resize-before-pointwise-conv"
    family = "C15"
    title = "Resize before the 1x1 convolution instead of after it"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "resize-after-pointwise-conv"
    preconditions = _SPATIAL
    evidence = "Pays where the Resize shrinks, or where the convolution enlarges the channels a lot."
    anchors = _RESIZES

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Resize of a 1x1 Conv."""
        conv = producer(operand(node, 0), "Conv")
        if conv is None or not is_pointwise(conv):
            return None
        return _match(node, conv, (conv, node), conv.inputs[0])

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The Resize, then the Conv."""
        conv, resize = match.nodes
        value = _resized(resize, conv.inputs[0], match, build)
        return [build.op("Conv", [value, *conv.inputs[1:]], attributes_of(conv), like=match.outputs[0])]


def _match(resize: ir.Node, conv: ir.Node, nodes: tuple[ir.Node, ir.Node], resized: ir.Value | None) -> Match:
    """``resized`` has the channels that the Resize will work on."""
    refuse_unless(
        resize.attributes.get_string("coordinate_transformation_mode", "") != "tf_crop_and_resize",
        "tf_crop_and_resize fills what lies outside with a constant",
        resize,
    )
    sizes = _new_sizes(resize, resized)
    summary = f"{text(resize.outputs[0])} and {text(conv.outputs[0])} change places"
    size, drops = (8 * len(sizes), (resize.inputs[3],)) if sizes else (0, ())
    return Match(nodes, (nodes[1].outputs[0],), {"sizes": sizes}, "", summary, size, drops)


def _new_sizes(resize: ir.Node, resized: ir.Value | None) -> tuple[int, ...] | None:
    """The ``sizes`` operand for other channels; None if the Resize is given by scales or by spatial sizes."""
    axes = ints(resize, "axes", ())
    if operand(resize, 3) is None:
        _refuse_other_scales(resize, axes)
        return None
    sizes = integers(resize.inputs[3])
    if sizes is None:
        raise Refusal(f"the sizes {text(resize.inputs[3])} are not constant", (resize,))
    if axes:
        _refuse_other_axes(resize, axes)
        return None
    before, channels = resize.inputs[0], dim(resized, 1)
    kept = (dim(before, 0), dim(before, 1)) == sizes[:2] and isinstance(channels, int)
    refuse_unless(kept, f"the sizes {list(sizes)} are not known to keep batch and channels", resize)
    return (sizes[0], channels if isinstance(channels, int) else 0, *sizes[2:])


def _refuse_other_scales(resize: ir.Node, axes: Sequence[int]) -> None:
    attribute = resize.attributes.get_floats("scales", None)
    value = operand(resize, 1 if len(resize.inputs) == 2 else 2)
    if attribute is None and not is_const(value):
        raise Refusal(f"the scales {text(value)} are not constant", (resize,))
    if axes:
        _refuse_other_axes(resize, axes)
        return
    scales = attribute if attribute is not None else array(value).ravel().tolist()
    refuse_unless(
        list(scales[:2]) == [1.0, 1.0], f"the scales {list(scales)} also change batch or channels", resize
    )


def _refuse_other_axes(resize: ir.Node, axes: Sequence[int]) -> None:
    size = len(resize.outputs[0].shape or ())
    spatial = all(axis >= 2 or (axis < 0 and axis + size >= 2) for axis in axes)
    refuse_unless(spatial, f"axes {list(axes)} are not all spatial", resize)


def _resized(
    resize: ir.Node, value: ir.Value | None, match: Match, build: Builder, like: ir.Value | None = None
) -> ir.Value:
    operands = [value, *resize.inputs[1:]]
    if match["sizes"]:
        operands[3] = build.ints(match["sizes"], "sizes")
    dtype = resize.outputs[0].dtype
    return build.op(resize.op_type, operands, attributes_of(resize), like=like, dtype=dtype)


RULES = (ResizeAfterPointwiseConv(), ResizeBeforePointwiseConv())
