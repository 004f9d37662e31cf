"""Attention written out: scores, scale, mask, Softmax, and the sum of the values, read as one structure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import (
    Context,
    constants_of,
    dim,
    operand,
    producer,
    rank,
    readers,
    sole_reader,
    text,
)
from explorer.rewrite.rule import Refusal, refuse_unless
from explorer.rewrite.rules.axes import axes_bytes, build_with_axes, perm_of
from explorer.rewrite.rules.fused_matmul import FUSED, alpha_of
from explorer.rewrite.rules.heads import Dim, Heads, Layout, read_heads, split_heads
from explorer.rewrite.rules.patterns import (
    both_orders,
    broadcasts_into,
    describe_dims,
    factor_of,
    is_last_axis,
    reader_of,
)

_PRODUCTS = ("MatMul", FUSED)


@dataclass(frozen=True)
class Attention:
    """softmax(scale * query @ key^T + mask) @ value, and where its result goes.

    Attributes:
        query: by head, as far up as data movement reaches.
        key: likewise.
        value: likewise.
        scale: the factor of the scores.
        mask: what is added to the scores, or None.
        scores: the scores before the mask, ``[b, n, s, t]``.
        output: the value that is replaced.
        layout: the axis order of ``output``.
        nodes: the nodes that are replaced.
    """

    query: Heads
    key: Heads
    value: Heads
    scale: float
    mask: ir.Value | None
    scores: ir.Value
    output: ir.Value
    layout: Layout
    nodes: tuple[ir.Node, ...]

    @property
    def drops(self) -> tuple[ir.Value, ...]:
        """Constants that are not read any more."""
        return tuple(value for value in constants_of(self.nodes) if value is not self.mask)

    def result(self, flat: ir.Value, build: Builder) -> ir.Value:
        """``[b, s, n * v]`` in the layout of the value that is replaced."""
        if self.layout is Layout.FLAT:
            return flat
        return split_heads(flat, self.value.heads, self.value.size, build).to(self.layout, build)

    def result_bytes(self) -> int:
        """Bytes of the constants that ``result`` creates."""
        return 0 if self.layout is Layout.FLAT else 8 * 4


def read_attention(softmax: ir.Node, context: Context) -> Attention | None:
    """The attention whose Softmax this is; None if it is something else.

    Raises:
        Refusal: it is attention in all but a shape or the kind of mask.
    """
    product = reader_of(softmax.outputs[0], "MatMul")
    axis = softmax.attributes.get_int("axis", -1 if context.opset >= 13 else 1)
    if (
        product is None
        or product.inputs[0] is not softmax.outputs[0]
        or not is_last_axis(axis, softmax.inputs[0])
    ):
        return None
    found = _masked_scores(operand(softmax, 0))
    scaled = None if found is None else _scaled_product(found[0])
    if found is None or scaled is None:
        return None
    (scores, mask, add), (matmul, scale, scaling) = found, scaled
    query, query_scale, query_nodes = _without_scale(operand(matmul, 0))
    key, key_scale, key_nodes = _without_scale(operand(matmul, 1))
    refuse_unless(
        rank(query) != 3, f"queries {text(query)} have rank 3: their heads are in the batch axis", matmul
    )
    transposed = matmul.attributes.get_int("transB", 0)
    q = read_heads(query, Layout.BNSD)
    k = read_heads(key, Layout.BNSD if transposed else Layout.BNDS)
    v = read_heads(operand(product, 1), Layout.BNSD)
    if q is None or k is None or v is None:
        return None
    _refuse_broadcast(q, k, v, matmul)
    q, k, v = q.peeled(), k.peeled(), v.peeled()
    output, layout, tail = _destination(product, q, v)
    core = (*tail, product, softmax, *add, *scaling, matmul)
    moves = going((*query_nodes, *q.nodes, *key_nodes, *k.nodes, *v.nodes), core)
    factor = scale * query_scale * key_scale
    return Attention(q, k, v, factor, mask, scores, output, layout, (*core, *moves))


def _masked_scores(
    value: ir.Value | None,
) -> tuple[ir.Value, ir.Value | None, tuple[ir.Node, ...]] | None:
    """(scores, mask, nodes between them and the Softmax)."""
    add, where = producer(value, "Add"), producer(value, "Where")
    if add is not None:
        for scores, mask in both_orders(add):
            if _scaled_product(scores) is not None:
                return scores, mask, (add,)
        return None
    if where is not None and any(_scaled_product(branch) is not None for branch in where.inputs[1:]):
        raise Refusal("the scores are masked by Where, not by an Add", (where,))
    return None if value is None else (value, None, ())


def _scaled_product(scores: ir.Value | None) -> tuple[ir.Node, float, tuple[ir.Node, ...]] | None:
    """(product, scale, nodes after it)."""
    scaling = producer(scores, "Mul", "Div")
    found = factor_of(scaling)
    nodes: tuple[ir.Node, ...] = ()
    scale = 1.0
    if scaling is not None:
        if found is None:
            return None
        scores, scale, nodes = found[0], found[1], (scaling,)
    matmul = producer(scores, *_PRODUCTS)
    flags = ("transA", "transBatchA", "transBatchB")
    if matmul is None or any(matmul.attributes.get_int(flag, 0) for flag in flags):
        return None
    return matmul, scale * alpha_of(matmul), nodes


def _without_scale(value: ir.Value | None) -> tuple[ir.Value | None, float, tuple[ir.Node, ...]]:
    node = producer(value, "Mul", "Div")
    found = factor_of(node)
    return (value, 1.0, ()) if node is None or found is None else (found[0], found[1], (node,))


def _refuse_broadcast(q: Heads, k: Heads, v: Heads, matmul: ir.Node) -> None:
    refuse_unless(
        q.heads == k.heads == v.heads,
        f"queries, keys and values have {q.heads}, {k.heads} and {v.heads} heads",
        matmul,
    )
    known = q.batch is not None and q.batch == k.batch == v.batch
    refuse_unless(
        known, f"the batches of {text(q.value)}, {text(k.value)} and {text(v.value)} may differ", matmul
    )


def _destination(
    product: ir.Node, query: Heads, value: Heads
) -> tuple[ir.Value, Layout, tuple[ir.Node, ...]]:
    """The value to replace: heads merged again if the graph does that next, else as far as it goes."""
    output = product.outputs[0]
    transpose = sole_reader(output, "Transpose")
    if transpose is None or perm_of(transpose) != (0, 2, 1, 3) or transpose.graph is not product.graph:
        return output, Layout.BNSD, ()
    merged = sole_reader(transpose.outputs[0], "Reshape")
    wanted: tuple[Dim, ...] = (query.batch, query.positions, value.heads * value.size)
    if merged is not None and merged.graph is product.graph and rank(merged.outputs[0]) == 3:
        shape = tuple(dim(merged.outputs[0], axis) for axis in range(3))
        if None not in shape and shape == wanted:
            return merged.outputs[0], Layout.FLAT, (merged, transpose)
    return transpose.outputs[0], Layout.BSND, (transpose,)


def going(inner: Iterable[ir.Node], removed: Iterable[ir.Node]) -> tuple[ir.Node, ...]:
    """Those of the inner nodes (the ones nearest to the removed first) that only removed nodes read."""
    gone = dict.fromkeys(removed)
    home = next(iter(gone)).graph
    found = []
    for node in inner:
        result = node.outputs[0]
        if node in gone or node.graph is not home or result.is_graph_output():
            continue
        if all(reader in gone for reader in readers(result)):
            gone[node] = None
            found.append(node)
    return tuple(found)


class Mask:
    """The mask of an attention in the form the fused operators take: ``[1 or b, 1 or n, s, t]``.

    A mask with one row for all queries is expanded; where their number is dynamic, it is read at run time.

    Raises:
        Refusal: it cannot be brought into that form.
    """

    def __init__(self, attention: Attention, *, any_rank: bool = False) -> None:
        self.value = mask = attention.mask
        self.query = attention.query
        self.target: list[int] = []  # what to expand to; rows -1 where they are read at run time
        self.axes: tuple[int, ...] = ()
        if mask is None:
            return
        scores = attention.scores
        refuse_unless(
            broadcasts_into(mask, scores),
            f"mask {text(mask)} {describe_dims(mask)} does not provably broadcast to the scores {describe_dims(scores)}",
        )
        size = rank(mask) or 0
        rows, columns = dim(scores, -2), dim(scores, -1)
        if size >= 2 and (dim(mask, -2), dim(mask, -1)) == (rows, columns):
            self.axes = () if any_rank else tuple(range(4 - size))
            return
        known = isinstance(columns, int) or (size >= 1 and dim(mask, -1) == columns)
        refuse_unless(
            known,
            f"mask {text(mask)} {describe_dims(mask)} is the same for all {columns} keys, a dynamic number",
        )
        last = columns if isinstance(columns, int) else 1
        self.target = [1, 1, rows if isinstance(rows, int) else -1, last]

    def nbytes(self, context: Context) -> int:
        """Bytes of the constants that ``build`` creates."""
        if self.target:
            return 8 * 4
        return axes_bytes("Unsqueeze", self.axes, context) if self.axes else 0

    def build(self, build: Builder) -> ir.Value | None:
        """The mask, unsqueezed or expanded where needed; None if there is none."""
        if self.value is None:
            return None
        if self.target:
            return build.op("Expand", [self.value, self._shape(build)], dtype=self.value.dtype)
        if self.axes:
            return build_with_axes("Unsqueeze", self.value, self.axes, build, dtype=self.value.dtype)
        return self.value

    def _shape(self, build: Builder) -> ir.Value:
        if -1 not in self.target:
            return build.ints(self.target, "mask_shape")
        dtype = ir.DataType.INT64
        sizes = build.op("Shape", [self.query.value], dtype=dtype)
        place = build.ints([self.query.position_axis], "position_axis")
        rows = build.op("Gather", [sizes, place], {"axis": 0}, dtype=dtype, shape=[1])
        parts = [build.ints(self.target[:2], "ones"), rows, build.ints(self.target[3:], "last")]
        return build.op("Concat", parts, {"axis": 0}, dtype=dtype, shape=[4])


def describe(attention: Attention) -> str:
    """Heads and sizes, for a summary."""
    return f"{attention.query.heads} heads of {attention.query.size}"
