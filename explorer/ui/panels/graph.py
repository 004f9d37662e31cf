"""The graph, the site of the selected candidate, before and after, and details of a node."""

from __future__ import annotations

import html
from collections.abc import Callable

import ipywidgets as widgets

from explorer.graph import Graph, GraphDiff, GraphSummary, NodeInfo, describe
from explorer.session import Snapshot
from explorer.ui.graphview import GraphView, by_bytes, by_flops, scene_of
from explorer.ui.graphview.units import bytes_text, count_text

HINT = "Click a node for its details. Wheel zooms, drag pans, double-click opens a block, / searches."


class GraphPanel:
    """The graph view and the details below it.

    Args:
        on_select: called with the ids of the selected nodes.
    """

    def __init__(self, on_select: Callable[[tuple[str, ...]], None]) -> None:
        self.view = GraphView(height=600)
        self.details = widgets.HTML(f'<div class="explorer-muted">{HINT}</div>')
        self._summary: GraphSummary | None = None
        self._fingerprint = ""
        self._on_select = on_select
        self.view.on_select(self._selected)
        self.box = widgets.VBox([self.view, self.details], layout=widgets.Layout(width="100%"))

    def render(self, snapshot: Snapshot) -> None:
        """Show the current graph; redraws only if it changed."""
        if snapshot.fingerprint == self._fingerprint:
            return
        is_new = self._summary is None or self._summary.name != snapshot.summary.name
        self._summary, self._fingerprint = snapshot.summary, snapshot.fingerprint
        self.show_current(keep_open=not is_new)

    def show_current(self, *, keep_open: bool = True) -> None:
        """The current graph, without comparison."""
        if self._summary is None:
            return
        self.view.show(scene_of(self._summary), keep_open=keep_open)
        self.view.offer(by_bytes(self._summary), by_flops(self._summary))

    def show_site(self, nodes: tuple[str, ...], label: str) -> None:
        """Outline the nodes of a candidate."""
        if self.view.comparison:
            self.show_current()
        self.view.highlight(nodes, label)

    def show_comparison(self, after: Graph, difference: GraphDiff, title: str) -> None:
        """The current graph and what a candidate would make of it, side by side."""
        if self._summary is None:
            return
        self.view.compare(
            scene_of(self._summary),
            scene_of(describe(after)),
            changed=difference.changed,
            titles=("Now", f"After: {title}"),
        )

    def _selected(self, nodes: tuple[str, ...]) -> None:
        self._on_select(nodes)
        if self._summary is None or not nodes:
            self.details.value = f'<div class="explorer-muted">{HINT}</div>'
            return
        found = {node.id: node for node in self._summary.nodes}
        shown = [found[i] for i in nodes if i in found]
        self.details.value = "".join(node_html(node) for node in shown[:4])


def node_html(node: NodeInfo) -> str:
    """Everything known of a node, as safe HTML."""
    cost = [
        "FLOPs unknown" if node.flops is None else f"{count_text(node.flops)} FLOPs",
        "bytes unknown" if node.bytes is None else f"{bytes_text(node.bytes)} read and written",
        f"{count_text(node.parameters)} parameters",
    ]
    lines = [("cost", " · ".join(cost) + " (by formula)")]
    lines += [("attribute", f"{name} = {text}") for name, text in node.attributes]
    lines += [
        ("input" + (" (constant)" if t.is_constant else ""), f"{t.name}: {t.dtype} {t.shape_text}")
        for t in node.inputs
        if t is not None
    ]
    lines += [("output", f"{t.name}: {t.dtype} {t.shape_text}") for t in node.outputs]
    rows = "".join(f"<tr><th>{html.escape(a)}</th><td>{html.escape(b)}</td></tr>" for a, b in lines)
    title = f"{html.escape(node.operator)} <span class='explorer-muted'>{html.escape(node.id)} {html.escape(node.name)}</span>"
    return f'<div class="explorer-node"><b>{title}</b><table>{rows}</table></div>'
