"""The cost models a search on a session may optimise by, by name; a new one is one entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from explorer.cost import CostModel, MeasuredCost, OperatorSum
from explorer.errors import InputError
from explorer.graph import Feeds
from explorer.runtime import Measurer, Mode, Target
from explorer.runtime.executor import CancelToken
from explorer.runtime.progress import OnProgress, ignore_progress

MEASURED = "measured"
OPERATOR_SUM = "operator-sum"


@dataclass(frozen=True)
class World:
    """What a cost model may draw on.

    Attributes:
        measurer: where to measure what it needs.
        target: whose cost it is.
        feeds: inputs of the model, for measuring and for the sizes of dynamic dims.
        progress: called while something is measured.
        cancel: stops when set.
    """

    measurer: Measurer
    target: Target
    feeds: Feeds
    progress: OnProgress = ignore_progress
    cancel: CancelToken | None = None


@dataclass(frozen=True)
class CostChoice:
    """A cost model on offer.

    Attributes:
        label: in words, for a list to choose from.
        make: the model in a world.
    """

    label: str
    make: Callable[[World], CostModel]


def _measured(world: World) -> CostModel:
    return MeasuredCost(
        world.measurer, world.target, world.feeds, Mode.SCREENING, world.progress, world.cancel
    )


def _operator_sum(world: World) -> CostModel:
    return OperatorSum(
        world.measurer, world.target, world.feeds, literal=True, progress=world.progress, cancel=world.cancel
    )


COSTS: Mapping[str, CostChoice] = MappingProxyType(
    {
        MEASURED: CostChoice("measured on the target", _measured),
        OPERATOR_SUM: CostChoice("predicted: sum of operator times", _operator_sum),
    }
)


def cost_model(name: str, world: World) -> CostModel:
    """The cost model of this name; raises InputError if there is none."""
    if name not in COSTS:
        raise InputError(f"There is no cost model '{name}'; use one of: {', '.join(COSTS)}.")
    return COSTS[name].make(world)
