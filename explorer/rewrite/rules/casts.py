"""Family A: casts that change nothing, and casts of casts."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from explorer.rewrite.builder import Builder, attributes_of
from explorer.rewrite.context import Context, exclusive, operand, producer, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, refuse_unless
from explorer.rewrite.rules.elimination import Bypass, bypass

_D = ir.DataType
_SIGNED = {_D.INT8: 8, _D.INT16: 16, _D.INT32: 32, _D.INT64: 64}
_UNSIGNED = {_D.UINT8: 8, _D.UINT16: 16, _D.UINT32: 32, _D.UINT64: 64}
_SIGNIFICAND_BITS = {_D.BFLOAT16: 8, _D.FLOAT16: 11, _D.FLOAT: 24, _D.DOUBLE: 53}
_WIDER_FLOATS = {
    _D.FLOAT16: {_D.FLOAT, _D.DOUBLE},
    _D.BFLOAT16: {_D.FLOAT, _D.DOUBLE},
    _D.FLOAT: {_D.DOUBLE},
}


class EliminateCast(Bypass):
    """Cast(x) to the type x already has becomes x."""

    name = "eliminate-cast"
    family = "A3"
    title = "Remove Cast to the same type"
    preconditions = "The element type of x is known and is the target type."
    evidence = "Absorbed by ONNX Runtime at ALL; onnxruntime#32416 shows an interaction bug there."
    anchors = ("Cast", "CastLike")

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Cast or CastLike that keeps the type."""
        source, target = operand(node, 0), target_type(node)
        if source is None or target is None or source.dtype != target:
            return None
        return bypass(node, f"{text(node.outputs[0])} is {text(source)}, already {target.name.lower()}")


class MergeCasts(PatternRule):
    """Cast(Cast(x, A), B) becomes Cast(x, B), or x where B is the type of x."""

    name = "merge-casts"
    family = "A3"
    title = "Merge two casts"
    numeric_class = NumericClass.EXACT
    preconditions = (
        "The first cast keeps every value (for example float16 to float, int32 to int64); no strings; an "
        "integer that passes through a float ends in a type that holds it."
    )
    evidence = "Absorbed by ONNX Runtime at ALL; onnxruntime#32416 shows an interaction bug there."
    anchors = ("Cast",)
    dtypes = None

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """A Cast whose input is a Cast."""
        first = producer(operand(node, 0), "Cast")
        if first is None or first.inputs[0] is None:
            return None
        source, middle, target = first.inputs[0], target_type(first), target_type(node)
        if source.dtype is None or middle is None or target is None or source.dtype == middle:
            return None
        refuse_unless(
            keeps_values(source.dtype, middle),
            f"the first cast, from {_name(source.dtype)} to {_name(middle)}, does not keep all values",
            first,
        )
        same = _same_conversion(source.dtype, middle, target)
        refuse_unless(
            same, f"a cast to {_name(target)} may differ for {_name(source.dtype)} and {_name(middle)}", first
        )
        nodes = (*exclusive([first], node), node)
        summary = f"{text(source)} is cast to {_name(target)} at once"
        return Match(nodes, (node.outputs[0],), {"source": source, "target": target}, summary=summary)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """One Cast, or none."""
        source, target = match["source"], match["target"]
        if source.dtype == target:
            return [source]
        return [build.op("Cast", [source], attributes_of(match.nodes[-1]), like=match.outputs[0])]


def target_type(node: ir.Node) -> ir.DataType | None:
    """The element type a Cast or CastLike converts to, if known."""
    if node.op_type == "CastLike":
        like = operand(node, 1)
        return None if like is None else like.dtype
    to = node.attributes.get_int("to", None)
    return None if to is None else ir.DataType(to)


def keeps_values(source: ir.DataType, target: ir.DataType) -> bool:
    """Whether every value of ``source`` is a value of ``target``."""
    if source == _D.BOOL:
        return target in {*_SIGNED, *_UNSIGNED, *_SIGNIFICAND_BITS}
    if source in _SIGNED:
        bits = _SIGNED[source]
        return _SIGNED.get(target, 0) > bits or _SIGNIFICAND_BITS.get(target, 0) >= bits
    if source in _UNSIGNED:
        bits = _UNSIGNED[source]
        wider = max(_SIGNED.get(target, 0), _UNSIGNED.get(target, 0)) > bits
        return wider or _SIGNIFICAND_BITS.get(target, 0) >= bits
    return target in _WIDER_FLOATS.get(source, ())


def _same_conversion(source: ir.DataType, middle: ir.DataType, target: ir.DataType) -> bool:
    """Whether converting a value gives the same result from either type, also where it does not fit."""
    if _D.STRING in {source, middle, target}:
        return False
    is_integer = source in _SIGNED or source in _UNSIGNED
    if is_integer and middle in _SIGNIFICAND_BITS and target not in _SIGNIFICAND_BITS:
        return target in {source, _D.BOOL} or keeps_values(source, target)
    return True


def _name(dtype: ir.DataType) -> str:
    return dtype.name.lower()


RULES = (EliminateCast(), MergeCasts())
