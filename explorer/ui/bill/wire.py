"""What the bill's widget gets: plain values and texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from explorer.fusion import KB, Blame, BufferReport, BufferTerm, TermKind
from explorer.session.fusion_values import Choice

Names = Callable[[str], str]
"""From the id of a node to what people read, such as "n4 Conv"."""

KINDS = {
    TermKind.WEIGHTS: "weights",
    TermKind.LINE_BUFFER: "rows for windows",
    TermKind.SHORTCUT_FIFO: "rows that wait",
}
_MOST_LINES = 200


def kb_text(size: float) -> str:
    """Bytes in KB of 1024 bytes, such as "5,973.75 KB"."""
    return f"{size / KB:,.2f} KB"


def bill_wire(choice: Choice | None, names: Names) -> dict[str, Any]:
    """The bill and the blame of a choice."""
    report = None if choice is None else choice.report
    if choice is None or report is None:
        return {}
    return {
        "capacity_bytes": report.capacity_bytes,
        "demand_bytes": report.demand_bytes,
        "capacity": f"{report.capacity_bytes / KB:g} KB",
        "demand": kb_text(report.demand_bytes),
        "fits": report.fits,
        "kinds": _kinds(report),
        "lines": [_line(report, term, names) for term in report.terms if term.bytes][:_MOST_LINES],
        "blame": _blame(choice.blame, names)[:_MOST_LINES],
        "has_blame": choice.blame is not None,
    }


def _kinds(report: BufferReport) -> list[dict[str, str]]:
    """The legend: what there is, and how much of it."""
    sizes = ((kind, report.total_bytes(kind)) for kind in KINDS)
    return [{"kind": k.value, "title": KINDS[k], "text": kb_text(size)} for k, size in sizes if size]


def _line(report: BufferReport, term: BufferTerm, names: Names) -> dict[str, Any]:
    nodes = [node for node in (term.producer, term.node) if node is not None]
    if term.tensor is None:
        title, detail = f"weights of {names(term.node)}", "stay on chip while the group runs"
    else:
        rows = f"{term.rows} row{'s' if term.rows != 1 else ''}"
        title, detail = f"{rows} for {names(term.node)}", f"{KINDS[term.kind]}, of {term.tensor}"
    return {
        "kind": term.kind.value,
        "title": title,
        "detail": detail,
        "bytes": term.bytes,
        "text": kb_text(term.bytes),
        "share": f"{term.bytes / max(1, report.capacity_bytes):.1%} of the buffer",
        "nodes": nodes,
    }


def _blame(blame: Blame | None, names: Names) -> Sequence[dict[str, Any]]:
    """Operations and edges by what the demand falls without them; those to blame for nothing left out."""
    if blame is None:
        return ()
    found = [
        (node.held_bytes, node.relief_bytes, names(node.node), list(node.nodes), "operation")
        for node in blame.nodes
    ]
    found += [
        (edge.held_bytes, edge.relief_bytes, f"{names(edge.source)} → {names(edge.target)}",
         [edge.source, edge.target], "edge")
        for edge in blame.edges
    ]  # fmt: skip
    found = sorted((line for line in found if line[0] or line[1]), key=lambda line: (-line[1], -line[0]))
    return [
        {"title": title, "kind": kind, "held": kb_text(held), "relief": kb_text(relief), "nodes": nodes}
        for held, relief, title, nodes, kind in found
    ]
