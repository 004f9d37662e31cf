"""Fusion in saved sessions: settings, chosen operations, plans and what is known of the optimum."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from explorer.errors import InputError
from explorer.fusion import Optimum, PlanFile, plan_json
from explorer.fusion.dims import recorded_dims
from explorer.records import Record
from explorer.session.fusion_values import FoundPlan, FusionSettings, FusionState

if TYPE_CHECKING:
    from explorer.session.fusion import FusionBench

_WHAT = "saved fusion plan"


def fusion_json(bench: FusionBench) -> dict[str, Any]:
    """What a session file keeps of fusion, as plain values."""
    state = bench.state()
    return {
        "settings": _settings_json(state.settings),
        "chosen": list(state.chosen),
        "plans": [_plan_json(found) for found in state.plans],
        "optima": [_optimum_json(settings, best) for settings, best in state.optima.items()],
        "current": state.current,
        "compared": state.compared,
    }


def recall_fusion(bench: FusionBench, data: object) -> None:
    """Restore what ``fusion_json`` wrote; the session must stand on the graph it was saved with.

    Plans that are not valid any more are left out, with a notice: they can be searched for again, and
    nothing else that was saved depends on them.

    Raises:
        InputError: the settings are missing or damaged.
    """
    record = Record(data, "saved fusion state")
    plans, lost = [], []
    for item in record.items("plans"):
        try:
            plans.append(_read_plan(bench, Record(item, _WHAT)))
        except InputError as error:
            lost.append(str(error))
    optima = {}
    for item in record.items("optima"):
        with suppress(InputError):
            settings, best = _read_optimum(bench, Record(item, "saved optimum"))
            optima[settings] = best
    count = f"{len(lost)} saved plan{'s' if len(lost) > 1 else ''}"
    notice = f"{count} could not be used again. {lost[0]}" if lost else ""
    bench.recall(
        FusionState(
            settings=_read_settings(Record(record.optional("settings"), "saved fusion setting")),
            chosen=record.texts("chosen"),
            plans=tuple(plans),
            optima=optima,
            current=record.text("current"),
            compared=record.text("compared"),
            notice=notice,
        )
    )


def _settings_json(settings: FusionSettings) -> dict[str, Any]:
    return {
        "scheme": settings.scheme,
        "buffer_bytes": settings.buffer_bytes,
        "element_bytes": settings.element_bytes,
        "dims": dict(settings.dims),
    }


def _read_settings(record: Record) -> FusionSettings:
    return FusionSettings(
        scheme=record.text("scheme"),
        buffer_bytes=record.integer("buffer_bytes", minimum=1),
        element_bytes=record.integer("element_bytes", minimum=1),
        dims=recorded_dims(record, "dims"),
    )


def _plan_json(found: FoundPlan) -> dict[str, Any]:
    return {
        "label": found.label,
        "plan": plan_json(found.plan, dict(found.settings.dims)),
        "search": found.search,
        "seed": found.seed,
        "plans": found.plans,
        "invalid_met": found.invalid_met,
        "seconds": found.seconds,
        "is_stopped": found.is_stopped,
    }


def _read_plan(bench: FusionBench, record: Record) -> FoundPlan:
    given = PlanFile.of(record.optional("plan"))
    settings = FusionSettings(given.scheme, given.capacity_bytes, given.element_bytes, given.dims)
    scheme = bench.scheme_for(settings)
    given.check(scheme.network)
    return FoundPlan(
        label=record.text("label"),
        settings=settings,
        plan=given.plan(scheme),
        search=record.text("search"),
        seed=record.integer("seed"),
        plans=record.integer("plans"),
        invalid_met=record.integer("invalid_met"),
        seconds=record.number("seconds"),
        is_stopped=bool(record.optional("is_stopped")),
    )


def _optimum_json(settings: FusionSettings, best: Optimum) -> dict[str, Any]:
    return {
        "plan": plan_json(best.plan, dict(settings.dims)),
        "bound_bytes": best.bound_bytes,
        "is_proved": best.is_proved,
        "method": best.method,
        "ideals": best.ideals,
        "seconds": best.seconds,
    }


def _read_optimum(bench: FusionBench, record: Record) -> tuple[FusionSettings, Optimum]:
    given = PlanFile.of(record.optional("plan"))
    settings = FusionSettings(given.scheme, given.capacity_bytes, given.element_bytes, given.dims)
    scheme = bench.scheme_for(settings)
    given.check(scheme.network)
    plan, bound = given.plan(scheme), record.integer("bound_bytes")
    is_proved = bool(record.optional("is_proved"))
    if bound > plan.dram_bytes or (is_proved and bound < plan.dram_bytes):
        raise InputError("The saved optimum and its bound contradict each other; save the session again.")
    text, ideals, seconds = record.text("method"), record.integer("ideals"), record.number("seconds")
    return settings, Optimum(plan, bound, is_proved, text, ideals, seconds)
