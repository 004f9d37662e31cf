"""The cost models a search on a session may optimise by or look ahead with, by name; a new one is one entry."""

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
        noun: the same, shorter, to be named beside another.
        make: the model in a world.
        is_predicted: whether it answers without timing the graphs in question, so that a search may look ahead with it.
    """

    label: str
    noun: str
    make: Callable[[World], CostModel]
    is_predicted: bool = True


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
        MEASURED: CostChoice("measured on the target", "measured time", _measured, is_predicted=False),
        OPERATOR_SUM: CostChoice("predicted: sum of operator times", "operator sums", _operator_sum),
    }
)


def cost_model(name: str, world: World) -> CostModel:
    """The cost model of this name; raises InputError if there is none."""
    return _choice(name).make(world)


@dataclass(frozen=True)
class Way:
    """How a search compares.

    Attributes:
        cost: name of the cost model that decides.
        scout: name of the one that looks ahead, so that what it finds is compared first; None for no looking ahead.

    Raises:
        InputError: there is no such cost model, or the scout is not one that predicts.
    """

    cost: str = MEASURED
    scout: str | None = None

    def __post_init__(self) -> None:
        _choice(self.cost)
        if self.scout is not None and not _choice(self.scout).is_predicted:
            raise InputError(f"A search looks ahead with a cost that predicts, not with '{self.scout}'.")
        if self.scout == self.cost:
            raise InputError(
                f"A search by '{self.cost}' cannot look ahead with the same; choose another cost."
            )

    @property
    def label(self) -> str:
        """Such as "measured time, looking ahead by operator sums"."""
        if self.scout is None:
            return COSTS[self.cost].label
        return f"{COSTS[self.cost].noun}, looking ahead by {COSTS[self.scout].noun}"


def ways() -> tuple[Way, ...]:
    """What a user may choose from: every cost, and what is measured with each predicted cost as a scout."""
    scouted = (Way(MEASURED, name) for name, choice in COSTS.items() if choice.is_predicted)
    return (Way(MEASURED), *scouted, *(Way(name) for name in COSTS if name != MEASURED))


def _choice(name: str) -> CostChoice:
    if name not in COSTS:
        raise InputError(f"There is no cost model '{name}'; use one of: {', '.join(COSTS)}.")
    return COSTS[name]
