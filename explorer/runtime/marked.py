"""Copies of a graph whose names carry the node ids, so that a runtime's output can be traced back.

Nodes of ONNX files may have empty or repeated names. In a marked copy node ``n12`` is called ``node~n12~``
and its outputs ``value~n12~0``; inputs and weights keep their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from explorer.errors import RuntimeFailure

if TYPE_CHECKING:
    import onnx_ir as ir

    from explorer.graph import Graph

_MARK = re.compile(r"~(n\d+)~")
_NAME = re.compile(r"(?:node|value)~(?P<node>n\d+)~(?P<output>\d+)?")


def marked_model(graph: Graph) -> ir.Model:
    """A copy whose node and value names carry ids; initializers with such a name are renamed."""
    copy = graph.clone()
    for body in copy.model.graphs():
        for value in list(body.initializers.values()):
            if _MARK.search(value.name or "") and not value.is_graph_input():
                value.name = _MARK.sub(r"_\1_", value.name or "")
    for node in copy.nodes:
        _mark(node)
    return copy.model


def marks_in(texts: tuple[str, ...]) -> tuple[str, ...]:
    """The node ids that names mention, each once, in the order of their first mention."""
    return tuple(dict.fromkeys(found for text in texts for found in _MARK.findall(text)))


@contextmanager
def own_names(graph: Graph) -> Iterator[None]:
    """What the runtime says about a marked copy, in the names of the graph itself."""
    try:
        yield
    except RuntimeFailure as failure:
        raise RuntimeFailure(_unmarked(str(failure), graph)) from failure


def _unmarked(text: str, graph: Graph) -> str:
    def name(found: re.Match[str]) -> str:
        node = graph.find_node(found["node"])
        if node is None:
            return found[0]
        if found["output"] is None:
            return node.name or found["node"]
        return node.outputs[int(found["output"])].name or found[0]

    return _NAME.sub(name, text)


def _mark(node: ir.Node) -> None:
    from explorer.graph import node_id

    identifier = node_id(node)
    node.name = f"node~{identifier}~"
    for index, output in enumerate(node.outputs):
        if output.name:
            output.name = f"value~{identifier}~{index}"
