"""What fusion lays over the graph: hulls of groups, traffic and blame on edges, blame on nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from explorer.fusion import KB, Plan
from explorer.fusion.network import bits
from explorer.graph import EdgeInfo, GraphSummary
from explorer.session.fusion_traffic import PlanDifference, blame_edges, dram_edges
from explorer.session.fusion_values import Choice
from explorer.ui.bill.wire import kb_text
from explorer.ui.graphview import EdgeClass, EdgeClasses, EdgeValues, Group, ScaleColouring
from explorer.ui.graphview.palette import BLUE, GREY, RED

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


def difference(found: PlanDifference, summary: GraphSummary) -> EdgeClasses:
    """Edges that only one of two plans cuts, by plan, and those that both cut."""
    kinds = (
        ("in plan A only", found.only_a, RED, 5.0, ""),
        ("in plan B only", found.only_b, BLUE, 5.0, "9,5"),
        ("in both plans", found.both, GREY, 2.2, ""),
    )
    return EdgeClasses(
        "Through DRAM",
        [
            EdgeClass(label, frozenset(_keys(edges, summary)), colour, width, dash)
            for label, edges, colour, width, dash in kinds
        ],
        source="predicted; thin lines: on chip in both",
    )


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
    sizes = (size / KB for size in found.values())
    return EdgeValues(title, dict(zip(_keys(found, summary), sizes, strict=True)), source=_SOURCE)


def _keys(edges: Iterable[EdgeInfo], summary: GraphSummary) -> list[tuple[str, ...]]:
    """Edges as the scene names their ends: in0, out0 and so on for inputs and outputs of the graph."""
    ins = {t.name: f"in{i}" for i, t in enumerate(summary.inputs)}
    outs = {t.name: f"out{i}" for i, t in enumerate(summary.outputs)}
    return [
        (edge.source or ins.get(edge.tensor, ""), edge.target or outs.get(edge.tensor, ""), edge.tensor)
        for edge in edges
    ]
