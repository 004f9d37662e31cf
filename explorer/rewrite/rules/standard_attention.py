"""Family F: attention written out as ONNX Attention (opset 23), and back."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import Context, dim, element_bytes, is_used, operand, rank, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, refuse_unless
from explorer.rewrite.rules.attention_parts import Attention, Mask, describe, read_attention
from explorer.rewrite.rules.heads import Heads, Layout
from explorer.rewrite.rules.multi_head_attention import write_attention
from explorer.rewrite.rules.patterns import FLOAT_HALF_DOUBLE, FLOAT_OR_HALF, broadcasts_into, describe_dims


class FuseAttention(PatternRule):
    """softmax(scale * q k^T + mask) v becomes Attention."""

    name = "fuse-attention"
    family = "F7"
    title = "Fuse attention (Attention of opset 23)"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "split-attention"
    preconditions = (
        "As F5, in float or half precision. The operator takes heads as a fourth axis or, where queries, keys, values "
        "and result all are [batch, positions, heads * size], without splitting them."
    )
    evidence = "ORT 1.32 has kernels for float and half precision (double is expanded into some fifty nodes)."
    anchors = ("Softmax",)
    min_opset = 23
    dtypes = FLOAT_OR_HALF

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """The Softmax of an attention."""
        found = read_attention(node, context)
        if found is None:
            return None
        refuse_unless(found.scale > 0, f"the scale {found.scale:g} is not positive")
        mask = Mask(found, any_rank=True)
        layout = Layout.FLAT if _is_flat(found) else Layout.BNSD
        summary = f"attention with {describe(found)} becomes one node"
        operands = (found.query, found.key, found.value)
        size = mask.nbytes(context) + sum(heads.shape_bytes(layout) for heads in operands)
        size += 8 * 3 if layout is Layout.BNSD and found.layout is Layout.FLAT else 0
        bindings = {"attention": found, "mask": mask, "layout": layout}
        return Match(found.nodes, (found.output,), bindings, "", summary, size, found.drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Attention, with transposes where heads are in another order."""
        found, layout, like = match["attention"], match["layout"], match.outputs[0]
        operands: list[ir.Value | None] = [
            heads.to(layout, build) for heads in (found.query, found.key, found.value)
        ]
        mask = match["mask"].build(build)
        operands += [] if mask is None else [mask]
        attributes: dict[str, object] = {"scale": found.scale}
        if layout is Layout.FLAT:
            attributes |= {"q_num_heads": found.query.heads, "kv_num_heads": found.query.heads}
            return [build.op("Attention", operands, attributes, like=like)]
        shape = [found.query.batch, found.value.heads, found.query.positions, found.value.size]
        value = build.op("Attention", operands, attributes, dtype=like.dtype, shape=shape)
        return [Heads(value, Layout.BNSD, found.value.heads, found.value.size).to(found.layout, build)]


def _is_flat(attention: Attention) -> bool:
    layouts = {attention.layout, *(h.layout for h in (attention.query, attention.key, attention.value))}
    return layouts == {Layout.FLAT}


class SplitAttention(PatternRule):
    """Attention becomes products, Softmax, and transposes of the heads."""

    name = "split-attention"
    family = "F7"
    title = "Attention of opset 23 to its parts"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "fuse-attention"
    preconditions = (
        "As many key heads as query heads; static heads and sizes; a float mask that broadcasts to the scores; not "
        "causal, no past or present, no soft cap, no valid length; one output."
    )
    evidence = "The reverse of F7; exposes the parts to other rewrites."
    anchors = ("Attention",)
    dtypes = FLOAT_HALF_DOUBLE

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """An Attention without cache and without special masks."""
        q, k, v = heads = _heads(node)
        _refuse_mask(node, q, k)
        flat = q.layout is Layout.FLAT
        size = element_bytes(node.outputs[0]) + (8 * 3 if flat else 0)
        size += sum(8 * 4 for operand_ in heads if operand_.layout is Layout.FLAT)
        summary = f"{text(node.outputs[0])}: attention with {q.heads} heads is written out"
        return Match((node,), (node.outputs[0],), {"heads": (q, k, v)}, "", summary, size)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The parts in the order in which exporters write them."""
        (node,), like, (q, k, v) = match.nodes, match.outputs[0], match["heads"]
        scale = node.attributes.get_float("scale", None) or q.size**-0.5
        flat = q.layout is Layout.FLAT
        return [
            write_attention(
                q, k, v, scale, operand(node, 3), like, build, Layout.FLAT if flat else Layout.BNSD
            )
        ]


_PLAIN = {
    "is_causal": "it is causal",
    "softcap": "it has a soft cap",
    "qk_matmul_output_mode": "it returns scores",
}


def _heads(node: ir.Node) -> tuple[Heads, Heads, Heads]:
    for name, problem in _PLAIN.items():
        attribute = node.attributes.get(name)
        refuse_unless(attribute is None or not attribute.value, problem)
    for side in ("left_window_size", "right_window_size"):
        refuse_unless(node.attributes.get_int(side, -1) == -1, f"{side} limits the keys")
    for position, name in {4: "past keys", 5: "past values", 6: "valid lengths"}.items():
        refuse_unless(operand(node, position) is None, f"it has {name}")
    for unused in node.outputs[1:]:
        refuse_unless(not is_used(unused), f"{text(unused)} is used too")
    attributes = node.attributes
    counts = [attributes.get_int(f"{prefix}_num_heads", 0) or 0 for prefix in ("q", "kv", "kv")]
    q, k, v = (_operand(node, position, count) for position, count in enumerate(counts))
    refuse_unless(q.heads == k.heads == v.heads, f"there are {q.heads} query heads and {k.heads} key heads")
    return q, k, v


def _operand(node: ir.Node, position: int, count: int) -> Heads:
    value = operand(node, position)
    size = dim(value, -1)
    if value is None or rank(value) not in {3, 4} or not isinstance(size, int):
        raise Refusal(f"the last dim or the rank of {text(value)} is unknown")
    if rank(value) == 3:
        refuse_unless(count, "the number of heads is missing")
        return Heads(value, Layout.FLAT, count, size // count)
    heads = dim(value, 1)
    if not isinstance(heads, int):
        raise Refusal(f"the number of heads of {text(value)} {describe_dims(value)} is not static")
    return Heads(value, Layout.BNSD, heads, size)


def _refuse_mask(node: ir.Node, q: Heads, k: Heads) -> None:
    mask = operand(node, 3)
    if mask is None:
        return
    refuse_unless(mask.dtype == node.outputs[0].dtype, f"mask {text(mask)} is not of the type of the queries")
    shape = ir.Shape([q.batch, q.heads, q.positions, k.positions])
    scores = ir.Value(name="scores", shape=shape)
    refuse_unless(
        broadcasts_into(mask, scores),
        f"mask {text(mask)} {describe_dims(mask)} does not provably broadcast to the scores {describe_dims(scores)}",
    )


RULES = (FuseAttention(), SplitAttention())
