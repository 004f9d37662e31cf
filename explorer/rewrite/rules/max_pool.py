"""Family C: pools of pools, and monotone activations on either side of a MaxPool."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import Context, dim, ints, operand, operator, producer, text
from explorer.rewrite.legality import describe_node
from explorer.rewrite.rule import Match, NumericClass, PatternRule, refuse_unless
from explorer.rewrite.rules.conv_parts import explicit_pads

_INCREASING = (
    *"Relu Sigmoid Tanh Clip Softplus Softsign Erf Exp Ceil Floor".split(),
    *("LeakyRelu", "HardSigmoid", "Elu"),
)
_SMALLEST_SPLIT = 4


class MergeMaxPools(PatternRule):
    """MaxPool(MaxPool(x)) becomes one MaxPool with kernel k1 + (k2 - 1) s1 and stride s1 s2."""

    name = "merge-max-pools"
    family = "C13"
    title = "Merge two max pools"
    numeric_class = NumericClass.EXACT
    inverse = "split-max-pool"
    preconditions = (
        "Explicit pads, dilation 1, ceil_mode 0, indices unused; where the second pool pads at the end, the first one "
        "has stride 1 or reaches the end of its (static) input exactly."
    )
    evidence = "Not measured."
    anchors = ("MaxPool",)
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A MaxPool of a MaxPool."""
        inner = producer(operand(node, 0), "MaxPool")
        if inner is None:
            return None
        for pool in (inner, node):
            _refuse_uneven(pool)
        (k1, s1, p1), (k2, s2, p2) = _window(inner), _window(node)
        _refuse_lost_border(inner, (k1, s1, p1), p2)
        kernel = [a + (b - 1) * s for a, b, s in zip(k1, k2, s1, strict=True)]
        strides = [a * b for a, b in zip(s1, s2, strict=True)]
        pads = [a + b * s for a, b, s in zip(p1, p2, s1 * 2, strict=True)]
        bindings = {"kernel_shape": kernel, "strides": strides, "pads": pads}
        summary = f"{text(node.outputs[0])} is one pool of {text(inner.inputs[0])} with kernel {kernel}"
        return Match((inner, node), (node.outputs[0],), bindings, summary=summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One MaxPool."""
        source = match.nodes[0].inputs[0]
        return [build.op("MaxPool", [source], dict(match.bindings), like=match.outputs[0])]


class SplitMaxPool(PatternRule):
    """A MaxPool with a large kernel becomes two with about half of it."""

    name = "split-max-pool"
    family = "C13"
    title = "Split a max pool with a large kernel"
    numeric_class = NumericClass.EXACT
    inverse = "merge-max-pools"
    preconditions = (
        "Explicit pads, dilation 1, ceil_mode 0, indices unused; kernel at least 4 along every axis."
    )
    evidence = "Not measured; k*k comparisons become two times (k/2)*(k/2)."
    anchors = ("MaxPool",)
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A MaxPool with a kernel of at least 4."""
        if min(ints(node, "kernel_shape", (0,))) < _SMALLEST_SPLIT:
            return None
        _refuse_uneven(node)
        kernel, strides, pads = _window(node)
        first = [size - size // 2 for size in kernel]
        second = [size // 2 + 1 for size in kernel]
        pads1 = [pad // 2 for pad in pads]
        pads2 = [pad - pad // 2 for pad in pads]
        bindings = {
            "first": {"kernel_shape": first, "strides": [1] * len(kernel), "pads": pads1},
            "second": {"kernel_shape": second, "strides": list(strides), "pads": pads2},
        }
        summary = f"{text(node.outputs[0])} in two steps with kernels {first} and {second}"
        return Match((node,), (node.outputs[0],), bindings, summary=summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Two MaxPool nodes, the first with stride 1."""
        (pool,), like = match.nodes, match.outputs[0]
        value = build.op("MaxPool", [pool.inputs[0]], match["first"], dtype=like.dtype)
        return [build.op("MaxPool", [value], match["second"], like=like)]


class MoveActivationAfterMaxPool(PatternRule):
    """MaxPool(f(x)) becomes f(MaxPool(x)) for a non-decreasing f."""

    name = "move-activation-after-max-pool"
    family = "C14"
    title = "Activation after the max pool instead of before it"
    numeric_class = NumericClass.EXACT
    inverse = "move-activation-before-max-pool"
    preconditions = (
        "f does not decrease (LeakyRelu and others with a non-negative slope); no window lies wholly in the padding; "
        "indices unused; f(x) read by nothing else."
    )
    evidence = "Less work for f, but a Conv before it can no longer absorb f."
    anchors = ("MaxPool",)

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A MaxPool of an activation."""
        activation = producer(operand(node, 0), *_INCREASING)
        if activation is None:
            return None
        _refuse_decreasing(activation)
        _refuse_empty_windows(node)
        summary = f"{describe_node(activation)} is applied to {text(node.outputs[0])}"
        bindings = {"pool": node, "activation": activation}
        return Match((activation, node), (node.outputs[0],), bindings, summary=summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The pool, then the activation."""
        pool, activation, like = match["pool"], match["activation"], match.outputs[0]
        value = build.op("MaxPool", [activation.inputs[0]], attributes_of(pool), like=like)
        return [_applied(activation, value, like, build)]


class MoveActivationBeforeMaxPool(PatternRule):
    """f(MaxPool(x)) becomes MaxPool(f(x)) for a non-decreasing f."""

    name = "move-activation-before-max-pool"
    family = "C14"
    title = "Activation before the max pool instead of after it"
    numeric_class = NumericClass.EXACT
    inverse = "move-activation-after-max-pool"
    preconditions = MoveActivationAfterMaxPool.preconditions.replace("f(x) read", "the pool read")
    evidence = "More work for f, but a Conv before the pool can absorb f."
    anchors = _INCREASING

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """An activation of a MaxPool."""
        pool = producer(operand(node, 0), "MaxPool")
        if pool is None or pool.outputs[0] is not node.inputs[0]:
            return None
        _refuse_decreasing(node)
        _refuse_empty_windows(pool)
        summary = f"{describe_node(node)} is applied to {text(pool.inputs[0])}"
        return Match((pool, node), (node.outputs[0],), {"pool": pool, "activation": node}, summary=summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """The activation, then the pool."""
        pool, activation, like = match["pool"], match["activation"], match.outputs[0]
        value = _applied(activation, pool.inputs[0], pool.inputs[0], build)
        return [build.op("MaxPool", [value], attributes_of(pool), like=like)]


def _applied(activation: ir.Node, value: ir.Value, like: ir.Value, build: Builder) -> ir.Value:
    operands = [value, *activation.inputs[1:]]
    return build.op(activation.op_type, operands, attributes_of(activation), like=like)


def _window(pool: ir.Node) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Kernel, strides and pads (``_refuse_uneven`` made sure that they are explicit)."""
    kernel = ints(pool, "kernel_shape", ())
    pads = explicit_pads(pool, len(kernel)) or (0,) * (2 * len(kernel))
    return kernel, ints(pool, "strides", (1,) * len(kernel)), pads


def _refuse_uneven(pool: ir.Node) -> None:
    attributes = pool.attributes
    explicit = explicit_pads(pool, len(ints(pool, "kernel_shape", ()))) is not None
    refuse_unless(explicit, "auto_pad is not explicit; make the pads explicit first", pool)
    refuse_unless(set(ints(pool, "dilations", (1,))) == {1}, "the pool is dilated", pool)
    refuse_unless(not attributes.get_int("ceil_mode", 0), "the pool rounds its size up (ceil_mode = 1)", pool)


def _refuse_lost_border(
    inner: ir.Node,
    window: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]],
    outer_pads: tuple[int, ...],
) -> None:
    """Elements that the inner pool leaves out at the end must not come back through the outer padding."""
    kernel, strides, pads = window
    n = len(kernel)
    for axis in range(n):
        if outer_pads[n + axis] == 0 or strides[axis] == 1:
            continue
        length = dim(inner.inputs[0], axis + 2)
        rest = (
            isinstance(length, int) and (length + pads[axis] + pads[n + axis] - kernel[axis]) % strides[axis]
        )
        refuse_unless(
            isinstance(length, int) and rest == 0,
            f"along axis {axis + 2} the first pool may leave out elements that the padding of the second covers",
            inner,
        )


def _refuse_decreasing(activation: ir.Node) -> None:
    name, default = {"LeakyRelu": ("alpha", 0.01), "HardSigmoid": ("alpha", 0.2), "Elu": ("alpha", 1.0)}.get(
        operator(activation), ("", 0.0)
    )
    slope = activation.attributes.get_float(name, default) if name else 0.0
    refuse_unless((slope or 0.0) >= 0, f"its slope {slope} is negative", activation)


def _refuse_empty_windows(pool: ir.Node) -> None:
    """A dilated window can fall between the elements, wholly into the padding."""
    dilated = set(ints(pool, "dilations", (1,))) != {1}
    padded = any(ints(pool, "pads", ())) or pool.attributes.get_string("auto_pad", "NOTSET") not in {
        "NOTSET",
        "VALID",
    }
    refuse_unless(
        not (dilated and padded), "a window of the dilated pool may lie wholly in the padding", pool
    )


RULES = (MergeMaxPools(), SplitMaxPool(), MoveActivationAfterMaxPool(), MoveActivationBeforeMaxPool())
