"""Texts of the Fuse panel, as safe HTML. KB is 1024 bytes."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping

from explorer.fusion import KB
from explorer.fusion.dims import with_example
from explorer.graph import EdgeInfo
from explorer.session.fusion_traffic import PlanDifference, tensor_bytes
from explorer.session.fusion_values import Choice, FusionView, PlanFacts
from explorer.ui.bill.wire import Names, kb_text
from explorer.ui.panels.parts import muted

HINT = (
    "Click an operation in the graph, Shift + click adds more, Shift + drag is a lasso; "
    "or take a group of the plan from the list."
)
_MOST_REMOVED = 30
_MOST_EDGES = 200


def totals_html(view: FusionView) -> str:
    """The card: traffic of the current plan, what it saves, its gap, what is left out."""
    if view.problem is not None:
        problem = with_example(view.problem, lambda name, size: f"{name}={size}")
        return f'<div role="alert"><b class="explorer-slower">✕ No plan</b> {html.escape(problem)}</div>'
    facts = view.current
    if facts is None:
        return muted("No plan yet.")
    found = facts.found
    gap, gap_note = _gap(facts)
    figures = (
        (kb_text(facts.dram_bytes), "DRAM traffic", ""),
        (
            f"{-facts.saved_ratio:+.1%}".replace("-", "−"),
            f"of {kb_text(facts.layer_by_layer_bytes)} layer by layer",
            "",
        ),
        (gap, gap_note, ""),
        (
            kb_text(facts.largest_bytes),
            f"largest of {facts.groups[0]} groups",
            f"{facts.groups[1]} of them have several operations; the buffer has {found.settings.buffer_bytes / KB:g} KB",
        ),
        (f"{facts.removed}", "left out of all totals", removed_text(facts)),
    )
    cells = "".join(_figure(*figure) for figure in figures)
    source = f"{found.label} · predicted, not measured · KB = 1024 bytes"
    notice = muted(view.notice) if view.notice else ""
    return f'<div class="explorer-fuse-figures" role="status">{cells}</div>{muted(source)}{notice}'


def _figure(value: str, note: str, title: str) -> str:
    more = f' tabindex="0" title="{html.escape(title)}"' if title else ""
    mark = ' class="explorer-fuse-why"' if title else ""
    return f"<div{more}><b>{html.escape(value)}</b><span{mark}>{html.escape(note)}</span></div>"


def removed_text(facts: PlanFacts) -> str:
    """The operations that fit no group, with reasons, one per line."""
    reasons = [f"{r.node} {r.op_type}: {r.reason}" for r in facts.found.plan.scheme.removed()]
    more = [f"and {len(reasons) - _MOST_REMOVED} more"] if len(reasons) > _MOST_REMOVED else []
    return "\n".join([*reasons[:_MOST_REMOVED], *more])


def _gap(facts: PlanFacts) -> tuple[str, str]:
    """How far a plan is from the optimum, and what is known of that."""
    gap, optimum = facts.gap_ratio, facts.optimum
    if gap is None or optimum is None:
        return "?", "gap to optimum: run EXACT"
    if not optimum.is_proved:
        return f"≤ {gap:.2%}", f"above {kb_text(optimum.bound_bytes)}, a bound"
    if optimum.bound_bytes == facts.dram_bytes:
        return "optimal", "gap 0 %, proved"
    return f"{gap:+.2%}", f"above {kb_text(optimum.bound_bytes)}, proved"


def choice_html(choice: Choice | None) -> str:
    """What the chosen operations are as a group, in a sentence or two."""
    if choice is None:
        return muted(HINT)
    count = f"{choice.operations} operation{'s' if choice.operations > 1 else ''}"
    if choice.problem is not None:
        path = " → ".join(choice.path)
        joins = bool(path) and " -> " not in choice.problem  # a sentence about convexity has the path
        path = f" The shortest way between them: {path}." if joins else ""
        return (
            f'<div role="alert"><b class="explorer-slower">✕ {count}: no fusion group.</b> '
            f"{html.escape(choice.problem)}{html.escape(path)}</div>"
        )
    report = choice.report
    refusal = "" if report is None or report.refusal is None else f" {html.escape(report.refusal)}"
    saved = choice.alone_bytes - choice.dram_bytes
    change = f", {kb_text(abs(saved))} {'less' if saved >= 0 else 'more'} than one by one"
    as_one, change = (" as one group", change) if choice.operations > 1 else (" on its own", "")
    moved = f"{kb_text(choice.dram_bytes)} of DRAM traffic{change}"
    return f"<div><b>{count}</b>{as_one}: {moved}.{refusal}</div>"


def comparison_html(current: PlanFacts | None, compared: PlanFacts | None) -> str:
    """Numbers of one plan, or of two side by side with their difference."""
    if current is None:
        return muted("No plan under these settings.")
    heads = ["", "A"] + (["B", "B − A"] if compared is not None else [])
    lines = [_line(title, current, compared, size) for title, size in _SIZES]
    lines += [
        _cells("gap to the optimum", [", ".join(_gap(f)) for f in (current, compared) if f is not None]),
        _cells("groups", [f"{f.groups[0]} ({f.groups[1]})" for f in (current, compared) if f is not None]),
        _cells("left out", [str(f.removed) for f in (current, compared) if f is not None]),
        _cells("plans tried", [_effort(f) for f in (current, compared) if f is not None]),
    ]
    top = "".join(f"<th>{head}</th>" for head in heads)
    return f'<table class="explorer-fuse-table"><tr>{top}</tr>{"".join(lines)}</table>'


def difference_html(found: PlanDifference, current: PlanFacts, compared: PlanFacts) -> str:
    """What one plan cuts and the other does not, in three sentences."""
    saved = current.dram_bytes - compared.dram_bytes
    share = f" ({abs(saved) / current.dram_bytes:.1%})" if current.dram_bytes else ""
    total = (
        f"B moves {kb_text(abs(saved))}{share} {'less' if saved > 0 else 'more'} than A."
        if saved
        else "Both plans move the same number of bytes."
    )
    parts = [
        f"Through DRAM in {name} only: {_edges_text(edges)}."
        for name, edges in (("A", found.only_a), ("B", found.only_b))
    ]
    same = "" if found.only_a or found.only_b else " Both cut the same edges."
    note = muted(
        f"{' '.join(parts)} {len(found.both)} in both.{same} Predicted. A tensor that goes through DRAM is written and read again; weights are in the totals only."
    )
    return f'<div role="status"><b>{html.escape(total)}</b>{note}</div>'


def differing_edges(found: PlanDifference, names: Names) -> list[tuple[str, tuple[str, ...]]]:
    """Options of a list: an edge that one plan cuts, the largest first, and the nodes at its ends."""
    both = [("A", *item) for item in found.only_a.items()] + [("B", *item) for item in found.only_b.items()]
    options = []
    for plan, edge, size in sorted(both, key=lambda item: -item[2])[:_MOST_EDGES]:
        ends = tuple(one for one in (edge.source, edge.target) if one)
        way = " → ".join(
            (names(edge.source) if edge.source else "input", names(edge.target) if edge.target else "output")
        )
        options.append((f"{plan} only: {way}, {kb_text(size)}", ends))
    return options


def _edges_text(edges: Mapping[EdgeInfo, int]) -> str:
    count = f"{len(edges)} edge{'' if len(edges) == 1 else 's'}"
    return f"{count}, tensors of {kb_text(tensor_bytes(edges))}" if edges else "no edge"


_SIZES: tuple[tuple[str, Callable[[PlanFacts], int]], ...] = (
    ("DRAM traffic", lambda facts: facts.dram_bytes),
    ("layer by layer", lambda facts: facts.layer_by_layer_bytes),
    ("largest group", lambda facts: facts.largest_bytes),
)


def _line(
    title: str, current: PlanFacts, compared: PlanFacts | None, size: Callable[[PlanFacts], int]
) -> str:
    texts = [kb_text(size(current))]
    if compared is not None:
        difference = size(compared) - size(current)
        sign = "+" if difference > 0 else "−" if difference < 0 else ""
        texts += [kb_text(size(compared)), f"{sign}{kb_text(abs(difference))}"]
    return _cells(title, texts)


def _cells(title: str, texts: list[str]) -> str:
    return f"<tr><th>{title}</th>{''.join(f'<td>{html.escape(text)}</td>' for text in texts)}</tr>"


def _effort(facts: PlanFacts) -> str:
    found = facts.found
    if found.search == "given":
        return "read from a file"
    return f"{found.plans} in {found.seconds:.2f} s, {found.invalid_met} misfits"
