"""What is drawn, as frozen values that know nothing about ONNX.

A scene is the whole graph; which part of it is visible, and where, is decided by the layout.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """What a node stands for: an operator, or an input or output of the whole graph."""

    OP = "op"
    INPUT = "input"
    OUTPUT = "output"


class Status(StrEnum):
    """Fate of a node or edge in a comparison: in both graphs, only after, only before, altered."""

    KEPT = "kept"
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class EdgeStyle(StrEnum):
    """How a tensor reaches its consumer: as an input, or captured by a subgraph's body."""

    DATA = "data"
    CAPTURE = "capture"


@dataclass(frozen=True, slots=True)
class SceneNode:
    """One node.

    Attributes:
        id: Stable and unique in the scene, such as ``"n12"``.
        label: What stands in bold: the operator type, or the name of a graph input or output.
        kind: Operator, graph input or graph output.
        hint: A few characters after the label, such as ``"3x3 /2"``; may be empty.
        name: The node's own name; may be empty, repeated or hostile.
        detail: The small line under the label, normally the shape of the first output.
        family: Key of the operator's colour (see ``palette.FAMILIES``).
        tooltip: Further lines for the tooltip.
        status: Its fate where two graphs are compared.
        scope: Name path of the module the node comes from, outermost first.
        parent: Id of the node whose body (If, Loop, Scan) holds this node, or None.
        branch: Which body of the parent, such as ``"then_branch"``.
    """

    id: str
    label: str
    kind: Kind = Kind.OP
    hint: str = ""
    name: str = ""
    detail: str = ""
    family: str = "other"
    tooltip: tuple[str, ...] = ()
    status: Status = Status.KEPT
    scope: tuple[str, ...] = ()
    parent: str | None = None
    branch: str = ""


@dataclass(frozen=True, slots=True)
class SceneEdge:
    """One use of a tensor by a consumer.

    Attributes:
        source: Index of the producing node in ``Scene.nodes``.
        target: Index of the consuming node in ``Scene.nodes``.
        tensor: Name of the tensor.
        shape: Its type and shape as text, such as ``"float32 1x64x56x56"``.
        bytes: Its size, or None where a dimension is unknown.
        style: Input, or capture by a body.
        status: Its fate where two graphs are compared; never changed.
    """

    source: int
    target: int
    tensor: str = ""
    shape: str = ""
    bytes: int | None = None
    style: EdgeStyle = EdgeStyle.DATA
    status: Status = Status.KEPT


@dataclass(frozen=True, slots=True)
class Scene:
    """A graph to draw. Nodes stand in topological order where the graph has one.

    Raises:
        ValueError: An id occurs twice, a parent does not exist, or an edge points outside.
    """

    nodes: tuple[SceneNode, ...] = ()
    edges: tuple[SceneEdge, ...] = ()
    title: str = ""
    index: dict[str, int] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        index = {node.id: i for i, node in enumerate(self.nodes)}
        if len(index) != len(self.nodes):
            raise ValueError("two nodes of a scene share one id")
        for node in self.nodes:
            if node.parent is not None and node.parent not in index:
                raise ValueError(f"node {node.id!r} lies in {node.parent!r}, which does not exist")
        count = len(self.nodes)
        for edge in self.edges:
            if not (0 <= edge.source < count and 0 <= edge.target < count):
                raise ValueError(f"edge {edge.tensor!r} joins a node that does not exist")
        object.__setattr__(self, "index", index)
