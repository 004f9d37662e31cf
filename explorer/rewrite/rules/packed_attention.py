"""Family F: MultiHeadAttention and its projections as one com.microsoft Attention, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import MICROSOFT, Builder
from explorer.rewrite.context import (
    Context,
    array,
    dim,
    element_bytes,
    is_const,
    nbytes,
    operand,
    producer,
    rank,
    split_operands,
    text,
)
from explorer.rewrite.rule import FLOAT32, Match, NumericClass, PatternRule, Refusal, refuse_unless
from explorer.rewrite.rules.multi_head_attention import MULTI_HEAD
from explorer.rewrite.rules.patterns import is_last_axis
from explorer.rewrite.rules.siblings import slices, split_sizes

PACKED = "com.microsoft::Attention"


@dataclass(frozen=True)
class _Projection:
    """x @ weight + bias."""

    source: ir.Value
    weight: ir.Value
    bias: ir.Value | None
    nodes: tuple[ir.Node, ...]

    @property
    def columns(self) -> int:
        size = dim(self.weight, 1)
        return size if isinstance(size, int) else 0


class FuseAttentionProjections(PatternRule):
    """MultiHeadAttention(x Wq + bq, x Wk + bk, x Wv + bv) becomes com.microsoft Attention(x, W, b)."""

    name = "fuse-attention-projections"
    family = "F6"
    title = "Fuse attention and its projections (Attention)"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "split-attention-projections"
    preconditions = (
        "The three projections read the same tensor of rank 3, with constant weights of rank 2 and constant biases "
        "or none (zeros where only some have one), or come in order from one Split of a merged projection; each read "
        "by nothing else. No cache, no padding mask, no bias in the MultiHeadAttention."
    )
    evidence = (
        "ORT's offline tool often misses it (microsoft/onnxruntime#10359, #21208, #23864); one product instead of "
        "three, see D5."
    )
    anchors = (MULTI_HEAD,)
    portable = False
    dtypes = FLOAT32

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A MultiHeadAttention of three projections."""
        inputs = [operand(node, position) for position in range(3)]
        merged = _merged(inputs)
        found = [merged] if merged is not None else [_projection(value) for value in inputs]
        projections = [p for p in found if p is not None]
        if len(projections) < len(found) or len({p.source for p in projections}) > 1:
            return None
        for position, name in {3: "a bias", 4: "a padding mask", 6: "past keys", 7: "past values"}.items():
            refuse_unless(operand(node, position) is None, f"it has {name}")
        refuse_unless(len(node.outputs) == 1, "it returns keys and values")
        source = projections[0].source
        refuse_unless(rank(source) == 3, f"{text(source)} has rank {rank(source)}, not 3")
        sizes = [dim(value, -1) for value in inputs]
        for value, size in zip(inputs, sizes, strict=True):
            refuse_unless(isinstance(size, int), f"the last dim of {text(value)} is not static")
        nodes = tuple(dict.fromkeys(n for p in projections for n in p.nodes))
        bindings = {"node": node, "projections": projections, "sizes": sizes}
        summary = f"attention and the projections of {text(source)} become one node"
        size, drops = (0, merged.nodes[-1].inputs[1:]) if merged is not None else _repacked(projections)
        return Match((*nodes, node), (node.outputs[0],), bindings, "", summary, size, tuple(drops))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Attention."""
        node, projections, sizes = match["node"], match["projections"], match["sizes"]
        first = projections[0]
        weight, bias = first.weight, first.bias
        if len(projections) > 1:
            merged = np.concatenate([array(p.weight) for p in projections], axis=1)
            weight = build.constant(merged, f"{first.weight.name}_qkv")
            bias = None
            if any(p.bias is not None for p in projections):
                parts = [_bias_array(p, merged.dtype) for p in projections]
                bias = build.constant(np.concatenate(parts), f"{first.weight.name}_qkv_bias")
        inputs = [first.source, weight, bias, None, None, operand(node, 5)]
        while inputs[-1] is None:
            inputs.pop()
        attributes = {
            key: node.attributes[key].value for key in ("num_heads", "scale") if key in node.attributes
        }
        if len(set(sizes)) > 1:
            attributes["qkv_hidden_sizes"] = sizes
        return [build.op("Attention", inputs, attributes, like=match.outputs[0], domain=MICROSOFT)]


def _projection(value: ir.Value | None) -> _Projection | None:
    add = producer(value, "Add")
    operands = None if add is None else split_operands(add)
    matmul = producer(operands[0] if operands else value, "MatMul")
    weight = None if matmul is None else operand(matmul, 1)
    if (
        matmul is None
        or weight is None
        or matmul.inputs[0] is None
        or not is_const(weight)
        or rank(weight) != 2
    ):
        return None
    if add is None or operands is None:
        return _Projection(matmul.inputs[0], weight, None, (matmul,))
    if rank(operands[1]) != 1 or dim(operands[1], 0) != dim(weight, 1):
        return None
    return _Projection(matmul.inputs[0], weight, operands[1], (matmul, add))


def _merged(inputs: Sequence[ir.Value | None]) -> _Projection | None:
    """The projection whose Split gives queries, keys and values in order."""
    split = producer(inputs[0], "Split")
    if split is None or list(split.outputs) != list(inputs):
        return None
    found = _projection(split.inputs[0])
    if found is None or not is_last_axis(split.attributes.get_int("axis", 0), split.inputs[0]):
        return None
    if split_sizes(split, found.columns) is None:
        return None
    return _Projection(found.source, found.weight, found.bias, (*found.nodes, split))


def _repacked(projections: Sequence[_Projection]) -> tuple[int, tuple[ir.Value | None, ...]]:
    size = sum(nbytes(p.weight) for p in projections)
    if any(p.bias is not None for p in projections):
        size += sum(p.columns for p in projections) * element_bytes(projections[0].weight)
    return size, tuple(value for p in projections for value in (p.weight, p.bias))


def _bias_array(projection: _Projection, dtype: np.dtype) -> np.ndarray:
    return np.zeros(projection.columns, dtype) if projection.bias is None else array(projection.bias)


class SplitAttentionProjections(PatternRule):
    """com.microsoft Attention(x, W, b) becomes three projections and MultiHeadAttention."""

    name = "split-attention-projections"
    family = "F6"
    title = "Attention to projections and MultiHeadAttention"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "fuse-attention-projections"
    preconditions = (
        "Constant weight and bias; no mask index, past or present, not unidirectional, no rotary embedding; the mask "
        "is an attention bias."
    )
    evidence = "The reverse of F6."
    anchors = (PACKED,)
    portable = False
    min_opset = 7
    dtypes = FLOAT32

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """An Attention with constant weights."""
        weight, bias = operand(node, 1), operand(node, 2)
        for value in (weight, bias):
            refuse_unless(value is None or is_const(value), f"{text(value)} is not a constant")
        for position, name in {3: "a mask index", 4: "past keys and values", 6: "a past length"}.items():
            refuse_unless(operand(node, position) is None, f"it has {name}")
        for flag, problem in {"unidirectional": "it is unidirectional", "do_rotary": "it rotates"}.items():
            refuse_unless(not node.attributes.get_int(flag, 0), problem)
        refuse_unless(len(node.outputs) == 1, "it returns keys and values")
        columns = dim(weight, 1)
        if weight is None or not isinstance(columns, int):
            raise Refusal(f"the shape of weight {text(weight)} is unknown")
        sizes = node.attributes.get_ints("qkv_hidden_sizes", None) or [columns // 3] * 3
        summary = f"the projections of {text(node.inputs[0])} become products of their own"
        size, drops = nbytes(weight) + nbytes(bias), (weight, bias)
        return Match((node,), (node.outputs[0],), {"sizes": list(sizes)}, "", summary, size, drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Three MatMuls (and Adds), then MultiHeadAttention."""
        (node,), sizes, like = match.nodes, match["sizes"], match.outputs[0]
        source, weight, bias = node.inputs[0], node.inputs[1], operand(node, 2)
        biases = slices(array(bias), sizes, 0) if bias is not None else []
        inputs: list[ir.Value | None] = []
        for index, part in enumerate(slices(array(weight), sizes, 1)):
            shape = [dim(source, 0), dim(source, 1), sizes[index]]
            constant = build.constant(part, f"{weight.name if weight else 'weight'}_part")
            value = build.op("MatMul", [source, constant], dtype=like.dtype, shape=shape)
            if biases:
                value = build.op("Add", [value, build.constant(biases[index], "bias_part")], like=value)
            inputs.append(value)
        mask = operand(node, 5)
        inputs += [] if mask is None else [None, None, mask]
        attributes = {
            key: node.attributes[key].value for key in ("num_heads", "scale") if key in node.attributes
        }
        return [build.op("MultiHeadAttention", inputs, attributes, like=like, domain=MICROSOFT)]


RULES = (FuseAttentionProjections(), SplitAttentionProjections())
