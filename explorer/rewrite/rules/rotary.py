"""Family F: rotary position embeddings written out as one node, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from explorer.rewrite.builder import MICROSOFT, Builder
from explorer.rewrite.context import (
    Context,
    array,
    constants_of,
    dim,
    dims,
    element_bytes,
    integers,
    is_const,
    operand,
    producer,
    rank,
    text,
)
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, Rule, refuse_unless
from explorer.rewrite.rules.attention_parts import going
from explorer.rewrite.rules.patterns import FLOAT_OR_HALF, both_orders, describe_dims, is_last_axis, reader_of
from explorer.rewrite.rules.siblings import split, split_bytes, split_sizes
from explorer.rewrite.rules.slice_parts import normal_bounds_of

_LARGEST_CACHE = 65536  # elements of a cosine table that matching looks at


@dataclass(frozen=True)
class _Rotation:
    """x * cos + concat(-x2, x1) * sin, with x1 and x2 the halves of x."""

    source: ir.Value
    output: ir.Value
    cos: ir.Value
    sin: ir.Value
    nodes: tuple[ir.Node, ...]


def read_rotation(negation: ir.Node) -> Iterator[_Rotation]:
    """The rotations whose negated half this Neg computes.

    Raises:
        Refusal: a bound of the halves is computed at run time.
    """
    concat = reader_of(negation.outputs[0], "Concat")
    if concat is None or len(concat.inputs) != 2 or concat.inputs[0] is not negation.outputs[0]:
        return
    halves = _halves(concat.inputs[1], negation.inputs[0])
    if halves is None or not is_last_axis(concat.attributes.get_int("axis", 0), concat.outputs[0]):
        return
    source, inner = halves
    turned = reader_of(concat.outputs[0], "Mul")
    total = None if turned is None else reader_of(turned.outputs[0], "Add")
    if turned is None or total is None:
        return
    sin = next((b for a, b in both_orders(turned) if a is concat.outputs[0]), None)
    straight = next((producer(b, "Mul") for a, b in both_orders(total) if a is turned.outputs[0]), None)
    if sin is None or straight is None:
        return
    for value, cos in both_orders(straight):
        if value is source and cos is not source:
            core = (total, straight, turned, concat, negation)
            yield _Rotation(source, total.outputs[0], cos, sin, (*core, *going(inner, core)))
            return


def _halves(first: ir.Value | None, second: ir.Value | None) -> tuple[ir.Value, tuple[ir.Node, ...]] | None:
    """(x, nodes) if the values are the first and second half of x's last axis, by Slice or Split."""
    a, b = producer(first, "Slice", "Split"), producer(second, "Slice", "Split")
    if a is None or b is None or a.inputs[0] is not b.inputs[0] or a.inputs[0] is None:
        return None
    source = a.inputs[0]
    size = dim(source, -1)
    if not isinstance(size, int) or size % 2:
        return None
    if a is b and a.op_type == "Split":
        halves = split_sizes(a, size) == (size // 2, size // 2) and list(a.outputs) == [first, second]
        return (source, (a,)) if halves and is_last_axis(a.attributes.get_int("axis", 0), source) else None
    if a.op_type != "Slice" or b.op_type != "Slice":
        return None
    last = (rank(source) or 1) - 1
    wanted = [(0, size // 2), (size // 2, size)]
    for node, (start, end) in zip((a, b), wanted, strict=True):
        bounds = normal_bounds_of(node)
        if set(bounds) != {last} or (bounds[last].start, bounds[last].end, bounds[last].step) != (
            start,
            end,
            1,
        ):
            return None
    return source, (a, b)


class _FuseRotary(Rule):
    """A rotation becomes one node."""

    family = "F8"
    numeric_class = NumericClass.REASSOCIATED
    anchors = ("Neg",)
    dtypes = FLOAT_OR_HALF
    per_batch: bool  # the caches have one row per batch entry and position

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """The rotation that this Neg belongs to."""
        for found in read_rotation(node):
            positions = self._check(found)
            size = dim(found.source, -1)
            batch = dim(found.source, 0)
            copies = 1
            if self.per_batch:
                refuse_unless(isinstance(batch, int), f"the batch of {text(found.source)} is not static")
                copies = batch if isinstance(batch, int) else 1
            elements = positions * (size if isinstance(size, int) else 0) * copies
            summary = f"{text(found.output)} is {text(found.source)} rotated by position"
            new = elements * element_bytes(found.source) + (0 if self.per_batch else 8)
            bindings = {"rotation": found, "copies": copies}
            yield Match(found.nodes, (found.output,), bindings, "", summary, new, constants_of(found.nodes))

    def _check(self, found: _Rotation) -> int:
        """The number of positions; refuses tables that are not one row per position, in two equal halves."""
        source = found.source
        refuse_unless(rank(source) == 4, f"{text(source)} has rank {rank(source)}, not 4 (heads in axis 1)")
        positions, size = dim(source, 2), dim(source, 3)
        for name, table in (("cosine", found.cos), ("sine", found.sin)):
            refuse_unless(is_const(table), f"the {name} {text(table)} is not a constant")
            shape = dims(table) or ()
            fits = len(shape) <= 4 and shape[-2:] == (positions, size) and all(x == 1 for x in shape[:-2])
            refuse_unless(
                fits,
                f"{name} {text(table)} {describe_dims(table)} is not one row per position of {text(source)}",
            )
            elements = array(table)
            refuse_unless(
                elements.size <= _LARGEST_CACHE, f"{name} {text(table)} has {elements.size} elements"
            )
            first, second = np.split(elements, 2, axis=-1)
            refuse_unless(np.array_equal(first, second), f"the two halves of the {name} {text(table)} differ")
        return positions if isinstance(positions, int) else 0

    def _caches(self, match: Match, build: Builder) -> list[ir.Value]:
        found: _Rotation = match["rotation"]
        tables = []
        for table, hint in ((found.cos, "cos_cache"), (found.sin, "sin_cache")):
            full = array(table)
            half = full.reshape(full.shape[-2:])[:, : full.shape[-1] // 2]
            if self.per_batch:
                half = np.repeat(half[None], match["copies"], axis=0)
            tables.append(build.constant(half.copy(), hint))
        return tables


class FuseMicrosoftRotary(_FuseRotary):
    """x * cos + rotate(x) * sin becomes com.microsoft RotaryEmbedding."""

    name = "fuse-microsoft-rotary"
    title = "Fuse rotary embedding (com.microsoft)"
    inverse = "split-microsoft-rotary"
    preconditions = (
        "x of rank 4 with heads in axis 1 and a static, even head size; halves by Slice or Split; cosine and sine "
        "constant, one row per position, their two halves equal (up to 65,536 elements)."
    )
    evidence = "ORT 1.32 CPU, 8 heads x 128 x 64: -61 to -63 % at DISABLE and at ALL. onnxscript ships it."
    portable = False
    per_batch = False

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One RotaryEmbedding that counts positions from zero."""
        found, like = match["rotation"], match.outputs[0]
        operands = [found.source, build.ints([0], "position"), *self._caches(match, build)]
        return [build.op("RotaryEmbedding", operands, like=like, domain=MICROSOFT)]


class FuseRotary(_FuseRotary):
    """x * cos + rotate(x) * sin becomes RotaryEmbedding."""

    name = "fuse-rotary"
    title = "Fuse rotary embedding"
    inverse = "split-rotary"
    preconditions = (
        "As for com.microsoft; the batch static, since the operator wants one table per batch entry."
    )
    evidence = "As for com.microsoft (the same kernel); portable from opset 23 on."
    min_opset = 23
    per_batch = True

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One RotaryEmbedding without position ids."""
        found, like = match["rotation"], match.outputs[0]
        return [build.op("RotaryEmbedding", [found.source, *self._caches(match, build)], like=like)]


class _SplitRotary(PatternRule):
    """RotaryEmbedding becomes Split, Neg, Concat, two Muls and Add."""

    family = "F8"
    numeric_class = NumericClass.REASSOCIATED
    preconditions = (
        "x of rank 4 with static positions and head size; constant tables; all of the head rotated, halves not "
        "interleaved; positions from zero."
    )
    evidence = "The reverse of F8."
    dtypes = FLOAT_OR_HALF
    tables: tuple[int, int]  # which operands the caches are

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A RotaryEmbedding with constant tables."""
        source = operand(node, 0)
        positions, size = dim(source, 2), dim(source, 3)
        known = rank(source) == 4 and isinstance(positions, int) and isinstance(size, int)
        refuse_unless(
            known, f"{text(source)} {describe_dims(source)} is not of rank 4 with static positions and sizes"
        )
        for flag in ("interleaved", "rotary_embedding_dim", "is_packed_batching"):
            refuse_unless(not node.attributes.get_int(flag, 0), f"{flag} is set")
        refuse_unless(node.attributes.get_float("scale", 1.0) == 1.0, "it scales the positions")
        self.check_positions(node)
        caches = [operand(node, position) for position in self.tables]
        for cache in caches:
            refuse_unless(is_const(cache), f"{text(cache)} is not a constant")
            shape = dims(cache) or ()
            fits = shape[-1:] == (size // 2 if isinstance(size, int) else 0,) and all(
                x == 1 for x in shape[:-2]
            )
            refuse_unless(fits, f"table {text(cache)} {describe_dims(cache)} is not one row per position")
        rows = positions if isinstance(positions, int) else 0
        width = size if isinstance(size, int) else 0
        new = 2 * rows * width * element_bytes(node.outputs[0]) + split_bytes(2, context)
        summary = f"{text(node.outputs[0])} is written out"
        bindings = {"rows": rows, "caches": caches, "width": width}
        return Match((node,), (node.outputs[0],), bindings, "", summary, new, tuple(node.inputs[1:]))

    def check_positions(self, node: ir.Node) -> None:
        """Refuse positions other than 0, 1, 2 and so on."""
        refuse_unless(operand(node, 3) is None, "it has position ids")

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The parts in the order in which exporters write them."""
        (node,), like, rows = match.nodes, match.outputs[0], match["rows"]
        source, half = node.inputs[0], match["width"] // 2
        if source is None:
            return []
        cos, sin = (self._table(cache, rows, build) for cache in match["caches"])
        first, second = split(source, [half, half], 3, build)
        turned = build.op(
            "Concat", [build.op("Neg", [second], dtype=like.dtype), first], {"axis": -1}, like=like
        )
        straight = build.op("Mul", [source, cos], like=like)
        return [build.op("Add", [straight, build.op("Mul", [turned, sin], like=like)], like=like)]

    def _table(self, cache: ir.Value, rows: int, build: Builder) -> ir.Value:
        half = array(cache)
        half = half.reshape(half.shape[-2:])[:rows]
        return build.constant(np.concatenate([half, half], axis=-1), f"{cache.name}_full")


class SplitMicrosoftRotary(_SplitRotary):
    """com.microsoft RotaryEmbedding becomes its parts."""

    name = "split-microsoft-rotary"
    title = "com.microsoft RotaryEmbedding to its parts"
    inverse = "fuse-microsoft-rotary"
    anchors = ("com.microsoft::RotaryEmbedding",)
    min_opset = 11
    tables = (2, 3)

    def check_positions(self, node: ir.Node) -> None:
        """An offset of zero."""
        found = integers(operand(node, 1))
        refuse_unless(found == (0,), "the positions do not start at a constant zero")


class SplitRotary(_SplitRotary):
    """RotaryEmbedding becomes its parts."""

    name = "split-rotary"
    title = "RotaryEmbedding to its parts"
    inverse = "fuse-rotary"
    anchors = ("RotaryEmbedding",)
    tables = (1, 2)


RULES = (FuseMicrosoftRotary(), SplitMicrosoftRotary(), FuseRotary(), SplitRotary())
