"""Texts of the Fuse panel, as safe HTML. KB is 1024 bytes."""

from __future__ import annotations

import html
from collections.abc import Callable

from explorer.fusion import KB
from explorer.session.fusion_values import Choice, FusionView, PlanFacts
from explorer.ui.bill.wire import kb_text
from explorer.ui.panels.parts import muted

HINT = (
    "Click an operation in the graph, Shift + click adds more, Shift + drag is a lasso; "
    "or take a group of the plan from the list."
)
_MOST_REMOVED = 30


def gap_text(facts: PlanFacts) -> str:
    """How far a plan is from the optimum: proved, by a bound, or unknown."""
    gap, optimum = facts.gap_ratio, facts.optimum
    if gap is None or optimum is None:
        return "gap to the optimum not known yet: run EXACT"
    if not optimum.is_proved:
        return f"at most {gap:.2%} above the optimum (bound {kb_text(optimum.bound_bytes)}, not proved)"
    if optimum.bound_bytes == facts.dram_bytes:
        return "optimal, proved"
    return f"{gap:.2%} above the optimum of {kb_text(optimum.bound_bytes)} (proved)"


def totals_html(view: FusionView) -> str:
    """The card: traffic of the current plan, what it saves, its gap, what is left out."""
    if view.problem is not None:
        return f'<div role="alert"><b class="explorer-slower">✕ No plan</b> {html.escape(view.problem)}</div>'
    facts = view.current
    if facts is None:
        return muted("No plan yet.")
    found, several = facts.found, facts.groups[1]
    first = (
        f'<b class="explorer-fuse-total">{kb_text(facts.dram_bytes)}</b> of DRAM traffic, '
        f"{facts.saved_ratio:.1%} less than {kb_text(facts.layer_by_layer_bytes)} layer by layer · "
        f"<b>{html.escape(gap_text(facts))}</b>"
    )
    second = (
        f"{facts.groups[0]} groups, {several} of several operations · largest {kb_text(facts.largest_bytes)} "
        f"of {found.settings.buffer_bytes / KB:g} KB on chip · {_removed(facts)}"
    )
    third = (
        f"{found.label} · predicted by the scheme's cost model · KB = 1024 bytes · "
        f"{found.settings.element_bytes} B per element"
    )
    return f'<div role="status">{first}</div><div>{second}</div>{muted(third)}'


def _removed(facts: PlanFacts) -> str:
    if not facts.removed:
        return "no operation left out"
    reasons = [f"{r.node} {r.op_type}: {r.reason}" for r in facts.found.plan.scheme.removed()]
    more = [f"and {len(reasons) - _MOST_REMOVED} more"] if len(reasons) > _MOST_REMOVED else []
    title = html.escape("\n".join([*reasons[:_MOST_REMOVED], *more]))
    return (
        f'<span class="explorer-fuse-why" tabindex="0" title="{title}">{facts.removed} '
        f"operation{'s' if facts.removed > 1 else ''} left out of every total</span>"
    )


def choice_html(choice: Choice | None) -> str:
    """What the chosen operations are as a group, in a sentence or two."""
    if choice is None:
        return muted(HINT)
    count = f"{choice.operations} operation{'s' if choice.operations > 1 else ''}"
    if choice.problem is not None:
        path = f" Shown in the graph: {' → '.join(choice.path)}." if choice.path else ""
        return (
            f'<div role="alert"><b class="explorer-slower">✕ {count}: no fusion group.</b> '
            f"{html.escape(choice.problem)}{html.escape(path)}</div>"
        )
    report = choice.report
    refusal = "" if report is None or report.refusal is None else f" {html.escape(report.refusal)}"
    saved = choice.alone_bytes - choice.dram_bytes
    change = f"{kb_text(abs(saved))} {'less' if saved >= 0 else 'more'} than one by one"
    if choice.operations == 1:
        change = "on its own"
    return f"<div><b>{count}</b> as one group: {kb_text(choice.dram_bytes)} of DRAM traffic, {change}.{refusal}</div>"


def comparison_html(current: PlanFacts | None, compared: PlanFacts | None) -> str:
    """Numbers of one plan, or of two side by side with their difference."""
    if current is None:
        return muted("No plan under these settings.")
    heads = ["", "A"] + (["B", "B − A"] if compared is not None else [])
    lines = [_line(title, current, compared, size) for title, size in _SIZES]
    lines += [
        _cells("gap to the optimum", [_gap(f) for f in (current, compared) if f is not None]),
        _cells("groups", [f"{f.groups[0]} ({f.groups[1]})" for f in (current, compared) if f is not None]),
        _cells("left out", [str(f.removed) for f in (current, compared) if f is not None]),
        _cells("plans tried", [_effort(f) for f in (current, compared) if f is not None]),
    ]
    top = "".join(f"<th>{head}</th>" for head in heads)
    return f'<table class="explorer-fuse-table"><tr>{top}</tr>{"".join(lines)}</table>'


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


def _gap(facts: PlanFacts) -> str:
    gap, optimum = facts.gap_ratio, facts.optimum
    if gap is None or optimum is None:
        return "not known"
    return f"{gap:.2%}, proved" if optimum.is_proved else f"at most {gap:.2%}"


def _effort(facts: PlanFacts) -> str:
    found = facts.found
    return f"{found.plans} in {found.seconds:.2f} s, {found.invalid_met} misfits"
