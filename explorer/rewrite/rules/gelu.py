"""Family E: Gelu, exact and in the tanh approximation, as one node, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

import onnx_ir as ir

from explorer.rewrite.builder import MICROSOFT, Builder
from explorer.rewrite.context import Context, constants_of, element_bytes, operand, text
from explorer.rewrite.rule import FLOAT32, Match, NumericClass, PatternRule, Refusal, Rule
from explorer.rewrite.rules.gelu_parts import CUBE, ERF_SCALE, TANH_SCALE, Gelu, erf_gelus, tanh_gelus
from explorer.rewrite.rules.patterns import FLOAT_OR_HALF, number_like

_FORMS = (
    "Constants within 1e-6 (4e-3 in half precision) and of one element; the factors in any order; all inner values "
    "read by nothing else."
)
_EVIDENCE = (
    "ORT 1.32 CPU: -37 to -41 % at DISABLE, absorbed at ALL; losing it cost 4.8x in onnxruntime#23491."
)


class _FuseGelu(Rule):
    """A written-out Gelu becomes one node."""

    family = "E6"
    numeric_class = NumericClass.REASSOCIATED
    preconditions = _FORMS
    evidence = _EVIDENCE
    op_type = "Gelu"
    domain = ""
    attributes: ClassVar[dict[str, object]] = {}
    find: Callable[[ir.Node], Iterator[Gelu]]

    def matches(self, node: ir.Node, context: Context) -> Iterator[Match | Refusal]:
        """Every Gelu built on this erf or tanh."""
        for found in self.find(node):
            nodes = tuple(dict.fromkeys(found.nodes))
            result = found.last.outputs[0]
            summary = f"{text(result)} = {self.op_type}({text(found.source)})"
            yield Match(nodes, (result,), {"source": found.source}, "", summary, 0, constants_of(nodes))

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One node."""
        like = match.outputs[0]
        return [build.op(self.op_type, [match["source"]], self.attributes, like=like, domain=self.domain)]


class FuseGelu(_FuseGelu):
    """0.5 * x * (1 + erf(x / sqrt 2)) becomes Gelu."""

    name = "fuse-gelu"
    title = "Fuse Gelu"
    inverse = "split-gelu"
    anchors = ("Erf",)
    min_opset = 20
    dtypes = FLOAT_OR_HALF
    find = staticmethod(erf_gelus)


class FuseMicrosoftGelu(_FuseGelu):
    """0.5 * x * (1 + erf(x / sqrt 2)) becomes com.microsoft Gelu."""

    name = "fuse-microsoft-gelu"
    title = "Fuse Gelu (com.microsoft)"
    inverse = "split-microsoft-gelu"
    anchors = ("Erf",)
    portable = False
    dtypes = FLOAT32
    domain = MICROSOFT
    find = staticmethod(erf_gelus)


class FuseTanhGelu(_FuseGelu):
    """0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) becomes Gelu with the tanh approximation."""

    name = "fuse-tanh-gelu"
    family = "E7"
    title = "Fuse Gelu in the tanh approximation"
    inverse = "split-tanh-gelu"
    anchors = ("Tanh",)
    min_opset = 20
    dtypes = FLOAT_OR_HALF
    attributes: ClassVar = {"approximate": "tanh"}
    find = staticmethod(tanh_gelus)


class FuseFastGelu(_FuseGelu):
    """0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) becomes com.microsoft FastGelu."""

    name = "fuse-fastgelu"
    family = "E7"
    title = "Fuse Gelu in the tanh approximation (FastGelu)"
    inverse = "split-fastgelu"
    anchors = ("Tanh",)
    portable = False
    dtypes = FLOAT32
    op_type = "FastGelu"
    domain = MICROSOFT
    find = staticmethod(tanh_gelus)


