"""Everything known of the selected nodes, and what rules say about them."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence

import ipywidgets as widgets

from explorer.graph import GraphSummary, NodeInfo, TensorInfo
from explorer.runtime.profile import Kernel, NodeTime, Profile
from explorer.session import Snapshot
from explorer.ui.graphview.units import bytes_text, count_text, time_text
from explorer.ui.panels.parts import button, column, marked, muted, row

HINT = (
    "Click a node in the graph for its attributes, shapes and costs. Shift + click adds nodes, "
    "Shift + drag is a lasso, a double click opens a block, / searches."
)
_MOST_NODES = 12
_MOST_KERNELS = 15


class NodePanel:
    """Details of the selected nodes.

    Args:
        show_candidates: show the candidates at the selected nodes.
        show_misses: show the near misses at the selected nodes.
        profile: measure which node costs what.
    """

    def __init__(
        self,
        show_candidates: Callable[[], None],
        show_misses: Callable[[], None],
        profile: Callable[[], None],
    ) -> None:
        self._shown: tuple[GraphSummary | None, tuple[str, ...]] = (None, ())
        self._profile: Profile | None = None
        self.details = marked(widgets.HTML(muted(HINT)), "details")
        self.candidates = button("Rewrites here", "Show the candidates at these nodes", show_candidates)
        self.misses = button("Why not here?", "Show the near misses at these nodes", show_misses)
        self.profile = button("Time per node", "Measure it with the runtime's own profiler", profile)
        self.box = column(row(self.candidates, self.misses, self.profile), self.details)
        self.show(None, (), 0, 0)

    def render(self, snapshot: Snapshot) -> None:
        """Show times where they were measured."""
        if snapshot.profile is not self._profile:
            self._profile = snapshot.profile
            self._describe()

    def disable(self, is_busy: bool, is_open: bool) -> None:
        """Times can be measured when a model is open and nothing else is measured."""
        self.profile.disabled = is_busy or not is_open

    def show(self, summary: GraphSummary | None, nodes: Sequence[str], candidates: int, misses: int) -> None:
        """Show nodes and how many candidates and near misses concern them; () shows a hint."""
        self.candidates.description = f"Rewrites here ({candidates})"
        self.misses.description = f"Why not here? ({misses})"
        self.candidates.disabled, self.misses.disabled = not candidates, not misses
        self._shown = summary, tuple(nodes)
        self._describe()

    def _describe(self) -> None:
        summary, nodes = self._shown
        found = {node.id: node for node in summary.nodes} if summary is not None else {}
        shown = [found[i] for i in nodes if i in found]
        times = {} if self._profile is None else self._profile.by_node()
        if shown:
            self.details.value = nodes_html(shown, times)
        elif nodes and summary is not None:
            self.details.value = _end_html(summary, nodes) or muted(HINT)
        else:
            self.details.value = muted(HINT) + ("" if self._profile is None else profile_html(self._profile))


def nodes_html(nodes: Sequence[NodeInfo], times: Mapping[str, NodeTime]) -> str:
    """Nodes one below the other, as safe HTML; the sum first if there are several."""
    parts = [node_html(node, times.get(node.id)) for node in nodes[:_MOST_NODES]]
    if len(nodes) > 1:
        parts.insert(0, f"<p><b>{len(nodes)} nodes</b>, {html.escape(_cost(nodes))}</p>")
    if len(nodes) > _MOST_NODES:
        parts.append(muted(f"and {len(nodes) - _MOST_NODES} more"))
    return "".join(parts)


def node_html(node: NodeInfo, time: NodeTime | None = None) -> str:
    """Everything known of a node, as safe HTML."""
    lines = [("name", node.name or "(none)"), ("id", node.id), ("cost", _cost([node]) + ", by formula")]
    if time is not None:
        lines.append(("time", time_line(time)))
    lines += [("attribute", f"{name} = {text}") for name, text in node.attributes]
    lines += [
        ("constant" if tensor.is_constant else "input", _tensor(tensor))
        for tensor in node.inputs
        if tensor is not None
    ]
    lines += [("output", _tensor(tensor)) for tensor in node.outputs]
    return f"<section><h4>{html.escape(node.operator)}</h4>{_table(lines)}</section>"


def time_line(time: NodeTime) -> str:
    """Measured time and share of a node, and with which others it shares them."""
    others = [node for node in time.group if node != time.node]
    shared = f", together with {', '.join(others)}" if others else ""
    note = f" ({time.note})" if time.note else ""
    return f"{time_text(time.ns)}, {100 * time.share:.1f} % of the model{shared}, measured{note}"


def profile_html(profile: Profile, most: int = _MOST_KERNELS) -> str:
    """The kernels that cost most, as safe HTML."""
    lines = [
        (f"{100 * kernel.share:.1f} %", f"{time_text(kernel.ns)} {kernel.op_type}: {_nodes_of(kernel)}")
        for kernel in profile.top(most)
    ]
    head = f"<h4>{time_text(profile.total_ns)} per run on {html.escape(profile.target)}</h4>"
    return f"<section>{head}{muted('measured: ' + profile.protocol)}{_table(lines, every=True)}</section>"


def _nodes_of(kernel: Kernel) -> str:
    if kernel.nodes:
        return ", ".join(kernel.nodes)
    return f"inserted by the runtime for {', '.join(kernel.served)}" if kernel.served else "the runtime's own"


def _end_html(summary: GraphSummary, nodes: Sequence[str]) -> str:
    """Graph inputs and outputs, whose ids in the view are in0, out0 and so on."""
    ends = {f"in{i}": ("Graph input", t) for i, t in enumerate(summary.inputs)}
    ends |= {f"out{i}": ("Graph output", t) for i, t in enumerate(summary.outputs)}
    shown = [ends[i] for i in nodes if i in ends]
    return "".join(
        f"<section><h4>{what}</h4>{_table([('tensor', _tensor(tensor))])}</section>" for what, tensor in shown
    )


def _tensor(tensor: TensorInfo) -> str:
    size = "" if tensor.bytes is None else f", {bytes_text(tensor.bytes)}"
    return f"{tensor.name}: {tensor.dtype} {tensor.shape_text}{size}"


def _cost(nodes: Sequence[NodeInfo]) -> str:
    flops = [node.flops for node in nodes]
    size = [node.bytes for node in nodes]
    known = [f for f in flops if f is not None], [b for b in size if b is not None]
    texts = [
        f"{count_text(sum(known[0]))} FLOPs" if len(known[0]) == len(flops) else "FLOPs unknown",
        f"{bytes_text(sum(known[1]))} read and written" if len(known[1]) == len(size) else "bytes unknown",
        f"{count_text(sum(node.parameters for node in nodes))} parameters",
    ]
    return ", ".join(texts)


def _table(lines: Sequence[tuple[str, str]], *, every: bool = False) -> str:
    """Labels and texts; a label that repeats the one above it is left out, unless ``every`` one is wanted."""
    rows = "".join(
        f"<tr><th>{html.escape(label if every or i == 0 or lines[i - 1][0] != label else '')}</th>"
        f"<td>{html.escape(text)}</td></tr>"
        for i, (label, text) in enumerate(lines)
    )
    return f"<table>{rows}</table>"
