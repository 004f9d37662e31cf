"""What a rewrite rule is: metadata, a matcher that explains its refusals, and a builder.

To add a rule: subclass ``PatternRule`` (one match per anchor node) or ``Rule`` (several) in
``explorer/rewrite/rules/<family>.py`` and list it in that module's ``RULES``. Shapes, names, opsets, interior
values and the checker are the engine's business (pre-conditions G1 to G9); a rule states only what is its own. A
matcher walks from node to node with the functions of ``context`` and ``walk`` only: they note what it looked at.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

import onnx_ir as ir

if TYPE_CHECKING:
    from explorer.rewrite.builder import Builder
    from explorer.rewrite.context import Context

FLOATS = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16})
FLOAT32 = frozenset({ir.DataType.FLOAT})


class NumericClass(StrEnum):
    """How close a rewrite's result is to the original's."""

    EXACT = "E"  # the same bits
    REASSOCIATED = "R"  # equal up to the order of floating-point operations
    DOMAIN = "D"  # equal for finite values or under another stated assumption about values
    APPROXIMATE = "A"  # a different function, close enough by somebody's judgement


def loosest(classes: Iterable[NumericClass]) -> NumericClass:
    """The class that promises least; EXACT for none."""
    return max(classes, key=list(NumericClass).index, default=NumericClass.EXACT)


class Refusal(Exception):
    """A near miss: the structure fits, a pre-condition does not hold.

    Args:
        reason: the failed condition, in words, naming tensors and sizes.
        nodes: the nodes concerned beside the anchor.
    """

    def __init__(self, reason: str, nodes: Sequence[ir.Node] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.nodes = tuple(nodes)


@dataclass(frozen=True)
class Match:
    """One place where a rule applies, as live objects of one graph.

    ``nodes`` are removed (none, if a rewrite only drops constants), ``outputs`` are those of their values
    that the rewrite replaces; any other value of theirs must not be read outside (checked by the engine).
    ``variant`` tells several rewrites of the same nodes apart; ``summary`` says in words what happens;
    ``new_bytes`` is the size of the constants that the rewrite creates and ``drops`` are the constants it
    stops reading (freed where nothing else reads them).
    """

    nodes: tuple[ir.Node, ...]
    outputs: tuple[ir.Value, ...]
    bindings: Mapping[str, Any] = field(default_factory=dict)
    variant: str = ""
    summary: str = ""
    new_bytes: int = 0
    drops: tuple[ir.Value | None, ...] = ()

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 (a binding is a value, a node or a number)
        return self.bindings[name]


class Rule(ABC):
    """A rewrite rule; instances hold no state.

    Attributes:
        name: kebab-case, unique.
        family: the letter of its family in the rule catalogue, with the entry (``"B1"``).
        title: one line for a table.
        numeric_class: what the rewrite does to the numbers.
        inverse: name of the rule that undoes it, or None.
        default: offered unless the user asks otherwise (class D and A rules are opt-in).
        preconditions: the exact conditions, for documentation.
        evidence: what was measured or where it was reported.
        anchors: operators at which matching starts.
        at_first_node: True if the rule looks at the graph as a whole and answers at its first node only.
        min_opset: smallest ai.onnx version the result needs.
        portable: False if the result needs com.microsoft operators.
        dtypes: element types of the replaced values that are accepted; None accepts all.
        splits_quantisation: True if the rule may remove QuantizeLinear / DequantizeLinear.
        adds_dependencies: False if each replaced value depends on nothing it did not depend on before, even
            where nodes between the matched ones stay; then no cycle can arise (G7).
    """

    name: ClassVar[str]
    family: ClassVar[str]
    title: ClassVar[str]
    numeric_class: ClassVar[NumericClass]
    inverse: ClassVar[str | None] = None
    default: ClassVar[bool] = True
    preconditions: ClassVar[str]
    evidence: ClassVar[str]
    anchors: ClassVar[tuple[str, ...]]
    at_first_node: ClassVar[bool] = False
    min_opset: ClassVar[int] = 1
    portable: ClassVar[bool] = True
    dtypes: ClassVar[frozenset[ir.DataType] | None] = FLOATS
    splits_quantisation: ClassVar[bool] = False
    adds_dependencies: ClassVar[bool] = True

    @abstractmethod
    def matches(self, node: ir.Node, context: Context) -> Iterable[Match | Refusal]:
        """Every match anchored at ``node`` and every near miss; raising a Refusal ends the search."""

    @abstractmethod
    def rewrite(self, match: Match, build: Builder) -> Sequence[ir.Value]:
        """Create the new nodes; return one value per entry of ``match.outputs``."""


class PatternRule(Rule):
    """A rule with at most one match per anchor node."""

    @abstractmethod
    def match(self, node: ir.Node, context: Context) -> Match | None:
        """The match at ``node``; None if the structure is another one; raises Refusal for a near miss."""

    def matches(self, node: ir.Node, context: Context) -> Iterable[Match | Refusal]:
        """The single match, if any."""
        found = self.match(node, context)
        return () if found is None else (found,)


def refuse_unless(condition: object, reason: str, *nodes: ir.Node) -> None:
    """Raise a Refusal with this reason unless the condition holds."""
    if not condition:
        raise Refusal(reason, nodes)
