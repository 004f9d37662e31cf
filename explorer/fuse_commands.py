"""``explorer fuse``: thin over ``explorer.fusion.fuse``."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from explorer.errors import InputError
from explorer.printing import print_result
from explorer.records import write_json

if TYPE_CHECKING:
    from explorer.fusion import FuseResult, Scheme, SearchEvent
    from explorer.fusion.dims import Size

SEARCH_NAMES = ("rs", "ls", "nsga2", "greedy", "exact", "interval")
SCHEME_NAMES = ("lbdf", "brr")
DEFAULT_SCHEME = "lbdf"
DEFAULT_BUFFER_KB = 256
DEFAULT_ELEMENT_BYTES = 2
_SHOWN_GROUPS = 40


def fuse(arguments: Namespace) -> int:
    """``explorer fuse``."""
    from explorer.fusion import plan_json
    from explorer.fusion.dims import with_example

    try:
        result = _given(arguments) if arguments.plan else _searched(arguments)
    except InputError as error:
        raise InputError(with_example(str(error), _option)) from error
    data = result.to_json() | {"explainer": arguments.explainer, "out": None}
    if arguments.out:
        data["out"] = str(write_json(arguments.out, plan_json(result.plan, _sizes(arguments))))
    return print_result(arguments, data, _lines(result, data["out"]))


def _searched(arguments: Namespace) -> FuseResult:
    from explorer.fusion import fuse as search_plan
    from explorer.graph import load

    return search_plan(
        load(arguments.model, fill_weights=arguments.fill_weights),
        scheme=arguments.scheme or DEFAULT_SCHEME,
        buffer_kb=DEFAULT_BUFFER_KB if arguments.buffer_kb is None else arguments.buffer_kb,
        search=arguments.search or "exact",
        budget=arguments.budget,
        seed=arguments.seed,
        element_bytes=arguments.element_bytes or DEFAULT_ELEMENT_BYTES,
        dims=_sizes(arguments),
        time_limit_seconds=arguments.time_limit,
        on_event=_show_event,
    )


def _given(arguments: Namespace) -> FuseResult:
    from explorer.fusion import PlanFile, weigh_plan
    from explorer.graph import load

    if arguments.search:
        raise InputError("A plan that is given is not searched for; leave out --plan or --search.")
    plan = PlanFile.read(arguments.plan)
    return weigh_plan(
        load(arguments.model, fill_weights=arguments.fill_weights),
        plan,
        scheme=arguments.scheme,
        buffer_kb=arguments.buffer_kb,
        element_bytes=arguments.element_bytes,
        dims=_sizes(arguments) or None,
        time_limit_seconds=arguments.time_limit,
    )


def _sizes(arguments: Namespace) -> dict[str, Size]:
    from explorer.fusion.dims import read_dims

    return dict(arguments.dim) | read_dims(", ".join(arguments.shape))


def _option(name: str, size: str) -> str:
    return f"--{'shape' if 'x' in size else 'dim'} {name}={size}"


def _lines(result: FuseResult, out: object) -> list[str]:
    from explorer.fusion import KB, Plan

    plan, scheme = result.plan, result.plan.scheme
    alone = Plan.layer_by_layer(scheme).dram_bytes
    removed = scheme.removed()
    settings = f"{scheme.name.upper()}, buffer {scheme.capacity_bytes / KB:g} KB, KB = 1024 bytes, predicted"
    lines = [
        f"{scheme.network.name}: {plan.dram_bytes / KB:,.2f} KB of DRAM traffic in {len(plan.masks)} groups",
        settings,
        f"layer by layer {alone / KB:,.2f} KB; largest group {plan.largest_demand_bytes / KB:,.2f} KB on chip",
        _gap_line(result),
        _effort_line(result),
    ]
    if removed:
        count = "1 operation fits" if len(removed) == 1 else f"{len(removed)} operations fit"
        lines.append(f"{count} no group, left out of all totals:")
        lines += [f"  {one.node} {one.op_type}: {one.reason}" for one in removed[:_SHOWN_GROUPS]]
    lines += [_group_line(number, plan.scheme, mask) for number, mask in _largest(result)]
    return [*lines, *([f"wrote {out}"] if out else [])]


def _gap_line(result: FuseResult) -> str:
    from explorer.fusion import KB

    best, gap = result.optimum, result.gap_ratio
    if gap is None:
        return "gap to the optimum: unknown, no bound was found in time; give more with --time-limit"
    if best.is_proved:
        return f"gap to the optimum: {gap:.2%} of {best.bound_bytes / KB:,.2f} KB (proved, {best.method})"
    return (
        f"gap to the optimum: at most {gap:.2%}; no plan moves less than "
        f"{best.bound_bytes / KB:,.2f} KB (bound by {best.method}, not proved)"
    )


def _effort_line(result: FuseResult) -> str:
    if result.search == "given":
        return "the plan was given, not searched for"
    plans = f"{result.plans} plan{'s' if result.plans > 1 else ''} in {result.seconds:.2f} s"
    misfits = f", {result.invalid_met} groups on the way did not fit" if result.invalid_met else ""
    return f"{result.search}: {plans}{misfits}"


def _largest(result: FuseResult) -> list[tuple[int, int]]:
    """Number and bits of groups of several operations, in the order in which they run."""
    found = [(i, mask) for i, mask in enumerate(result.plan.masks, start=1) if mask & (mask - 1)]
    return found[:_SHOWN_GROUPS]


def _group_line(number: int, scheme: Scheme, mask: int) -> str:
    from explorer.fusion import KB

    cost = scheme.cost(mask)
    names = " ".join(scheme.network.ids(mask))
    return f"group {number}: {cost.demand_bytes / KB:,.2f} KB on chip, {cost.dram_bytes / KB:,.2f} KB moved: {names}"


def _show_event(event: SearchEvent) -> None:
    """One line on a terminal that the next one replaces."""
    if not sys.stderr.isatty() or not (event.is_done or event.plans % 50 == 0):
        return
    share = "" if event.progress is None else f", {event.progress:.0%}"
    end = "\r\x1b[K" if event.is_done else ""
    sys.stderr.write(f"\r\x1b[K{event.plans} plans{share}, best {event.best_bytes / 1024:,.2f} KB{end}")
