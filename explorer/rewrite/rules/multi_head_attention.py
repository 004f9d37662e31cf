"""Family F: attention written out as com.microsoft MultiHeadAttention, and back."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from explorer.rewrite.builder import MICROSOFT, Builder
from explorer.rewrite.context import Context, dim, element_bytes, is_used, operand, rank, text
from explorer.rewrite.rule import FLOAT32, Match, NumericClass, PatternRule, Refusal, refuse_unless
from explorer.rewrite.rules.attention_parts import Attention, Mask, describe, read_attention
from explorer.rewrite.rules.heads import Heads, Layout
from explorer.rewrite.rules.patterns import describe_dims, number_like

MULTI_HEAD = "com.microsoft::MultiHeadAttention"


class FuseMultiHeadAttention(PatternRule):
    """softmax(scale * q k^T + mask) v becomes com.microsoft MultiHeadAttention."""

    name = "fuse-multi-head-attention"
    family = "F5"
    title = "Fuse attention (MultiHeadAttention)"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "split-multi-head-attention"
    preconditions = (
        "float32; queries, keys and values of rank 4 with the same batch and the same static number of heads; scale a "
        "one-element constant, before or after the product; a mask is added and broadcasts to the scores (expanded "
        "where it has one row for all queries); the scale positive; Softmax over the last axis. Heads may come from any transposition or "
        "from a Reshape; where they do not come from [batch, positions, heads * size], a Transpose is added."
    )
    evidence = (
        "ORT 1.32 CPU: -15 % at DISABLE, -11 % at ALL (ORT does not fuse this form without projections); with all 12 "
        "sites of bert_base or vit_b_16 about -5 % at ALL."
    )
    anchors = ("Softmax",)
    min_opset = 7
    portable = False
    dtypes = FLOAT32

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """The Softmax of an attention."""
        found = read_attention(node, context)
        if found is None:
            return None
        refuse_unless(found.scale > 0, f"the scale {found.scale:g} is not positive")
        mask = Mask(found)
        refuse_unless(not mask.target or context.opset >= 8, "to enlarge the mask opset 8 is needed")
        summary = f"attention with {describe(found)} becomes one node"
        layout = _key_value_layout(found)
        size = found.query.shape_bytes(Layout.FLAT) + found.result_bytes() + mask.nbytes(context)
        size += found.key.shape_bytes(layout) + found.value.shape_bytes(layout)
        bindings = {"attention": found, "mask": mask, "layout": layout}
        return Match(found.nodes, (found.output,), bindings, "", summary, size, found.drops)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One MultiHeadAttention, with transposes and reshapes where needed."""
        found, layout, like = match["attention"], match["layout"], match.outputs[0]
        operands: list[ir.Value | None] = [
            found.query.to(Layout.FLAT, build),
            found.key.to(layout, build),
            found.value.to(layout, build),
        ]
        mask = match["mask"].build(build)
        operands += [] if mask is None else [None, None, mask]
        attributes = {"num_heads": found.query.heads, "scale": found.scale}
        shape = [found.query.batch, found.query.positions, found.value.heads * found.value.size]
        flat = build.op(
            "MultiHeadAttention", operands, attributes, dtype=like.dtype, shape=shape, domain=MICROSOFT
        )
        return [found.result(flat, build)]


def _key_value_layout(attention: Attention) -> Layout:
    """How keys and values are handed over: both flat (the kernel then transposes each), or both by head."""
    key, value = attention.key, attention.value
    by_head = key.transposes(Layout.BNSD) + value.transposes(Layout.BNSD)
    flat = key.transposes(Layout.FLAT) + value.transposes(Layout.FLAT) + 2
    return Layout.BNSD if key.size == value.size and by_head < flat else Layout.FLAT


class SplitMultiHeadAttention(PatternRule):
    """com.microsoft MultiHeadAttention becomes products, Softmax, and transposes of the heads."""

    name = "split-multi-head-attention"
    family = "F5"
    title = "MultiHeadAttention to its parts"
    numeric_class = NumericClass.REASSOCIATED
    inverse = "fuse-multi-head-attention"
    preconditions = (
        "Queries of rank 3, keys and values of rank 3 or by head, static sizes of the last axes; no bias, padding "
        "mask, past or present, not unidirectional; one output."
    )
    evidence = "The reverse of F5; exposes the parts, and the result is portable."
    anchors = (MULTI_HEAD,)
    min_opset = 13
    dtypes = FLOAT32

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A MultiHeadAttention of separate queries, keys and values."""
        heads = _inputs(node)
        size = element_bytes(node.outputs[0]) + 8 * 3
        size += sum(8 * 4 for operand_ in heads if operand_.layout is Layout.FLAT)
        summary = f"{text(node.outputs[0])}: attention with {heads[0].heads} heads is written out"
        return Match((node,), (node.outputs[0],), {"heads": heads}, "", summary, size)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The parts in the order in which exporters write them."""
        (node,), like, (q, k, v) = match.nodes, match.outputs[0], match["heads"]
        scale = node.attributes.get_float("scale", None) or q.size**-0.5
        return [write_attention(q, k, v, scale, operand(node, 5), like, build, Layout.FLAT)]


def write_attention(
    q: Heads,
    k: Heads,
    v: Heads,
    scale: float,
    mask: ir.Value | None,
    like: ir.Value,
    build: Builder,
    layout: Layout,
) -> ir.Value:
    """softmax(scale * q k^T + mask) v in the wanted layout."""
    scores_shape = [q.batch, q.heads, q.positions, k.positions]
    operands = [q.to(Layout.BNSD, build), k.to(Layout.BNDS, build)]
    value = build.op("MatMul", operands, dtype=like.dtype, shape=scores_shape)
    value = build.op("Mul", [value, number_like(build, scale, like, "scale")], like=value)
    if mask is not None:
        value = build.op("Add", [value, mask], like=value)
    value = build.op("Softmax", [value], {"axis": -1}, like=value)
    shape = [q.batch, q.heads, q.positions, v.size]
    value = build.op("MatMul", [value, v.to(Layout.BNSD, build)], dtype=like.dtype, shape=shape)
    return Heads(value, Layout.BNSD, v.heads, v.size).to(layout, build)


_UNSUPPORTED = {3: "a bias", 4: "a padding mask", 6: "past keys", 7: "past values", 8: "a past length"}


def _inputs(node: ir.Node) -> list[Heads]:
    """Queries, keys and values by head; refuses what the parts cannot express."""
    for position, name in _UNSUPPORTED.items():
        refuse_unless(operand(node, position) is None, f"it has {name}")
    refuse_unless(operand(node, 9) is None, "it has a cache indirection")
    refuse_unless(not node.attributes.get_int("unidirectional", 0), "it is unidirectional")
    for unused in node.outputs[1:]:
        refuse_unless(not is_used(unused), f"{text(unused)} is used too")
    count = node.attributes.get_int("num_heads", 0) or 0
    found = []
    for position, name in enumerate(("queries", "keys", "values")):
        value = operand(node, position)
        if value is None or rank(value) not in ({3} if position == 0 else {3, 4}):
            raise Refusal(f"the {name} {text(value)} are packed or of unknown rank")
        last = dim(value, -1)
        if not isinstance(last, int) or not count:
            raise Refusal(f"the last dim of {text(value)} {describe_dims(value)} is not static")
        flat = rank(value) == 3
        layout = Layout.FLAT if flat else Layout.BNSD
        found.append(Heads(value, layout, count, last // count if flat else last))
    return found


RULES = (FuseMultiHeadAttention(), SplitMultiHeadAttention())
