"""Family D: Einsum of one or two operands as Transpose, Reshape and MatMul."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import onnx_ir as ir

from explorer.rewrite.builder import Builder
from explorer.rewrite.context import Context, dim, rank, text
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, refuse_unless
from explorer.rewrite.rules.patterns import FLOAT_HALF_DOUBLE


@dataclass(frozen=True)
class _Contraction:
    """Labels of ``a, b -> out`` by role; each string keeps one order on both sides.

    batch: in both operands and the result; rows: in a and the result; columns: in b and the result;
    summed: in both operands only.
    """

    a: str
    b: str
    out: str
    batch: str
    rows: str
    columns: str
    summed: str


class EinsumToMatMul(PatternRule):
    """Einsum("bij,bjk->bik", A, B) becomes MatMul(A, B), with transposes and reshapes where needed."""

    name = "einsum-to-matmul"
    family = "D15"
    title = "Einsum to Transpose, Reshape and MatMul"
    numeric_class = NumericClass.REASSOCIATED
    preconditions = (
        "One operand that is only permuted, or two operands of known rank; no label twice in an operand, no "
        "ellipsis; every label of an operand is in the result or in the other operand, at least one is summed. "
        "Where several labels have to become one axis, at most one dim of each Reshape is dynamic."
    )
    evidence = (
        "ORT 1.32 CPU: bhid,bhjd->bhij -30 %, bsk,kn->bsn with a constant -20 %, at both levels; Einsum has no weight "
        "packing (microsoft/onnxruntime#7357)."
    )
    anchors = ("Einsum",)
    min_opset = 12
    dtypes = FLOAT_HALF_DOUBLE

    def match(self, node: ir.Node, context: Context) -> Match | None:
        """Any Einsum with an equation of the supported kind."""
        equation = (node.attributes.get_string("equation", "") or "").replace(" ", "")
        refuse_unless("." not in equation, f"the equation '{equation}' has an ellipsis")
        terms, out = _terms(equation)
        for value, labels in zip(node.inputs, terms, strict=False):
            refuse_unless(
                rank(value) == len(labels), f"the rank of {text(value)} is {rank(value)}, not {len(labels)}"
            )
            refuse_unless(len(set(labels)) == len(labels), f"a label occurs twice in '{labels}'")
        summary = f"'{equation}' becomes "
        if len(terms) == 1:
            refuse_unless(set(terms[0]) == set(out), f"'{equation}' sums over labels of its only operand")
            perm = tuple(terms[0].index(label) for label in out)
            return Match((node,), (node.outputs[0],), {"perm": perm}, summary=summary + "a Transpose")
        refuse_unless(len(terms) == 2, f"the equation has {len(terms)} operands, not 1 or 2")
        roles = _roles(terms[0], terms[1], out, equation)
        plan = _Plan(roles, node)
        bindings = {"plan": plan}
        return Match((node,), (node.outputs[0],), bindings, "", summary + "a MatMul", 8 * plan.shape_elements)

    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Bring both operands into the order of a MatMul, multiply, bring the result into its order."""
        (node,), like = match.nodes, match.outputs[0]
        if "plan" not in match.bindings:
            return [build.op("Transpose", [node.inputs[0]], {"perm": match["perm"]}, like=like)]
        plan: _Plan = match["plan"]
        return [plan.emit(build, like)]


def _terms(equation: str) -> tuple[list[str], str]:
    left, arrow, out = equation.partition("->")
    terms = left.split(",")
    if not arrow:
        every = "".join(terms)
        out = "".join(sorted(label for label in set(every) if every.count(label) == 1))
    return terms, out


def _roles(a: str, b: str, out: str, equation: str) -> _Contraction:
    lone = [x for x in a + b if (x in a) != (x in b) and x not in out]
    refuse_unless(not lone, f"'{equation}' sums over '{''.join(lone)}' of one operand")
    summed = "".join(x for x in a if x in b and x not in out)
    refuse_unless(summed, f"'{equation}' sums over nothing: it is no product of matrices")
    return _Contraction(
        a,
        b,
        out,
        batch="".join(x for x in out if x in a and x in b),
        rows="".join(x for x in out if x in a and x not in b),
        columns="".join(x for x in out if x in b and x not in a),
        summed=summed,
    )


class _Plan:
    """How one contraction becomes transposes, reshapes and one MatMul.

    Without batch labels and with one label summed and one column, the left operand may keep any number of
    rows: MatMul broadcasts them.
    """

    def __init__(self, roles: _Contraction, node: ir.Node) -> None:
        self.roles, self.node = roles, node
        self.sizes = self._sizes()
        keeps_rows = not roles.batch and len(roles.summed) == 1 and len(roles.columns) == 1
        self.merges = not keeps_rows and {len(roles.rows), len(roles.columns), len(roles.summed)} != {1}
        batch = [[x] for x in roles.batch]
        self.shapes = (
            [
                self._dims([*batch, [*roles.rows], [*roles.summed]]),
                self._dims([*batch, [*roles.summed], [*roles.columns]]),
            ]
            if self.merges
            else []
        )
        self.final = (
            self._dims([[x] for x in roles.batch + roles.rows + roles.columns]) if self.merges else []
        )

    @property
    def shape_elements(self) -> int:
        return sum(len(shape) for shape in (*self.shapes, self.final))

    def _sizes(self) -> dict[str, int | str | None]:
        roles = self.roles
        found: dict[str, int | str | None] = {}
        for value, labels in zip(self.node.inputs, (roles.a, roles.b), strict=True):
            for axis, label in enumerate(labels):
                size = dim(value, axis)
                first = found.setdefault(label, size)
                agree = first == size and (size is not None or label not in roles.batch + roles.summed)
                refuse_unless(agree, f"the sizes of '{label}' are not known to be equal: {first} and {size}")
        return found

    def _dims(self, groups: Sequence[Sequence[str]]) -> list[int]:
        """One dim per group of labels, -1 for the only one that is not static."""
        shape, unknown = [], ""
        for group in groups:
            sizes = [self.sizes[label] for label in group]
            known = [size for size in sizes if isinstance(size, int)]
            if len(known) < len(sizes):
                refuse_unless(not unknown, f"the sizes of '{unknown}' and '{''.join(group)}' are not static")
                unknown = "".join(group)
            shape.append(prod(known) if len(known) == len(sizes) else -1)
        return shape

    def emit(self, build: Builder, like: ir.Value) -> ir.Value:
        """The nodes."""
        roles = self.roles
        a = self._operand(0, roles.a, roles.batch + roles.rows + roles.summed, build)
        b = self._operand(1, roles.b, roles.batch + roles.summed + roles.columns, build)
        value = build.op("MatMul", [a, b], dtype=like.dtype)
        if self.merges:
            value = build.op("Reshape", [value, build.ints(self.final, "shape")], dtype=like.dtype)
        return _permuted(value, roles.batch + roles.rows + roles.columns, roles.out, build)

    def _operand(self, position: int, labels: str, order: str, build: Builder) -> ir.Value:
        value = self.node.inputs[position]
        if value is None:
            raise Refusal("an operand is missing")
        value = _permuted(value, labels, order, build)
        if not self.merges:
            return value
        return build.op("Reshape", [value, build.ints(self.shapes[position], "shape")], dtype=value.dtype)


def _permuted(value: ir.Value, labels: str, order: str, build: Builder) -> ir.Value:
    if labels == order:
        return value
    return build.op("Transpose", [value], {"perm": [labels.index(x) for x in order]}, dtype=value.dtype)


RULES = (EinsumToMatMul(),)
