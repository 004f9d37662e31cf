"""Texts about what the runtime does: its own view of the graph, and what a roofline leaves out."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence

from explorer.runtime import Profile, RuntimeView
from explorer.runtime.roofs import Roofs
from explorer.session import Snapshot
from explorer.ui.chart.roofline import drawn, left_out
from explorer.ui.panels.parts import muted

Names = Callable[[str], str]
_MOST_LINES = 60


def view_html(view: RuntimeView, names: Names, snapshot: Snapshot) -> str:
    """What became of the model's nodes, which candidates are done already, which fusions did not happen."""
    ours = sum(not node.is_constant for node in snapshot.summary.nodes)
    fused = [f"{n.op_type} does the work of {_list(n.nodes, names)}" for n in view.fused]
    added = _counts([node.op_type for node in view.inserted])
    inserted = f" ({added})" if added else ""
    unfused = [
        f"{_list(u.nodes, names)} ({u.optimiser}): {u.reason}" + ("" if u.is_certain else " (not certain)")
        for u in view.unfused
    ]
    return (
        f"<p><b>{len(view.nodes)} operators are executed for the model’s {ours}</b> on "
        f"{html.escape(view.target)}: those that do the work of several: "
        f"{len(view.fused)}; those that the runtime added: {len(view.inserted)}{html.escape(inserted)}.</p>"
        f"{_absorbed(snapshot)}"
        f"{_section(f'Fusions that did not happen ({len(unfused)})', unfused, _NONE_UNFUSED)}"
        f"{_section(f'Fused by the runtime ({len(fused)})', fused, 'Nothing was fused.')}"
        f"{_section(f'Executed by nothing ({len(view.vanished)})', list(map(names, view.vanished)), _NONE_GONE)}"
    )


_NONE_UNFUSED = "None of the fusions known here was left out (only those of two neighbours are looked for)."
_NONE_GONE = "Every node of the model is executed."


def _absorbed(snapshot: Snapshot) -> str:
    asked = [row for row in snapshot.rows if row.is_absorbed is not None]
    done = [row for row in asked if row.is_absorbed]
    if not asked:
        return muted("No candidate was compared yet.")
    counts = _counts([row.title for row in done])
    head = f"The runtime does {len(done)} of {len(asked)} candidates itself"
    marked = f" (marked in the table): {html.escape(counts)}" if done else ""
    left = len(snapshot.rows) - len(asked)
    rest = f" Not compared yet, or not comparable: {left}." if left else ""
    return f"<p><b>{head}</b>{marked}.{rest}</p>"


def roofline_html(profile: Profile, roofs: Roofs) -> str:
    """How the diagram is to be read, and what is not in it."""
    count = sum(not kernel.in_body for kernel in profile.kernels)
    lines = [
        (
            f"{len(drawn(profile))} of {count} executed operators are drawn, larger where they take more time. "
            f"Left of {roofs.ridge_flops_per_byte:.1f} FLOPs per byte moving data is the limit, right of it "
            "computing. Click a point to see its nodes in the graph."
        ),
        *left_out(profile),
        (
            f"Measured on {profile.target}: times by {profile.protocol}; roofs by a product of 512 × 512 matrices "
            "and an element-wise pass over 32 MB, the fastest of three rounds. FLOPs and bytes are counted from the "
            "shapes, each byte once: data that stays in a cache, or a cheaper algorithm, lifts a point above its roof."
        ),
    ]
    return "".join(f"<p>{html.escape(line)}</p>" for line in lines)


def _section(title: str, lines: Sequence[str], empty: str) -> str:
    items = "".join(f"<li>{html.escape(line)}</li>" for line in lines[:_MOST_LINES])
    more = f"<li>and {len(lines) - _MOST_LINES} more</li>" if len(lines) > _MOST_LINES else ""
    content = f"<ul>{items}{more}</ul>" if lines else muted(empty)
    return f"<section><h4>{html.escape(title)}</h4>{content}</section>"


def _list(nodes: Sequence[str], names: Names) -> str:
    return " + ".join(map(names, nodes))


def _counts(words: Sequence[str]) -> str:
    """Repeated words as "A × 3, B"; empty for none."""
    counts: dict[str, int] = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    texts = [f"{word} × {count}" if count > 1 else word for word, count in counts.items()]
    return ", ".join(texts)
