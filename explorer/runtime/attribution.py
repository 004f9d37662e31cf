"""Which nodes of a model the operators that a runtime executed stand for. Pure graph work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from explorer.runtime.executed import Executed
from explorer.runtime.marked import marks_in

if TYPE_CHECKING:
    import onnx_ir as ir

    from explorer.graph import Graph

_FIRST_NAME = "_nchwc"  # ONNX Runtime's blocked operators are named after the first node of what they fuse
_MOVES = {"Reshape", "ReorderInput", "ReorderOutput", "Transpose", "Cast", "Squeeze", "Unsqueeze"}
_VIEWS = {"Flatten", "Squeeze", "Unsqueeze", "Reshape", "Identity", "Dropout"}
_ENDS = {"Add", "Sum", "Relu", "Clip", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid"}


@dataclass(frozen=True)
class Share:
    """The part of a model that one executed operator stands for.

    Attributes:
        owned: ids of the nodes whose work it does; every node has at most one owner.
        served: ids it mentions that another operator owns, as a change of layout for a convolution.
    """

    owned: tuple[str, ...]
    served: tuple[str, ...]


def attribute(graph: Graph, executed: Sequence[Executed], weight: Mapping[str, float]) -> dict[str, Share]:
    """Divide the nodes of a graph among executed operators.

    Args:
        graph: the model, with the ids that the marks speak of.
        executed: what the runtime executed, in that order, with names that may carry marks.
        weight: executed operator -> its time, which decides who owns a node that several mention.

    Returns:
        Executed operator -> its share. A node that no operator mentions was merged into what reads it or
        into what it reads; an operator that mentions none is matched by its place in the order.
    """
    return _Division(graph, executed, weight).shares()


class _Division:
    def __init__(self, graph: Graph, executed: Sequence[Executed], weight: Mapping[str, float]) -> None:
        from explorer.graph import is_constant_node, node_id

        self.executed = executed
        self.nodes = {node_id(node): node for node in graph.nodes if not is_constant_node(node)}
        self.id_of = {node: identifier for identifier, node in self.nodes.items()}
        self.names = {one.name: one.mentions[0] for one in executed}
        self.place = {one.name: index for index, one in enumerate(executed)}
        self.marks = {one.name: [m for m in marks_in(one.mentions) if m in self.nodes] for one in executed}
        self.owner: dict[str, str] = {}
        for one in sorted(executed, key=lambda one: -weight[one.name]):
            for identifier in self.marks[one.name]:
                if not self._only_moves(one, identifier):
                    self.owner.setdefault(identifier, one.name)

    def shares(self) -> dict[str, Share]:
        """The division."""
        self._match_by_place()
        for node in self.nodes.values():
            self._join(node, self._upstream(node) if self._ends_its_kernel(node) else None)
        for node in reversed(self.nodes.values()):
            self._join(node, self._downstream(node))
        for node in self.nodes.values():
            self._join(node, self._upstream(node))
        return {one.name: self._share(one.name) for one in self.executed}

    def _share(self, name: str) -> Share:
        owned = tuple(i for i in self.nodes if self.owner.get(i) == name)
        return Share(owned, tuple(i for i in self.marks[name] if self.owner.get(i, name) != name))

    def _join(self, node: ir.Node, name: str | None) -> None:
        if name is not None:
            self.owner.setdefault(self.id_of[node], name)

    def _only_moves(self, one: Executed, identifier: str) -> bool:
        """Whether an operator names a node only because it brings that node's result into another shape."""
        return one.op_type in _MOVES and self.nodes[identifier].op_type not in {*_VIEWS, one.op_type}

    def _match_by_place(self) -> None:
        """Parts of a function the runtime expanded carry no marks: they stand where the function stood."""
        for one in self.executed:
            if self.marks[one.name] or one.op_type in _MOVES:
                continue
            fitting = [i for i, node in self.nodes.items() if self._fits(node, self.place[one.name])]
            if fitting:
                self.marks[one.name] = fitting[:1]
        for one in self.executed:
            for identifier in self.marks[one.name]:
                if not self._only_moves(one, identifier):
                    self.owner.setdefault(identifier, one.name)

    def _fits(self, node: ir.Node, place: int) -> bool:
        if self.id_of[node] in self.owner or node.op_type in _ENDS:
            return False
        before, after = self._owners(_sources(node)), self._owners(_readers(node))
        return all(self.place[name] < place for name in before) and all(self.place[n] > place for n in after)

    def _ends_its_kernel(self, node: ir.Node) -> bool:
        """Sums and activations that a convolution or product takes over keep the name of its start."""
        moved = any(
            self.id_of[node] in self.marks[one.name] for one in self.executed if one.op_type in _MOVES
        )
        source = self._upstream(node)
        return moved or (
            node.op_type in _ENDS and source is not None and self.names[source].endswith(_FIRST_NAME)
        )

    def _upstream(self, node: ir.Node) -> str | None:
        return max(self._owners(_sources(node)), key=self.place.__getitem__, default=None)

    def _downstream(self, node: ir.Node) -> str | None:
        """The one operator that needs the result; a result that several need was computed before."""
        owners = self._owners(_readers(node))
        return owners[0] if len(owners) == 1 else None

    def _owners(self, nodes: Iterable[ir.Node]) -> list[str]:
        ids = [self.id_of[node] for node in nodes if node in self.id_of]
        return list(dict.fromkeys(self.owner[i] for i in ids if i in self.owner))


def _readers(node: ir.Node) -> list[ir.Node]:
    return [use.node for output in node.outputs for use in output.uses()]


def _sources(node: ir.Node) -> list[ir.Node]:
    producers = [value.producer() for value in node.inputs if value is not None]
    return [producer for producer in producers if producer is not None]


def group_flops(graph: Graph, nodes: Sequence[str]) -> int | None:
    """FLOPs of a group of nodes; None if those of one are unknown."""
    from explorer.graph.statistics import flops, sum_if_known

    return sum_if_known(flops(graph.node(identifier)) for identifier in nodes)


def group_bytes(graph: Graph, nodes: Sequence[str]) -> int | None:
    """Bytes that a group reads from outside (weights included) and hands to the outside."""
    from explorer.graph.statistics import sum_if_known, value_bytes

    members = [graph.node(identifier) for identifier in nodes]
    inside = set(members)
    read = {v for n in members for v in n.inputs if v is not None and v.producer() not in inside}
    written = {v for n in members for v in n.outputs if _leaves(v, inside)}
    return sum_if_known(value_bytes(value) for value in read | written)


def _leaves(value: ir.Value, inside: set[ir.Node]) -> bool:
    return value.is_graph_output() or any(use.node not in inside for use in value.uses())
