"""What fusion lays over the graph: hulls of groups, traffic and blame on edges, blame on nodes."""

from __future__ import annotations

from collections.abc import Mapping

from explorer.fusion import KB, Plan
from explorer.fusion.network import bits
from explorer.graph import EdgeInfo, GraphSummary
from explorer.session.fusion_traffic import blame_edges, dram_edges
from explorer.session.fusion_values import Choice
from explorer.ui.bill.wire import kb_text
from explorer.ui.graphview import EdgeValues, Group, ScaleColouring
from explorer.ui.graphview.palette import GREY, RED

BLAME = "blame"
_CHOSEN = "currentcolor"
_SOURCE = "predicted, KB = 1024 bytes"


def hulls(plan: Plan | None, choice: Choice | None) -> list[Group]:
    """Groups of several operations in colour, what is left out in grey, the chosen group on top."""
    found: list[Group] = []
    chosen = frozenset(choice.nodes) if choice is not None and choice.report is not None else frozenset()
    if plan is not None:
        network = plan.scheme.network
        for number, mask in enumerate(plan.masks, start=1):
            nodes = network.ids(mask)
            if mask & (mask - 1) and chosen.isdisjoint(nodes):
                label = f"{number} · {kb_text(plan.scheme.cost(mask).demand_bytes)}"
                found.append(Group(f"group{number}", label, nodes))
        for part in network.components(plan.scheme.removed_mask):
            nodes = network.ids(part)
            if chosen.isdisjoint(nodes):
                found.append(Group(f"removed{next(bits(part))}", "left out", nodes, GREY))
    if choice is not None and choice.report is not None:
        report = choice.report
        sign = "fits" if report.fits else "does not fit"
        label = f"chosen · {kb_text(report.demand_bytes)}, {sign}"
        found.append(Group("chosen", label, choice.nodes, _CHOSEN if report.fits else RED))
    return found


def traffic(plan: Plan, summary: GraphSummary) -> EdgeValues:
    """Edges that go through DRAM, by bytes."""
    return _values("DRAM traffic, KB", dram_edges(plan, summary), summary)


def edge_blame(choice: Choice, plan: Plan, summary: GraphSummary) -> EdgeValues | None:
    """What a cut at each edge of the chosen group saves on chip; None if that is nothing anywhere."""
    if choice.blame is None or len(choice.blame.edges) == 0:
        return None
    found = blame_edges(choice.blame, plan.scheme.network, summary)
    if not any(found.values()):
        return None
    return _values("A cut saves on chip, KB", found, summary)


def node_blame(choice: Choice) -> ScaleColouring | None:
    """What each operation of the chosen group keeps on chip."""
    if choice.blame is None:
        return None
    values = {one.node: max(0, one.held_bytes) / KB for one in choice.blame.nodes}
    return ScaleColouring(BLAME, "Kept on chip, KB", "", values, _SOURCE, is_partial=True)


def _values(title: str, found: Mapping[EdgeInfo, int], summary: GraphSummary) -> EdgeValues:
    """Keyed as the scene names its ends: in0, out0 and so on for inputs and outputs of the graph."""
    ends = {t.name: f"in{i}" for i, t in enumerate(summary.inputs)}
    outs = {t.name: f"out{i}" for i, t in enumerate(summary.outputs)}
    values: dict[tuple[str, ...], float] = {}
    for edge, size in found.items():
        source = edge.source or ends.get(edge.tensor, "")
        target = edge.target or outs.get(edge.tensor, "")
        values[source, target, edge.tensor] = size / KB
    return EdgeValues(title, values, source=_SOURCE)