class _SplitGelu(PatternRule):
    """The reverse."""

    family = "E6"
    numeric_class = NumericClass.REASSOCIATED
    evidence = "The reverse: 1.6 to 1.7 times slower at DISABLE; exposes the parts to other rewrites."
    preconditions = "None."
    min_opset = 9
    approximate: ClassVar[str | None] = None  # wanted value of the attribute, None for operators without it
    tanh = False

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """Any such node."""
        if self.approximate is not None and self.approximate != node.attributes.get_string(
            "approximate", "none"
        ):
            return None
        if operand(node, 1) is not None:  # the bias of FastGelu: E8
            return None
        size = (5 if self.tanh else 3) * element_bytes(node.outputs[0])
        return Match(
            (node,), (node.outputs[0],), summary=f"{text(node.outputs[0])} is written out", new_bytes=size
        )

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """X * (1 + f) * 0.5, the form that ORT's own pass recognises."""
        (node,), like = match.nodes, match.outputs[0]
        source = node.inputs[0]
        value = _tanh(source, like, build) if self.tanh else _erf(source, like, build)
        value = build.op("Add", [value, number_like(build, 1.0, like, "one")], like=like)
        value = build.op("Mul", [source, value], like=like)
        return [build.op("Mul", [value, number_like(build, 0.5, like, "half")], like=like)]


def _erf(source: ir.Value | None, like: ir.Value, build: Builder) -> ir.Value:
    scaled = build.op("Div", [source, number_like(build, 1 / ERF_SCALE, like, "sqrt_two")], like=like)
    return build.op("Erf", [scaled], like=like)


def _tanh(source: ir.Value | None, like: ir.Value, build: Builder) -> ir.Value:
    cube = build.op("Pow", [source, number_like(build, 3.0, like, "three")], like=like)
    value = build.op("Mul", [cube, number_like(build, CUBE, like, "cube")], like=like)
    value = build.op("Add", [source, value], like=like)
    value = build.op("Mul", [value, number_like(build, TANH_SCALE, like, "scale")], like=like)
    return build.op("Tanh", [value], like=like)


class SplitGelu(_SplitGelu):
    """Gelu(x) becomes 0.5 * x * (1 + erf(x / sqrt 2))."""

    name = "split-gelu"
    title = "Gelu to its parts"
    inverse = "fuse-gelu"
    anchors = ("Gelu",)
    dtypes = FLOAT_OR_HALF
    approximate = "none"


class SplitMicrosoftGelu(_SplitGelu):
    """com.microsoft Gelu(x) becomes 0.5 * x * (1 + erf(x / sqrt 2))."""

    name = "split-microsoft-gelu"
    title = "com.microsoft Gelu to its parts"
    inverse = "fuse-microsoft-gelu"
    anchors = ("com.microsoft::Gelu",)
    dtypes = FLOAT32


class SplitTanhGelu(_SplitGelu):
    """Gelu(x, approximate="tanh") becomes its parts."""

    name = "split-tanh-gelu"
    family = "E7"
    title = "Gelu in the tanh approximation to its parts"
    inverse = "fuse-tanh-gelu"
    anchors = ("Gelu",)
    min_opset = 12
    dtypes = FLOAT_OR_HALF
    approximate = "tanh"
    tanh = True


class SplitFastGelu(_SplitGelu):
    """com.microsoft FastGelu(x) becomes its parts."""

    name = "split-fastgelu"
    family = "E7"
    title = "FastGelu to its parts"
    inverse = "fuse-fastgelu"
    anchors = ("com.microsoft::FastGelu",)
    min_opset = 12
    dtypes = FLOAT32
    tanh = True


class ApproximateGelu(PatternRule):
    """Gelu(x) becomes com.microsoft FastGelu(x), which is another function."""

    name = "approximate-gelu"
    family = "E7"
    title = "Replace Gelu by its tanh approximation (FastGelu)"
    numeric_class = NumericClass.APPROXIMATE
    default = False
    preconditions = "Exact Gelu, standard or com.microsoft; the result differs by up to about 5e-4."
    evidence = "ORT 1.32 CPU, 128 x 3072: -39 % at both levels."
    anchors = ("Gelu", "com.microsoft::Gelu")
    portable = False
    dtypes = FLOAT32

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """An exact Gelu."""
        if node.attributes.get_string("approximate", "none") != "none":
            return None
        return Match(
            (node,), (node.outputs[0],), summary=f"{text(node.outputs[0])} is approximated with tanh"
        )

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One FastGelu."""
        (node,) = match.nodes
        return [build.op("FastGelu", [node.inputs[0]], like=match.outputs[0], domain=MICROSOFT)]


RULES = (
    FuseGelu(),
    SplitGelu(),
    FuseMicrosoftGelu(),
    SplitMicrosoftGelu(),
    FuseTanhGelu(),
    SplitTanhGelu(),
    FuseFastGelu(),
    SplitFastGelu(),
    ApproximateGelu(),
)
